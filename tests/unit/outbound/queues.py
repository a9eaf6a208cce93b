"""Helpers for the tests of sessions: fill a queue, and inspect it."""

from typing import Any

from jmsjca import Connection, MessageConsumer, Queue, TextMessage

PATIENCE = 30
QUEUE = Queue("q")


def put(connection: Connection, *bodies: str, to: Queue = QUEUE, **options: Any) -> None:
    with connection.create_session() as session:
        producer = session.create_producer(to)
        for body in bodies:
            producer.send(TextMessage(body), **options)


def shown(connection: Connection, queue: Queue = QUEUE) -> list[str]:
    with connection.create_session() as session:
        return [message.body for message in session.create_browser(queue)]


def take(consumer: MessageConsumer, count: int) -> list[str]:
    """The bodies of the next messages."""
    return [consumer.receive(PATIENCE).body for _ in range(count)]


def left(consumer: MessageConsumer) -> list[tuple[str, int]]:
    """All that is there: each body with its delivery count."""
    return [(message.body, message.delivery_count) for message in iter(consumer.receive_no_wait, None)]
