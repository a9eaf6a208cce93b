"""Temporary destinations: dynamic nodes, which the broker removes with the link that created them."""

import threading
from typing import Any

from proton import Described, symbol, ulong

from jmsjca.destinations import Destination, DestinationKind, destination
from jmsjca.errors import InvalidDestinationError
from jmsjca.providers.amqp.engine.engine import Engine
from jmsjca.providers.amqp.engine.proton_ffi import EXPIRE_WITH_LINK
from jmsjca.providers.amqp.links.link import Link

__all__ = ["TemporaryDestinations"]

_LIFETIME = symbol("lifetime-policy")
_DELETE_ON_CLOSE = 0x2B
_MAX_NAME_LENGTH = 1024
_MAX_REMOVED = 10_000


class TemporaryDestinations:
    """The temporary destinations of a connection.

    Args:
        engine: The engine of the connection.
        reply_timeout: Seconds to wait for the broker's responses.
    """

    def __init__(self, engine: Engine, reply_timeout: float) -> None:
        self._engine = engine
        self._reply_timeout = reply_timeout
        self._lock = threading.Lock()
        self._links: dict[Destination, _DynamicTargetLink] = {}
        self._removed: dict[Destination, None] = {}  # the oldest first

    def create(self, kind: DestinationKind) -> Destination:
        """Create a temporary destination.

        Raises:
            JMSError: The broker refuses it.
        """
        maker = _DynamicTargetLink(self._engine, kind, self._reply_timeout)
        maker.attach()
        made = destination(maker.name, kind, temporary=True)
        with self._lock:
            self._links[made] = maker
        return made

    def check_owned(self, what: Destination) -> None:
        """Raise an error for a temporary destination that this connection does not own.

        Raises:
            InvalidDestinationError: The destination belongs to another connection, or was deleted.
        """
        if what.temporary and what not in self._links:
            raise InvalidDestinationError(
                f"{what} was deleted or belongs to another connection, which alone can consume from it."
            )

    def resolve(self, what: Destination) -> Destination:
        """Return the temporary destination of this connection that has the same name, else the given destination."""
        own = destination(what.name, what.kind, temporary=True)
        return own if own in self._links else what

    def check_not_removed(self, what: Destination) -> None:
        """Raise an error for a temporary destination that this connection has removed.

        Raises:
            InvalidDestinationError: The destination was removed.
        """
        if self._removed and what in self._removed:
            raise InvalidDestinationError(f"{what} was deleted.")

    def remove(self, what: Destination) -> None:
        """Remove a temporary destination with its messages.

        Raises:
            InvalidDestinationError: This connection does not own it.
        """
        with self._lock:
            maker = self._links.pop(what, None)
            if maker is None:
                raise InvalidDestinationError(f"{what} was deleted or belongs to another connection.")
            self._removed[what] = None
            if len(self._removed) > _MAX_REMOVED:
                del self._removed[next(iter(self._removed))]
        maker.close()


class _DynamicTargetLink(Link):
    """A sender link with a dynamic target: the broker creates the node, and deletes it when the link is closed."""

    def __init__(self, engine: Engine, kind: DestinationKind, reply_timeout: float) -> None:
        super().__init__(engine, f"the creation of a temporary {kind}", reply_timeout)
        self._capability = symbol(f"temporary-{kind}")
        self.name = ""

    def on_attached(self) -> None:
        """Store the name that the broker has assigned. On the engine thread."""
        self.name = (self._link.remote_target.address or "")[:_MAX_NAME_LENGTH]
        super().on_attached()

    def _create(self, session: Any, name: str) -> Any:
        link = session.sender(name)
        link.source.address = name
        link.target.dynamic = True
        link.target.expiry_policy = EXPIRE_WITH_LINK
        link.target.properties.put_dict({_LIFETIME: Described(ulong(_DELETE_ON_CLOSE), [])})
        link.target.capabilities.put_object(self._capability)
        return link

    def _is_refused(self) -> bool:
        return not self.name
