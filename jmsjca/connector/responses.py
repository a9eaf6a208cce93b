"""Responses of the activities: messages with their payload as text or bytes, and the id that acknowledges them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from jmsjca.messages.message import Message

__all__ = ["ListenResponse", "MessageType", "PollResponse", "response_of"]

MessageType = Literal["TEXT", "BYTE"]
"""The kind of the payload: text, or bytes."""


@dataclass(frozen=True)
class ListenResponse:
    """A message as a listen activity hands it to an operation.

    Attributes:
        payload: The body: text, or bytes with the message type "BYTE".
        message: The message, with headers and properties.
        message_id: The JMS message id; None if the message has none.
        acknowledge_id: The id of the unit of the message, for `Activities.acknowledge`; None without a transacted
            session. All messages of a batch have the same one.
    """

    payload: str | bytes
    message: Message
    message_id: str | None
    acknowledge_id: str | None


@dataclass(frozen=True)
class PollResponse:
    """The messages of one poll.

    Attributes:
        responses: The messages, in the order of the queue; empty if none was waiting.
        acknowledge_id: The id with which `Activities.acknowledge` settles all of them; None if nothing waits for an
            acknowledgement: the session was not transacted, or the queue was empty.
    """

    responses: Sequence[ListenResponse]
    acknowledge_id: str | None


def response_of(message: Message, message_type: MessageType, acknowledge_id: str | None) -> ListenResponse:
    """Return the response for a message.

    Args:
        message: The received message.
        message_type: The kind of payload that the activity wants.
        acknowledge_id: The id of the message's unit; None if it needs no acknowledgement.

    Raises:
        MessageFormatError: The body is of another kind.
    """
    payload = message.get_body(str) if message_type == "TEXT" else message.get_body(bytes)
    return ListenResponse(payload, message, message.message_id, acknowledge_id)
