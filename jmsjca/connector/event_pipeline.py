"""A connector on Spark: events as micro-batches, and one typed table per type of business object.

Spark's executors convert rows of messages to rows of outcomes, business objects and messages to be sent.

An event is processed as in a `Connector`, but the session only collects the messages to be sent. The driver sends them
after the subscribers have processed the batch.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial, reduce
from importlib import import_module
from typing import Any, TypeAlias

from jmsjca.config.naming import LOOKUP
from jmsjca.connector.business_objects import Attribute, BusinessObject, shown
from jmsjca.connector.collaborations import Collaboration, EventSession, Publish, Receiver, receiver_of
from jmsjca.connector.config import ConnectorConfig
from jmsjca.connector.data_handlers import DataHandler
from jmsjca.connector.definitions import AttributeDefinition, BusinessObjectDefinitions
from jmsjca.connector.event_conversion import Event, EventConversion, default_data_handler
from jmsjca.connector.event_flow import EventFlow, outcome_of
from jmsjca.connector.outcomes import FEEDBACK, MESSAGE_TYPE, DeliveryOutcome
from jmsjca.destinations import Destination, Topic, destination
from jmsjca.errors import ConfigurationError, DataHandlerError, JMSError, ProviderNotInstalledError, excerpt
from jmsjca.log_records import get_logger
from jmsjca.messages.bytes_and_stream import BytesMessage
from jmsjca.messages.message import DeliveryMode, Message, TextMessage
from jmsjca.messages.properties import Int, Properties, convert

__all__ = [
    "EVENT_ID",
    "ORIGIN",
    "VERB",
    "EventPipeline",
    "EventRows",
    "ObjectColumns",
    "Subscriber",
    "Subscription",
    "arrow_type",
    "pa",
]

logger = get_logger("jmsjca.connector")

try:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql import types as t
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    pa: Any = import_module("pyarrow")
    f: Any = import_module("pyspark.sql.functions")  # its stubs lack the functions of Arrow
except ImportError as error:
    raise ProviderNotInstalledError(f'An EventPipeline needs {error.name}: pip install "jmsjca[spark]"') from error

VERB, EVENT_ID = "_verb", "_event_id"
"""The columns that a typed table has in addition to the attributes."""

_SCALARS: Mapping[str, Callable[[], t.DataType]] = {
    "string": t.StringType,
    "integer": t.LongType,
    "float": t.DoubleType,
    "boolean": t.BooleanType,
}
_ARROW: Mapping[str, Any] = {
    "string": pa.string(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "binary": pa.binary(),
}
_LONGS = range(-(2**63), 2**63)


def arrow_type(kind: t.DataType) -> Any:
    """Return the Arrow type of a Spark type."""
    if isinstance(kind, t.StructType):
        return pa.struct([(field.name, arrow_type(field.dataType)) for field in kind.fields])
    if isinstance(kind, t.ArrayType):
        return pa.list_(arrow_type(kind.elementType))
    if isinstance(kind, t.MapType):
        return pa.map_(arrow_type(kind.keyType), arrow_type(kind.valueType))
    return _ARROW[kind.simpleString()]


class ObjectColumns:
    """The columns of the business objects of one type: its attributes, the verb and the id of the event.

    A child is a struct, a list an array. An integer has 64 bits.

    Args:
        kind: The type.
        definitions: The definitions; None if the connector has none.

    Attributes:
        schema: The columns.

    Raises:
        ConfigurationError: The type has no definition, or one that no table can have.
    """

    def __init__(self, kind: str, definitions: BusinessObjectDefinitions | None) -> None:
        if definitions is None or kind not in definitions:
            known = ", ".join(sorted(definitions or ())) or "none"
            raise ConfigurationError(
                f"A table of {excerpt(kind)} needs its definition, for the types of the columns; there are: {known}."
            )
        self._kind = kind
        self._definitions = definitions
        self.schema = self._struct(kind, (kind,)).add(VERB, t.StringType()).add(EVENT_ID, t.StringType())
        if len({field.name.lower() for field in self.schema.fields}) < len(self.schema.fields):
            raise ConfigurationError(
                f"{excerpt(kind)} has an attribute {VERB} or {EVENT_ID}, or two that differ by case only, which Spark "
                "does not distinguish; rename it."
            )

    def values(self, business_object: BusinessObject) -> dict[str, object]:
        """Return the values of a business object by column.

        Raises:
            DataHandlerError: The business object does not satisfy its definition, or a value does not fit its column.
        """
        self._definitions.validate(business_object)
        made = self._values(business_object)
        return made | {VERB: business_object.verb, EVENT_ID: business_object.object_event_id}

    def _struct(self, kind: str, path: tuple[str, ...]) -> t.StructType:
        attributes = self._definitions[kind].attributes
        return t.StructType([t.StructField(name, self._type(each, path)) for name, each in attributes.items()])

    def _type(self, attribute: AttributeDefinition, path: tuple[str, ...]) -> t.DataType:
        single = _SCALARS[attribute.type]() if attribute.is_scalar else self._child(attribute.type, path)
        return t.ArrayType(single) if attribute.cardinality == "multiple" else single

    def _child(self, kind: str, path: tuple[str, ...]) -> t.StructType:
        if kind in path:
            raise ConfigurationError(
                f"{' has '.join((*path, kind))}: no column holds a business object within its own type."
            )
        return self._struct(kind, (*path, kind))

    def _values(self, source: BusinessObject) -> dict[str, object]:
        return {name: self._value(value, f"{source.type}.{name}") for name, value in source.attributes.items()}

    def _value(self, value: Attribute, path: str) -> object:
        if isinstance(value, list):
            return [self._value(each, path) for each in value]
        if isinstance(value, BusinessObject):
            return self._values(value)
        if isinstance(value, str):
            try:
                value.encode()
            except UnicodeEncodeError as error:
                raise DataHandlerError(f"{path} = {shown(value)!r} cannot be stored as UTF-8: {error}.") from error
            return value
        if isinstance(value, int) and not isinstance(value, bool) and value not in _LONGS:
            raise DataHandlerError(f"{path} = {shown(value)} has more than the 64 bits of its column.")
        return value


ORIGIN = "_origin"
"""The column with the input destination of a message."""

_COLUMNS = (
    *("destination", "text", "body", "correlation_id", "reply_to", "type", "priority", "duplicate_id", "properties"),
)


@dataclass(frozen=True)
class Subscription:
    """A type of business object that is subscribed to.

    Attributes:
        target: The queue or topic that gets the business objects; None for a table.
        column: The column of the rows that has the business objects of the table; empty for a queue or topic.
        columns: The columns of the table; None for a queue or topic.
    """

    target: Destination | None
    column: str = ""
    columns: ObjectColumns | None = None


@dataclass
class _Outbox:
    """The session of one event: it collects the messages and the business object of the event."""

    event: Event
    messages: list[dict[str, object]] = field(default_factory=list[dict[str, object]])
    reports: list[dict[str, object]] = field(default_factory=list[dict[str, object]])
    objects: dict[str, object] = field(default_factory=dict[str, object])

    def commit(self) -> None:
        """Do nothing: all that was collected is sent."""

    def rollback(self) -> None:
        """Discard what was collected."""
        for each in (self.messages, self.reports, self.objects):
            each.clear()

    def send(
        self,
        message: Message,
        destination: Destination,
        *,
        delivery_mode: DeliveryMode | None = None,
        priority: int | None = None,
    ) -> None:
        """Add a message. A report has separate columns, because its properties are integers."""
        del delivery_mode  # rows that were read have none
        is_report = isinstance(message.properties.get(MESSAGE_TYPE), Int)
        sent = self.reports if is_report else self.messages
        identity = self.event.event_id or self.event.message.message_id
        row = _row_of(message, destination, 4 if priority is None else priority)
        row["properties"] = dict(message.properties) if is_report else _texts(message)
        row["duplicate_id"] = identity and f"{identity}/{len(self.messages) + len(self.reports)}"
        sent.append(row)


class EventRows:
    """The vectorised function of a pipeline: from arrays of messages to arrays of events. Picklable.

    Args:
        config: The configuration.
        subscriptions: The subscriptions by type; empty if the collaboration takes everything.
        collaboration: Gets each event before its subscription; None for subscriptions alone.
        named: The collaborations of events that ask for a report, by name.
        handler: The default data handler.

    Attributes:
        schema: The columns of the events.

    Raises:
        ConfigurationError: A data handler or a dynamic meta-object is invalid.
    """

    def __init__(
        self,
        config: ConnectorConfig,
        subscriptions: Mapping[str, Subscription],
        collaboration: Collaboration | None,
        named: Mapping[str, Collaboration],
        handler: DataHandler,
    ) -> None:
        self._config = config
        self._subscriptions = subscriptions
        self._collaboration = collaboration
        self._named = named
        self._handler = handler
        self.schema = _schema(config, subscriptions.values())
        self._flow()  # reports wrong data handlers now, not on an executor

    def convert(self, arrays: Iterator[Any]) -> Iterator[Any]:
        """Yield an array of events for each array of messages.

        Raises:
            JMSError: The collaboration is not active: the batch fails, and its messages stay staged.
        """
        flow, kind = self._flow(), arrow_type(self.schema)
        for array in arrays:
            yield pa.array([self._processed(flow, row) for row in array.to_pylist()], kind)

    def _flow(self) -> EventFlow:
        conversion = EventConversion(self._config, self._handler)
        mime_type = self._config.delivery_mime_type
        sending = self._handler if mime_type is None else conversion.data_handlers.named(mime_type, None)
        named = {name: receiver_of(each, sending) for name, each in self._named.items()}
        whole = None if self._collaboration is None else receiver_of(self._collaboration, sending)
        parts = {kind: _publish_of(each, sending) for kind, each in self._subscriptions.items()}
        publication = Receiver(_Publication(whole, parts), transactional=True)
        return EventFlow(self._config, conversion, publication, named)

    def _processed(self, flow: EventFlow, row: Mapping[str, Any]) -> dict[str, object]:
        event = _event_of(row)
        outbox = _Outbox(event)
        outcome = flow.process(outbox, event)
        if outcome is DeliveryOutcome.CONNECTOR_NOT_ACTIVE:
            raise JMSError(
                f"The collaboration returned {outcome} for message {event.message.message_id}: the query ends, and its "
                "next start repeats the batch."
            )
        return {
            "outcome": str(outcome),
            "message_id": event.message.message_id,
            "messages": outbox.messages,
            "reports": outbox.reports,
            **outbox.objects,
        }


@dataclass(frozen=True)
class _Publication:
    """Delivers a business object to the collaboration and to the subscription of its type."""

    collaboration: Receiver | None
    subscriptions: Mapping[str, Publish]

    def __call__(self, session: EventSession, business_object: BusinessObject) -> DeliveryOutcome:
        """Deliver a business object: completely, or not at all."""
        try:
            outcome = self._delivered(session, business_object)
        except Exception:
            session.rollback()
            raise
        if outcome is not DeliveryOutcome.SUCCEED:
            session.rollback()
        return outcome

    def _delivered(self, session: EventSession, business_object: BusinessObject) -> DeliveryOutcome:
        if self.collaboration is not None:
            outcome = outcome_of(self.collaboration.publish(session, business_object))
            if outcome is not DeliveryOutcome.SUCCEED or not self.subscriptions:
                return outcome
        publish = self.subscriptions.get(business_object.type)
        if publish is None:
            return DeliveryOutcome.NO_SUBSCRIPTION_FOUND
        return outcome_of(publish(session, business_object))


def _publish_of(subscription: Subscription, handler: DataHandler) -> Publish:
    if subscription.target is not None:
        return receiver_of(subscription.target, handler).publish
    return partial(_add_to_table, subscription)


def _add_to_table(subscription: Subscription, session: EventSession, business_object: BusinessObject) -> None:
    if subscription.columns is not None and isinstance(session, _Outbox):
        session.objects[subscription.column] = subscription.columns.values(business_object)


def _schema(config: ConnectorConfig, subscriptions: Iterable[Subscription]) -> t.StructType:
    integers = (MESSAGE_TYPE, FEEDBACK)
    names = {config.message_response_result_property, config.message_format_property} - {None, "JMSType", *integers}
    fields = [t.StructField(name, t.IntegerType()) for name in integers]
    fields += [t.StructField(name, t.StringType()) for name in sorted(filter(None, names))]
    kinds = {
        "outcome": t.StringType(),
        "message_id": t.StringType(),
        "messages": t.ArrayType(_message_of(t.MapType(t.StringType(), t.StringType()))),
        "reports": t.ArrayType(_message_of(t.StructType(fields))),
        **{each.column: each.columns.schema for each in subscriptions if each.columns is not None},
    }
    return t.StructType([t.StructField(name, kind) for name, kind in kinds.items()])


def _message_of(properties: t.DataType) -> t.StructType:
    """Return the columns of messages for a jms sink."""
    kinds = {"body": t.BinaryType(), "priority": t.IntegerType(), "properties": properties}
    return t.StructType([t.StructField(name, kinds.get(name, t.StringType())) for name in _COLUMNS])


def _event_of(row: Mapping[str, Any]) -> Event:
    """Return the event of a row of a jms source."""
    headers = {
        "message_id": row["message_id"],
        "correlation_id": row["correlation_id"],
        "destination": _destination(row["destination"]),
        "reply_to": _destination(row["reply_to"]),
        "type": row["type"],
        "delivery_mode": DeliveryMode.PERSISTENT,
        "priority": 4 if row["priority"] is None else row["priority"],
        "timestamp": row["timestamp"],
        "expiration": row["expiration"],
        "delivery_time": None,
        "redelivered": bool(row["redelivered"]),
        "delivery_count": row["delivery_count"] or int(bool(row["redelivered"])) + 1,
        "properties": Properties.received(dict(row["properties"] or ())),
    }
    kind: type[Message] = TextMessage if row["body"] is None else BytesMessage
    content = row["text"] if row["body"] is None else row["body"]
    message = kind.received(content, lambda: headers)
    return Event(message, destination(*reversed(row[ORIGIN].split(":", 1))), {}, damage=row["error"])


def _destination(text: str | None) -> Destination | None:
    if text is None:
        return None
    kind, _, name = text.partition(":")
    return destination(name, kind)


def _row_of(message: Message, target: Destination, priority: int) -> dict[str, object]:
    body: str | bytes | None = message.body
    column = "body" if isinstance(message, BytesMessage) else "text"
    return {
        "destination": str(target),
        column: body or ("" if column == "text" else b""),
        "correlation_id": message.correlation_id,
        "reply_to": None if message.reply_to is None else str(message.reply_to),
        "type": message.type,
        "priority": priority,
    }


def _texts(message: Message) -> list[tuple[str, str]]:
    """Return the properties of a message as texts, as a jms source has read them."""
    return [(name, str(convert(value, "string"))) for name, value in message.properties.items() if value is not None]


Subscriber: TypeAlias = Callable[[DataFrame, int], object] | Destination
"""Takes the business objects of one type: a function of the table of a micro-batch and the number of the batch, or a
queue or topic that gets a message for each one."""

_OF_STAGING = ("in_progress_destination", "container_managed_events", "duplicate_event_elimination")
_LOST = {
    DeliveryOutcome.FAIL: "error_destination",
    DeliveryOutcome.NO_SUBSCRIPTION_FOUND: "unsubscribed_destination",
}


@dataclass
class _Count:
    """The figures of the events of a batch with one outcome."""

    events: int = 0
    messages: int = 0
    reports: int = 0
    objects: dict[str, int] = field(default_factory=dict[str, int])


class EventPipeline:
    """Delivers the messages of input destinations as typed tables, with the outcomes and copies of a `Connector`.

    Data handlers, collaborations and the routing run on the executors. Subscribers run on the driver, one batch after
    the other. A batch that fails is repeated with the same events: until it succeeds, the messages stay in the staging
    location.

    Args:
        config: The configuration of the connector. The fields of polls and restarts are not used, because Spark
            schedules the batches.
        subscribers: The subscribers by type of business object. A type without one is not subscribed. Empty if the
            collaboration takes everything.
        collaboration: Called on an executor with each business object, before its subscriber; an outcome other than
            SUCCEED is final. It may be called again with the same object, so it decides and has no other effects.
            A queue or topic gets a message for each object. None for subscribers alone.
        collaborations: The collaborations of events that ask for a report, by the CollaborationName of their rules.
        data_handler: The default data handler; None uses the handler of the configured class or MIME type.

    Raises:
        ConfigurationError: There is neither a subscriber nor a collaboration, a table has no definition, or the
            configuration has a mode that Spark's staging replaces.
        ProviderNotInstalledError: pyspark or pyarrow is not installed.
    """

    def __init__(
        self,
        config: ConnectorConfig,
        subscribers: Mapping[str, Subscriber] | None = None,
        *,
        collaboration: Collaboration | None = None,
        collaborations: Mapping[str, Collaboration] | None = None,
        data_handler: DataHandler | None = None,
    ) -> None:
        self._config = config
        self._subscribers = dict(subscribers or {})
        _check(config, self._subscribers, collaboration)
        self._subscriptions = {
            kind: _subscription(number, kind, each, config)
            for number, (kind, each) in enumerate(self._subscribers.items())
        }
        handler = default_data_handler(config) if data_handler is None else data_handler
        self._rows = EventRows(config, self._subscriptions, collaboration, collaborations or {}, handler)

    def write_stream(
        self,
        spark: SparkSession,
        checkpoint_location: str,
        *,
        staging_location: str | None = None,
        options: Mapping[str, str | int | float] | None = None,
    ) -> DataStreamWriter:
        """Return the writer of the stream: set its trigger or name, and ``start()`` it.

        Args:
            spark: The session.
            checkpoint_location: The folder of the checkpoint. A checkpoint belongs to the input destinations in their
                order.
            staging_location: The folder with the messages of unfinished batches, shared by the driver and the
                executors; None for a folder beside the checkpoint, named like it with ``.staging`` appended.
            options: Further options of the jms source, ``maxMessagesPerBatch`` for instance.
        """
        folder = f"{checkpoint_location.rstrip('/')}.staging" if staging_location is None else staging_location
        streams = [
            self._stream(spark, source, {"stagingLocation": f"{folder}/{number}", **(options or {})})
            for number, source in enumerate(self._config.input_destination)
        ]
        writer = reduce(DataFrame.union, streams).writeStream.foreachBatch(self.process)
        return writer.option("checkpointLocation", checkpoint_location)

    def events(self, messages: DataFrame, origin: Destination | None = None) -> DataFrame:
        """Return the events of a table of messages, without delivering them.

        Args:
            messages: All columns of a jms source.
            origin: The input destination of the messages; None for the first one of the configuration.

        Returns:
            The columns ``outcome`` and ``message_id``; ``messages`` and ``reports``, which are the copies, reports and
            business objects to be sent; and the business objects of each table as a column.
        """
        if ORIGIN not in messages.columns:
            messages = messages.withColumn(ORIGIN, f.lit(str(origin or self._config.input_destination[0])))
        convert = f.arrow_udf(_vectorised(self._rows), self._rows.schema)
        return messages.select(convert(f.struct("*")).alias("event")).select("event.*")

    def process(self, batch: DataFrame, number: int) -> None:
        """Deliver a batch of messages: first to the subscribers, then copies, messages and reports to the broker.

        Args:
            batch: The messages, all columns of a jms source.
            number: The number of the batch, by which a subscriber recognises one that is repeated.
        """
        events = self.events(batch).persist()
        try:
            counts = self._counts(events)
            self._warn(counts, number)
            for kind, each in self._subscribers.items():
                column = self._subscriptions[kind].column
                if not isinstance(each, Destination) and any(count.objects[column] for count in counts.values()):
                    each(events.where(f.col(column).isNotNull()).select(f"{column}.*"), number)
            for name in ("messages", "reports"):
                if any(getattr(count, name) for count in counts.values()):
                    self._send(events, name)
        finally:
            events.unpersist()

    def _stream(self, spark: SparkSession, source: Destination, options: Mapping[str, str | int | float]) -> DataFrame:
        if isinstance(source, Topic):
            options = {"subscription": source.name, **options}
        named = {"url": self._config.connection_url, "destination": source.name, "destinationType": source.kind}
        messages = spark.readStream.format("jms").options(**named).options(**options).load()
        return messages.withColumn(ORIGIN, f.lit(str(source)))

    def _counts(self, events: DataFrame) -> dict[str, _Count]:
        columns = [each.column for each in self._subscriptions.values() if each.columns is not None]
        sums = [f.sum(f.size(name)).alias(name) for name in ("messages", "reports")]
        found: Any = (
            events.groupBy("outcome").agg(f.count("*").alias("events"), *sums, *(f.count(c).alias(c) for c in columns))
        ).collect()
        return {
            row["outcome"]: _Count(
                row["events"], row["messages"], row["reports"], {column: row[column] for column in columns}
            )
            for row in found
        }

    def _warn(self, counts: Mapping[str, _Count], number: int) -> None:
        for outcome, name in _LOST.items():
            if outcome in counts:
                target = getattr(self._config, name)
                logger.warning(
                    "Batch %d: %d events: %s. The messages are %s.",
                    number,
                    counts[outcome].events,
                    outcome,
                    f"moved to {target}" if target else "discarded, because no destination is configured for them",
                )

    def _send(self, events: DataFrame, name: str) -> None:
        sent = events.select(f.explode(name).alias("sent")).select("sent.*")
        sent.write.format("jms").option("url", self._config.connection_url).mode("append").save()


def _vectorised(rows: EventRows) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Return the conversion as a function with the annotations by which Spark chooses how to call it."""

    def convert(arrays: Iterator[Any]) -> Iterator[Any]:
        """Convert arrays of messages to arrays of events."""
        return rows.convert(arrays)

    convert.__annotations__ = {"arrays": Iterator[pa.Array], "return": Iterator[pa.Array]}
    return convert


def _check(config: ConnectorConfig, subscribers: Mapping[str, Subscriber], collaboration: Collaboration | None) -> None:
    for name in _OF_STAGING:
        if getattr(config, name):
            raise ConfigurationError(
                f"{name} is not for a pipeline, because Spark keeps messages in its staging location until their batch "
                "is done, and recognises duplicates: empty its queue with a Connector, and leave it out."
            )
    if config.archival_connection_url is not None:
        raise ConfigurationError(
            "archival_connection_url is not for a pipeline, which writes to one broker: leave it out."
        )
    if not config.input_destination:
        raise ConfigurationError("A pipeline needs input destinations: set input_destination.")
    if not subscribers and collaboration is None:
        raise ConfigurationError("A pipeline needs subscribers by type of business object, or a collaboration.")
    if config.connection_url.startswith(LOOKUP):
        raise ConfigurationError(
            f"{config.connection_url} is bound in this process only, and Spark has others: set the URL of the broker."
        )


def _subscription(number: int, kind: str, subscriber: Subscriber, config: ConnectorConfig) -> Subscription:
    if isinstance(subscriber, Destination):
        return Subscription(subscriber)
    return Subscription(None, f"table_{number}", ObjectColumns(kind, config.definitions))
