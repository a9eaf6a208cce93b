"""The names of JMSJCA's message properties, of the manual and of later releases."""

__all__ = ["MANUAL_PREFIX", "PREFIX", "ROLLBACK", "both", "rollback_key"]

MANUAL_PREFIX = "JMS_Sun_JMSJCA_"
PREFIX = "_JMSJCA_"
"""What later releases write: unlike the manual's, such names do not need a vendor's right to the prefix ``JMS_``."""

ROLLBACK = "UserRollbackData"


def both(name: str) -> tuple[str, str]:
    """Give a name with either prefix."""
    return MANUAL_PREFIX + name, PREFIX + name


def rollback_key(name: str) -> str | None:
    """Tell which user rollback data a property's name means; None if it means none.

    ``JMS_Sun_JMSJCA_UserRollbackData.x``, the same without the dot, and both with the later prefix mean one thing: x.
    They are compared without regard to case, but for x.
    """
    for prefix in both(ROLLBACK):
        if name[: len(prefix)].lower() == prefix.lower():
            return name[len(prefix) :].removeprefix(".")
    return None
