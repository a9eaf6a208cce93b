"""How long a message asks to be kept waiting for its acknowledgement (as the connector of Jitterbit has it)."""

from jmsjca.messages import Message

__all__ = ["asked_timeout"]

_PROPERTY = "JBXAcknowledgmentTimeout"


def asked_timeout(message: Message, most: float) -> float | None:
    """Tell how long, in seconds; None if it does not ask.

    Args:
        message: What was received.
        most: More than this does not count.
    """
    if not message.may_have(_PROPERTY):  # as nearly always
        return None
    seconds = _number(message.properties.get(_PROPERTY))
    return min(seconds, most) if seconds > 0 else None


def _number(value: object) -> float:
    """Read a number, also one that came as text, as all do over STOMP; 0 if it is none."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return 0.0
    try:
        return float(value)
    except ValueError:
        return 0.0
