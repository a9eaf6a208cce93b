"""The proof that a broker has handled what was acknowledged."""

from concurrent.futures import Future
from typing import TYPE_CHECKING

from jmsjca.providers.amqp.settling import SettlingConsumer

if TYPE_CHECKING:
    from jmsjca.providers.amqp.wire import Wire

__all__ = ["proof"]


def proof(wire: "Wire", consumer: SettlingConsumer) -> "Future[None]":
    """Ask for it. Not on the engine's thread, which need not be waited for before the broker's answer is.

    Args:
        wire: The connection.
        consumer: Who received what was acknowledged.

    Returns:
        Done when the broker has handled all that was written for this consumer before.
    """
    reply: Future[None] = Future()
    wire.tell(lambda: consumer.round_trip().add_done_callback(lambda answer: _pass_on(answer, reply)), reply)
    return reply


def _pass_on(answer: "Future[bool]", reply: "Future[None]") -> None:
    error = answer.exception()
    if error is None:
        reply.set_result(None)
    else:
        reply.set_exception(error)
