"""How messages go back to a broker that takes them back only one by one."""

from collections.abc import Callable, Sequence

from jmsjca.providers.stomp.dialect import Dialect
from jmsjca.providers.stomp.frames import Frame
from jmsjca.providers.stomp.wire import Wire

__all__ = ["return_by_nack", "round_trip"]

_RETURN = {"transaction": "return"}
_BARRIER = {"transaction": "barrier"}


def return_by_nack(
    wire: Wire, dialect: Dialect, names: Sequence[str], unsettled: Callable[[], Sequence[Frame]]
) -> None:
    """End subscriptions, and return all that came or still comes over them.

    The broker looks a subscription up when it reads a NACK, so each one is first exchanged for another of the same name
    to which nothing is ever sent. By the commit, when messages go back, nobody is subscribed here who would get them
    again.

    Args:
        wire: The connection.
        dialect: What the broker calls things.
        names: The subscriptions.
        unsettled: Tells what has come up to now and is not settled.
    """
    with wire.turn(wire.reply_timeout):
        wire.tell("BEGIN", _RETURN)
        for name in names:
            _silence(wire, dialect, name)
            frames = [frame for frame in unsettled() if frame.headers["subscription"] == name]
            wire.request("UNSUBSCRIBE", {"id": name}, head=_nacks(wire, dialect, frames))
        wire.request("COMMIT", _RETURN)


def round_trip(wire: Wire) -> None:
    """Wait for a receipt behind all that was on its way."""
    wire.tell("BEGIN", _BARRIER)
    wire.request("ABORT", _BARRIER)


def _silence(wire: Wire, dialect: Dialect, name: str) -> None:
    """Let nothing more come.

    Both frames are one write: a message that the broker handles between them would belong to no subscription, and end
    the connection. What it has in hand by then comes before the answer to its next request.
    """
    head = wire.encode("UNSUBSCRIBE", {"id": name})
    wire.request("SUBSCRIBE", {"id": name, **dialect.silence()}, head=head)
    round_trip(wire)


def _nacks(wire: Wire, dialect: Dialect, frames: Sequence[Frame]) -> bytes:
    headers = ({**dialect.acknowledgement(frame), **_RETURN, "requeue": "true"} for frame in frames)
    return b"".join(wire.encode("NACK", each) for each in headers)
