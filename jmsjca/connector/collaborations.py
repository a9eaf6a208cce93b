"""Collaborations: functions that take business objects, and queues or topics that get them as messages."""

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any, NamedTuple, Protocol, TypeAlias

from jmsjca.arguments import Constraint, is_deferred
from jmsjca.config import Limits
from jmsjca.connector.business_objects import BusinessObject
from jmsjca.connector.data_handlers import DataHandler
from jmsjca.connector.outcomes import DeliveryOutcome
from jmsjca.destinations import Destination
from jmsjca.errors import (
    ArgumentTypeError,
    InvalidArgumentError,
    JMSError,
    MessageFormatError,
    MessageNotWriteableError,
    ResourceAllocationError,
)
from jmsjca.messages.bytes_and_stream import BytesMessage
from jmsjca.messages.message import DeliveryMode, Message, TextMessage
from jmsjca.outbound.session import Session
from jmsjca.providers.common.unit import size_limit_error

__all__ = [
    "COLLABORATION",
    "EVENT_ID_PROPERTY",
    "FUNCTION",
    "FUNCTION_OR_NONE",
    "BrokerSession",
    "Collaboration",
    "EventSession",
    "Publish",
    "Receiver",
    "SendFailedError",
    "message_of",
    "receiver_of",
]

EVENT_ID_PROPERTY = "ObjectEventId"
"""The message property with the id of the event."""

Collaboration: TypeAlias = Callable[[BusinessObject], DeliveryOutcome | None] | Destination
"""A function that takes a business object, or a queue or topic that gets a message for each business object.

A function returns the outcome; None means SUCCEED. An exception means that the event failed.
"""


_OF_THE_MESSAGE = (InvalidArgumentError, MessageFormatError, MessageNotWriteableError, ResourceAllocationError)
"""The errors of a send that another attempt with the same event repeats: no message can hold it."""
_KEPT_PRODUCERS = 16  # destinations
_MAX_BYTES = Limits().message_bytes
_MAX_BYTES_OF_CHARACTER = 4  # in UTF-8


class SendFailedError(JMSError):
    """A queue or topic as collaboration is not reached: the event is kept, and a restart delivers it again."""


class EventSession(Protocol):
    """A transacted session, as far as the delivery of events needs one."""

    def send(
        self,
        message: Message,
        destination: Destination,
        *,
        delivery_mode: DeliveryMode | None = None,
        priority: int | None = None,
    ) -> None:
        """Send a message in the transaction of the session."""
        ...

    def commit(self) -> None:
        """Remove the received message, and send what was sent."""
        ...

    def rollback(self) -> None:
        """Return the received message to the broker, and discard what was sent."""
        ...


class BrokerSession:
    """The session of a connection. It keeps its latest producers: a new one costs as much as a send."""

    def __init__(self, session: Session) -> None:
        self._producer = lru_cache(_KEPT_PRODUCERS)(session.create_producer)
        self.commit = session.commit
        self.rollback = session.rollback

    def send(
        self,
        message: Message,
        destination: Destination,
        *,
        delivery_mode: DeliveryMode | None = None,
        priority: int | None = None,
    ) -> None:
        """Send a message in the transaction of the session."""
        self._producer(destination).send(message, delivery_mode=delivery_mode, priority=priority)


Publish = Callable[[EventSession, BusinessObject], object]
"""Delivers a business object; what it sends belongs to the transaction of the session. Returns as a collaboration."""


class Receiver(NamedTuple):
    """A collaboration as a connector uses it.

    Attributes:
        publish: Delivers a business object.
        transactional: True for a queue or topic: its delivery is part of the transaction.
    """

    publish: Publish
    transactional: bool


def _runs_when_called(value: object) -> bool:
    return callable(value) and not is_deferred(value)


def _runs_or_is_none(value: object) -> bool:
    return value is None or _runs_when_called(value)


FUNCTION = Constraint[Any](
    "a function without async or yield, because nothing awaits its result",
    fits=_runs_when_called,
    misfit=ArgumentTypeError,
)
"""A function whose call runs it."""

FUNCTION_OR_NONE = replace(FUNCTION, fits=_runs_or_is_none)
"""As `FUNCTION`, or None."""

COLLABORATION = Constraint[Any](
    "a function, a Queue(…) or a Topic(…)",
    fits=lambda value: callable(value) or isinstance(value, Destination),
    misfit=ArgumentTypeError,
)
"""A function, which `FUNCTION` checks further, or a destination."""


def receiver_of(collaboration: Collaboration, data_handler: DataHandler) -> Receiver:
    """Return the receiver for a collaboration.

    Args:
        collaboration: The collaboration.
        data_handler: Converts the business objects for a queue or topic.
    """
    if isinstance(collaboration, Destination):
        return Receiver(partial(_send, collaboration, data_handler), transactional=True)
    return Receiver(partial(_call, collaboration), transactional=False)


def _send(
    target: Destination, data_handler: DataHandler, session: EventSession, business_object: BusinessObject
) -> DeliveryOutcome:
    message = message_of(business_object, data_handler)
    _check_size(message, target)
    try:
        session.send(message, target)
    except _OF_THE_MESSAGE:
        raise
    except JMSError as error:
        raise SendFailedError(f"{target} is not reached, so the event is kept: {error}") from error
    return DeliveryOutcome.SUCCEED


def _check_size(message: Message, target: Destination) -> None:
    """Raise an error for a message that other programs could not send. The session has the higher limit for copies."""
    body: str | bytes = message.body or b""
    if len(body) <= _MAX_BYTES // _MAX_BYTES_OF_CHARACTER:  # nearly all, which need not be encoded twice
        return
    size = len(body if isinstance(body, bytes) else body.encode("utf-8", "surrogatepass"))
    if size > _MAX_BYTES:
        raise size_limit_error("body", size, _MAX_BYTES, target)


def _call(function: Callable[[BusinessObject], object], _: EventSession, business_object: BusinessObject) -> object:
    return function(business_object)


def message_of(business_object: BusinessObject, data_handler: DataHandler) -> Message:
    """Return the message of a business object, with the id of its event as property ``ObjectEventId``.

    Raises:
        DataHandlerError: The data handler cannot convert the business object.
    """
    content = data_handler.to_content(business_object)
    message: Message = TextMessage(content) if isinstance(content, str) else BytesMessage(content)
    if business_object.object_event_id is not None:
        message.set_string_property(EVENT_ID_PROPERTY, business_object.object_event_id)
    return message
