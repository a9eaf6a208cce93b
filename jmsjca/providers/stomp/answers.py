"""What a broker says in CONNECTED and in ERROR."""

from collections.abc import Mapping

from jmsjca.errors import ConnectionLostError
from jmsjca.providers.stomp.frames import Frame
from jmsjca.providers.stomp.library import agreed_heartbeat

__all__ = ["heartbeat_of", "reason_of"]

_SHOWN = 500  # characters of what a broker says


def heartbeat_of(answer: Mapping[str, str], offer: int) -> tuple[int, int]:
    """After how many milliseconds this side must write, and within how many the other one will; 0 for never.

    Args:
        answer: The headers of CONNECTED.
        offer: The milliseconds that this side offered, both ways.

    Raises:
        ConnectionLostError: What the broker says of it cannot be read.
    """
    try:
        return agreed_heartbeat(answer.get("heart-beat", "0,0"), offer)
    except ValueError as error:
        raise ConnectionLostError("The broker broke the STOMP protocol: its heart-beat header is none.") from error


def reason_of(frame: Frame) -> str:
    """What the broker says is wrong, on one line: it may repeat what anybody sent."""
    first = frame.body[:_SHOWN].decode(errors="replace").strip().partition("\n")[0]
    text = ": ".join(dict.fromkeys(part for part in (frame.headers.get("message", "").strip(), first) if part))
    return "".join(character if character.isprintable() else " " for character in text[:_SHOWN]) or "no reason given"
