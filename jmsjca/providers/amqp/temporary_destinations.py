"""Temporary destinations: dynamic nodes, which the broker removes with their links, or what a topology declares."""

from typing import Any

from proton import Described, symbol, ulong

from jmsjca.destinations import Destination, DestinationKind, destination
from jmsjca.providers.amqp.engine.engine import Engine
from jmsjca.providers.amqp.engine.proton_ffi import EXPIRE_WITH_LINK
from jmsjca.providers.amqp.links.link import Link
from jmsjca.providers.amqp.links.topology import Topology
from jmsjca.providers.common.temporary_destinations import OwnedDestinations

__all__ = ["DeclaredTemporaryDestinations", "TemporaryDestinations"]

_LIFETIME = symbol("lifetime-policy")
_DELETE_ON_CLOSE = 0x2B
_MAX_NAME_LENGTH = 1024


class TemporaryDestinations(OwnedDestinations["_DynamicTargetLink"]):
    """The temporary destinations of a connection, each with the link that keeps it alive.

    Args:
        engine: The engine of the connection.
        reply_timeout: Seconds to wait for the broker's responses.
    """

    def __init__(self, engine: Engine, reply_timeout: float) -> None:
        super().__init__()
        self._engine = engine
        self._reply_timeout = reply_timeout

    def create(self, kind: DestinationKind) -> Destination:
        """Create a temporary destination.

        Raises:
            JMSError: The broker refuses it.
        """
        link = _DynamicTargetLink(self._engine, kind, self._reply_timeout)
        link.attach()
        created = destination(link.name, kind, temporary=True)
        self._add(created, link)
        return created

    def remove(self, what: Destination) -> None:
        """Remove a temporary destination with its messages.

        Raises:
            InvalidDestinationError: This connection does not own it.
        """
        self._discard(what).close()


class DeclaredTemporaryDestinations(OwnedDestinations[None]):
    """The temporary destinations of a connection to a broker that does not create them itself.

    Args:
        topology: Declares them.
    """

    def __init__(self, topology: Topology) -> None:
        super().__init__()
        self._topology = topology

    def create(self, kind: DestinationKind) -> Destination:
        """Create a temporary destination.

        Raises:
            JMSError: The broker refuses it.
        """
        created = self._topology.create_temporary(kind)
        self._add(created, None)
        return created

    def remove(self, what: Destination) -> None:
        """Remove a temporary destination with its messages.

        Raises:
            InvalidDestinationError: This connection does not own it.
        """
        self._discard(what)
        self._topology.delete_temporary(what)


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
