"""The temporary destinations of a network connection: which it owns, and which it has removed."""

import threading
from typing import Generic, TypeVar

from jmsjca.destinations import Destination, Subscription, destination
from jmsjca.errors import InvalidDestinationError

__all__ = ["OwnedDestinations"]

_MAX_REMOVED = 10_000

T = TypeVar("T")


class OwnedDestinations(Generic[T]):
    """Base class of the temporary destinations of a connection. Thread-safe.

    A provider stores a resource with each destination, for example the link that keeps it alive.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._owned: dict[Destination, T] = {}
        self._removed: dict[Destination, None] = {}  # the oldest first

    def check_owned(self, source: Destination | Subscription) -> None:
        """Raise an error for a source that this connection cannot consume from.

        Raises:
            InvalidDestinationError: A temporary destination belongs to another connection or was deleted, or a durable
                subscription would use a temporary topic.
        """
        target = source.topic if isinstance(source, Subscription) else source
        if not target.temporary:
            return
        if target not in self._owned:
            raise InvalidDestinationError(
                f"{target} was deleted or belongs to another connection, which alone can consume from it."
            )
        if isinstance(source, Subscription) and source.durable:
            raise InvalidDestinationError(f"A durable subscription cannot use the temporary topic {target}.")

    def check_not_removed(self, to: Destination) -> None:
        """Raise an error for a temporary destination that this connection has removed.

        Raises:
            InvalidDestinationError: The destination was removed.
        """
        if self._removed and to in self._removed:
            raise InvalidDestinationError(f"{to} was deleted.")

    def resolve(self, what: Destination) -> Destination:
        """Return the temporary destination of this connection that has the same name, else the given destination."""
        own = destination(what.name, what.kind, temporary=True)
        return own if own in self._owned else what

    def _add(self, created: Destination, resource: T) -> None:
        with self._lock:
            self._owned[created] = resource

    def _discard(self, what: Destination) -> T:
        """Disown a destination and return its resource.

        Raises:
            InvalidDestinationError: This connection does not own the destination.
        """
        with self._lock:
            if what not in self._owned:
                raise InvalidDestinationError(f"{what} was deleted or belongs to another connection.")
            self._removed[what] = None
            if len(self._removed) > _MAX_REMOVED:
                del self._removed[next(iter(self._removed))]
            return self._owned.pop(what)
