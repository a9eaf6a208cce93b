"""What the fields of an activation spec take, beyond their types."""

import logging
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo

from jmsjca.config.acknowledge import AcknowledgeMode
from jmsjca.config.option_names import own_options
from jmsjca.config.options import parse_options, read_options
from jmsjca.config.url import ConnectionURL
from jmsjca.messages.shown import shown
from jmsjca.redelivery import RedeliveryPolicy

__all__ = ["Acknowledging", "ConcurrencyMode", "Handling", "Options", "Seconds", "Switch", "URLText"]

logger = logging.getLogger("jmsjca.config")


def _checked_url(text: str) -> str:
    own_options(ConnectionURL.parse(text).query)
    return text


def _known_mode(mode: object) -> object:
    mode = mode.lower() if isinstance(mode, str) else mode
    if mode == "multi-receiver":
        raise ValueError("'multi-receiver' is a mode that nothing delivers in; use 'sync' or 'cc'")
    return mode


def _switched(value: object, info: ValidationInfo) -> object:
    if value is None or isinstance(value, str):
        if value and value.lower() not in ("0", "1", "false", "true"):
            logger.warning("%s is %r: only '1' and 'true' turn it on, so it is off.", info.field_name, shown(value))
        return value is not None and value.lower() in ("1", "true")
    return value


def _options_from_text(value: object) -> object:
    if isinstance(value, str):
        return parse_options(value)
    return {} if value is None else value


def _automatic(value: object) -> object:
    if value in (AcknowledgeMode.AUTO, AcknowledgeMode.AUTO.value):
        return AcknowledgeMode.AUTO
    if value in (AcknowledgeMode.DUPS_OK, AcknowledgeMode.DUPS_OK.value):
        return AcknowledgeMode.DUPS_OK
    raise ValueError("it must be AcknowledgeMode.AUTO or DUPS_OK; hold_until_ack=True lets the handler acknowledge")


def _readable(handling: str) -> str:
    RedeliveryPolicy.parse(handling)
    return handling


URLText = Annotated[str, AfterValidator(_checked_url)]
"""A connection URL with options that exist."""

ConcurrencyMode = Annotated[Literal["serial", "cc", "sync"], BeforeValidator(_known_mode)]
"""A concurrency mode, written in any case."""

Switch = Annotated[bool, BeforeValidator(_switched)]
"""On or off; of texts only "1" and "true", in any case, are on."""

Options = Annotated[dict[str, str], BeforeValidator(_options_from_text), AfterValidator(read_options)]
"""Options, from text or a mapping."""

Acknowledging = Annotated[AcknowledgeMode, BeforeValidator(_automatic)]
"""How messages are acknowledged that nobody else acknowledges."""

Handling = Annotated[str, AfterValidator(_readable)]
"""A redelivery handling."""

Seconds = Annotated[float, Field(gt=0, le=1e9, allow_inf_nan=False)]
"""A time that passes."""
