"""Proton's loops in Python, and what RabbitMQ makes of them."""

from collections.abc import Mapping
from contextlib import closing

from proton.utils import BlockingConnection

from tests.benchmarks.field.turns import Turn, seconds_of, since
from tests.benchmarks.measurements import clocks
from tests.benchmarks.proton_loops import BODY, PATIENCE, HandlerReceives, HandlerSends, InQueue

__all__ = ["blocking_receives", "blocking_sends", "handler_receives", "handler_sends", "rabbitmq_client"]


def handler_receives(turn: Turn) -> Mapping[str, float]:
    """`MessagingHandler`: accepts each message when it comes."""
    return seconds_of(HandlerReceives(turn.url, turn.queue, turn.count, turn.ahead).run(), turn.count)


def handler_sends(turn: Turn) -> Mapping[str, float]:
    """`MessagingHandler`: sends as credit allows, until all is answered."""
    return seconds_of(HandlerSends(turn.url, turn.queue, turn.count).run(), turn.count)


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


def rabbitmq_client(turn: Turn) -> Mapping[str, float]:
    """rabbitmq-amqp-python-client: its publisher and its consumer are proton's blocking ones, where it connects."""
    from rabbitmq_amqp_python_client import Environment, ValidationCodeException  # its absence is told in the table

    try:
        Environment(uri=turn.url).connection().dial()
    except ValidationCodeException as refusal:  # which is no Exception
        raise ConnectionRefusedError(str(refusal)) from refusal
    raise NotImplementedError("It connects: time its publisher and its consumer as well.")
