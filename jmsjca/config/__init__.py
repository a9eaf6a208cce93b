"""Configuration: connection URLs, activation specs, credentials, limits and clocks."""

from typing import TYPE_CHECKING

from jmsjca.config.clock import SYSTEM_CLOCK, Clock, SystemClock
from jmsjca.config.connection_url import Address, ConnectionURL, Credentials, add_options
from jmsjca.config.distributed_subscription import DistributedSubscription
from jmsjca.config.limits import AcknowledgeMode, Limits
from jmsjca.config.naming import NamingContext
from jmsjca.config.options import (
    InboundOptions,
    OutboundOptions,
    environment_options,
    parse_options,
    provider_options,
    read_options,
)
from jmsjca.destinations import DestinationSettings

if TYPE_CHECKING:
    from jmsjca.config.activation_spec import ActivationSpec, resolve_spec

__all__ = [
    "SYSTEM_CLOCK",
    "AcknowledgeMode",
    "ActivationSpec",
    "Address",
    "Clock",
    "ConnectionURL",
    "Credentials",
    "DestinationSettings",
    "DistributedSubscription",
    "InboundOptions",
    "Limits",
    "NamingContext",
    "OutboundOptions",
    "SystemClock",
    "add_options",
    "environment_options",
    "parse_options",
    "provider_options",
    "read_options",
    "resolve_spec",
]


def __getattr__(name: str) -> object:
    # pydantic is loaded with the first spec: its import takes longer than the import of all other modules of jmsjca.
    if name == "ActivationSpec":
        from jmsjca.config.activation_spec import ActivationSpec

        return ActivationSpec
    if name == "resolve_spec":
        from jmsjca.config.activation_spec import resolve_spec

        return resolve_spec
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
