"""AMQP management: requests to a broker's management address, and its responses checked."""

import threading
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from jmsjca.destinations import Destination, Queue, Subscription
from jmsjca.errors import (
    ConnectionLostError,
    JMSError,
    JMSSecurityError,
    TransactionInDoubtError,
    TransactionRolledBackError,
)
from jmsjca.messages import Message
from jmsjca.providers.amqp.codec.addresses import ReceiveContext
from jmsjca.providers.amqp.codec.decoder import UNDECODABLE
from jmsjca.providers.amqp.codec.sections import APPLICATION_PROPERTIES, VALUE, EncodedMessage
from jmsjca.providers.amqp.consumer import AMQPConsumer
from jmsjca.providers.amqp.delivery import AMQPDelivery
from jmsjca.providers.amqp.unit import AMQPUnit
from jmsjca.spi import Admin

__all__ = [
    "ManagementAdmin",
    "ManagementClient",
    "ManagementConnection",
    "ManagementResponse",
    "ResponseFields",
    "expect_list",
    "expect_number",
    "unexpected_response",
]

_CORRELATION_ID = 5  # which of the properties it is

_MAX_DIGITS = 20  # of the largest number that a broker counts
_MAX_SHOWN_CHARACTERS = 300


@dataclass(frozen=True, slots=True)
class ManagementResponse:
    """What the management said.

    Args:
        properties: The application properties.
        body: The value of the body, of any type of AMQP's.
    """

    properties: Mapping[str, Any]
    body: Any


class ManagementConnection(Protocol):
    """What is needed of a connection."""

    def temporary(self, kind: Literal["queue", "topic"]) -> Destination:
        """Make a temporary destination."""
        ...

    def consumer(self, source: Destination | Subscription) -> AMQPConsumer:
        """Consume from a destination."""
        ...

    def unit(self, *, atomic: bool = True) -> AMQPUnit:
        """Open a unit."""
        ...

    def remove(self, what: Destination | Subscription) -> None:
        """Remove a temporary destination."""
        ...


class ManagementClient:
    """Asks one at a time; answers come to a temporary queue of its own.

    Args:
        connection: Where to ask.
        address: Where the broker takes requests.
        timeout: How long to wait for an answer.
    """

    def __init__(self, connection: ManagementConnection, address: str, timeout: float) -> None:
        self._connection = connection
        self._address = Queue(address)
        self._timeout = timeout
        self._lock = threading.Lock()
        self._reply_to: Destination | None = None
        self._reply_consumer: AMQPConsumer | None = None

    def request(self, request: Message) -> ManagementResponse:
        """Send a request, and wait for its answer.

        Raises:
            JMSSecurityError: The broker takes no requests from this user.
            ConnectionLostError: The connection broke; what was asked for may have been done.
            JMSError: It does not answer.
        """
        with self._lock:
            replies = self._open_reply_queue()
            request.reply_to = self._reply_to
            request.correlation_id = uuid.uuid4().hex
            self._send(request)
            return self._await_response(request.correlation_id, replies)

    def discard(self, queue: Queue, limit: int) -> int:
        """Take messages out of a queue, at limit so many; tell how many that were."""
        if not limit:
            return 0
        left, consumer = limit, self._connection.consumer(queue)
        while left and (chunk := consumer.receive(left, 0)):
            self._settle(chunk)
            left -= len(chunk)
        consumer.close()
        return limit - left

    def _settle(self, chunk: Sequence[AMQPDelivery]) -> None:
        unit = self._connection.unit(atomic=False)
        unit.take(chunk)
        unit.commit()

    def _open_reply_queue(self) -> AMQPConsumer:
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
                f"The broker takes no requests for its management from this user at {self._address.name}; give it the"
                f" permission, or do without: {error}"
            ) from error
        except TransactionInDoubtError as error:
            raise ConnectionLostError(
                f"The connection broke while the broker's management was asked, which may have done it: {error}"
            ) from error

    def _await_response(self, correlation: str, replies: AMQPConsumer) -> ManagementResponse:
        """What answers an earlier request came too late, and is passed over."""
        while chunk := self._receive_reply(replies):
            self._settle(chunk)
            answer = _parse_response(chunk[0].encoded, correlation)
            if answer is not None:
                return answer
        raise JMSError(f"The broker's management did not answer within {self._timeout:g} s.")

    def _receive_reply(self, replies: AMQPConsumer) -> Sequence[AMQPDelivery]:
        """An answer that is too large, for one, ends the consumer, and would end the next one of its queue."""
        try:
            return replies.receive(1, self._timeout)
        except JMSError:
            self._drop_reply_queue(replies)
            raise

    def _drop_reply_queue(self, replies: AMQPConsumer) -> None:
        """Let the next request have a queue of its own."""
        reply_to, self._reply_to, self._reply_consumer = self._reply_to, None, None
        with suppress(JMSError):
            replies.close()
        if reply_to is not None:
            self._remove_reply_queue(reply_to)

    def _remove_reply_queue(self, reply_to: Destination) -> None:
        with suppress(JMSError):
            self._connection.remove(reply_to)


def _parse_response(encoded: bytes, correlation: str) -> ManagementResponse | None:
    """What a message says, if it is the answer that is waited for."""
    try:
        found = EncodedMessage(encoded, ReceiveContext(None))
        if found.fields[_CORRELATION_ID] != correlation:
            return None
        return ManagementResponse(found.map_of_section(APPLICATION_PROPERTIES), found.value_of(VALUE))
    except UNDECODABLE as error:
        raise unexpected_response("a message", encoded) from error


def unexpected_response(expected: str, found: Any) -> JMSError:
    """The error for something that is of another shape.

    Args:
        expected: What should be there.
        found: What came.
    """
    shown = repr(found)[:_MAX_SHOWN_CHARACTERS]
    return JMSError(f"An answer of the broker's management cannot be read: {expected} should be there, and not {shown}")


def expect_list(what: str, found: Any) -> list[Any]:
    """A list.

    Raises:
        JMSError: It is none.
    """
    if not isinstance(found, list):
        raise unexpected_response(f"a list, {what},", found)
    return list(found)  # pyright: ignore[reportUnknownArgumentType]  # of anything


def expect_number(what: str, found: Any) -> int:
    """A number of things, which may be written as a text.

    Raises:
        JMSError: It is none.
    """
    text = str(int(found)) if isinstance(found, int) and not isinstance(found, bool) else found
    if isinstance(text, str) and text.isascii() and text.isdecimal() and len(text) <= _MAX_DIGITS:
        return int(text)
    raise unexpected_response(f"a number, {what},", found)


class ResponseFields:
    """A map.

    Args:
        found: What came.

    Raises:
        JMSError: It is no map; of its methods: it has no such field.
    """

    def __init__(self, found: Any) -> None:
        if not isinstance(found, Mapping):
            raise unexpected_response("a map", found)
        self._found: Mapping[Any, Any] = found

    def get(self, name: str) -> Any:
        """A field of any shape; None if there is none."""
        return self._found.get(name)

    def text(self, name: str) -> str:
        """A text."""
        found = self.get(name)
        if not isinstance(found, str):
            raise unexpected_response(f"a text, {name},", found)
        return found

    def number(self, name: str) -> int:
        """A number of things."""
        return expect_number(name, self.get(name))

    def list(self, name: str) -> list[Any]:
        """A list."""
        return expect_list(name, self.get(name))


class ManagementAdmin(Admin, Protocol):
    """Removes queues, besides what `Admin` does."""

    def remove(self, queue: Destination) -> None:
        """Remove a queue with its messages."""
        ...
