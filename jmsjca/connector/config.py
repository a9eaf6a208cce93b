"""The configuration of an event connector, from Python or from the properties of IBM's adapters."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import time, timedelta
from enum import StrEnum
from itertools import combinations
from pathlib import Path
from typing import Annotated, Any, Literal, TypedDict, Unpack, cast

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
)

from jmsjca.arguments import did_you_mean
from jmsjca.config.activation_spec import Accepts, Number, in_seconds
from jmsjca.config.connection_url import ConnectionURL, absolute_url
from jmsjca.config.naming import LOOKUP
from jmsjca.connector.definitions import BusinessObjectDefinition, BusinessObjectDefinitions
from jmsjca.connector.meta_objects import StaticMetaObject, TargetText
from jmsjca.connector.queue_uris import destination_of
from jmsjca.destinations import Destination, Queue, Topic
from jmsjca.errors import ConfigurationError, excerpt

__all__ = ["DOCUMENTED_NAMES", "ConnectorConfig", "ConnectorFields", "InDoubtEvents", "managed_destinations"]


class InDoubtEvents(StrEnum):
    """How a connector treats the messages that it finds in its in-progress destination when it starts."""

    FAIL_ON_STARTUP = "FailOnStartup"
    """Log a critical error and terminate. An operator deletes or moves the messages."""
    REPROCESS = "Reprocess"
    """Deliver them before all other messages. A collaboration may get a business object twice."""
    IGNORE = "Ignore"
    """Leave them there and start."""
    LOG_ERROR = "LogError"
    """Leave them there, log a critical error and start."""


class Named:
    """The names of a field in the documents of IBM's adapters.

    Args:
        names: The names; those with ``Queue`` are of the adapter for WebSphere MQ.
        convert: Returns the value of the field for the documented value.
    """

    def __init__(self, *names: str, convert: Callable[[object], object] = lambda value: value) -> None:
        self.names = names
        self.convert = convert


_MANAGED = ("source_queue", "fault_queue", "delivery_queue", "archive_destination")
_BESIDE_MONITOR = ("archive_destination", "error_destination", "unsubscribed_destination", "delivery_queue")
_REPORTED_ELSEWHERE = (
    "default_factory_not_called",  # the field that it depends on is invalid, and reported itself
    "literal_error",  # "key", where a number is also possible, and missed in another problem
)
_URLS = ("connection_url", "archival_connection_url")
_BROKER_TYPES = {
    "ICS": "application/json",
    "WMQI": "text/xml",
    "WEBSPHERE MESSAGE BROKER": "text/xml",
    "WAS": "text/xml",
}
_REQUIRED_IF_STRICT = ("error_destination", "unsubscribed_destination", "archive_destination")


def _parse_destination(value: object) -> object:
    return destination_of(value) if isinstance(value, str) else value


def _parse_definitions(value: object) -> object:
    if isinstance(value, str | Path):
        return BusinessObjectDefinitions.from_file(value)
    if isinstance(value, Mapping) and not isinstance(value, BusinessObjectDefinitions):
        return BusinessObjectDefinitions(cast("Mapping[str, BusinessObjectDefinition]", value))
    return value


def _parse_meta_object(value: object) -> object:
    if isinstance(value, str | Path):
        return StaticMetaObject.from_file(value)
    return StaticMetaObject.of(cast("Mapping[str, str]", value)) if isinstance(value, Mapping) else value


def _parse_frequency(value: object) -> object:
    text = value.strip().lower() if isinstance(value, str) else ""
    return None if text == "no" else "key" if text == "key" else value


def _parse_time(value: object) -> object:
    """Return the time of ``HH:MM``, or a time without a zone itself.

    Raises:
        ValueError: It is something else, or there is no such time.
    """
    match = re.fullmatch(r"\s*(\d{1,2}):(\d{2})\s*", value) if isinstance(value, str) else None
    if match is None and not (isinstance(value, time) and value.tzinfo is None):
        raise ValueError("write HH:MM, in local time")
    return time(int(match[1]), int(match[2])) if match else value


def _parse_destinations(value: object) -> object:
    if isinstance(value, str):
        names = [name for name in value.split(";") if name.strip()]
        if not names:
            raise ValueError("the text names no destination; leave the field out for a connector without events")
        return names
    return [value] if isinstance(value, Destination) else value


def _parse_in_doubt_events(value: object) -> object:
    known = {mode.lower(): mode for mode in InDoubtEvents}
    return known.get(value.lower(), value) if isinstance(value, str) else value


def _parse_url(text: str) -> str:
    if not text.startswith(LOOKUP):
        ConnectionURL.parse(text)
    return text


def _parse_container(value: object) -> object:
    text = value.strip().lower() if isinstance(value, str) else None
    return value if text is None else {"jms": True, "": False, "none": False}.get(text, value)


def _parse_transport(transport: str) -> str:
    if transport.upper() != "JMS":
        raise ValueError("guaranteed delivery needs JMS, and there is no other transport; leave it out")
    return "JMS"


def _of_name(value: object) -> object:
    """Return the URL for a documented factory name: the name of a bound factory, if it is not a URL."""
    is_name = isinstance(value, str) and not re.match(r"[A-Za-z][A-Za-z0-9+.-]*://", absolute_url(value))
    return f"{LOOKUP}{value}" if is_name else value


def _of_broker_type(value: object) -> object:
    return _BROKER_TYPES.get(str(value).upper(), value)


def _seconds(unit: float) -> Callable[[object], object]:
    """Return what converts a number of units to seconds: None for ``no``; other values are reported later."""

    def convert(value: object) -> object:
        if isinstance(value, str) and value.strip().lower() == "no":
            return None
        try:
            return float(cast("str", value)) * unit
        except (TypeError, ValueError):
            return value

    return convert


_URL = Annotated[str, AfterValidator(_parse_url)]
_Text = Annotated[str, Field(min_length=1)]
_Destination = Annotated[Destination, BeforeValidator(_parse_destination)]
_Queue = Annotated[_Destination | None, Accepts("str | Destination | None")]
_Seconds = Annotated[float, Number, in_seconds, Field(ge=0, le=1e6, allow_inf_nan=False)]
_TimeOfDay = Annotated[Annotated[time, BeforeValidator(_parse_time)] | None, Accepts("time | str | None")]
_Definitions = Annotated[BusinessObjectDefinitions, BeforeValidator(_parse_definitions)]
_MetaObject = Annotated[StaticMetaObject, BeforeValidator(_parse_meta_object)]


def _queue_of_name(suffix: str) -> Callable[[dict[str, Any]], Destination | None]:
    """Return a function that returns the default queue of a named connector, ``HUB/SOURCEQUEUE`` for instance."""

    def default(fields: dict[str, Any]) -> Destination | None:
        """Return the queue; None without a name."""
        name = fields.get("connector_name")
        return Queue(f"{name}/{suffix}") if name else None

    return default


class ConnectorConfig(BaseModel):
    """The configuration of a `Connector`. Frozen.

    A destination is a `Queue`, a `Topic` or a text: ``orders`` and ``queue:orders`` name a queue, ``topic:news`` a
    topic.

    Raises:
        ConfigurationError: Fields are invalid; the message lists all of them.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True, use_attribute_docstrings=True)

    # A validator sees only the fields above its own, so their order matters.
    connection_url: Annotated[_URL, Named("ConnectionFactoryName", convert=_of_name)] = Field(repr=False)
    """The URL of the broker, or ``lookup://name`` of a bound connection factory."""
    client_id: _Text | None = None
    """The client id of the connection. Topics need one: they are read by durable subscriptions that are named like the
    topic."""
    input_destination: Annotated[
        tuple[_Destination, ...],
        BeforeValidator(_parse_destinations),
        Accepts("str | Destination | Sequence[str | Destination]"),
        Named("InputDestination", "InputQueue"),
    ] = ()
    """The destinations to poll, in the order of their turns; as text separated by ``;``, where ``topic:news`` is a
    topic. Empty for a connector that only sends requests or reads an event store; any other poll is then a
    `ConfigurationError`."""
    poll_quantity: Annotated[int, Number, Field(ge=1, le=500), Named("PollQuantity")] = 1
    """The maximum number of messages of each input destination per poll."""
    poll_frequency: Annotated[
        _Seconds | Literal["key"] | None,
        BeforeValidator(_parse_frequency),
        Named("PollFrequency", convert=_seconds(1 / 1000)),
    ] = 10.0
    """Seconds from the end of a poll to the start of the next one; None, or ``no``, disables polling; ``key`` polls
    when an operator types ``p`` and a line end, and needs a standard input or ``run(keyboard=…)``."""
    poll_start_time: Annotated[_TimeOfDay, Named("PollStartTime")] = None
    """The time of day, ``HH:MM`` in local time, at which `run` begins to poll and to restart, at most a minute late."""
    poll_end_time: Annotated[_TimeOfDay, Named("PollEndTime")] = None
    """The time of day at which polling ends. The window is ignored with ``key``, and unless both times are set; it
    contains midnight if its end is before its start."""
    receive_timeout: Annotated[_Seconds, Accepts("float | timedelta")] = 0.0
    """Seconds that each read of a destination waits for a message. Over STOMP a read without a wait can miss a message
    until a later poll."""
    in_progress_destination: Annotated[_Queue, Named("InProgressDestination", "InProgressQueue")] = None
    """The queue that holds a message while it is delivered; None delivers it within the transaction that receives it.
    It must belong to one connector."""
    in_doubt_events: Annotated[
        InDoubtEvents,
        BeforeValidator(_parse_in_doubt_events),
        Accepts("InDoubtEvents | str"),
        Named("InDoubtEvents"),
    ] = InDoubtEvents.REPROCESS
    """The treatment of messages that are in the in-progress destination at the start."""
    archival_connection_url: Annotated[_URL | None, Named("ArchivalConnectionFactoryName", convert=_of_name)] = Field(
        default=None, repr=False
    )
    """The URL of the broker of the archive, or ``lookup://name``; None for the broker of the connector. Another broker
    is not part of the transaction: the copy is sent before the message is removed, so that a crash can leave two
    copies, with the same duplicate id, and never none."""
    archive_destination: Annotated[_Queue, Named("ArchiveDestination", "ArchiveQueue")] = None
    """Gets a copy of each message that was delivered; None keeps no copy."""
    error_destination: Annotated[_Queue, Named("ErrorDestination", "ErrorQueue")] = None
    """Gets a copy of each message that failed; None discards it with a warning. While this destination cannot be sent
    to, its messages are kept, and the polls end with APPRESPONSETIMEOUT."""
    unsubscribed_destination: Annotated[_Queue, Named("UnsubscribedDestination", "UnsubscribedQueue")] = None
    """Gets a copy of each message without a subscriber; None discards it with a warning."""
    connector_name: Annotated[_Text | None, Named("ApplicationName")] = None
    """The name of the connector, from which its queues are named if they are not set: ``<name>/SOURCEQUEUE``,
    ``DELIVERYQUEUE``, ``FAULTQUEUE`` and ``MONITORQUEUE``."""
    delivery_transport: Annotated[str, AfterValidator(_parse_transport), Named("DeliveryTransport")] = "JMS"
    """``JMS``; there is no other one."""
    source_queue: Annotated[_Queue, Named("SourceQueue")] = Field(default_factory=_queue_of_name("SOURCEQUEUE"))
    """The queue of container managed events."""
    delivery_queue: Annotated[_Queue, Named("DeliveryQueue")] = Field(default_factory=_queue_of_name("DELIVERYQUEUE"))
    """The collaboration, if it is a queue or topic and the connector gets no other one."""
    delivery_mime_type: Annotated[_Text | None, Named("BrokerType", convert=_of_broker_type)] = None
    """The MIME type of messages for a queue or topic as collaboration; None for the default data handler."""
    fault_queue: Annotated[_Queue, Named("FaultQueue")] = Field(default_factory=_queue_of_name("FAULTQUEUE"))
    """Gets the container managed events that fail, with status and description."""
    container_managed_events: Annotated[bool, BeforeValidator(_parse_container), Named("ContainerManagedEvents")] = (
        False
    )
    """True to move events from the source queue to the collaboration, a queue or topic, in one transaction."""
    monitor_queue: Annotated[_Queue, Named("MonitorQueue")] = Field(default_factory=_queue_of_name("MONITORQUEUE"))
    """The queue of this connector alone that remembers the delivered events."""
    duplicate_event_elimination: Annotated[bool, Named("DuplicateEventElimination")] = False
    """True to deliver an event once although its message is received again."""
    duplicate_history: Annotated[int, Number, Field(ge=1, le=10_000)] = 1
    """The number of events that are remembered; 1 recognises consecutive duplicates only."""
    data_handler_mime_type: Annotated[_Text, Named("DataHandlerMimeType", "MimeType")] = "application/json"
    """The MIME type of the default data handler; ``Connector(…, data_handler=…)`` takes any other one."""
    data_handler_class_name: Annotated[_Text | None, Named("DataHandlerClassName", "DHClass")] = None
    """The class of the default data handler, ``package.module:Class``, instead of the type."""
    definitions: Annotated[
        _Definitions | None,
        Accepts(
            "BusinessObjectDefinitions | Mapping[str, BusinessObjectDefinition | Mapping[str, Any]] | str | Path | None"
        ),
    ] = None
    """The definitions of the business objects, or the path of their file; None accepts all objects."""
    configuration_meta_object: Annotated[
        _MetaObject | None,
        Accepts("StaticMetaObject | Mapping[str, str | Mapping[str, object]] | str | Path | None"),
        Named("ConfigurationMetaObject"),
    ] = None
    """The static meta-object, its attributes, or the path of its file."""
    message_format_property: Annotated[_Text, Named("MessageFormatProperty")] = "JMSType"
    """The property that holds the format of messages: ``JMSType`` for the header, or, for WebSphere MQ,
    ``JMS_IBM_Format``."""
    default_verb: Annotated[str, Named("DefaultVerb")] = "Create"
    """The verb of a business object if its message has no verb."""
    output_destination: Annotated[
        TargetText | None, Accepts("str | Destination | None"), Named("OutputDestination")
    ] = None
    """The destination of requests whose meta-objects name none: a name, ``topic:name`` or a queue URI."""
    reply_to_destination: Annotated[_Queue, Named("ReplyToDestination", "ReplyToQueue")] = None
    """The queue for responses to requests; meta-objects can name another one."""
    message_response_result_property: Annotated[_Text | None, Named("MessageResponseResultProperty")] = None
    """The message property that holds the result of a response, by name or as a feedback code of WebSphere MQ;
    ``JMS_IBM_Feedback`` for instance."""
    raw_response_selectors: bool = False
    """True inserts values into response selectors as they are, as IBM's adapter does; a quote in a value can then
    change the selector."""
    session_pool_size_for_requests: Annotated[
        int, Number, Field(ge=1, le=10_000), Named("SessionPoolSizeForRequests")
    ] = 10
    """The maximum number of requests at the same time; further ones wait."""
    feedback_codes: Annotated[Mapping[str, str], Accepts("Mapping[str, str]"), Named("FeedbackCodeMappingMO")] = Field(
        default_factory=dict[str, str]
    )
    """Results by feedback code, instead of WebSphere MQ's results: ``{"MQFB_APPL_FIRST + 1": "VALDUPES"}``."""
    restart_retry_count: Annotated[int, Number, Field(ge=0, le=1_000_000), Named("RestartRetryCount")] = 3
    """The maximum number of restarts in a row of `Connector.run`; 0 terminates at once."""
    restart_retry_interval: Annotated[
        _Seconds, Accepts("float | timedelta"), Named("RestartRetryInterval", convert=_seconds(60))
    ] = 60.0
    """Seconds before the first restart; doubled for each further one in a row, up to an hour."""
    strict: bool = False
    """True refuses a configuration without error, unsubscribed and archive destination."""

    def __init__(self, **fields: Unpack["ConnectorFields"]) -> None:
        try:
            super().__init__(**fields)
        except ValidationError as error:
            raise ConfigurationError(
                f"The connector's configuration is wrong: {'; '.join(_problems(error))}."
            ) from None

    @classmethod
    def from_properties(cls, properties: Mapping[str, object]) -> "ConnectorConfig":
        """Return a configuration from properties with the names of the documents.

        ``PollFrequency`` is in milliseconds, and ``no`` disables polling; ``RestartRetryInterval`` is in minutes. An
        ``InputDestination`` lists destinations, separated by ``;``. A ``ConnectionFactoryName`` that is not a URL is
        looked up as ``lookup://name``.

        Args:
            properties: The values by name. Names are not case-sensitive; fields of this class are accepted as well, in
                their own units, with or without underscores: ``connection_url``, ``ConnectionURL``.

        Raises:
            ConfigurationError: Properties are unknown or invalid; the message lists all of them. Or two set one field.
        """
        own = {field.replace("_", ""): field for field in cls.model_fields}
        fields: dict[str, object] = {}
        names: dict[str, str] = {}
        for name, value in properties.items():
            field, convert = _BY_DOCUMENTED_NAME.get(name.lower(), (None, None))
            target = field or own.get(name.lower().replace("_", ""), name)
            if target in names:
                raise ConfigurationError(
                    f"{names[target]} and {excerpt(name)} both set {excerpt(target)}; remove one of them."
                )
            names[target] = excerpt(name)
            fields[target] = convert(value) if convert else value
        return cls(**cast("Any", fields))

    @field_validator("*")
    @classmethod
    def _check_field(cls, value: object, others: ValidationInfo) -> object:
        """Refuse a value that does not go together with the fields above."""
        problems = _PROBLEMS.get(others.field_name or "")
        if problems and (problem := next(problems(value, others.data), None)):
            raise ValueError(problem)
        return value


def managed_destinations(fields: Mapping[str, Any]) -> dict[str, Destination]:
    """Return the destinations of container managed events by the names of their fields, without those not set.

    Args:
        fields: The fields of a configuration. An archive on another broker is left out: its names are others.
    """
    names = _MANAGED[:-1] if _archives_elsewhere(fields) else _MANAGED
    return {name: each for name in names if (each := fields.get(name)) is not None}


def _archives_elsewhere(fields: Mapping[str, Any]) -> bool:
    return fields.get("archival_connection_url") not in {None, fields.get("connection_url")}


_Fields = Mapping[str, Any]


def _topic(*destinations: Destination | None) -> Topic | None:
    return next((each for each in destinations if isinstance(each, Topic)), None)


def _problems_of_inputs(inputs: Sequence[Destination], fields: _Fields) -> Iterator[str]:
    for each, count in Counter(inputs).items():
        if count > 1:
            yield f"{each} is listed twice; poll_quantity sets the number of messages per poll"
    if (topic := _topic(*inputs)) and not fields.get("client_id"):
        yield f"{topic} needs a durable subscription, or a restart loses events: set client_id"


def _problems_of_in_progress(queue: Destination | None, fields: _Fields) -> Iterator[str]:
    topic = _topic(queue, *fields.get("input_destination", ()))
    if queue and topic:
        yield f"an in-progress destination works with queues only, and {topic} is a topic; leave it out"
    yield from _problems_of_target(queue, fields)


def _problems_of_target(target: Destination | None, fields: _Fields) -> Iterator[str]:
    if target and target in fields.get("input_destination", ()):
        yield f"{target} is an input destination, so its messages would be polled again; use another"
    if target and target == fields.get("in_progress_destination"):
        yield f"{target} is the in-progress destination, which holds nothing else; use another one"


def _problems_of_archive(target: Destination | None, fields: _Fields) -> Iterator[str]:
    if not _archives_elsewhere(fields):  # the destinations of another broker are others, whatever their names are
        yield from _problems_of_target(target, fields)


def _problems_of_container(managed: bool, fields: _Fields) -> Iterator[str]:
    if not managed:
        return
    if fields.get("input_destination"):
        yield "container managed events come from source_queue; leave input_destination out"
    if fields.get("in_progress_destination"):
        yield "the transaction needs no in-progress destination; leave it out"
    if topic := _topic(fields.get("source_queue"), fields.get("fault_queue")):
        yield f"container managed events work with queues only, and {topic} is a topic"
    for name in _unset(fields, "source_queue", "fault_queue"):
        yield f"set {name}, or connector_name"
    for (first, one), (second, other) in combinations(managed_destinations(fields).items(), 2):
        if one == other:
            yield f"{second} is {first} as well, and {one} has one purpose only; use another"


def _problems_of_elimination(eliminate: bool, fields: _Fields) -> Iterator[str]:
    if not eliminate:
        return
    monitor = fields.get("monitor_queue", ...)
    if fields.get("container_managed_events"):
        yield "duplicate_event_elimination and container_managed_events exclude each other; use one"
    if monitor is None:
        yield "set monitor_queue, or connector_name"
    if isinstance(monitor, Topic):
        yield f"the monitor queue is a queue, and {monitor} is a topic"
    if monitor in fields.get("input_destination", ()):  # the default name, too
        yield f"{monitor} is an input destination, and the monitor queue has one purpose; use another"
    for name in _BESIDE_MONITOR:
        if fields.get(name) == monitor:
            yield f"{monitor} is {name} as well, and the monitor queue holds nothing else; use another"


def _problems_of_reply_to(queue: Destination | None, fields: _Fields) -> Iterator[str]:
    if queue in fields.get("input_destination", ()):
        yield f"{queue} is an input destination, so responses would be polled as events; use another"
    used = {"in_progress_destination": fields.get("in_progress_destination")}
    if fields.get("duplicate_event_elimination"):
        used["monitor_queue"] = fields.get("monitor_queue")
    if fields.get("container_managed_events"):
        used |= managed_destinations(fields)
    for name, each in used.items():
        if queue and each == queue:
            yield f"{queue} is {name} as well, and responses need a queue for nothing else; use another"


def _problems_of_strict(strict: bool, fields: _Fields) -> Iterator[str]:
    if strict and (missing := _unset(fields, *_REQUIRED_IF_STRICT)):
        yield f"messages would be discarded: set {', '.join(missing)}"


def _unset(fields: _Fields, *names: str) -> list[str]:
    return [name for name in names if fields.get(name, ...) is None]


_PROBLEMS: Mapping[str, Callable[[Any, _Fields], Iterator[str]]] = {
    "input_destination": _problems_of_inputs,
    "in_progress_destination": _problems_of_in_progress,
    "archive_destination": _problems_of_archive,
    "error_destination": _problems_of_target,
    "unsubscribed_destination": _problems_of_target,
    "delivery_queue": _problems_of_target,
    "monitor_queue": _problems_of_target,
    "container_managed_events": _problems_of_container,
    "duplicate_event_elimination": _problems_of_elimination,
    "reply_to_destination": _problems_of_reply_to,
    "strict": _problems_of_strict,
}
"""What finds the problems of a field with the fields above it; the first one is reported."""


def _problems(error: ValidationError) -> Iterator[str]:
    for problem in error.errors(include_url=False):
        first, *rest = problem["loc"]
        field = ".".join([str(first), *(str(part) for part in rest if isinstance(part, int))])  # no names of pydantic's
        if problem["type"] in _REPORTED_ELSEWHERE:
            continue
        if problem["type"] == "extra_forbidden":
            known = {name.lower(): name for name in (*sorted(ConnectorConfig.model_fields), *DOCUMENTED_NAMES)}
            yield f"{excerpt(field)} is unknown {did_you_mean(field.lower(), known)}"
        elif problem["type"] == "missing":
            yield f"{field} is missing"
        else:
            reason = problem["msg"].removeprefix("Value error, ")
            value = "" if field in _URLS else f" (value: {excerpt(problem['input'])!r})"
            yield f"{field}: {reason}{value}"


_NAMED = {
    field: each
    for field, info in ConnectorConfig.model_fields.items()
    for each in info.metadata
    if isinstance(each, Named)
}
DOCUMENTED_NAMES = {name: field for field, each in _NAMED.items() for name in each.names}
"""The name of the field by the documented name of the property."""
_BY_DOCUMENTED_NAME = {name.lower(): (field, _NAMED[field].convert) for name, field in DOCUMENTED_NAMES.items()}


# Made from the fields of `ConnectorConfig` by `python -m tests.support.spec_fields`: do not edit.


class ConnectorFields(TypedDict, total=False):
    """The keywords of `ConnectorConfig`, which documents them."""

    connection_url: str
    client_id: str | None
    input_destination: str | Destination | Sequence[str | Destination]
    poll_quantity: int
    poll_frequency: float | Literal["key"] | None
    poll_start_time: time | str | None
    poll_end_time: time | str | None
    receive_timeout: float | timedelta
    in_progress_destination: str | Destination | None
    in_doubt_events: InDoubtEvents | str
    archival_connection_url: str | None
    archive_destination: str | Destination | None
    error_destination: str | Destination | None
    unsubscribed_destination: str | Destination | None
    connector_name: str | None
    delivery_transport: str
    source_queue: str | Destination | None
    delivery_queue: str | Destination | None
    delivery_mime_type: str | None
    fault_queue: str | Destination | None
    container_managed_events: bool
    monitor_queue: str | Destination | None
    duplicate_event_elimination: bool
    duplicate_history: int
    data_handler_mime_type: str
    data_handler_class_name: str | None
    definitions: (
        BusinessObjectDefinitions | Mapping[str, BusinessObjectDefinition | Mapping[str, Any]] | str | Path | None
    )
    configuration_meta_object: StaticMetaObject | Mapping[str, str | Mapping[str, object]] | str | Path | None
    message_format_property: str
    default_verb: str
    output_destination: str | Destination | None
    reply_to_destination: str | Destination | None
    message_response_result_property: str | None
    raw_response_selectors: bool
    session_pool_size_for_requests: int
    feedback_codes: Mapping[str, str]
    restart_retry_count: int
    restart_retry_interval: float | timedelta
    strict: bool
