"""Configuration: connection URLs, activation specs, credentials, limits and clocks."""

from typing import TYPE_CHECKING

from jmsjca.config.acknowledge import AcknowledgeMode
from jmsjca.config.clock import SYSTEM_CLOCK, Clock, SystemClock
from jmsjca.config.credentials import Credentials
from jmsjca.config.destination_settings import DestinationSettings
from jmsjca.config.distribution import DistributedSubscription
from jmsjca.config.inbound_options import InboundOptions
from jmsjca.config.limits import Limits
from jmsjca.config.option_names import provider_options
from jmsjca.config.options import parse_options, read_options
from jmsjca.config.url import Address, ConnectionURL
from jmsjca.config.url_options import add_options

if TYPE_CHECKING:
    from jmsjca.config.effective import effective_spec
    from jmsjca.config.spec import ActivationSpec

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
    "SystemClock",
    "add_options",
    "effective_spec",
    "parse_options",
    "provider_options",
    "read_options",
]


def __getattr__(name: str) -> object:
    # pydantic is loaded when the first spec is made: importing it costs more than all the rest of jmsjca.
    if name == "ActivationSpec":
        from jmsjca.config.spec import ActivationSpec  # noqa: PLC0415

        return ActivationSpec
    if name == "effective_spec":
        from jmsjca.config.effective import effective_spec  # noqa: PLC0415

        return effective_spec
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
