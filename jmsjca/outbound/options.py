"""How a producer's messages are delivered: defaults of the producer, checked when they are set."""

from collections.abc import Callable

from jmsjca.errors import MessageFormatError
from jmsjca.messages import DeliveryMode

__all__ = ["DeliveryOptions", "check_delay", "check_mode", "check_priority", "check_time_to_live"]

_CENTURIES = 1e10  # seconds: the calendar ends later, but not much


def check_mode(value: object) -> DeliveryMode:
    """Check a delivery mode (JMS 3.1, section 7.7).

    Raises:
        MessageFormatError: It is none.
    """
    try:
        return DeliveryMode(value)  # type: ignore[arg-type]  # any other value is refused
    except ValueError:
        raise MessageFormatError(f"The delivery mode must be a DeliveryMode, not {value!r:.100}.") from None


def check_priority(value: object) -> int:
    """Check a priority (JMS 3.1, section 3.4.10).

    Raises:
        MessageFormatError: It is not a whole number from 0 to 9.
    """
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= 9:  # noqa: PLR2004  # the range of JMS
        raise MessageFormatError(f"The priority must be a whole number from 0 to 9, not {value!r:.100}.")
    return value


def check_time_to_live(value: object) -> float:
    """Check a time to live in seconds (JMS 3.1, section 7.8).

    Raises:
        MessageFormatError: It is negative, or beyond all calendars.
    """
    return _check_seconds("time_to_live", value)


def check_delay(value: object) -> float:
    """Check a delivery delay in seconds (JMS 3.1, section 7.9).

    Raises:
        MessageFormatError: It is negative, or beyond all calendars.
    """
    return _check_seconds("delivery_delay", value)


class DeliveryOptions:
    """What a producer sends with unless a send says otherwise (JMS 3.1, section 7.4).

    Attributes:
        delivery_mode: Whether messages must survive the broker's restart; persistent by default.
        priority: 0 to 9; 4, the default, is normal.
        time_to_live: Seconds until messages expire; 0, the default, for never.
        delivery_delay: Seconds until messages may be delivered; 0 by default.
        disable_message_id: True if nobody needs message ids; then messages have none (section 3.4.3).
        disable_timestamp: True if nobody needs timestamps; then messages have none (section 3.4.4).

    Raises:
        MessageFormatError: On setting: the value makes no sense.
    """

    delivery_mode: DeliveryMode = DeliveryMode.PERSISTENT
    priority: int = 4
    time_to_live: float = 0
    delivery_delay: float = 0
    disable_message_id: bool = False
    disable_timestamp: bool = False

    def __setattr__(self, name: str, value: object) -> None:
        check = _CHECKS.get(name)
        super().__setattr__(name, check(value) if check else value)


_CHECKS: dict[str, Callable[[object], object]] = {
    "delivery_mode": check_mode,
    "priority": check_priority,
    "time_to_live": check_time_to_live,
    "delivery_delay": check_delay,
}


def _check_seconds(name: str, value: object) -> float:
    if not isinstance(value, int | float) or not 0 <= value <= _CENTURIES:  # nor NaN
        raise MessageFormatError(f"{name} must be seconds, from 0 on and less than {_CENTURIES:g}, not {value!r:.100}.")
    return value
