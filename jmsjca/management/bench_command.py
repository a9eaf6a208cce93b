"""The command that measures a broker: ``jmsjca bench``."""

import uuid
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from time import perf_counter
from typing import Annotated

import typer

from jmsjca.destinations import Destination, Queue
from jmsjca.errors import JMSError
from jmsjca.management.presentation import JsonOption, broker_url, print_rows
from jmsjca.messages.message import TextMessage
from jmsjca.outbound.connection import Connection
from jmsjca.outbound.factory import ConnectionFactory
from jmsjca.outbound.session import Session

__all__ = ["bench_app"]

bench_app = typer.Typer(rich_markup_mode=None)

_PATIENCE = 60.0  # seconds to wait for a message that was sent


@bench_app.command()
def bench(
    url: Annotated[str, typer.Argument(help="The URL, or env:NAME.")],
    messages: Annotated[int, typer.Option(min=1, help="The number of messages of each measurement.")] = 1000,
    size: Annotated[int, typer.Option(min=0, help="Characters of each body.")] = 100,
    json: JsonOption = False,
) -> None:
    """Measure sends and receipts through a queue of its own: each alone, and in transactions of 100 messages."""
    with ConnectionFactory(broker_url(url)).create_connection() as connection, _own_queue(connection) as queue:
        has_transactions = connection.capabilities.transacted_receive and connection.capabilities.transacted_send
        rows = [
            row
            for transacted in ([False, True] if has_transactions else [False])
            for row in _rows(connection, queue, "x" * size, messages, transacted=transacted)
        ]
    print_rows(rows, as_json=json)


@contextmanager
def _own_queue(connection: Connection) -> Generator[Destination]:
    """Provide a queue, which is removed with its messages at the end: a temporary one, or one with a unique name.

    Without an administration over this protocol, the empty queue stays on brokers without temporary ones.
    """
    with connection.create_session() as session:
        if connection.capabilities.temporary:
            queue = session.create_temporary_queue()
            yield queue
            queue.delete()
            return
    named = Queue(f"jmsjca.bench.{uuid.uuid4().hex}")
    try:
        yield named
    except BaseException:
        with suppress(JMSError):  # the first error is the one to show
            _remove(connection, named)
        raise
    _remove(connection, named)


def _remove(connection: Connection, queue: Queue) -> None:
    if connection.admin is not None:
        connection.admin.remove(queue)


def _rows(
    connection: Connection, queue: Destination, body: str, messages: int, *, transacted: bool
) -> Iterator[dict[str, object]]:
    name = "transactions of 100" if transacted else "one by one"
    with connection.create_session(transacted) as session:
        producer = session.create_producer(queue)
        yield _row(f"send, {name}", messages, _timed(session, messages, lambda: producer.send(TextMessage(body))))
        consumer = session.create_consumer(queue)

        def receive() -> None:
            """Receive one message."""
            if consumer.receive(_PATIENCE) is None:
                raise JMSError(f"A message did not arrive within {_PATIENCE:g} s.")

        yield _row(f"receive, {name}", messages, _timed(session, messages, receive))
        consumer.close()


def _timed(session: Session, messages: int, step: Callable[[], object]) -> float:
    """Return the seconds that steps take; a transacted session commits every hundred."""
    began = perf_counter()
    for number in range(1, messages + 1):
        step()
        if session.transacted and (number % 100 == 0 or number == messages):
            session.commit()
    return perf_counter() - began


def _row(what: str, messages: int, seconds: float) -> dict[str, object]:
    return {
        "measured": what,
        "messages": messages,
        "per_second": round(messages / seconds),
        "microseconds_each": round(1e6 * seconds / messages, 1),
    }
