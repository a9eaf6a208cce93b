"""Proton's loops in Python."""

from collections.abc import Mapping
from contextlib import closing

from proton.utils import BlockingConnection

from tests.benchmarks.field.turns import Turn, seconds_of, since
from tests.benchmarks.measurements import clocks
from tests.benchmarks.proton_loops import BODY, PATIENCE, HandlerReceives, HandlerSends, InQueue
from tests.benchmarks.proton_transactions import AtomicHandlerReceives, AtomicHandlerSends

__all__ = [
    "atomic_receives",
    "atomic_sends",
    "blocking_receives",
    "blocking_sends",
    "handler_receives",
    "handler_sends",
]


def handler_receives(turn: Turn) -> Mapping[str, float]:
    """`MessagingHandler`: accepts each message when it comes."""
    return seconds_of(HandlerReceives(turn.url, turn.queue, turn.count, turn.ahead).run(), turn.count)


def handler_sends(turn: Turn) -> Mapping[str, float]:
    """`MessagingHandler`: sends as credit allows, until all is answered."""
    return seconds_of(HandlerSends(turn.url, turn.queue, turn.count).run(), turn.count)


def atomic_receives(turn: Turn) -> Mapping[str, float]:
    """`TransactionHandler`: asks for the messages of a transaction when that has begun."""
    return seconds_of(AtomicHandlerReceives(turn.url, turn.queue, turn.count).run(), turn.count)


def atomic_sends(turn: Turn) -> Mapping[str, float]:
    """`TransactionHandler`: commits without a look at what the broker said to the messages."""
    return seconds_of(AtomicHandlerSends(turn.url, turn.queue, turn.count).run(), turn.count)


def blocking_receives(turn: Turn) -> Mapping[str, float]:
    """`BlockingConnection`: receives and accepts, message by message."""
    with closing(BlockingConnection(turn.url, allowed_mechs="ANONYMOUS")) as connection:
        began, receiver = clocks(), connection.create_receiver(turn.queue, credit=turn.ahead, options=InQueue())
        for _ in range(turn.count):
            assert len(receiver.receive(PATIENCE).body) == len(BODY)
            receiver.accept()
        return since(began)


def blocking_sends(turn: Turn) -> Mapping[str, float]:
    """`BlockingConnection`: each send waits for its answer."""
    message = HandlerSends(turn.url, turn.queue, turn.count).message
    with closing(BlockingConnection(turn.url, allowed_mechs="ANONYMOUS")) as connection:
        began, sender = clocks(), connection.create_sender(turn.queue, options=InQueue())
        for _ in range(turn.count):
            sender.send(message())
        return since(began)
