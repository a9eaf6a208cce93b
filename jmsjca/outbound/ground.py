"""What a connection gives to each of its sessions."""

from dataclasses import dataclass, field

from jmsjca import spi
from jmsjca.config import Limits
from jmsjca.hooks import HookChain
from jmsjca.outbound.flow import Flow

__all__ = ["Ground"]


@dataclass(frozen=True, slots=True)
class Ground:
    """What a session stands on.

    Args:
        link: The provider's connection.
        limits: The bounds of what its consumers take ahead.
        flow: Whether the connection is started.
        client_id: What durable subscriptions belong to; None if the connection has none.
        hooks: What surrounds sends.
    """

    link: spi.Connection
    limits: Limits
    flow: Flow
    client_id: str | None = None
    hooks: HookChain = field(default_factory=HookChain)
