"""Activation specs in the spelling of JMSJCA's manual, which is that of deployment descriptors."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from jmsjca.config.acknowledge import AcknowledgeMode
from jmsjca.config.hints import did_you_mean
from jmsjca.messages.shown import shown

__all__ = ["Mistake", "fields_from"]

_FIELDS = {
    "destination": "destination",
    "destinationType": "destination_type",
    "ConnectionURL": "connection_url",
    "UserName": "user_name",
    "Password": "password",
    "ClientId": "client_id",
    "subscriptionDurability": "subscription_durability",
    "subscriptionName": "subscription_name",
    "ConcurrencyMode": "concurrency_mode",
    "endpointPoolMaxSize": "endpoint_pool_max_size",
    "MBeanName": "mbean_name",
    "selector": "selector",
    "messageSelector": "selector",
    "Options": "options",
    "RedeliveryHandling": "redelivery_handling",
    "BatchSize": "batch_size",
    "splitFailedBatches": "split_failed_batches",
    "HoldUntilAck": "hold_until_ack",
    "ContextName": "context_name",
    "acknowledgeMode": "acknowledge_mode",
    "transaction": "transaction",
    "acknowledgementTimeout": "acknowledgement_timeout",
    "maxOutstanding": "max_outstanding",
}
_UNUSED = {  # the least value of what JMSJCA checks and does not use
    "endpointPoolSteadySize": 0,
    "endpointPoolResizeCount": 1,
    "endpointPoolResizeTimeout": 1,
    "endpointExceptionRedeliveryAttempts": 0,
    "endpointExceptionRedeliveryInterval": 1,
}
_NAMES = {name.lower(): name for name in (*_FIELDS, *_UNUSED)}
_MAY_BE_BLANK = (
    "connection_url",
    "user_name",
    "client_id",
    "subscription_name",
    "mbean_name",
    "selector",
    "context_name",
)
_JAVA_INT = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Mistake:
    """Stands for a value in fields of a spec, which no field takes, so that it is told with all other mistakes.

    Attributes:
        text: What is wrong.
    """

    text: str


def fields_from(properties: Mapping[str, object]) -> dict[str, Any]:
    """Turn properties into fields of a spec; what cannot be turned becomes a `Mistake`."""
    fields: dict[str, Any] = {}
    for written, value in properties.items():
        if value is not None:
            _add(fields, written, str(value))
    fields.setdefault("destination_type", Mistake("destinationType is missing: javax.jms.Queue or javax.jms.Topic"))
    return fields


def _add(fields: dict[str, Any], written: str, value: str) -> None:
    name = _NAMES.get(written.lower(), "")
    field, mistake = _FIELDS.get(name), None
    if not name:
        mistake = f"there is no such property {did_you_mean(written.lower(), _NAMES)}"
    elif field is None:
        mistake = _range_mistake(value, _UNUSED[name])
    elif field in fields:
        mistake = "it is given twice, in two spellings"
    elif value.strip() or field not in _MAY_BE_BLANK:
        fields[field] = _READERS.get(name, str)(value)
    if mistake:
        fields[f"property {written}"] = Mistake(f"{shown(written)}: {mistake}")  # no field has such a name


def _range_mistake(value: str, least: int) -> str | None:
    digits = value.strip()
    is_int = digits.isascii() and digits.isdigit() and len(digits) <= len(str(_JAVA_INT))
    if is_int and least <= int(digits) <= _JAVA_INT:
        return None
    return f"it must be a whole number from {least} on (given: {shown(value)!r})"


def _kind(value: str) -> str | Mistake:
    kinds = {"Queue": "queue", "Topic": "topic"}
    package, _, name = value.rpartition(".")
    if package in ("javax.jms", "jakarta.jms") and name in kinds:
        return kinds[name]
    return Mistake(f"destinationType: it must be javax.jms.Queue or javax.jms.Topic (given: {shown(value)!r})")


def _mode(value: str) -> AcknowledgeMode | Mistake:
    modes = {"Auto-acknowledge": AcknowledgeMode.AUTO, "Dups-ok-acknowledge": AcknowledgeMode.DUPS_OK}
    return modes.get(value) or Mistake(f"acknowledgeMode: it must be {' or '.join(modes)} (given: {shown(value)!r})")


_READERS: dict[str, Callable[[str], Any]] = {"destinationType": _kind, "acknowledgeMode": _mode}
