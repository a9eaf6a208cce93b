"""One connection of ours to a broker, with what tests ask of it."""

from jms_java.client import SECONDS
from jmsjca import ConnectionFactory


class OurClient:
    """A connection of ours.

    Args:
        url: The broker.
        client_id: The connection's, if it needs one.
    """

    def __init__(self, url, client_id=None):
        self.connection = ConnectionFactory(url, client_id=client_id).create_connection()
        self.connection.start()

    def send(self, to, message, **options):
        """Send a message."""
        with self.connection.create_session() as session:
            session.create_producer(to).send(message, **options)

    def take(self, source, count=1, selector=None):
        """Receive so many messages with a consumer for these only."""
        with (
            self.connection.create_session() as session,
            session.create_consumer(source, selector=selector) as consumer,
        ):
            return [receive(consumer) for _ in range(count)]

    def browse(self, source, selector=None):
        """Look at a queue."""
        with self.connection.create_session() as session:
            return list(session.create_browser(source, selector=selector))

    def close(self):
        """Close the connection with all that is of it."""
        self.connection.close()


def receive(consumer):
    """Receive a message, which must come."""
    message = consumer.receive(timeout=SECONDS)
    assert message is not None, "We received nothing."
    return message
