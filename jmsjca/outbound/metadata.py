"""What a connection tells of the library and the broker."""

from dataclasses import dataclass

from jmsjca import spi

__all__ = ["ConnectionMetaData"]


@dataclass(frozen=True, slots=True)
class ConnectionMetaData:
    """Given by `Connection.metadata` (JMS 3.1, section 6.1.6).

    Args:
        protocol: How the broker is reached: the scheme of the connection URL.
        provider_name: The library.
        provider_version: Its version.
        jms_version: The version of Jakarta Messaging whose semantics it keeps.
        jmsx_property_names: The properties of the specification that messages of this connection may have.
    """

    protocol: str
    provider_name: str
    provider_version: str
    jms_version: str
    jmsx_property_names: tuple[str, ...]

    @classmethod
    def of(cls, protocol: str, capabilities: spi.Capabilities) -> "ConnectionMetaData":
        """Gather it for a connection."""
        from importlib.metadata import version  # noqa: PLC0415  # slow to import, and rarely asked for

        names = ["JMSXGroupID", "JMSXGroupSeq", *(["JMSXDeliveryCount"] if capabilities.delivery_count else [])]
        return cls(protocol, "jmsjca", version("jmsjca"), "3.1", tuple(names))
