"""Requests: business objects that are sent as messages, with or without a wait for a response message.

Response selectors: which message is the response to a request, as the verb's application-specific information says.

``response_selector=Name LIKE '{1}' AND Zip LIKE '{2}':PrimaryID,Address[4].AddressID``: each ``{n}`` is replaced by the
value of the n-th path.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from jmsjca.config import Limits
from jmsjca.connector.business_objects import BusinessObject, shown
from jmsjca.connector.config import ConnectorConfig
from jmsjca.connector.data_handlers import DataHandler
from jmsjca.connector.definitions import BusinessObjectDefinitions
from jmsjca.connector.event_conversion import EventConversion, content_of
from jmsjca.connector.header_mapping import set_message_format
from jmsjca.connector.meta_objects import MetaData, StaticMetaObject, parse_information
from jmsjca.connector.outcomes import FeedbackCodes, ReturnCode, ReturnStatus, loggable
from jmsjca.connector.queue_uris import Target, parse_target
from jmsjca.destinations import Destination, Queue
from jmsjca.errors import (
    ConfigurationError,
    DataHandlerError,
    InvalidArgumentError,
    InvalidAttributeError,
    InvalidDestinationError,
    InvalidSelectorError,
    JMSError,
    MessageFormatError,
    NotSupportedError,
    excerpt,
)
from jmsjca.log_records import exc_info_of, get_logger
from jmsjca.messages.bytes_and_stream import BytesMessage
from jmsjca.messages.message import Message, TextMessage
from jmsjca.outbound.factory import ConnectionFactory
from jmsjca.outbound.session import Session
from jmsjca.redelivery.encounter import text_of
from jmsjca.selectors import build_indexed_selector
from jmsjca.selectors.syntax import Value

if TYPE_CHECKING:
    from jmsjca.outbound.pool import ConnectionPool

__all__ = ["RequestProcessing", "response_selector"]

logger = get_logger("jmsjca.connector")

_RECOVERABLE = (
    ConfigurationError,
    DataHandlerError,
    InvalidArgumentError,
    InvalidAttributeError,
    InvalidDestinationError,
    InvalidSelectorError,
    MessageFormatError,
    NotSupportedError,
)
_CHANGES = (ReturnCode.VALCHANGE, ReturnCode.MULTIPLE_HITS)


@dataclass(frozen=True)
class _Request:
    """A request that is ready to be sent.

    Attributes:
        message: The message.
        target: Its destination and the options of it.
        data: The properties of the meta-objects.
        data_handler: The data handler for the response.
        selector: The response selector; None for the correlation id.
        timeout: Seconds to wait for the response; None waits for none.
    """

    message: Message
    target: Target
    data: MetaData
    data_handler: DataHandler
    selector: str | None
    timeout: float | None


class RequestProcessing:
    """Sends requests over pooled connections. Thread-safe.

    Args:
        config: The configuration of the connector.
        conversion: The data handlers and the header mapping.

    Raises:
        ConfigurationError: A feedback code is unknown.
    """

    def __init__(self, config: ConnectorConfig, conversion: EventConversion) -> None:
        self._config = config
        self._static = config.configuration_meta_object or StaticMetaObject()
        self._conversion = conversion
        self._feedback = FeedbackCodes(config.feedback_codes)
        # A prefetched response would be locked for the time of its consumer, and other requests might wait for it.
        self._factory = ConnectionFactory(config.connection_url, limits=Limits(prefetch_messages=0))
        self._pool = _pool(self._factory, config.session_pool_size_for_requests)

    def do_verb_for(self, business_object: BusinessObject, status: ReturnStatus) -> ReturnCode:
        """Send a business object, and wait for the response if its meta-objects have a ResponseTimeout.

        Args:
            business_object: The request; a response can change it.
            status: Gets the text of the error.

        Returns:
            The return code; nothing is raised for a request that fails.
        """
        status.text = ""
        try:
            return self._process(business_object, status)
        except _RECOVERABLE as error:
            return _failed(ReturnCode.FAIL, business_object, status, error)
        except JMSError as error:
            return _failed(ReturnCode.APPRESPONSETIMEOUT, business_object, status, error)
        except Exception as error:  # noqa: BLE001  # a data handler may belong to the application
            return _failed(ReturnCode.FAIL, business_object, status, error)

    def close(self) -> None:
        """Close the connections that are not in use. Idempotent."""
        self._pool.close()

    def _process(self, business_object: BusinessObject, status: ReturnStatus) -> ReturnCode:
        request = self._prepared(business_object)
        with self._pool.connection() as connection:
            connection.start()
            session = connection.create_session()
            if request.timeout is None:
                _send(session, request)
                return ReturnCode.SUCCEED
            response = _exchange(session, request)
        if response is None:
            return _timed_out(business_object, request, status)
        return self._answered(business_object, request, response, status)

    def _prepared(self, business_object: BusinessObject) -> _Request:
        mapping = self._conversion.mapping
        static = self._static.data_for(business_object.type, business_object.verb)
        data = mapping.overrides(business_object).over(static)
        destination = data.output_destination or self._config.output_destination
        if destination is None:
            raise ConfigurationError(
                f"No meta-object of {business_object.type}.{excerpt(business_object.verb)} has an OutputDestination,"
                " and the connector has none."
            )
        timeout = _seconds(data.response_timeout)
        synchronous = timeout is not None
        target = parse_target(destination)
        handler = self._conversion.data_handlers.named(data.data_handler_mime_type, data.data_handler_class_name)
        message = _message(handler.to_content(mapping.without_meta_object(business_object)), data.data_encoding)
        self._set_headers(message, data, self._reply_to(data, synchronous=synchronous))
        if not target.plain:
            _set_properties(message, target, data, mapping.properties(business_object))
        selector = response_selector(business_object, self._config.definitions, raw=self._config.raw_response_selectors)
        target = replace(target, destination=target.on(self._config.connection_url))
        return _Request(message, target, data, handler, selector, timeout)

    def _reply_to(self, data: MetaData, *, synchronous: bool) -> Destination | None:
        if data.reply_to_destination is not None:
            found: Destination | None = parse_target(data.reply_to_destination).destination
        else:
            found = self._config.reply_to_destination if synchronous else None
        if synchronous and not isinstance(found, Queue):
            raise ConfigurationError(
                "A request with ResponseTimeout needs a queue for its response, not "
                f"{found or 'nothing'}: set ReplyToDestination in a meta-object, or reply_to_destination."
            )
        return found

    def _set_headers(self, message: Message, data: MetaData, reply_to: Destination | None) -> None:
        message.reply_to = reply_to
        message.correlation_id = data.correlation_id
        if data.output_format is not None:
            set_message_format(message, self._config.message_format_property, data.output_format)

    def _answered(
        self, business_object: BusinessObject, request: _Request, response: Message, status: ReturnStatus
    ) -> ReturnCode:
        name = self._config.message_response_result_property
        value: object = None if name is None else response.get_object_property(name)
        result = self._feedback.result(value)
        if result is None:
            status.text = _unknown_result(name, value)
            logger.error("Request %s.%s: %s.", business_object.type, business_object.verb, status.text)
            return ReturnCode.FAIL
        if result in _CHANGES:
            self._change(business_object, request, response)
        elif result is not ReturnCode.SUCCEED:
            status.text = _error_text(response, request.data, result)
            told = (business_object.type, business_object.verb, result)
            logger.warning("Request %s.%s: %s. The ReturnStatus has the text of the response.", *told)
        return result

    def _change(self, business_object: BusinessObject, request: _Request, response: Message) -> None:
        content = content_of(response, request.data.data_encoding)
        changed = business_object.copy()
        if content:
            found = request.data_handler.to_business_object(content, type=business_object.type)
            meta_object = self._conversion.mapping.only_meta_object(business_object)
            changed.attributes = {**found.attributes, **meta_object}
            changed.verb = found.verb or business_object.verb
        origin = request.message.reply_to
        self._conversion.mapping.fill(changed, response, origin or request.target.destination)
        business_object.attributes, business_object.verb = changed.attributes, changed.verb


def _pool(factory: ConnectionFactory, size: int) -> "ConnectionPool":
    from jmsjca.outbound.pool import ConnectionPool  # connectors without requests do not need it

    return ConnectionPool(factory, max_size=size, timeout=None)


def _seconds(milliseconds: int | None) -> float | None:
    """Return the seconds of a ResponseTimeout; None if it is undefined or negative, so that there is no response."""
    return None if milliseconds is None or milliseconds < 0 else milliseconds / 1000


def _message(content: str | bytes, encoding: str | None) -> Message:
    if isinstance(content, bytes):
        return BytesMessage(content)
    if encoding is None:
        return TextMessage(content)
    try:
        return BytesMessage(content.encode(encoding))
    except (UnicodeEncodeError, LookupError) as error:
        raise DataHandlerError(f"The body cannot be encoded as {excerpt(encoding)}: {error}.") from error


def _set_properties(message: Message, target: Target, data: MetaData, dynamic: Mapping[str, object]) -> None:
    if target.character_set is not None:
        message.set_string_property("JMS_IBM_Character_Set", str(target.character_set))
    if target.encoding is not None:
        message.set_int_property("JMS_IBM_Encoding", target.encoding)
    for name, value in {**(data.jms_properties or {}), **dynamic}.items():
        message.properties[name] = value


def _send(session: Session, request: _Request) -> None:
    data, target = request.data, request.target
    session.create_producer(target.destination).send(
        request.message,
        priority=target.priority if data.priority is None else data.priority,
        delivery_mode=target.delivery_mode if data.delivery_mode is None else data.delivery_mode,
        time_to_live=target.time_to_live,
    )


def _exchange(session: Session, request: _Request) -> Message | None:
    """Send a request and return its response; None if none arrives in time."""
    reply_to = request.message.reply_to
    if reply_to is None:
        raise ConfigurationError("A request with ResponseTimeout has no reply destination.")
    if request.selector is not None:  # a wrong selector is refused before the request is sent
        consumer = session.create_consumer(reply_to, request.selector)
        _send(session, request)
    else:
        _send(session, request)
        selector = build_indexed_selector("JMSCorrelationID = {1}", [str(request.message.message_id)])
        consumer = session.create_consumer(reply_to, selector)
    return consumer.receive(request.timeout)


def _timed_out(business_object: BusinessObject, request: _Request, status: ReturnStatus) -> ReturnCode:
    # Undefined is fatal, as the documents say; a value of false is the documents' "defined".
    fatal = request.data.timeout_fatal is not False
    text = f"No response from {request.message.reply_to} within {request.data.response_timeout} milliseconds"
    error = JMSError(f"{text} for message {request.message.message_id}.")
    return _failed(ReturnCode.APPRESPONSETIMEOUT if fatal else ReturnCode.FAIL, business_object, status, error)


def _unknown_result(name: str | None, value: object) -> str:
    if name is None:
        return "message_response_result_property is not configured, so no result is known"
    if value is None:
        return f"The response has no property {name}, so its result is unknown"
    return f"The response has the result {excerpt(value)!r} in its property {name}"


def _error_text(response: Message, data: MetaData, result: ReturnCode) -> str:
    try:
        content = content_of(response, data.data_encoding)
    except DataHandlerError:
        content = ""
    text = content.decode("utf-8", "replace") if isinstance(content, bytes) else content
    return text or f"The target application returned {result} without a description."


def _failed(code: ReturnCode, business_object: BusinessObject, status: ReturnStatus, error: Exception) -> ReturnCode:
    status.text = text_of(error) or type(error).__name__
    logged = loggable(error)
    told = (business_object.type, business_object.verb, code, text_of(logged) or type(logged).__name__)
    logger.error("Request %s.%s: %s: %s", *told, exc_info=exc_info_of(logged))
    return code


def response_selector(
    business_object: BusinessObject, definitions: BusinessObjectDefinitions | None, *, raw: bool
) -> str | None:
    """Return the selector for the response to a request; None if its verb has none.

    Args:
        business_object: The request.
        definitions: The definitions, with the application-specific information of verbs.
        raw: True to insert values as they are; False to double their quotes, so that they cannot change the selector.

    Raises:
        ConfigurationError: The application-specific information is malformed.
        InvalidAttributeError: A path cannot be resolved.
        InvalidSelectorError: A placeholder has no path, or the value of a path is None, an object or a list.
    """
    definition = definitions.get(business_object.type) if definitions is not None else None
    information = parse_information(definition.verbs.get(business_object.verb, "") if definition else "")
    text = information.get("response_selector")
    if text is None:
        return None
    template, paths = _split(text)
    return build_indexed_selector(template, [_value(business_object, path) for path in paths], raw=raw)


def _split(text: str) -> tuple[str, list[str]]:
    """Return the template, and the paths after the last colon that is outside of quotes."""
    position = max((i for i, each in enumerate(text) if each == ":" and text.count("'", 0, i) % 2 == 0), default=None)
    if position is None:
        return text, []
    return text[:position], [path.strip() for path in text[position + 1 :].split(",")]


def _value(business_object: BusinessObject, path: str) -> Value:
    value = business_object.get(path)
    if value is None or isinstance(value, BusinessObject | list):
        raise InvalidSelectorError(
            f"The response selector of {business_object.type} needs a scalar at {excerpt(path)!r}, not {shown(value)}."
        )
    return value
