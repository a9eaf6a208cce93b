"""The names of JMSJCA's message properties, of the manual and of later releases."""

from jmsjca.messages.names import check_name

__all__ = ["MANUAL_PREFIX", "PREFIX", "both", "rollback_key", "rollback_names"]

MANUAL_PREFIX = "JMS_Sun_JMSJCA_"
PREFIX = "_JMSJCA_"
"""What later releases write: unlike the manual's, such names do not need a vendor's right to the prefix ``JMS_``."""

_ROLLBACK = "UserRollbackData"


def both(name: str) -> tuple[str, str]:
    """Give a name with either prefix."""
    return MANUAL_PREFIX + name, PREFIX + name


def rollback_key(name: str) -> str | None:
    """Tell which user rollback data a property's name means; None if it means none.

    ``JMS_Sun_JMSJCA_UserRollbackData.x``, the same without the dot, and both with the later prefix mean one thing: x.

    Raises:
        MessageFormatError: It means some, but no property can have that name.
    """
    for prefix in both(_ROLLBACK):
        if name.startswith(prefix):
            key = name[len(prefix) :].removeprefix(".")
            check_name(f"{MANUAL_PREFIX}{_ROLLBACK}.{key}")
            return key
    return None


def rollback_names(key: str) -> tuple[str, ...]:
    """Give the names under which user rollback data travels: with either prefix, and as in the manual with the dot."""
    dotted = f"{MANUAL_PREFIX}{_ROLLBACK}.{key}"
    # Names with dots inside are for the manual's prefix alone.
    return (dotted, MANUAL_PREFIX + _ROLLBACK + key) if "." in key else (dotted, *both(_ROLLBACK + key))
