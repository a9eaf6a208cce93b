"""Activation specs in the spelling of JMSJCA's manual: converts properties to fields, and fields to text."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import SecretStr

from jmsjca.arguments import did_you_mean
from jmsjca.config.connection_url import ConnectionURL
from jmsjca.config.limits import AcknowledgeMode
from jmsjca.config.naming import LOOKUP
from jmsjca.config.options import is_jmsjca_option
from jmsjca.destinations import JAVA_TYPES, DestinationKind
from jmsjca.errors import excerpt

__all__ = ["InvalidProperty", "Properties"]

_OTHER_NAMES = {  # second names of properties
    "messageSelector": "selector",
    "destinationLookup": "destination",  # of Jakarta EE, like the next one
    "connectionFactoryLookup": "connection_url",
}
_IGNORED_MINIMUMS = {  # minimums of the properties that JMSJCA checks but does not use
    "endpointPoolSteadySize": 0,
    "endpointPoolResizeCount": 1,
    "endpointPoolResizeTimeout": 1,
    "endpointExceptionRedeliveryAttempts": 0,
    "endpointExceptionRedeliveryInterval": 1,
}
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


class Properties:
    """The properties of JMSJCA's manual.

    Args:
        fields: The field of each property.
    """

    def __init__(self, fields: Mapping[str, str]) -> None:
        self._fields = {**fields, **_OTHER_NAMES}
        self._names = {name.lower(): name for name in (*self._fields, *_IGNORED_MINIMUMS)}
        self._documented = {field: name for name, field in fields.items()}

    def field_of(self, name: str) -> str | None:
        """Return the field of a property, in any letter case; its name if it has no field; None if it is unknown."""
        known = self._names.get(name.lower())
        return self._fields.get(known, known) if known else None

    def to_fields(self, properties: Mapping[str, object]) -> dict[str, Any]:
        """Return the fields of a spec from properties. An invalid property becomes an `InvalidProperty`."""
        fields: dict[str, Any] = {}
        for written, value in properties.items():
            if value is not None:
                self._add(fields, written, str(value))
        fields.setdefault(
            "destination_type", InvalidProperty("destinationType is missing: javax.jms.Queue or javax.jms.Topic")
        )
        return fields

    def _add(self, fields: dict[str, Any], written: str, value: str) -> None:
        name = self._names.get(written.lower(), "")
        field, problem = self._fields.get(name), None
        if not name:
            problem = f"there is no such property {did_you_mean(written.lower(), self._names)}"
        elif field is None:
            problem = _range_problem(value, _IGNORED_MINIMUMS[name])
        elif field in fields:
            problem = "it is given twice, in two spellings"
        elif value.strip() or field not in _BLANK_IS_UNSET:
            fields[field] = _PARSERS.get(name, str)(value)
        if problem:
            fields[f"property {written}"] = InvalidProperty(f"{excerpt(written)}: {problem}")  # not the name of a field

    def describe(self, fields: Mapping[str, object]) -> str:
        """Return a heading and one indented line ``name = value`` per field; unset fields are ``null``."""
        lines = (f"\t{self._shown(field)} = {_text(fields[field], field)}" for field in _DUMPED)
        return "\n".join(("ActivationSpec:", *lines))

    def _shown(self, field: str) -> str:
        name = self._documented[field]
        return _DUMPED[field] or name[:1].upper() + name[1:]


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
        if value in (word, word.upper().replace("-", "_")):  # or in the form of the constants of JMS
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


_DUMPED = {  # the fields in the order of a dump, with names that differ from the properties' names
    "destination_type": "",
    "destination": "",
    "selector": "MessageSelector",
    "acknowledge_mode": "",
    "concurrency_mode": "Delivery concurrency mode",
    "subscription_durability": "",
    "client_id": "",
    "subscription_name": "",
    "endpoint_pool_max_size": "",
    "connection_url": "",
    "user_name": "",
    "password": "",
    "context_name": "",
    "mbean_name": "",
    "options": "OptionsStr",
    "redelivery_handling": "",
    "selector_variables": "",
    "batch_size": "",
    "split_failed_batches": "",
    "hold_until_ack": "",
    "acknowledgement_timeout": "",
    "max_outstanding": "",
    "transaction": "",
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


_TEXTS: dict[str, Callable[[Any], object]] = {
    "destination_type": JAVA_TYPES.__getitem__,
    "acknowledge_mode": _ACKNOWLEDGE_WORDS.__getitem__,
    "connection_url": _without_secrets,
    "password": _masked_password,
    "options": _options_without_secrets,
    "selector_variables": lambda variables: variables or None,
}


def _text(value: object, field: str) -> str:
    shown = _TEXTS[field](value) if field in _TEXTS else value
    text = "null" if shown is None else str(shown)
    return text if text.isprintable() else repr(text)[1:-1]  # one line per field, whatever the value contains
