"""AMQP management: requests to a broker's management address, and its responses checked."""

import threading
import uuid
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import Any, Literal, Protocol, cast

from jmsjca.destinations import Destination, Queue, Subscription
from jmsjca.errors import (
    ConnectionLostError,
    InvalidDestinationError,
    JMSError,
    JMSSecurityError,
    TransactionInDoubtError,
    TransactionRolledBackError,
)
from jmsjca.messages import Message
from jmsjca.providers.amqp.codec.addresses import ReceiveContext
from jmsjca.providers.amqp.codec.decoder import UNDECODABLE
from jmsjca.providers.amqp.codec.sections import APPLICATION_PROPERTIES, VALUE, EncodedMessage
from jmsjca.providers.amqp.delivery import ReceivedMessage
from jmsjca.spi import Consumer, Delivery, Unit

__all__ = [
    "ManagementClient",
    "ManagementConnection",
    "ManagementResponse",
    "ResponseFields",
    "creatable_name",
    "expect_list",
    "expect_number",
    "unexpected_response",
]

_CORRELATION_ID, _CREATION_TIME = 5, 9  # which of the properties they are

_MAX_DIGITS = 20  # of the largest number that a broker counts
_MAX_SHOWN_CHARACTERS = 300


@dataclass(frozen=True, slots=True)
class ManagementResponse:
    """A response of the broker's management.

    Args:
        properties: The application properties.
        body: The value of the body, of any AMQP type.
        created: The creation time, in seconds since 1970; None without one.
    """

    properties: Mapping[str, Any]
    body: Any
    created: float | None = None


class ManagementConnection(Protocol):
    """The part of a connection that management requests use."""

    def temporary(self, kind: Literal["queue", "topic"]) -> Destination:
        """Create a temporary destination."""
        ...

    def consumer(self, source: Destination | Subscription) -> Consumer:
        """Open a consumer."""
        ...

    def unit(self, *, atomic: bool = True) -> Unit:
        """Open a unit of work."""
        ...

    def remove(self, what: Destination | Subscription) -> None:
        """Delete a temporary destination."""
        ...


class ManagementClient:
    """Sends one management request at a time, with a temporary queue of its own for the responses.

    Args:
        connection: The connection to the broker.
        address: The broker's management address.
        timeout: Seconds to wait for a response.
    """

    def __init__(self, connection: ManagementConnection, address: str, timeout: float) -> None:
        self._connection = connection
        self._address = Queue(address)
        self._timeout = timeout
        self._lock = threading.Lock()
        self._reply_to: Destination | None = None
        self._reply_consumer: Consumer | None = None

    def request(self, request: Message) -> ManagementResponse:
        """Send a request and wait for its response.

        Raises:
            JMSSecurityError: The user may not send management requests.
            ConnectionLostError: The connection broke; the broker may have performed the request.
            JMSError: The broker did not respond in time.
        """
        with self._lock:
            replies = self._open_reply_queue()
            request.reply_to = self._reply_to
            request.correlation_id = uuid.uuid4().hex
            self._send(request)
            return self._await_response(request.correlation_id, replies)

    def discard(self, queue: Queue, limit: int) -> int:
        """Receive and acknowledge at most `limit` messages of a queue; return their number."""
        if not limit:
            return 0
        left, consumer = limit, self._connection.consumer(queue)
        with closing(consumer):
            while left and (chunk := consumer.receive(left, 0)):
                self._settle(chunk)
                left -= len(chunk)
        return limit - left

    def _settle(self, chunk: Sequence[Delivery]) -> None:
        unit = self._connection.unit(atomic=False)
        unit.take(chunk)
        unit.commit()

    def _open_reply_queue(self) -> Consumer:
        if self._reply_consumer is None:
            reply_to = self._connection.temporary("queue")
            try:
                self._reply_consumer = self._connection.consumer(reply_to)
            except JMSError:
                self._remove_reply_queue(reply_to)
                raise
            self._reply_to = reply_to
        return self._reply_consumer

    def _send(self, request: Message) -> None:
        unit = self._connection.unit(atomic=False)
        unit.send(request, self._address)
        try:
            unit.commit()
        except TransactionRolledBackError as error:
            raise JMSSecurityError(
                f"This user may not send management requests to {self._address.name}; grant the permission, or do"
                f" without: {error}"
            ) from error
        except TransactionInDoubtError as error:
            raise ConnectionLostError(
                f"The connection broke during a management request, which the broker may have performed: {error}"
            ) from error

    def _await_response(self, correlation: str, replies: Consumer) -> ManagementResponse:
        """Wait for the response to a request; late responses to earlier requests are skipped."""
        while chunk := self._receive_reply(replies):
            self._settle(chunk)
            answer = _parse_response(cast("ReceivedMessage", chunk[0]).encoded, correlation)
            if answer is not None:
                return answer
        raise JMSError(f"The broker's management did not answer within {self._timeout:g} s.")

    def _receive_reply(self, replies: Consumer) -> Sequence[Delivery]:
        """Receive a response; an error drops the reply queue, as an oversized response would fail its next consumer."""
        try:
            return replies.receive(1, self._timeout)
        except JMSError:
            self._drop_reply_queue(replies)
            raise

    def _drop_reply_queue(self, replies: Consumer) -> None:
        """Discard the reply queue, so that the next request creates a new one."""
        reply_to, self._reply_to, self._reply_consumer = self._reply_to, None, None
        with suppress(JMSError):
            replies.close()
        if reply_to is not None:
            self._remove_reply_queue(reply_to)

    def _remove_reply_queue(self, reply_to: Destination) -> None:
        with suppress(JMSError):
            self._connection.remove(reply_to)


def _parse_response(encoded: bytes, correlation: str) -> ManagementResponse | None:
    """Return the response in a message; None if it belongs to another request."""
    try:
        found = EncodedMessage(encoded, ReceiveContext(None))
        if found.fields[_CORRELATION_ID] != correlation:
            return None
        created = found.fields[_CREATION_TIME]
        return ManagementResponse(
            found.map_of_section(APPLICATION_PROPERTIES),
            found.value_of(VALUE),
            created / 1000 if isinstance(created, int) else None,
        )
    except UNDECODABLE as error:
        raise unexpected_response("a message,", encoded) from error


def unexpected_response(expected: str, found: Any) -> JMSError:
    """Return the error for a response of an unexpected form.

    Args:
        expected: A description of the expected value.
        found: The actual value.
    """
    shown = repr(found)[:_MAX_SHOWN_CHARACTERS]
    return JMSError(f"A response of the broker's management is invalid: expected {expected} got {shown}")


def creatable_name(queue: Destination) -> str:
    """Return the name of a queue that an operator may create.

    Raises:
        InvalidDestinationError: It is a topic, or temporary.
    """
    if not isinstance(queue, Queue) or queue.temporary:
        raise InvalidDestinationError(f"{queue} cannot be created here: only queues with a name of yours are.")
    return queue.name


def expect_list(what: str, found: Any) -> list[Any]:
    """Return a value that must be a list.

    Raises:
        JMSError: The value is not a list.
    """
    if not isinstance(found, list):
        raise unexpected_response(f"a list, {what},", found)
    return list(found)  # pyright: ignore[reportUnknownArgumentType]  # of anything


def expect_number(what: str, found: Any) -> int:
    """Return a count, which the broker may send as a string.

    Raises:
        JMSError: The value is not a count.
    """
    text = str(int(found)) if isinstance(found, int) and not isinstance(found, bool) else found
    if isinstance(text, str) and text.isascii() and text.isdecimal() and len(text) <= _MAX_DIGITS:
        return int(text)
    raise unexpected_response(f"a number, {what},", found)


class ResponseFields:
    """The fields of a map in a response. Each method but `get` raises `JMSError` for a field of another type.

    Args:
        found: The value, which must be a map.

    Raises:
        JMSError: The value is not a map.
    """

    def __init__(self, found: Any) -> None:
        if not isinstance(found, Mapping):
            raise unexpected_response("a map,", found)
        self._found: Mapping[Any, Any] = found

    def get(self, name: str) -> Any:
        """Return a field of any type; None without it."""
        return self._found.get(name)

    def text(self, name: str) -> str:
        """Return a string field."""
        found = self.get(name)
        if not isinstance(found, str):
            raise unexpected_response(f"a string, {name},", found)
        return found

    def number(self, name: str) -> int:
        """Return a field that is a count."""
        return expect_number(name, self.get(name))

    def list(self, name: str) -> list[Any]:
        """Return a list field."""
        return expect_list(name, self.get(name))
