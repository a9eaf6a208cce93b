"""The checks of the sizes and times of a pool."""

from jmsjca.arguments import MAX_TIMEOUT, check_timeout, is_number, wrong_argument
from jmsjca.errors import ConfigurationError, InvalidArgumentError

__all__ = ["check_limits", "check_whole", "checked_sizes", "checked_timeout", "lock_timeout"]


def checked_sizes(min_size: object, max_size: object) -> tuple[int, int]:
    """Return sizes that a pool can have.

    Raises:
        ConfigurationError: One is no whole number, or out of range.
    """
    small, large = check_whole("min_size", min_size), check_whole("max_size", max_size)
    if not 0 <= small <= large or large < 1:
        raise ConfigurationError(f"min_size is {small}, max_size {large}: 0 <= min_size <= max_size >= 1.")
    return small, large


def check_whole(name: str, value: object) -> int:
    """Return a value that is a whole number.

    Raises:
        ConfigurationError: The value is something else.
    """
    if not isinstance(value, int) or isinstance(value, bool):
        raise wrong_argument(name, value, "a whole number", ConfigurationError)
    return value


def check_limits(timeout: object, max_waiting: object, max_idle: object, max_lifetime: object) -> None:
    """Raise an error for values that a pool cannot have.

    Raises:
        ConfigurationError: One has a wrong type, or is out of range.
    """
    try:
        check_timeout("timeout", timeout)
    except InvalidArgumentError as error:
        raise ConfigurationError(str(error)) from None
    if check_whole("max_waiting", max_waiting) < 0:
        raise wrong_argument("max_waiting", max_waiting, "a whole number from 0 on", ConfigurationError)
    if not is_number(max_idle) or not max_idle >= 0:  # type: ignore[operator]  # a number, nor NaN
        raise wrong_argument("max_idle", max_idle, "seconds, as a number from 0 on", ConfigurationError)
    if not is_number(max_lifetime) or not max_lifetime > 0:  # type: ignore[operator]  # likewise
        raise wrong_argument("max_lifetime", max_lifetime, "seconds, as a number above 0", ConfigurationError)


def checked_timeout(timeout: float | None) -> float | None:
    """Return a timeout that a lock can wait for.

    Raises:
        InvalidArgumentError: It is no number of seconds, negative, or too long.
    """
    check_timeout("timeout", timeout)
    return timeout


def lock_timeout(seconds: float) -> float | None:
    """Return a timeout as a lock takes it: at least 0, and None for more than it can wait for."""
    return None if seconds > MAX_TIMEOUT else max(seconds, 0.0)
