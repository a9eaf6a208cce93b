"""What the tests of sessions share: putting messages into a queue, and looking at it."""

from jmsjca import Connection, Queue, TextMessage

QUEUE = Queue("q")


def put(connection: Connection, *bodies: str) -> None:
    with connection.create_session() as session:
        producer = session.create_producer(QUEUE)
        for body in bodies:
            producer.send(TextMessage(body))


def shown(connection: Connection) -> list[str]:
    with connection.create_session() as session:
        return [message.body for message in session.create_browser(QUEUE)]
