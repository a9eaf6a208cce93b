"""Broker profiles: capabilities, gaps, and the observed evidence of them, for the capability table."""

from dataclasses import dataclass

from jmsjca.errors import NotSupportedError
from jmsjca.spi import Capabilities

__all__ = ["BrokerProfile", "CapabilityGap"]


@dataclass(frozen=True, slots=True)
class CapabilityGap:
    """A capability that a broker lacks over a protocol.

    Args:
        capability: The name of the field of `jmsjca.spi.Capabilities`.
        observed: The broker's response to a request for the capability, frame by frame.
        reference: The passage of the broker's documentation or source that confirms the gap; or a note that neither
            mentions it, as far as we found.
    """

    capability: str
    observed: str
    reference: str


@dataclass(frozen=True, slots=True)
class BrokerProfile:
    """A broker over one protocol.

    Args:
        name: The product name that the broker announces to its clients.
        protocol: The protocol's name.
        release: The release that the contract suite ran against.
        capabilities: The capabilities of a connection to the broker.
        gaps: Evidence for each missing capability.
    """

    name: str
    protocol: str
    release: str
    capabilities: Capabilities
    gaps: tuple[CapabilityGap, ...] = ()

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
