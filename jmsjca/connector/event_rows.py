"""Events on Spark's executors: rows of messages become rows of outcomes, business objects and messages to be sent.

The flow of an event is that of a connector, with a session that collects what would be sent. The driver sends it after
the subscribers have taken the batch.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from pyspark.sql import types as t

from jmsjca.connector.business_objects import BusinessObject
from jmsjca.connector.collaborations import Collaboration, EventSession, Publish, Receiver, receiver_of
from jmsjca.connector.config import ConnectorConfig
from jmsjca.connector.data_handlers import DataHandler
from jmsjca.connector.event_conversion import Event, EventConversion
from jmsjca.connector.event_flow import EventFlow, outcome_of
from jmsjca.connector.object_columns import ObjectColumns, arrow_type, pa
from jmsjca.connector.report_messages import FEEDBACK, MESSAGE_TYPE
from jmsjca.connector.return_codes import DeliveryOutcome
from jmsjca.destinations import Destination, destination
from jmsjca.errors import JMSError
from jmsjca.messages.bytes_message import BytesMessage
from jmsjca.messages.message import DeliveryMode, Message, TextMessage
from jmsjca.messages.properties import Properties
from jmsjca.messages.value_types import Int, convert

__all__ = ["ORIGIN", "EventRows", "Subscription"]

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

    def create_producer(self, destination: Destination | None = None) -> "_Sender":
        """Return a producer."""
        return _Sender(self, destination)

    def commit(self) -> None:
        """Do nothing: all that was collected is sent."""

    def rollback(self) -> None:
        """Discard what was collected."""
        for each in (self.messages, self.reports, self.objects):
            each.clear()

    def add(self, message: Message, target: Destination, priority: int) -> None:
        """Add a message; a report has integers as properties, and therefore columns of its own."""
        is_report = isinstance(message.properties.get(MESSAGE_TYPE), Int)
        sent = self.reports if is_report else self.messages
        identity = self.event.event_id or self.event.message.message_id
        row = _row_of(message, target, priority)
        row["properties"] = dict(message.properties) if is_report else _texts(message)
        row["duplicate_id"] = identity and f"{identity}/{len(self.messages) + len(self.reports)}"
        sent.append(row)


@dataclass(frozen=True)
class _Sender:
    """The producer of an outbox."""

    outbox: _Outbox
    target: Destination | None

    def send(
        self,
        message: Message,
        destination: Destination | None = None,
        *,
        delivery_mode: DeliveryMode | str | None = None,  # noqa: ARG002  # rows that were read have none
        priority: int | None = None,
    ) -> None:
        """Add a message."""
        target = self.target or destination
        if target is not None:
            self.outbox.add(message, target, 4 if priority is None else priority)


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
