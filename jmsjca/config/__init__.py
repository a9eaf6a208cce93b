"""Configuration: connection URLs, activation specs, credentials, limits and clocks."""

from typing import TYPE_CHECKING

from jmsjca.config.acknowledge import AcknowledgeMode
from jmsjca.config.clock import SYSTEM_CLOCK, Clock, SystemClock
from jmsjca.config.credentials import Credentials
from jmsjca.config.destination_settings import DestinationSettings
from jmsjca.config.limits import Limits
from jmsjca.config.options import parse_options
from jmsjca.config.url import ConnectionURL

if TYPE_CHECKING:
    from jmsjca.config.spec import ActivationSpec

__all__ = [
    "SYSTEM_CLOCK",
    "AcknowledgeMode",
    "ActivationSpec",
    "Clock",
    "ConnectionURL",
    "Credentials",
    "DestinationSettings",
    "Limits",
    "SystemClock",
    "parse_options",
]


def __getattr__(name: str) -> object:
    # pydantic is loaded when the first spec is made: importing it costs more than all the rest of jmsjca.
    if name == "ActivationSpec":
        from jmsjca.config.spec import ActivationSpec  # noqa: PLC0415

        return ActivationSpec
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
