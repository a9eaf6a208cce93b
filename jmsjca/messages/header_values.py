"""The values of the headers that a send sets, after validation: delivery mode, priority and times."""

from jmsjca.arguments import enum_member, wrong_argument
from jmsjca.errors import MessageFormatError
from jmsjca.messages.message import DeliveryMode

__all__ = ["MAX_SECONDS", "checked_mode", "checked_priority", "checked_seconds"]

_MODES = {int(mode): mode for mode in DeliveryMode}
MAX_SECONDS = 1e10
"""The longest time to live and delivery delay, about 317 years: sums with the current time are within `datetime`."""


def checked_mode(name: str, value: object) -> DeliveryMode:
    """Return a delivery mode after validation (JMS 3.1, section 7.7).

    Raises:
        MessageFormatError: The value is no delivery mode.
    """
    if type(value) is int and value in _MODES:
        return _MODES[value]
    return enum_member(name, value, DeliveryMode, MessageFormatError)


def checked_priority(name: str, value: object) -> int:
    """Return a priority after validation (JMS 3.1, section 3.4.10).

    Raises:
        MessageFormatError: The value is not a whole number from 0 to 9.
    """
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= 9:  # noqa: PLR2004  # the range of JMS
        raise wrong_argument(name, value, "a whole number from 0 to 9", MessageFormatError)
    return value


def checked_seconds(name: str, value: object) -> float:
    """Return a time to live or a delivery delay in seconds after validation (JMS 3.1, sections 7.8 and 7.9).

    Raises:
        MessageFormatError: The value is no number, negative, or beyond the range of dates.
    """
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= MAX_SECONDS:  # nor NaN
        wanted = f"seconds, as a number from 0 to {MAX_SECONDS:g}"
        raise wrong_argument(name, value, wanted, MessageFormatError)
    return value
