"""A user name with its password, which never shows."""

from dataclasses import dataclass, field

__all__ = ["Credentials"]


@dataclass(frozen=True, slots=True)
class Credentials:
    """A pair that travels together: a password without its user name is ignored.

    Args:
        user_name: Who connects.
        password: Their password; left out of every text form.
    """

    user_name: str
    password: str | None = field(default=None, repr=False)
