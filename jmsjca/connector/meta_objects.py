"""Meta-objects: which business object a message becomes, by which data handler, and how a request is sent.

A static meta-object has one attribute per business object and verb, ``Customer_Create``, with application-specific
information. The values of its attribute ``Default`` apply to all others::

    Customer_Create = "InputFormat=Cust_In;OutputDestination=customers;DataHandlerMimeType=text/xml"
    Default = "ResponseTimeout=5000"

Application-specific information: ``name=value`` pairs of verbs, attributes and meta-object rules, as one text.

``InputFormat=Cust_In;InputDestination=orders`` has two pairs. A ``;`` within single quotes belongs to its value.
"""

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Self, cast

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_pascal

from jmsjca.connector.business_objects import Scalar
from jmsjca.connector.queue_uris import parse_target
from jmsjca.destinations import Destination
from jmsjca.errors import ConfigurationError, excerpt
from jmsjca.messages.message import DeliveryMode

__all__ = [
    "DYNAMIC_NAMES",
    "MetaData",
    "Rule",
    "StaticMetaObject",
    "TargetText",
    "information_pairs",
    "parse_information",
]

_DEFAULT = "Default"


def _delivery_mode(value: object) -> object:
    """Return a delivery mode: 1, 2, or its name in any case."""
    text = str(value).strip().upper().replace("-", "_")
    return {"1": DeliveryMode.NON_PERSISTENT, "2": DeliveryMode.PERSISTENT}.get(text) or next(
        (mode for mode in DeliveryMode if mode.name == text), value
    )


def _checked_target(value: object) -> object:
    """Return the text of a destination after a check."""
    text = str(value) if isinstance(value, str | Destination) else value
    if isinstance(text, str):
        parse_target(text)
    return text


TargetText = Annotated[str, BeforeValidator(_checked_target)]
"""The destination of requests: a name, ``topic:name`` or a queue URI."""


class MetaData(BaseModel):
    """The properties of a meta-object. A property that is None is not defined. Frozen.

    They are named as in the documents, in any case (``ResponseTimeout``), and have the documents' units.

    Attributes:
        input_format: The format of the messages that the rule is for.
        input_destination: The input destination of these messages.
        output_format: The format of the messages of requests.
        output_destination: The destination of requests: a name, ``topic:name`` or a queue URI.
        reply_to_destination: The reply destination of requests.
        data_handler_mime_type: The MIME type of the data handler.
        data_handler_class_name: The class of the data handler, ``package.module:Class``.
        data_encoding: The character encoding of bodies, ``latin-1`` for instance.
        correlation_id: The correlation id of requests.
        collaboration_name: The name of the collaboration of events that ask for a report.
        response_timeout: Milliseconds to wait for a response; a negative value is the same as None: no response.
        timeout_fatal: Whether a missing response terminates the connector.
        priority: The priority of requests, 0 to 9.
        delivery_mode: The delivery mode of requests: 1 or ``NON_PERSISTENT``, 2 or ``PERSISTENT``.
        do_not_report_bus_obj: Whether a report has no business object.
        jms_properties: Properties of the messages of requests.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=to_pascal)

    input_format: str | None = None
    input_destination: TargetText | None = None
    output_format: str | None = None
    output_destination: TargetText | None = None
    reply_to_destination: TargetText | None = None
    data_handler_mime_type: str | None = None
    data_handler_class_name: str | None = None
    data_encoding: str | None = None
    correlation_id: str | None = Field(default=None, alias="CorrelationID")
    collaboration_name: str | None = None
    response_timeout: int | None = Field(default=None, le=2**31 - 1)
    timeout_fatal: bool | None = None
    priority: int | None = Field(default=None, ge=0, le=9)
    delivery_mode: Annotated[DeliveryMode | None, BeforeValidator(_delivery_mode)] = None
    do_not_report_bus_obj: bool | None = None
    jms_properties: dict[str, Scalar] | None = Field(default=None, alias="JMSProperties")

    @classmethod
    def of(cls, values: Mapping[str, object], where: str) -> Self:
        """Return the properties with the documents' names.

        Args:
            values: The values by name, in any case.
            where: The meta-object, for the error.

        Raises:
            ConfigurationError: Properties are unknown or invalid; the message lists all of them.
        """
        given = {_NAMES.get(name.lower(), name): value for name, value in values.items() if value is not None}
        try:
            return cls(**cast("dict[str, Any]", given))
        except ValidationError as error:
            raise ConfigurationError(f"{where} is invalid: {'; '.join(_problems(error))}.") from None

    def over(self, other: "MetaData") -> "MetaData":
        """Return these properties. A property that is missing here is taken from the other meta-object."""
        own = {name: value for name, value in self if value is not None}
        return other.model_copy(update=own)


_NAMES = {str(field.alias).lower(): str(field.alias) for field in MetaData.model_fields.values()}
_STATIC_ONLY = {"InputFormat", "InputDestination", "CollaborationName", "DoNotReportBusObj"}
DYNAMIC_NAMES = frozenset(_NAMES.values()) - _STATIC_ONLY
"""The names that an attribute of a dynamic meta-object can have to override the static one in a request."""


@dataclass(frozen=True)
class Rule:
    """A rule of a static meta-object.

    Attributes:
        type: The type of the business object.
        verb: The verb.
        data: Its properties, completed by the properties of ``Default``.
    """

    type: str
    verb: str
    data: MetaData

    def matches(self, message_format: str | None, origin: Destination) -> bool:
        """Return whether a message is of the rule's format and destination; a rule without both matches none."""
        wanted, source = self.data.input_format, self.data.input_destination
        if wanted is None and source is None:
            return False
        same_format = wanted is None or wanted == message_format
        return same_format and (source is None or parse_target(source).destination == origin)


@dataclass(frozen=True)
class StaticMetaObject:
    """The rules of a connector for events and requests.

    Attributes:
        rules: The rules, in their order.
        default: The properties of ``Default``.
    """

    rules: tuple[Rule, ...] = ()
    default: MetaData = field(default_factory=MetaData)

    @classmethod
    def of(cls, attributes: Mapping[str, str | Mapping[str, object]]) -> Self:
        """Return the meta-object of its attributes.

        Args:
            attributes: The application-specific information by attribute, as text or as a mapping.

        Raises:
            ConfigurationError: An attribute is not named ``<BusinessObject>_<Verb>``, properties are invalid, or
                ``Default`` has an InputFormat, which distinguishes the rules.
        """
        parsed = {name: _data(name, value) for name, value in attributes.items()}
        default = parsed.pop(_DEFAULT, MetaData())
        if default.input_format is not None:
            raise ConfigurationError(
                f"Default has InputFormat={excerpt(default.input_format)!r}, but the format distinguishes the rules; "
                "set it in each rule."
            )
        return cls(tuple(_rule(name, data.over(default)) for name, data in parsed.items()), default)

    @classmethod
    def from_file(cls, path: str | Path) -> Self:
        """Read a meta-object: a TOML or JSON file with one entry per attribute.

        Raises:
            ConfigurationError: The file cannot be read or parsed, or its content is invalid.
        """
        file = Path(path)
        try:
            text = file.read_text("utf-8")
            content: object = tomllib.loads(text) if file.suffix == ".toml" else json.loads(text)
        except (OSError, ValueError, RecursionError) as error:
            raise ConfigurationError(f"Meta-object {file} cannot be read: {excerpt(error, 200)}.") from error
        if not isinstance(content, dict):
            raise ConfigurationError(f"Meta-object {file} is not an object with one member per rule.")
        return cls.of(cast("dict[str, str]", content))

    def matching(self, message_format: str | None, origin: Destination) -> Rule | None:
        """Return the rule of a message; None if no rule or several rules match it.

        Args:
            message_format: The format of the message; None if it has none.
            origin: The destination that the message was received from.
        """
        found = [rule for rule in self.rules if rule.matches(message_format, origin)]
        return found[0] if len(found) == 1 else None

    def data_for(self, type: str, verb: str) -> MetaData:
        """Return the properties for a business object. If there is no rule for it, ``Default`` applies."""
        return next((rule.data for rule in self.rules if (rule.type, rule.verb) == (type, verb)), self.default)


def _data(name: str, value: object) -> MetaData:
    if isinstance(value, str):
        return MetaData.of(parse_information(value), f"Rule {excerpt(name)} of the static meta-object")
    if isinstance(value, Mapping):
        return MetaData.of(cast("Mapping[str, object]", value), f"Rule {excerpt(name)} of the static meta-object")
    raise ConfigurationError(
        f"Rule {excerpt(name)} of the static meta-object is {excerpt(value)!r}; it is a text or a table."
    )


def _rule(name: str, data: MetaData) -> Rule:
    kind, underscore, verb = name.rpartition("_")
    if not underscore or not kind or not verb:
        raise ConfigurationError(
            f"Attribute {excerpt(name)!r} of the static meta-object is not named <BusinessObject>_<Verb> or {_DEFAULT}."
        )
    return Rule(kind, verb, data)


def _problems(error: ValidationError) -> Iterator[str]:
    for problem in error.errors(include_url=False):
        field = excerpt(".".join(str(part) for part in problem["loc"]))
        if problem["type"] == "extra_forbidden":
            yield f"{field} is unknown; there are {', '.join(sorted(_NAMES.values()))}"
        else:
            yield f"{field} = {excerpt(problem['input'])!r}: {problem['msg'].removeprefix('Value error, ')}"


_PAIR = re.compile(r"(?:'[^']*'|[^;'])+")


def parse_information(text: str) -> dict[str, str]:
    """Return the pairs of a text by their names in lower case, because names are not case-sensitive.

    Args:
        text: The pairs, separated by ``;``. Blanks around names and values are removed.

    Raises:
        ConfigurationError: A pair has no ``=``, a name is empty or occurs twice, or a quote is not closed.
    """
    pairs: dict[str, str] = {}
    for name, value in information_pairs(text):
        if name.lower() in pairs:
            raise ConfigurationError(f"{excerpt(text, 200)!r} has {excerpt(name)!r} twice; remove one of them.")
        pairs[name.lower()] = value
    return pairs


def information_pairs(text: str) -> Iterator[tuple[str, str]]:
    """Yield the names and values of a text, as they are written there.

    Args:
        text: The pairs, as for `parse_information`.

    Raises:
        ConfigurationError: A pair has no ``=``, a name is empty, or a quote is not closed.
    """
    if text.count("'") % 2:
        raise ConfigurationError(f"{excerpt(text, 200)!r} has an unclosed quote: double the one that ends a string.")
    for part in _PAIR.findall(text):
        name, equals, value = part.partition("=")
        if not part.strip():
            continue
        if not equals or not name.strip():
            raise ConfigurationError(
                f"{excerpt(part.strip(), 200)!r} is not a pair name=value of {excerpt(text, 200)!r}."
            )
        yield name.strip(), value.strip()
