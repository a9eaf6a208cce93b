"""What can be timed: our public API ("session") and the provider's interface below it ("unit")."""

from typing import Protocol

from jmsjca import BytesMessage, ConnectionFactory, Limits, Queue
from jmsjca.reconnection import ConnectionSettings, connect

__all__ = ["BODY", "QUEUE", "Contender", "SessionContender", "UnitContender"]

BODY = b"x" * 1024
QUEUE = Queue("bench")


class Contender(Protocol):
    """Sends and receives messages with `BODY`; a batch is one transaction."""

    def send(self, count: int, batch: int) -> None: ...
    def receive(self, count: int, batch: int) -> None: ...
    def close(self) -> None: ...


class SessionContender:
    """Transacted sessions of the public API.

    Args:
        url: The broker.
        ahead: How many messages a consumer takes ahead; None for the default.
    """

    def __init__(self, url: str, ahead: int | None = None) -> None:
        limits = Limits() if ahead is None else Limits(prefetch_messages=ahead)
        self._connection = ConnectionFactory(url, limits=limits).create_connection()
        self._connection.start()
        self._session = self._connection.create_session(transacted=True)
        self._producer = self._session.create_producer(QUEUE)
        self._consumer = self._session.create_consumer(QUEUE)

    def send(self, count: int, batch: int) -> None:
        for _ in range(count // batch):
            for _ in range(batch):
                self._producer.send(self._session.create_bytes_message(BODY))
            self._session.commit()

    def receive(self, count: int, batch: int) -> None:
        for _ in range(count // batch):
            for _ in range(batch):
                message = self._consumer.receive(timeout=0)
                assert message is not None
                assert len(message.body) == len(BODY)
            self._session.commit()

    def close(self) -> None:
        self._connection.close()


class UnitContender:
    """Units and consumers of the provider.

    Args:
        url: The broker.
    """

    def __init__(self, url: str) -> None:
        self._link = connect(ConnectionSettings(url))
        self._consumer = self._link.consumer(QUEUE)

    def send(self, count: int, batch: int) -> None:
        for _ in range(count // batch):
            unit = self._link.unit()
            for _ in range(batch):
                unit.send(BytesMessage(BODY), QUEUE)
            unit.commit()

    def receive(self, count: int, batch: int) -> None:
        for _ in range(count // batch):
            deliveries = self._consumer.receive(batch, 0)
            assert len(deliveries) == batch
            assert all(len(d.message.body) == len(BODY) for d in deliveries)
            unit = self._link.unit()
            unit.take(deliveries)
            unit.commit()

    def close(self) -> None:
        self._link.close()
