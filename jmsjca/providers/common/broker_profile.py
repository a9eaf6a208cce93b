"""Broker profiles: the name, protocol and capabilities of a broker."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from jmsjca.errors import InvalidOptionError, NotSupportedError
from jmsjca.spi import Capabilities

__all__ = ["BrokerProfile", "administered"]

_B = TypeVar("_B", bound="BrokerProfile")


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


def administered(broker: _B, added: Mapping[str, Any] | None) -> _B:
    """Return the profile of a broker with the capabilities that its management over HTTP adds.

    Args:
        broker: The profile.
        added: The capabilities; None if the management of this broker is not known.

    Raises:
        InvalidOptionError: The management of this broker is not known.
    """
    if added is None:
        raise InvalidOptionError(
            f"Option management_url is for ActiveMQ Classic and RabbitMQ, and this is {broker.name}: leave it out."
        )
    return replace(broker, capabilities=replace(broker.capabilities, **added))
