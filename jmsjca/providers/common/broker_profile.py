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
        seen: What the broker did when it was asked for it, frame by frame.
        source: Where its documentation or its source says so; or what tells nothing of it, as far as we found.
    """

    capability: str
    observed: str
    reference: str


@dataclass(frozen=True, slots=True)
class BrokerProfile:
    """A broker over one protocol.

    Args:
        name: The broker's name, as it calls itself to its clients.
        protocol: The protocol's name.
        release: The release that the contract suite ran against.
        capabilities: What a connection to it can do.
        gaps: Why each of the rest is missing.
    """

    name: str
    protocol: str
    release: str
    capabilities: Capabilities
    gaps: tuple[CapabilityGap, ...] = ()

    def require(self, capability: str, *, requested: bool = True) -> None:
        """Refuse what the broker would not do, or not do as it should.

        Args:
            capability: The name of the field of `jmsjca.spi.Capabilities`.
            asked: False if nobody asks for it.

        Raises:
            NotSupportedError: It is asked for, and missing.
        """
        if requested and not getattr(self.capabilities, capability):
            raise NotSupportedError(
                f"{self.name} lacks the capability {capability} over {self.protocol}: do without it, or use a broker"
                " that has it."
            )
