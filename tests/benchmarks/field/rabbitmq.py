"""rabbitmq-amqp-python-client, which takes RabbitMQ 4 and nothing else: here one check of its is lifted.

Its `Connection` refuses every broker that does not call itself RabbitMQ 4 or later; `_AnyBroker` does not look. No
other part of the client is changed. Its addresses begin with ``/queues/``, which on other brokers is part of a name.
"""

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from typing import Any

from rabbitmq_amqp_python_client import AddressHelper, Connection, Delivery, Message, MessagingHandler

from tests.benchmarks.field.ours import empty, fill
from tests.benchmarks.field.turns import Turn, since
from tests.benchmarks.measurements import clocks
from tests.benchmarks.proton_loops import BODY, PATIENCE

__all__ = ["receives", "sends"]


def receives(turn: Turn) -> Mapping[str, float]:
    """Its consumer: accepts each message when it has been handled."""
    handler = _Counts(turn.ahead)
    with _filled(turn, turn.count) as address, _connected(turn.url) as connection:
        began = clocks()
        connection.consumer(address, message_handler=handler, credit=0)  # type: ignore[arg-type]  # the handler grants it
        # The same loop as in `Consumer.run`: that ends by `stop` alone, after which `close` waits until its timeout.
        connection._conn.wait(lambda: handler.done == turn.count, PATIENCE)
        return since(began)


def sends(turn: Turn) -> Mapping[str, float]:
    """Its publisher: each message, durable unless told otherwise, waits for its outcome."""
    # One message beforehand makes the address a queue's: the publisher does not ask for a queue.
    with _filled(turn, 1) as address, _connected(turn.url) as connection:
        began, publisher = clocks(), connection.publisher(address)
        for _ in range(turn.count):
            assert publisher.publish(Message(BODY)).remote_state == Delivery.ACCEPTED
        return since(began)


class _AnyBroker(Connection):
    def _validate_server_properties(self) -> None:
        """Takes every product in every version."""


class _Counts(MessagingHandler):
    """Takes as many ahead as it is told; with `AMQPMessagingHandler` it would be 10, whatever the credit."""

    def __init__(self, ahead: int) -> None:
        super().__init__(prefetch=ahead, auto_accept=True)
        self.done = 0

    def on_message(self, event: Any) -> None:
        assert len(event.message.body) == len(BODY)
        self.done += 1


@contextmanager
def _connected(url: str) -> Iterator[Connection]:
    connection = _AnyBroker(uri=url)
    connection.dial()
    with closing(connection):
        yield connection


@contextmanager
def _filled(turn: Turn, count: int) -> Iterator[str]:
    """A queue with so many messages, called as the client addresses it; that of the turn stays as it is."""
    there = turn._replace(queue=AddressHelper.queue_address(turn.queue), count=count)
    fill(there)
    try:
        yield there.queue
    finally:
        empty(there)
