"""Broker profiles: the name, protocol and capabilities of a broker."""

from dataclasses import dataclass

from jmsjca.errors import NotSupportedError
from jmsjca.spi import Capabilities

__all__ = ["BrokerProfile"]


@dataclass(frozen=True, slots=True)
class BrokerProfile:
    """A broker over one protocol.

    Args:
        name: The product name that the broker announces to its clients.
        protocol: The protocol's name.
        release: The release that the contract suite ran against.
        capabilities: The capabilities of a connection to the broker.
    """

    name: str
    protocol: str
    release: str
    capabilities: Capabilities

    def require(self, capability: str, *, requested: bool = True) -> None:
        """Raise an error unless the broker has a requested capability.

        Args:
            capability: The name of the field of `jmsjca.spi.Capabilities`.
            requested: False if the caller does not request the capability; then nothing is checked.

        Raises:
            NotSupportedError: The capability is requested and missing.
        """
        if requested and not getattr(self.capabilities, capability):
            raise NotSupportedError(
                f"{self.name} lacks the capability {capability} over {self.protocol}: do without it, or use a broker"
                " that has it."
            )
