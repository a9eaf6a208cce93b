"""The names under which user rollback data travels."""

from jmsjca.messages import MANUAL_PREFIX, both
from jmsjca.messages.names import check_name
from jmsjca.messages.vendor_names import ROLLBACK

__all__ = ["check_rollback_key", "rollback_names"]


def check_rollback_key(key: str) -> None:
    """Refuse what cannot name user rollback data: with the prefix it would be no property's name.

    Raises:
        MessageFormatError: It cannot.
    """
    check_name(_dotted(key))


def rollback_names(key: str) -> tuple[str, ...]:
    """Give the names under which user rollback data travels: with either prefix, and as in the manual with the dot."""
    # Names with dots inside are for the manual's prefix alone.
    return (_dotted(key), MANUAL_PREFIX + ROLLBACK + key) if "." in key else (_dotted(key), *both(ROLLBACK + key))


def _dotted(key: str) -> str:
    return f"{MANUAL_PREFIX}{ROLLBACK}.{key}"
