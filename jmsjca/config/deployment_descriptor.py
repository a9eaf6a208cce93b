"""Activation specs in the spelling of JMSJCA's manual: properties converted to fields, and fields to text."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from pydantic import SecretStr

from jmsjca.arguments import did_you_mean
from jmsjca.config.connection_url import ConnectionURL
from jmsjca.config.limits import AcknowledgeMode
from jmsjca.config.naming import LOOKUP
from jmsjca.config.options import is_jmsjca_option
from jmsjca.destinations import JAVA_TYPES, DestinationKind
from jmsjca.errors import excerpt

__all__ = ["InvalidProperty", "describe", "field_of", "fields_from_properties"]

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
    "selectorVariables": "selector_variables",
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
    "destinationLookup": "destination",  # of Jakarta EE, like the next one
    "connectionFactoryLookup": "connection_url",
}
_IGNORED_MINIMUMS = {  # the minimum of each property that JMSJCA checks but does not use
    "endpointPoolSteadySize": 0,
    "endpointPoolResizeCount": 1,
    "endpointPoolResizeTimeout": 1,
    "endpointExceptionRedeliveryAttempts": 0,
    "endpointExceptionRedeliveryInterval": 1,
}
_NAMES = {name.lower(): name for name in (*_FIELDS, *_IGNORED_MINIMUMS)}
_BLANK_IS_UNSET = (
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
class InvalidProperty:
    """A placeholder for an invalid value. No field accepts it, so it is reported together with all other problems.

    Attributes:
        text: The problem.
    """

    text: str


def fields_from_properties(properties: Mapping[str, object]) -> dict[str, Any]:
    """Return the fields of a spec for properties. An invalid property becomes an `InvalidProperty`."""
    fields: dict[str, Any] = {}
    for written, value in properties.items():
        if value is not None:
            _add_property(fields, written, str(value))
    fields.setdefault(
        "destination_type", InvalidProperty("destinationType is missing: javax.jms.Queue or javax.jms.Topic")
    )
    return fields


def field_of(name: str) -> str | None:
    """Return the field of a property of this name, in any case; its name if it has no field, None if it is unknown."""
    known = _NAMES.get(name.lower())
    return _FIELDS.get(known, known) if known else None


def _add_property(fields: dict[str, Any], written: str, value: str) -> None:
    name = _NAMES.get(written.lower(), "")
    field, problem = _FIELDS.get(name), None
    if not name:
        problem = f"there is no such property {did_you_mean(written.lower(), _NAMES)}"
    elif field is None:
        problem = _range_problem(value, _IGNORED_MINIMUMS[name])
    elif field in fields:
        problem = "it is given twice, in two spellings"
    elif value.strip() or field not in _BLANK_IS_UNSET:
        fields[field] = _PARSERS.get(name, str)(value)
    if problem:
        fields[f"property {written}"] = InvalidProperty(f"{excerpt(written)}: {problem}")  # no field has this name


def _range_problem(value: str, least: int) -> str | None:
    digits = value.strip()
    is_int = digits.isascii() and digits.isdigit() and len(digits) <= len(str(_JAVA_INT))
    if is_int and least <= int(digits) <= _JAVA_INT:
        return None
    return f"it must be a whole number from {least} on (given: {excerpt(value)!r})"


def _parse_destination_type(value: str) -> DestinationKind | InvalidProperty:
    javax = value.replace("jakarta.jms.", "javax.jms.", 1) if value.startswith("jakarta.jms.") else value
    for kind, name in JAVA_TYPES.items():
        if javax == name:
            return kind
    given = excerpt(value)
    return InvalidProperty(f"destinationType: it must be javax.jms.Queue or javax.jms.Topic (given: {given!r})")


_ACKNOWLEDGE_WORDS = {
    AcknowledgeMode.AUTO: "Auto-acknowledge",
    AcknowledgeMode.DUPS_OK: "Dups-ok-acknowledge",
}


def _parse_acknowledge_mode(value: str) -> AcknowledgeMode | InvalidProperty:
    for mode, word in _ACKNOWLEDGE_WORDS.items():
        if value in (word, word.upper().replace("-", "_")):  # the latter as the constants of JMS are named
            return mode
    known, given = " or ".join(_ACKNOWLEDGE_WORDS.values()), excerpt(value)
    return InvalidProperty(f"acknowledgeMode: it must be {known} (given: {given!r})")


def _parse_lookup(value: str) -> str:
    return f"{LOOKUP}{value.removeprefix(LOOKUP)}" if value.strip() else value


_PARSERS: dict[str, Callable[[str], Any]] = {
    "destinationLookup": _parse_lookup,
    "connectionFactoryLookup": _parse_lookup,
    "destinationType": _parse_destination_type,
    "acknowledgeMode": _parse_acknowledge_mode,
}


def describe(fields: Mapping[str, object], options: Mapping[str, str]) -> str:
    """Return a heading and one indented line ``name = value`` per field; unset fields are ``null``.

    Args:
        fields: The fields of the spec by name.
        options: The options of the spec.
    """
    lines = (f"\t{name} = {_text(value)}" for name, value in _values(fields, options).items())
    return "\n".join(("ActivationSpec:", *lines))


def _values(fields: Mapping[str, object], options: Mapping[str, str]) -> dict[str, object]:
    return {
        "DestinationType": JAVA_TYPES[cast("DestinationKind", fields["destination_type"])],
        "Destination": fields["destination"],
        "MessageSelector": fields["selector"],
        "AcknowledgeMode": _ACKNOWLEDGE_WORDS[cast("AcknowledgeMode", fields["acknowledge_mode"])],
        "Delivery concurrency mode": fields["concurrency_mode"],
        "SubscriptionDurability": fields["subscription_durability"],
        "ClientId": fields["client_id"],
        "SubscriptionName": fields["subscription_name"],
        "EndpointPoolMaxSize": fields["endpoint_pool_max_size"],
        "ConnectionURL": _without_secrets(fields["connection_url"]),
        "UserName": fields["user_name"],
        "Password": _masked_password(fields["password"]),
        "ContextName": fields["context_name"],
        "MBeanName": fields["mbean_name"],
        "OptionsStr": _options_without_secrets(options),
        "RedeliveryHandling": fields["redelivery_handling"],
        "SelectorVariables": fields["selector_variables"] or None,
        "BatchSize": fields["batch_size"],
        "SplitFailedBatches": fields["split_failed_batches"],
        "HoldUntilAck": fields["hold_until_ack"],
        "AcknowledgementTimeout": fields["acknowledgement_timeout"],
        "MaxOutstanding": fields["max_outstanding"],
        "Transaction": fields["transaction"],
    }


def _without_secrets(url: object) -> ConnectionURL | None:
    return ConnectionURL.parse(url) if isinstance(url, str) and url else None


def _options_without_secrets(options: Mapping[str, str]) -> str | None:
    pairs = (
        f"{name}={value if is_jmsjca_option(name) else '###'}" for name, value in options.items()
    )  # an option of the provider may be secret
    return "; ".join(pairs) or None


def _masked_password(password: object) -> str | None:
    if not isinstance(password, SecretStr):
        return None
    return "###" if password.get_secret_value() else "zero-length"


def _text(value: object) -> str:
    text = "null" if value is None else str(value)
    return text if text.isprintable() else repr(text)[1:-1]  # one line per field, whatever the value contains
