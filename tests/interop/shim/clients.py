"""The clients that a shim may be of: ours, and Java's over AMQP 1.0 and OpenWire."""

from contextlib import contextmanager

from jms_java import JavaClient, JavaPeer, describe

from jmsjca import ConnectionFactory, Queue

__all__ = ["CLIENTS", "connect"]

_SCHEMES = {"jmsjca": "amqp", "qpid-jms": "amqp", "openwire": "tcp"}
CLIENTS = tuple(_SCHEMES)


class _Ours:
    """One connection of ours."""

    def __init__(self, url):
        self._connection = ConnectionFactory(url).create_connection()
        self._connection.start()

    def send(self, queue, messages):
        with self._connection.create_session(transacted=False) as session:
            producer = session.create_producer(Queue(queue))
            for message in messages:
                producer.send(message)

    def receive(self, queue, count, seconds):
        with self._connection.create_session() as session, session.create_consumer(Queue(queue)) as consumer:
            received = (consumer.receive(timeout=seconds) for _ in range(count))
            return [describe(message) for message in received if message is not None]

    def close(self):
        self._connection.close()


class _Javas:
    """One connection of Java's, in a process of its own."""

    def __init__(self, url):
        self._peer = JavaPeer()
        self._client = JavaClient(self._peer, url)
        self._session = self._client.session()

    def send(self, queue, messages):
        for message in messages:
            self._session.send(Queue(queue), message)

    def receive(self, queue, count, seconds):
        consumer = self._session.consumer(Queue(queue))
        received = (consumer.receive_or_none(seconds) for _ in range(count))
        return [told for told in received if told is not None]

    def close(self):
        self._client.close()
        self._peer.close()


@contextmanager
def connect(name, broker):
    """Connect a client, by its name, to a broker, by its URL or its host and port."""
    url = broker if "://" in broker else f"{_SCHEMES[name]}://{broker}"
    client = (_Ours if name == "jmsjca" else _Javas)(url)
    try:
        yield client
    finally:
        client.close()
