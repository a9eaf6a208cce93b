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
from jmsjca.providers.amqp.codec.addresses import Origin
from jmsjca.providers.amqp.codec.decoder import UNDECODABLE
from jmsjca.providers.amqp.codec.sections import APPLICATION_PROPERTIES, VALUE, Incoming
from jmsjca.providers.amqp.consumer import AMQPConsumer
from jmsjca.providers.amqp.delivery import AMQPDelivery
from jmsjca.providers.amqp.unit import AMQPUnit
from jmsjca.spi import Admin

__all__ = ["Answer", "Asker", "Fields", "Manager", "Requests", "list_of", "number_of", "strange"]

_CORRELATION = 5  # which of the properties it is

_DIGITS = 20  # of the largest number that a broker counts
_SHOWN = 300


@dataclass(frozen=True, slots=True)
class Answer:
    """What the management said.

    Args:
        properties: The application properties.
        body: The value of the body, of any type of AMQP's.
    """

    properties: Mapping[str, Any]
    body: Any


class Asker(Protocol):
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


class Requests:
    """Asks one at a time; answers come to a temporary queue of its own.

    Args:
        connection: Where to ask.
        address: Where the broker takes requests.
        seconds: How long to wait for an answer.
    """

    def __init__(self, connection: Asker, address: str, seconds: float) -> None:
        self._connection = connection
        self._to = Queue(address)
        self._seconds = seconds
        self._lock = threading.Lock()
        self._reply_to: Destination | None = None
        self._replies: AMQPConsumer | None = None

    def ask(self, request: Message) -> Answer:
        """Send a request, and wait for its answer.

        Raises:
            JMSSecurityError: The broker takes no requests from this user.
            ConnectionLostError: The connection broke; what was asked for may have been done.
            JMSError: It does not answer.
        """
        with self._lock:
            replies = self._open()
            request.reply_to = self._reply_to
            request.correlation_id = uuid.uuid4().hex
            self._send(request)
            return self._answer_to(request.correlation_id, replies)

    def consume(self, queue: Queue, most: int) -> int:
        """Take messages out of a queue, at most so many; tell how many that were."""
        if not most:
            return 0
        left, consumer = most, self._connection.consumer(queue)
        while left and (chunk := consumer.receive(left, 0)):
            self._settle(chunk)
            left -= len(chunk)
        consumer.close()
        return most - left

    def _settle(self, chunk: Sequence[AMQPDelivery]) -> None:
        unit = self._connection.unit(atomic=False)
        unit.take(chunk)
        unit.commit()

    def _open(self) -> AMQPConsumer:
        if self._replies is None:
            reply_to = self._connection.temporary("queue")
            try:
                self._replies = self._connection.consumer(reply_to)
            except JMSError:
                self._remove(reply_to)
                raise
            self._reply_to = reply_to
        return self._replies

    def _send(self, request: Message) -> None:
        unit = self._connection.unit(atomic=False)
        unit.send(request, self._to)
        try:
            unit.commit()
        except TransactionRolledBackError as error:
            raise JMSSecurityError(
                f"The broker takes no requests for its management from this user at {self._to.name}; give it the"
                f" permission, or do without: {error}"
            ) from error
        except TransactionInDoubtError as error:
            raise ConnectionLostError(
                f"The connection broke while the broker's management was asked, which may have done it: {error}"
            ) from error

    def _answer_to(self, correlation: str, replies: AMQPConsumer) -> Answer:
        """What answers an earlier request came too late, and is passed over."""
        while chunk := self._receive(replies):
            self._settle(chunk)
            answer = _answer_in(chunk[0].encoded, correlation)
            if answer is not None:
                return answer
        raise JMSError(f"The broker's management did not answer within {self._seconds:g} s.")

    def _receive(self, replies: AMQPConsumer) -> Sequence[AMQPDelivery]:
        """An answer that is too large, for one, ends the consumer, and would end the next one of its queue."""
        try:
            return replies.receive(1, self._seconds)
        except JMSError:
            self._forget(replies)
            raise

    def _forget(self, replies: AMQPConsumer) -> None:
        """Let the next request have a queue of its own."""
        reply_to, self._reply_to, self._replies = self._reply_to, None, None
        with suppress(JMSError):
            replies.close()
        if reply_to is not None:
            self._remove(reply_to)

    def _remove(self, reply_to: Destination) -> None:
        with suppress(JMSError):
            self._connection.remove(reply_to)


def _answer_in(encoded: bytes, correlation: str) -> Answer | None:
    """What a message says, if it is the answer that is waited for."""
    try:
        found = Incoming(encoded, Origin(None))
        if found.fields[_CORRELATION] != correlation:
            return None
        return Answer(found.mapping(APPLICATION_PROPERTIES), found.value_of(VALUE))
    except UNDECODABLE as error:
        raise strange("a message", encoded) from error


def strange(wanted: str, found: Any) -> JMSError:
    """The error for something that is of another shape.

    Args:
        wanted: What should be there.
        found: What came.
    """
    shown = repr(found)[:_SHOWN]
    return JMSError(f"An answer of the broker's management cannot be read: {wanted} should be there, and not {shown}")


def list_of(what: str, found: Any) -> list[Any]:
    """A list.

    Raises:
        JMSError: It is none.
    """
    if not isinstance(found, list):
        raise strange(f"a list, {what},", found)
    return list(found)  # pyright: ignore[reportUnknownArgumentType]  # of anything


def number_of(what: str, found: Any) -> int:
    """A number of things, which may be written as a text.

    Raises:
        JMSError: It is none.
    """
    text = str(int(found)) if isinstance(found, int) and not isinstance(found, bool) else found
    if isinstance(text, str) and text.isascii() and text.isdecimal() and len(text) <= _DIGITS:
        return int(text)
    raise strange(f"a number, {what},", found)


class Fields:
    """A map.

    Args:
        found: What came.

    Raises:
        JMSError: It is no map; of its methods: it has no such field.
    """

    def __init__(self, found: Any) -> None:
        if not isinstance(found, Mapping):
            raise strange("a map", found)
        self._found: Mapping[Any, Any] = found

    def get(self, name: str) -> Any:
        """A field of any shape; None if there is none."""
        return self._found.get(name)

    def text(self, name: str) -> str:
        """A text."""
        found = self.get(name)
        if not isinstance(found, str):
            raise strange(f"a text, {name},", found)
        return found

    def number(self, name: str) -> int:
        """A number of things."""
        return number_of(name, self.get(name))

    def list(self, name: str) -> list[Any]:
        """A list."""
        return list_of(name, self.get(name))


class Manager(Admin, Protocol):
    """Removes queues, besides what `Admin` does."""

    def remove(self, queue: Destination) -> None:
        """Remove a queue with its messages."""
        ...
