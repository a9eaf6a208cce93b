"""The conversion of received messages to business objects: rule, data handler, verb, dynamic meta-object."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

from jmsjca.connector.business_objects import BusinessObject
from jmsjca.connector.config import ConnectorConfig
from jmsjca.connector.data_handlers import DataHandler, DataHandlers, data_handler, data_handler_of_class
from jmsjca.connector.header_mapping import HeaderMapping, message_format
from jmsjca.connector.meta_objects import MetaData, Rule, StaticMetaObject
from jmsjca.destinations import Destination
from jmsjca.errors import DataHandlerError, excerpt
from jmsjca.messages.bytes_and_stream import BytesMessage
from jmsjca.messages.message import Message, TextMessage

__all__ = ["Event", "EventConversion", "content_of", "default_data_handler"]


@dataclass(frozen=True)
class Event:
    """A received message with its origin.

    Attributes:
        message: The message.
        origin: The input destination that it was polled from.
        properties: Properties that a copy gets in addition to the message's own; the value None removes a property.
        event_id: The unique id of the event, the same for all copies of a message; None for no id.
        damage: The reason why the message cannot be decoded; None for a message that can be decoded.
        raw: Returns the body as it was received, for a copy of a message with damaged headers; None if it is not known.
    """

    message: Message
    origin: Destination
    properties: dict[str, object]
    event_id: str | None = None
    damage: str | None = None
    raw: Callable[[], bytes] | None = None

    @classmethod
    def undecodable(cls, raw: bytes, origin: Destination, error: Exception) -> Self:
        """Return the event of a message that cannot be decoded: its copy has the body as it was received.

        Args:
            raw: The body.
            origin: The destination that the message was polled from.
            error: The reason.
        """
        return cls(BytesMessage(raw), origin, {}, damage=str(error))


class EventConversion:
    """Converts messages by the configuration of a connector, and business objects back for a collaboration.

    Args:
        config: The configuration.
        default: The default data handler.

    Raises:
        ConfigurationError: A data handler of the static meta-object, or a dynamic meta-object, is invalid.
    """

    def __init__(self, config: ConnectorConfig, default: DataHandler) -> None:
        self._config = config
        self.static = config.configuration_meta_object or StaticMetaObject()
        self.data_handlers = DataHandlers(default, config.definitions)
        self.mapping = HeaderMapping(config.definitions, config.message_format_property)
        for rule in self.static.rules:
            self._handler_of(rule.data)

    def rule_of(self, event: Event) -> Rule | None:
        """Return the only rule that matches an event; None if none or several do."""
        if not self.static.rules:
            return None
        return self.static.matching(message_format(event.message, self._config.message_format_property), event.origin)

    def to_business_object(self, event: Event) -> BusinessObject:
        """Return the business object of an event.

        Raises:
            UnknownBusinessObjectError: Neither the message nor a rule names the type of the business object.
            DataHandlerError: The body or a header cannot be converted, or the message cannot be decoded at all.
        """
        if event.damage is not None:
            raise DataHandlerError(f"The message cannot be decoded: {event.damage}")
        rule = self.rule_of(event)
        data = rule.data if rule else MetaData()
        content = content_of(event.message, data.data_encoding)
        found = self._handler_of(data).to_business_object(content, type=rule.type if rule else None)
        found.verb = found.verb or (rule.verb if rule else self._config.default_verb)
        if self._config.definitions is not None:
            found = self._config.definitions.without_inactive_children(found)
        found.object_event_id = event.event_id or event.message.message_id
        self.mapping.fill(found, event.message, event.origin)
        return found

    def _handler_of(self, data: MetaData) -> DataHandler:
        return self.data_handlers.named(data.data_handler_mime_type, data.data_handler_class_name)


def default_data_handler(config: ConnectorConfig) -> DataHandler:
    """Return the data handler of the configured class, or else of the configured MIME type.

    Raises:
        ConfigurationError: There is no such data handler.
    """
    if config.data_handler_class_name is not None:
        return data_handler_of_class(config.data_handler_class_name, config.definitions)
    return data_handler(config.data_handler_mime_type, config.definitions)


def content_of(message: Message, encoding: str | None = None) -> str | bytes:
    """Return the body of a message for a data handler.

    Args:
        message: The message.
        encoding: The character encoding of bytes; None leaves it to the data handler.

    Raises:
        DataHandlerError: The message is neither a text nor a bytes message, or its bytes are not in this encoding.
    """
    if not isinstance(message, TextMessage | BytesMessage):
        raise DataHandlerError(
            f"The message is a {type(message).__name__}; a data handler converts the body of a text or bytes message."
        )
    body: str | bytes = message.body or ""
    if not isinstance(body, bytes) or encoding is None:
        return body
    try:
        return body.decode(encoding)
    except (UnicodeDecodeError, LookupError) as error:
        raise DataHandlerError(f"The body cannot be decoded as {excerpt(encoding)}: {error}.") from error
