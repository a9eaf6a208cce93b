"""The producer of the simplified API, which makes its messages itself."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Self, TypedDict, Unpack

from jmsjca.destinations import Destination
from jmsjca.errors import MessageFormatError
from jmsjca.messages import BytesMessage, DeliveryMode, MapMessage, Message, Properties, TextMessage
from jmsjca.outbound.checks import check_destination
from jmsjca.outbound.producer import Sending

if TYPE_CHECKING:
    from jmsjca.outbound.base_session import BaseSession

__all__ = ["JMSProducer", "ProducerOptions", "message_of"]


class ProducerOptions(TypedDict, total=False):
    """The attributes of a `JMSProducer`, as keywords."""

    delivery_mode: DeliveryMode
    priority: int
    time_to_live: float
    delivery_delay: float
    disable_message_id: bool
    disable_timestamp: bool
    properties: Mapping[str, object]
    correlation_id: str | None
    reply_to: Destination | None
    type: str | None


class JMSProducer(Sending):
    """Made by `JMSContext.create_producer` (JMS 3.1, sections 7.2 to 7.10). It is light, and need not be closed.

    Its attributes, those of `DeliveryOptions` and these, hold for every message that it sends; they override what the
    message has itself.

    Args:
        session: Whose unit holds what is sent.
        **options: Attributes to begin with.

    Attributes:
        properties: The properties of its messages, typed as those of a `Message`.
        correlation_id: Ties a reply to its request; None for the message's own.
        reply_to: Where a reply should go; None for the message's own.
        type: The application's name for its messages (JMSType); None for the message's own.
    """

    def __init__(self, session: "BaseSession", **options: Unpack[ProducerOptions]) -> None:
        super().__init__(session)
        self.properties = Properties()
        self.correlation_id: str | None = None
        self.reply_to: Destination | None = None
        self.type: str | None = None
        self.set(**options)

    def set(self, **options: Unpack[ProducerOptions]) -> Self:
        """Set attributes, and go on: ``producer.set(priority=7).send(queue, "now")``.

        Args:
            **options: Attributes by name; ``properties`` replaces all of them.

        Raises:
            MessageFormatError: A value makes no sense.
            TypeError: There is no such attribute.
        """
        known = ProducerOptions.__annotations__
        if unknown := options.keys() - known.keys():
            raise TypeError(f"A JMSProducer has no {', '.join(sorted(unknown))}; it has {', '.join(known)}.")
        properties = options.pop("properties", None)
        if properties is not None:
            self.properties = Properties(properties)
        for name, value in options.items():
            setattr(self, name, value)
        return self

    def send(self, destination: Destination, body: Message | str | bytes | Mapping[str, object] | None) -> Self:
        """Send a message, or one made of its body, and go on: sends can be chained.

        Args:
            destination: Where to.
            body: A message; or what to make one of: a `str` (text), `bytes`, a mapping (map), None (without a body).

        Raises:
            InvalidDestinationError: It is no destination, or a temporary one that is gone.
            MessageFormatError: No message can be made of the body.
            MessageNotWriteableError: The message was received, and the producer has properties to set in it.
            IllegalStateError: The context is closed, or another thread uses it.
            JMSError: The broker refuses it.
        """
        check_destination(destination)
        message = body if isinstance(body, Message) else message_of(body)
        self._overrule(message)
        self._send(message, destination)
        return self

    def _overrule(self, message: Message) -> None:
        if self.properties:
            message.properties.update(self.properties)
        message.correlation_id = self.correlation_id or message.correlation_id
        message.reply_to = self.reply_to or message.reply_to
        message.type = self.type or message.type


def message_of(body: object) -> Message:
    """Make a message of its body: text, bytes, a mapping, or None for none.

    Raises:
        MessageFormatError: No message is made of such a thing.
    """
    for kind, make in _MAKERS.items():
        if isinstance(body, kind):
            return make(body)
    raise MessageFormatError(
        f"No message is made of {type(body).__name__}: send a str, bytes, a mapping or None, or a message of your own."
    )


_MAKERS: dict[type, type[Message]] = {
    str: TextMessage,
    bytes: BytesMessage,
    bytearray: BytesMessage,
    Mapping: MapMessage,
    type(None): Message,
}
