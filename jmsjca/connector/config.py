"""The configuration of an event connector, from Python or from the properties of IBM's adapters."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import time
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

from jmsjca.config.activation_spec import Number
from jmsjca.config.connection_url import ConnectionURL
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


class ConnectorFields(TypedDict, total=False):
    """The keyword arguments of `ConnectorConfig`, which describes them."""

    connection_url: str
    input_destination: str | Destination | Sequence[str | Destination]
    client_id: str | None
    poll_quantity: int
    poll_frequency: float | Literal["key"] | None
    poll_start_time: time | str | None
    poll_end_time: time | str | None
    receive_timeout: float
    in_progress_destination: str | Destination | None
    in_doubt_events: InDoubtEvents | str
    archive_destination: str | Destination | None
    archival_connection_url: str | None
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
    restart_retry_interval: float
    strict: bool


DOCUMENTED_NAMES = {
    "ConnectionFactoryName": "connection_url",
    "InputDestination": "input_destination",
    "PollQuantity": "poll_quantity",
    "InputQueue": "input_destination",
    "PollFrequency": "poll_frequency",
    "PollStartTime": "poll_start_time",
    "PollEndTime": "poll_end_time",
    "InProgressDestination": "in_progress_destination",
    "InProgressQueue": "in_progress_destination",
    "InDoubtEvents": "in_doubt_events",
    "ArchiveDestination": "archive_destination",
    "ArchiveQueue": "archive_destination",
    "ArchivalConnectionFactoryName": "archival_connection_url",
    "ErrorDestination": "error_destination",
    "ErrorQueue": "error_destination",
    "UnsubscribedDestination": "unsubscribed_destination",
    "UnsubscribedQueue": "unsubscribed_destination",
    "ApplicationName": "connector_name",
    "DeliveryTransport": "delivery_transport",
    "ContainerManagedEvents": "container_managed_events",
    "SourceQueue": "source_queue",
    "DeliveryQueue": "delivery_queue",
    "BrokerType": "delivery_mime_type",
    "FaultQueue": "fault_queue",
    "DuplicateEventElimination": "duplicate_event_elimination",
    "MonitorQueue": "monitor_queue",
    "DataHandlerMimeType": "data_handler_mime_type",
    "MimeType": "data_handler_mime_type",
    "DHClass": "data_handler_class_name",
    "DataHandlerClassName": "data_handler_class_name",
    "ConfigurationMetaObject": "configuration_meta_object",
    "MessageFormatProperty": "message_format_property",
    "DefaultVerb": "default_verb",
    "OutputDestination": "output_destination",
    "ReplyToDestination": "reply_to_destination",
    "ReplyToQueue": "reply_to_destination",
    "MessageResponseResultProperty": "message_response_result_property",
    "SessionPoolSizeForRequests": "session_pool_size_for_requests",
    "FeedbackCodeMappingMO": "feedback_codes",
    "RestartRetryCount": "restart_retry_count",
    "RestartRetryInterval": "restart_retry_interval",
}
"""The name of the field by the documented name of the property; the names with ``Queue`` are of the MQ adapter."""

_TARGETS = (
    "in_progress_destination",
    "archive_destination",
    "error_destination",
    "unsubscribed_destination",
    "delivery_queue",
    "monitor_queue",
)
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


def _validate_url(text: str) -> str:
    if not text.startswith(LOOKUP):
        ConnectionURL.parse(text)
    return text


_Destination = Annotated[Destination, BeforeValidator(_parse_destination)]
_Seconds = Annotated[float, Number, Field(ge=0, le=1e6, allow_inf_nan=False)]
_TimeOfDay = Annotated[time, BeforeValidator(_parse_time)]
_Definitions = Annotated[BusinessObjectDefinitions, BeforeValidator(_parse_definitions)]
_MetaObject = Annotated[StaticMetaObject, BeforeValidator(_parse_meta_object)]


def _named(suffix: str) -> Callable[[dict[str, Any]], Destination | None]:
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

    Attributes:
        connection_url: The URL of the broker, or ``lookup://name`` of a bound connection factory.
        input_destination: The destinations to poll, in the order of their turns; as text separated by ``;``.
            Empty for a connector that only sends requests.
        client_id: The client id of the connection. Topics need one: they are read by durable subscriptions that are
            named like the topic.
        poll_quantity: The maximum number of messages of each input destination per poll; 1 to 500.
        poll_frequency: Seconds from the end of a poll to the start of the next one; None disables polling; ``"key"``
            polls when an operator types ``p`` and a line end.
        poll_start_time: The time of day, ``HH:MM`` in local time, at which polling begins.
        poll_end_time: The time of day at which polling ends. The window is ignored unless both times are set; it
            contains midnight if its end is before its start.
        receive_timeout: Seconds that each read of a destination waits for a message. Over STOMP a read without a wait
            can miss a message until a later poll.
        in_progress_destination: The queue that holds a message while it is delivered; None delivers it within the
            transaction that receives it. It must belong to one connector.
        in_doubt_events: The treatment of messages that are in the in-progress destination at the start.
        archive_destination: Gets a copy of each message that was delivered; None keeps no copy.
        archival_connection_url: The URL of the broker of the archive, or ``lookup://name``; None for the broker of the
            connector. Another broker is not part of the transaction: the copy is sent before the message is removed,
            so that a crash can leave two copies, with the same duplicate id, and never none.
        error_destination: Gets a copy of each message that failed; None discards it with a warning.
        unsubscribed_destination: Gets a copy of each message without a subscriber; None discards it with a warning.
        connector_name: The name of the connector, from which its queues are named if they are not set:
            ``<name>/SOURCEQUEUE``, ``DELIVERYQUEUE``, ``FAULTQUEUE`` and ``MONITORQUEUE``.
        delivery_transport: ``JMS``; there is no other one.
        source_queue: The queue of container managed events.
        delivery_queue: The collaboration, if it is a queue or topic and the connector gets no other one.
        delivery_mime_type: The MIME type of messages for a queue or topic as collaboration; None for the default data
            handler.
        fault_queue: Gets the container managed events that fail, with status and description.
        container_managed_events: True to move events from the source queue to the collaboration, a queue or topic, in
            one transaction.
        monitor_queue: The queue of this connector alone that remembers the delivered events.
        duplicate_event_elimination: True to deliver an event once although its message is received again.
        duplicate_history: The number of events that are remembered; 1 recognises consecutive duplicates only.
        data_handler_mime_type: The MIME type of the default data handler.
        data_handler_class_name: The class of the default data handler, ``package.module:Class``, instead of the type.
        definitions: The definitions of the business objects, or the path of their file; None accepts all objects.
        configuration_meta_object: The static meta-object, its attributes, or the path of its file.
        message_format_property: The property that holds the format of messages: ``JMSType`` for the header, or, for
            WebSphere MQ, ``JMS_IBM_Format``.
        default_verb: The verb of a business object if its message has no verb.
        output_destination: The destination of requests whose meta-objects name none: a name, ``topic:name`` or a queue
            URI.
        reply_to_destination: The queue for responses to requests; meta-objects can name another one.
        message_response_result_property: The message property that holds the result of a response, by name or as a
            feedback code of WebSphere MQ; ``JMS_IBM_Feedback`` for instance.
        raw_response_selectors: True inserts values into response selectors as they are, as IBM's adapter does; a quote
            in a value can then change the selector.
        session_pool_size_for_requests: The maximum number of requests at the same time; further ones wait.
        feedback_codes: Results by feedback code, instead of the default ones: ``{"MQFB_APPL_FIRST + 1": "VALDUPES"}``.
        restart_retry_count: The maximum number of restarts in a row of `Connector.run`; 0 terminates at once.
        restart_retry_interval: Seconds before the first restart; doubled for each further one in a row.
        strict: True refuses a configuration without error, unsubscribed and archive destination.

    Raises:
        ConfigurationError: Fields are invalid; the message lists all of them.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    # A validator sees only the fields above its own, so their order matters.
    connection_url: Annotated[str, AfterValidator(_validate_url)] = Field(repr=False)  # may hold a password
    client_id: str | None = Field(default=None, min_length=1)
    input_destination: Annotated[tuple[_Destination, ...], BeforeValidator(_parse_destinations)] = ()
    poll_quantity: Annotated[int, Number] = Field(default=1, ge=1, le=500)
    poll_frequency: Annotated[_Seconds | Literal["key"] | None, BeforeValidator(_parse_frequency)] = 10.0
    poll_start_time: _TimeOfDay | None = None
    poll_end_time: _TimeOfDay | None = None
    receive_timeout: _Seconds = 0.0
    in_progress_destination: _Destination | None = None
    in_doubt_events: Annotated[InDoubtEvents, BeforeValidator(_parse_in_doubt_events)] = InDoubtEvents.REPROCESS
    archival_connection_url: Annotated[str, AfterValidator(_validate_url)] | None = Field(default=None, repr=False)
    archive_destination: _Destination | None = None
    error_destination: _Destination | None = None
    unsubscribed_destination: _Destination | None = None
    connector_name: str | None = Field(default=None, min_length=1)
    delivery_transport: str = "JMS"
    source_queue: _Destination | None = Field(default_factory=_named("SOURCEQUEUE"))
    delivery_queue: _Destination | None = Field(default_factory=_named("DELIVERYQUEUE"))
    delivery_mime_type: str | None = Field(default=None, min_length=1)
    fault_queue: _Destination | None = Field(default_factory=_named("FAULTQUEUE"))
    container_managed_events: bool = False
    monitor_queue: _Destination | None = Field(default_factory=_named("MONITORQUEUE"))
    duplicate_event_elimination: bool = False
    duplicate_history: Annotated[int, Number] = Field(default=1, ge=1, le=10_000)
    data_handler_mime_type: str = Field(default="application/json", min_length=1)
    data_handler_class_name: str | None = Field(default=None, min_length=1)
    definitions: _Definitions | None = None
    configuration_meta_object: _MetaObject | None = None
    message_format_property: str = Field(default="JMSType", min_length=1)
    default_verb: str = "Create"
    output_destination: TargetText | None = None
    reply_to_destination: _Destination | None = None
    message_response_result_property: str | None = Field(default=None, min_length=1)
    raw_response_selectors: bool = False
    session_pool_size_for_requests: Annotated[int, Number] = Field(default=10, ge=1, le=10_000)
    feedback_codes: Mapping[str, str] = Field(default_factory=dict[str, str])
    restart_retry_count: Annotated[int, Number] = Field(default=3, ge=0, le=1_000_000)
    restart_retry_interval: _Seconds = 60.0
    strict: bool = False

    def __init__(self, **fields: Unpack[ConnectorFields]) -> None:
        try:
            super().__init__(**fields)
        except ValidationError as error:
            raise ConfigurationError(f"The connector's configuration is wrong: {_explain(error)}.") from None

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
        known = {name.lower(): field for name, field in DOCUMENTED_NAMES.items()}
        own = {field.replace("_", ""): field for field in cls.model_fields}
        fields: dict[str, object] = {}
        names: dict[str, str] = {}
        for name, value in properties.items():
            field = known.get(name.lower())
            target = field or own.get(name.lower().replace("_", ""), name)
            if target in names:
                raise ConfigurationError(
                    f"{names[target]} and {excerpt(name)} both set {excerpt(target)}; remove one of them."
                )
            names[target] = excerpt(name)
            fields[target] = value if field is None else _converted(field, value)
        return cls(**cast("Any", fields))

    @field_validator("input_destination")
    @classmethod
    def _check_inputs(cls, inputs: tuple[Destination, ...], others: ValidationInfo) -> tuple[Destination, ...]:
        twice = [str(each) for each, count in Counter(inputs).items() if count > 1]
        if twice:
            raise ValueError(f"{twice[0]} is listed twice; poll_quantity sets the number of messages per poll")
        topic = next((each for each in inputs if isinstance(each, Topic)), None)
        if topic and not others.data.get("client_id"):
            raise ValueError(f"{topic} needs a durable subscription, or a restart loses events: set client_id")
        return inputs

    @field_validator("in_progress_destination")
    @classmethod
    def _check_in_progress(cls, queue: Destination | None, others: ValidationInfo) -> Destination | None:
        inputs = others.data.get("input_destination", ())
        topic = next((each for each in (queue, *inputs) if isinstance(each, Topic)), None)
        if queue and topic:
            raise ValueError(f"an in-progress destination works with queues only, and {topic} is a topic; leave it out")
        return queue

    @field_validator(*_TARGETS)
    @classmethod
    def _check_not_an_input(cls, target: Destination | None, others: ValidationInfo) -> Destination | None:
        if others.field_name == "archive_destination" and _archives_elsewhere(others.data):
            return target  # another broker: its destinations are others, whatever their names are
        if target and target in others.data.get("input_destination", ()):
            raise ValueError(f"{target} is an input destination, so its messages would be polled again; use another")
        if target and target == others.data.get("in_progress_destination"):
            raise ValueError(f"{target} is the in-progress destination, which holds nothing else; use another one")
        return target

    @field_validator("delivery_transport")
    @classmethod
    def _check_transport(cls, transport: str) -> str:
        if transport.upper() != "JMS":
            raise ValueError("guaranteed delivery needs JMS, and there is no other transport; leave it out")
        return "JMS"

    @field_validator("container_managed_events", mode="before")
    @classmethod
    def _parse_container(cls, value: object) -> object:
        return (
            {"jms": True, "": False, "none": False}.get(value.strip().lower(), value)
            if isinstance(value, str)
            else value
        )

    @field_validator("container_managed_events")
    @classmethod
    def _check_container(cls, managed: bool, others: ValidationInfo) -> bool:
        topic = next(
            (each for each in map(others.data.get, ("source_queue", "fault_queue")) if isinstance(each, Topic)), None
        )
        if managed and others.data.get("input_destination"):
            raise ValueError("container managed events come from source_queue; leave input_destination out")
        if managed and others.data.get("in_progress_destination"):
            raise ValueError("the transaction needs no in-progress destination; leave it out")
        if managed and topic:
            raise ValueError(f"container managed events work with queues only, and {topic} is a topic")
        for name in ("source_queue", "fault_queue"):
            if managed and others.data.get(name, ...) is None:
                raise ValueError(f"set {name}, or connector_name")
        for (first, one), (second, other) in combinations(managed_destinations(others.data).items(), 2):
            if managed and one == other:
                raise ValueError(f"{second} is {first} as well, and {one} has one purpose only; use another")
        return managed

    @field_validator("duplicate_event_elimination")
    @classmethod
    def _check_elimination(cls, eliminate: bool, others: ValidationInfo) -> bool:
        monitor = others.data.get("monitor_queue", ...)
        if eliminate and others.data.get("container_managed_events"):
            raise ValueError("duplicate_event_elimination and container_managed_events exclude each other; use one")
        if eliminate and monitor is None:
            raise ValueError("set monitor_queue, or connector_name")
        if eliminate and isinstance(monitor, Topic):
            raise ValueError(f"the monitor queue is a queue, and {monitor} is a topic")
        shared = next((name for name in _BESIDE_MONITOR if others.data.get(name) == monitor), None)
        if eliminate and monitor in others.data.get("input_destination", ()):  # the default name, too
            raise ValueError(f"{monitor} is an input destination, and the monitor queue has one purpose; use another")
        if eliminate and shared:
            raise ValueError(f"{monitor} is {shared} as well, and the monitor queue holds nothing else; use another")
        return eliminate

    @field_validator("reply_to_destination")
    @classmethod
    def _check_reply_to(cls, queue: Destination | None, others: ValidationInfo) -> Destination | None:
        data = others.data
        if queue in data.get("input_destination", ()):
            raise ValueError(f"{queue} is an input destination, so responses would be polled as events; use another")
        used = {"in_progress_destination": data.get("in_progress_destination")}
        if data.get("duplicate_event_elimination"):
            used["monitor_queue"] = data.get("monitor_queue")
        if data.get("container_managed_events"):
            used |= managed_destinations(data)
        shared = next((name for name, each in used.items() if queue and each == queue), None)
        if shared:
            raise ValueError(f"{queue} is {shared} as well, and responses need a queue for nothing else; use another")
        return queue

    @field_validator("strict")
    @classmethod
    def _check_strict(cls, strict: bool, others: ValidationInfo) -> bool:
        missing = [name for name in _REQUIRED_IF_STRICT if others.data.get(name, ...) is None]
        if strict and missing:
            raise ValueError(f"messages would be discarded: set {', '.join(missing)}")
        return strict


def managed_destinations(fields: Mapping[str, Any]) -> dict[str, Destination]:
    """Return the destinations of container managed events by the names of their fields, without those not set.

    Args:
        fields: The fields of a configuration. An archive on another broker is left out: its names are others.
    """
    names = _MANAGED[:-1] if _archives_elsewhere(fields) else _MANAGED
    return {name: each for name in names if (each := fields.get(name)) is not None}


def _archives_elsewhere(fields: Mapping[str, Any]) -> bool:
    return fields.get("archival_connection_url") not in {None, fields.get("connection_url")}


def _converted(field: str, value: object) -> object:
    if field in _URLS and isinstance(value, str) and not re.match(r"[A-Za-z][A-Za-z0-9+.-]*://", value):
        return LOOKUP + value
    if field == "delivery_mime_type":
        return _BROKER_TYPES.get(str(value).upper(), value)
    if field == "poll_frequency":
        return _seconds(value, 1 / 1000)
    return _seconds(value, 60) if field == "restart_retry_interval" else value


def _seconds(value: object, unit: float) -> object:
    """Return seconds; None for ``no``; the value itself if it is no number, which is reported later."""
    if isinstance(value, str) and value.strip().lower() == "no":
        return None
    try:
        return float(cast("str", value)) * unit
    except (TypeError, ValueError):
        return value


def _explain(error: ValidationError) -> str:
    return "; ".join(_problems(error))


def _problems(error: ValidationError) -> Iterator[str]:
    for problem in error.errors(include_url=False):
        first, *rest = problem["loc"]
        field = ".".join([str(first), *(str(part) for part in rest if isinstance(part, int))])  # no names of pydantic's
        if problem["type"] in _REPORTED_ELSEWHERE:
            continue
        if problem["type"] == "extra_forbidden":
            known = ", ".join(sorted(ConnectorConfig.model_fields))
            yield f"{excerpt(field)} is unknown; there are {known}, and {', '.join(DOCUMENTED_NAMES)}"
        elif problem["type"] == "missing":
            yield f"{field} is missing"
        else:
            reason = problem["msg"].removeprefix("Value error, ")
            value = "" if field in _URLS else f" (value: {excerpt(problem['input'])!r})"
            yield f"{field}: {reason}{value}"
