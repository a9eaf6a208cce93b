"""What is refused before it is tried."""

from jmsjca import spi
from jmsjca.destinations import Destination
from jmsjca.errors import InvalidDestinationError, NotSupportedError

__all__ = ["check_destination", "require"]


def require(link: spi.Connection, capability: str, purpose: str, *, wanted: bool = True) -> None:
    """Refuse what the broker behind a connection cannot do.

    Args:
        link: The provider's connection.
        capability: The field of `spi.Capabilities`.
        purpose: What it is needed for.
        wanted: False if it is not needed after all.

    Raises:
        NotSupportedError: The broker lacks it.
    """
    if wanted and not getattr(link.capabilities, capability):
        raise NotSupportedError(f"This broker has no {purpose}: it lacks the capability {capability}.")


def check_destination(value: object) -> None:
    """Refuse what is no destination, as a mere name.

    Raises:
        InvalidDestinationError: It is none.
    """
    if not isinstance(value, Destination):
        raise InvalidDestinationError(f"{value!r:.200} is no destination; name a Queue(…) or a Topic(…).")
