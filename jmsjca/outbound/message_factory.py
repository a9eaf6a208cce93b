"""Creation of messages, the common part of sessions and contexts."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

from jmsjca.messages.bytes_message import BytesMessage
from jmsjca.messages.map_message import MapMessage
from jmsjca.messages.message import Message, TextMessage
from jmsjca.messages.object_message import ObjectMessage
from jmsjca.messages.stream_message import StreamMessage

__all__ = ["MessageFactory"]


class MessageFactory(ABC):
    """Creates messages, which any session can send (JMS 3.1, section 6.2.4).

    Each method raises `IllegalStateError` once the session is closed, and `MessageFormatError` if a body or a property
    has a type that the message cannot hold. ``properties`` are the initial properties of the message.
    """

    @abstractmethod
    def _check_open(self) -> None: ...

    def create_message(self, *, properties: Mapping[str, object] | None = None) -> Message:
        """Create a message without a body."""
        self._check_open()
        return Message(properties=properties)

    def create_text_message(
        self, body: str | None = None, *, properties: Mapping[str, object] | None = None
    ) -> TextMessage:
        """Create a text message."""
        self._check_open()
        return TextMessage(body, properties=properties)

    def create_bytes_message(
        self, body: bytes | None = None, *, properties: Mapping[str, object] | None = None
    ) -> BytesMessage:
        """Create a bytes message."""
        self._check_open()
        return BytesMessage(body, properties=properties)

    def create_map_message(
        self, body: Mapping[str, object] | None = None, *, properties: Mapping[str, object] | None = None
    ) -> MapMessage:
        """Create a map message: names with typed values."""
        self._check_open()
        return MapMessage(body, properties=properties)

    def create_stream_message(
        self, body: Sequence[object] | None = None, *, properties: Mapping[str, object] | None = None
    ) -> StreamMessage:
        """Create a stream message: a sequence of typed values."""
        self._check_open()
        return StreamMessage(body, properties=properties)

    def create_object_message(
        self, body: object | None = None, *, properties: Mapping[str, object] | None = None
    ) -> ObjectMessage:
        """Create an object message, with a copy of the object as it is now."""
        self._check_open()
        return ObjectMessage(body, properties=properties)
