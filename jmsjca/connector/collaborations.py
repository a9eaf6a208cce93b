"""Collaborations: functions that take business objects, and queues or topics that get them as messages."""

from collections.abc import Callable
from typing import TypeAlias

from jmsjca.connector.business_objects import BusinessObject
from jmsjca.connector.data_handlers import DataHandler
from jmsjca.connector.return_codes import DeliveryOutcome
from jmsjca.destinations import Destination
from jmsjca.messages.bytes_message import BytesMessage
from jmsjca.messages.message import Message, TextMessage
from jmsjca.outbound.session import Session

__all__ = ["EVENT_ID_PROPERTY", "Collaboration", "Publish", "message_of", "publisher"]

EVENT_ID_PROPERTY = "ObjectEventId"
"""The message property with the id of the event."""

Collaboration: TypeAlias = Callable[[BusinessObject], DeliveryOutcome | None] | Destination
"""A function that takes a business object, or a queue or topic that gets a message for each business object.

A function returns the outcome; None means SUCCEED. An exception means that the event failed.
"""

Publish = Callable[[Session, BusinessObject], object]
"""Delivers a business object; what it sends belongs to the transaction of the session. Returns as a collaboration."""


def publisher(collaboration: Collaboration, data_handler: DataHandler) -> Publish:
    """Return the function that delivers business objects to a collaboration.

    Args:
        collaboration: The collaboration.
        data_handler: Converts the business objects for a queue or topic.
    """
    if not isinstance(collaboration, Destination):
        return lambda _, business_object: collaboration(business_object)

    def send(session: Session, business_object: BusinessObject) -> DeliveryOutcome:
        """Send the business object."""
        session.create_producer(collaboration).send(message_of(business_object, data_handler))
        return DeliveryOutcome.SUCCEED

    return send


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
