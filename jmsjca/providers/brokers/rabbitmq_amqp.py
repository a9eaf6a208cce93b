"""RabbitMQ over AMQP: the plug-in of 3.x, and 4.x with its management, topology, administration and streams."""

import re
import threading
import time
import uuid
from collections.abc import Callable, Container, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from proton import Message, timestamp

from jmsjca.destinations import Destination, DestinationKind, Queue, Subscription, destination
from jmsjca.errors import (
    IllegalStateError,
    InvalidDestinationError,
    InvalidOptionError,
    JMSError,
    NotSupportedError,
    ResourceAllocationError,
)
from jmsjca.log_records import get_logger
from jmsjca.providers.amqp.admin import RequestLink
from jmsjca.providers.amqp.codec.addresses import (
    Address,
    ReceiveContext,
    address_of,
    encoded_name,
    source_address_of,
)
from jmsjca.providers.amqp.codec.decoder import UNDECODABLE
from jmsjca.providers.amqp.codec.jms_mapping import FILTER_ANNOTATION
from jmsjca.providers.amqp.codec.sections import VALUE, EncodedMessage
from jmsjca.providers.amqp.engine.engine import Engine
from jmsjca.providers.brokers.management import (
    ResponseFields,
    SettingsElsewhere,
    creatable_name,
    expect_list,
    expect_number,
    unexpected_response,
)
from jmsjca.providers.brokers.profile import AMQPBrokerProfile
from jmsjca.providers.brokers.rabbitmq import OVER_AMQP, OVER_AMQP_4, TOPICS, RabbitMQHTTPAdmin
from jmsjca.spi import RARELY_REACHED, Activity, Depth

__all__ = [
    "RABBITMQ",
    "RABBITMQ4",
    "DeclaredSource",
    "ManagementNode",
    "QueueType",
    "RabbitMQAdmin",
    "RabbitMQTopology",
    "StreamOptions",
    "queue_name",
    "rabbitmq4",
    "subscription_queue",
]

logger = get_logger("jmsjca.amqp")

_ADDRESS = "/management"
_RESPONSE_BYTES = 1024 * 1024
_SUBJECT, _CORRELATION_ID = 3, 5  # which of the properties they are
_NO_BODY = b"\0\x53\x77\x40"  # the AMQP value null, which proton leaves out

_SUCCESS, _CREATED, _FORBIDDEN, _NOT_FOUND, _CONFLICT = range(200, 300), 201, 403, 404, 409
_ERRORS: dict[int, type[JMSError]] = {
    _FORBIDDEN: InvalidDestinationError,  # the name is reserved; a user without the right gets no response
    _NOT_FOUND: InvalidDestinationError,
    _CONFLICT: IllegalStateError,
}


class ManagementNode:
    """Sends requests to the broker's management. Thread-safe; requests are sent one at a time.

    Args:
        engine: The connection's engine.
        timeout: Seconds to wait for a response.
    """

    def __init__(self, engine: Engine, timeout: float) -> None:
        self._engine = engine
        self._timeout = timeout
        self._lock = threading.Lock()
        self._link: RequestLink | None = None

    def find_queue(self, name: str, timeout: float | None = None) -> ResponseFields | None:
        """Return the state of a queue; None if it does not exist."""
        what = f"to look up the queue {name!r}"
        status, found = self._request("GET", _queue_path(name), what, timeout=timeout, expected=(*_SUCCESS, _NOT_FOUND))
        return None if status == _NOT_FOUND else ResponseFields(found)

    def declare_queue(
        self,
        name: str,
        arguments: dict[str, Any],
        *,
        exclusive: bool = False,
        auto_delete: bool = False,
        timeout: float | None = None,
    ) -> tuple[bool, ResponseFields]:
        """Declare a durable queue; return whether it is new, and its state.

        Raises:
            InvalidDestinationError: The broker reserves the name.
            IllegalStateError: The queue exists with other arguments.
        """
        body = {"durable": True, "exclusive": exclusive, "auto_delete": auto_delete, "arguments": arguments}
        status, found = self._request("PUT", _queue_path(name), f"to declare the queue {name!r}", body, timeout)
        return status == _CREATED, ResponseFields(found)

    def delete_queue(self, name: str) -> None:
        """Delete a queue with its messages. A missing queue is not an error."""
        self._request("DELETE", _queue_path(name), f"to delete the queue {name!r}")

    def purge_queue(self, name: str) -> int:
        """Delete the waiting messages of a queue; return their number."""
        _, found = self._request("DELETE", f"{_queue_path(name)}/messages", f"to purge the queue {name!r}")
        return expect_number("of messages", ResponseFields(found).get("message_count"))

    def declare_exchange(self, name: str, kind: str) -> None:
        """Declare an exchange that is deleted with its last binding."""
        body: dict[str, Any] = {"type": kind, "durable": True, "auto_delete": True, "internal": False, "arguments": {}}
        self._request("PUT", f"/exchanges/{encoded_name(name)}", f"to declare the exchange {name!r}", body)

    def delete_exchange(self, name: str) -> None:
        """Delete an exchange."""
        self._request("DELETE", f"/exchanges/{encoded_name(name)}", f"to delete the exchange {name!r}")

    def bind(self, queue: str, exchange: str, key: str) -> None:
        """Bind a queue to an exchange."""
        body: dict[str, Any] = {"source": exchange, "destination_queue": queue, "binding_key": key, "arguments": {}}
        self._request("POST", "/bindings", f"to bind the queue {queue!r}", body)

    def is_bound(self, queue: str, exchange: str, key: str) -> bool:
        """Return True if a queue is bound to an exchange with this key."""
        query = f"src={encoded_name(exchange)}&dstq={encoded_name(queue)}&key={encoded_name(key)}"
        _, found = self._request("GET", f"/bindings?{query}", f"to look up the bindings of {queue!r}")
        return len(expect_list("bindings", found)) > 0

    def _request(
        self,
        method: str,
        path: str,
        what: str,
        body: Any = None,
        timeout: float | None = None,
        expected: Container[int] = _SUCCESS,
    ) -> tuple[int, Any]:
        """Return the status and the body of a response.

        Args:
            method: The method, as in HTTP.
            path: The path.
            what: The operation, as the error names it.
            body: The body; None for none.
            timeout: Seconds to wait; None for the timeout of the connection.
            expected: The statuses that are not errors.

        Raises:
            JMSError: The broker refuses the operation.
        """
        seconds = self._timeout if timeout is None else min(timeout, self._timeout)
        identity = uuid.uuid4().hex
        message = Message(body, id=identity, address=path, subject=method, reply_to="$me")
        encoded = bytes(message.encode()) + (_NO_BODY if body is None else b"")
        with self._lock:
            response = self._attached_link(seconds).request(encoded, seconds)
        status, found = _parse(response, identity)
        if status in expected:
            return status, found
        text = str(found)[:500]
        if status == _FORBIDDEN and "limit" in text:
            raise ResourceAllocationError(f"The broker refuses {what}: {text}")
        raise _ERRORS.get(status, JMSError)(f"The broker refuses {what} ({status}): {text}")

    def _attached_link(self, timeout: float) -> RequestLink:
        if self._link is None or self._link.error is not None:
            link = RequestLink(self._engine, _ADDRESS, self._timeout, _RESPONSE_BYTES)
            link.attach(timeout)
            self._link = link
        return self._link


def _queue_path(name: str) -> str:
    return f"/queues/{encoded_name(name)}"


def _parse(response: bytes, identity: str) -> tuple[int, Any]:
    try:
        found = EncodedMessage(response, ReceiveContext(None))
        if found.fields[_CORRELATION_ID] != identity:
            raise unexpected_response(f"the correlation id {identity}", found.fields[_CORRELATION_ID])
        return expect_number("the status,", found.fields[_SUBJECT]), found.value_of(VALUE)
    except UNDECODABLE as error:
        raise unexpected_response("a message,", response) from error


class RabbitMQAdmin(SettingsElsewhere):
    """Administers the queues of a virtual host of RabbitMQ 4 over AMQP.

    Args:
        node: The broker's management.
        declare: Declares a queue, unless it exists.
    """

    def __init__(self, node: ManagementNode, declare: Callable[[str], object]) -> None:
        self._node = node
        self._declare = declare
        self._api: RabbitMQHTTPAdmin | None = None

    def extend(self, api: RabbitMQHTTPAdmin) -> None:
        """Add the administration over HTTP, which lists and counts what the node does not."""
        self._api = api

    def delivery_limit(self, queue: Destination) -> int | None:
        """Return after how many returns the broker drops a message of a queue; None if it never does."""
        found = self._node.find_queue(queue_name(queue))
        return None if found is None else self.limit_of(queue.name, found)

    def limit_of(self, name: str, found: ResponseFields) -> int | None:
        """Return the delivery limit of a queue with this state, as `delivery_limit` does.

        The lower limit of its argument and its policy counts; a negative one stands for no limit. The policy is visible
        over HTTP only.
        """
        if not _counts(found):
            return None
        argument = ResponseFields(found.get("arguments")).get(_LIMIT)
        policy = self._api.policy_of(name).get("delivery-limit") if self._api else None
        limits = [each for each in (argument, policy) if isinstance(each, int)]
        return min((each for each in limits if each >= 0), default=None if limits else _DEFAULT_LIMIT)

    def destinations(self) -> Sequence[Destination]:
        """Return the queues and topics.

        Raises:
            NotSupportedError: There is no API over HTTP: the node looks up single queues, and lists none.
        """
        if self._api is None:
            raise NotSupportedError(
                "RabbitMQ does not list its queues over AMQP (capability lists_destinations): add the option"
                " management_url with the URL of its management over HTTP."
            )
        return self._api.destinations()

    def clock(self) -> None:
        """Return None: the node does not report the time."""

    def depth(self, source: Destination | Subscription) -> Depth:
        """Count the messages of a queue or a named subscription. The API alone reports held ones."""
        found = self._node.find_queue(queue_name(source))
        held = self._api.depth(source).held if self._api else 0
        return Depth(found.number("message_count") if found else 0, held, 0)

    def activity(self, source: Destination | Subscription) -> Activity:
        """Count the consumers of a queue or a named subscription. The broker does not count its traffic."""
        found = self._node.find_queue(queue_name(source))
        return Activity(found.number("consumer_count") if found else 0)

    def create(self, queue: Destination) -> None:
        """Create a durable queue of the type that the URL names. An existing queue is not an error.

        Raises:
            InvalidDestinationError: It is a topic, or temporary; or the broker refuses the name.
        """
        self._declare(creatable_name(queue))

    def purge(self, source: Destination | Subscription) -> int:
        """Delete the waiting messages; messages that a consumer holds stay."""
        name = queue_name(source)
        return self._node.purge_queue(name) if self._node.find_queue(name) else 0

    def remove(self, queue: Destination) -> None:
        """Delete a queue with its messages.

        Raises:
            InvalidDestinationError: The queue does not exist, or is temporary.
            IllegalStateError: The queue has consumers.
        """
        found = self._node.find_queue(queue.name) if isinstance(queue, Queue) else None
        if found is None or found.get("exclusive") is True:
            raise InvalidDestinationError(f"There is no {queue} to remove, or it is another connection's.")
        if found.number("consumer_count"):
            raise IllegalStateError(f"{queue} still has consumers; close them first.")
        self._node.delete_queue(queue.name)


def queue_name(source: Destination | Subscription) -> str:
    """Return the name of the broker's queue of a queue or a named subscription.

    Raises:
        InvalidDestinationError: It is a topic.
    """
    if isinstance(source, Subscription):
        return subscription_queue(source)
    if not isinstance(source, Queue):
        raise InvalidDestinationError(f"{source} stores no messages itself; name one of its subscriptions.")
    return source.name


def subscription_queue(source: Subscription) -> str:
    """Return the name of the queue of a named subscription. Its owner is the client id, if it has one."""
    parts = "volatile" if source.volatile else "subscription", source.client_id or "", source.name or ""
    return ":".join(map(encoded_name, parts))


_OFFSET, _FILTER = "rabbitmq:stream-offset-spec", "rabbitmq:stream-filter"
_MATCH_UNFILTERED = "rabbitmq:stream-match-unfiltered"
_WORDS = ("first", "last", "next")
_INTERVAL = re.compile(r"[0-9]{1,9}[YMDhms]")  # as the broker reads them: a time ago
_NUMBER = re.compile(r"[0-9]{1,18}")
_ANY = ReceiveContext(None)


@dataclass(frozen=True, slots=True)
class StreamOptions:
    """Options for the consumers of streams.

    Args:
        offset: Where a consumer begins: "first", "last", "next", an offset, an interval before now such as "1h", or a
            time in ISO 8601 with its zone. None is the broker's default, the next message.
        values: The filter values of the messages to receive, separated by commas; None for all messages.
        match_unfiltered: True to also receive messages without a filter value.

    Raises:
        InvalidOptionError: A value is not valid.
    """

    offset: str | None = None
    values: str | None = None
    match_unfiltered: bool = False

    def __post_init__(self) -> None:
        """Check the offset and the values."""
        if self.offset is not None:
            _offset_value(self.offset)
        if self.values is not None and not all(self._wanted):
            raise InvalidOptionError(f"Option stream_filter is filter values with commas, not {self.values[:50]!r}.")
        if self.match_unfiltered and self.values is None:
            raise InvalidOptionError("Option stream_match_unfiltered needs the option stream_filter.")

    def __bool__(self) -> bool:
        """Return True if an option is set."""
        return self.offset is not None or self.values is not None

    @property
    def filters(self) -> Mapping[str, Any]:
        """The filters of the source: values by the symbols that describe them."""
        filters: dict[str, Any] = {}
        if self.offset is not None:
            filters[_OFFSET] = _offset_value(self.offset)
        if self.values is not None:
            filters[_FILTER] = self._wanted
        if self.match_unfiltered:
            filters[_MATCH_UNFILTERED] = True
        return filters

    def selects(self, encoded: bytes) -> bool:
        """Return True if a consumer wants a message: the broker selects chunks of messages, not each of them.

        Args:
            encoded: The message. One that cannot be decoded is wanted, so that its consumer learns of it.
        """
        if self.values is None:
            return True
        with suppress(*UNDECODABLE):
            value = EncodedMessage(encoded, _ANY).annotations.get(FILTER_ANNOTATION)
            return self.match_unfiltered if value is None else value in self._wanted
        return True

    @property
    def _wanted(self) -> list[str]:
        return (self.values or "").split(",")


def _offset_value(text: str) -> Any:
    """Return an offset as the broker takes it.

    Raises:
        InvalidOptionError: The text is not an offset.
    """
    if text in _WORDS or _INTERVAL.fullmatch(text):
        return text
    if _NUMBER.fullmatch(text):
        return int(text)
    with suppress(ValueError, OverflowError):
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is not None:
            return timestamp(max(round(moment.timestamp() * 1000), 0))
    raise InvalidOptionError(
        "Option stream_offset is first, last, next, a number, an interval such as 1h, or a time with its zone such as"
        f" 2026-01-31T12:00:00Z, not {text[:50]!r}."
    )


QueueType = Literal["classic", "quorum"]

_TYPE, _QUORUM, _STREAM = "x-queue-type", "quorum", "stream"
_LIMIT, _DEFAULT_LIMIT = "x-delivery-limit", 20
_CLASSIC: Mapping[str, Any] = {_TYPE: "classic"}
_QUEUE_ARGUMENTS: Mapping[QueueType, Mapping[str, Any]] = {
    "classic": {**_CLASSIC, "x-max-priority": 9},
    # By default a message is dropped after 20 failures. Without a limit what is released goes behind all others.
    "quorum": {_TYPE: _QUORUM, _LIMIT: 1_000_000_000},
}
_ACTIVE = "x-single-active-consumer"  # a second consumer would get nothing
_START_PAUSES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2)  # seconds to wait for the leader of a quorum queue
_VOLATILE: Mapping[str, Any] = {"x-expires": 60_000}  # milliseconds without a consumer


class DeclaredSource(NamedTuple):
    """The queue from which a consumer receives."""

    address: Address
    counts_deliveries: bool  #: True if failed deliveries are counted
    redelivers_locally: bool  #: True if the consumer keeps released messages until it is closed
    drops_returned: bool = False  #: True if the broker drops a message that was returned some times
    filters: Mapping[str, Any] = MappingProxyType({})  #: further filters of the source, by their descriptors
    selects: Callable[[bytes], bool] | None = None  #: returns True for messages to receive; None for all


class RabbitMQTopology:
    """Declares what links attach to. Queues that exist are used as they are.

    A topic is a routing key of the exchange ``amq.topic``. Each subscription is a queue that is bound to it. A
    temporary topic is a separate exchange, with a queue that belongs to the connection and drops all messages. The
    broker deletes the exchange together with that queue.

    Args:
        node: The broker's management.
        queue_type: The type of the queues of this client that are not temporary.
        streams: The options for consumers of streams.

    Attributes:
        admin: The administration of the virtual host.
    """

    def __init__(self, node: ManagementNode, queue_type: QueueType, streams: StreamOptions) -> None:
        self.admin = RabbitMQAdmin(node, self._declare)
        self._node = node
        self._streams = streams
        self._counts = queue_type == _QUORUM
        self._arguments = dict(_QUEUE_ARGUMENTS[queue_type])
        self._known: set[Destination] = set()

    def ensure_target(self, to: Destination, timeout: float) -> None:
        """Declare a queue, unless it is known to exist. The timeout is for each response."""
        if isinstance(to, Queue) and not to.temporary and to not in self._known:
            address_of(to, "encoded").check()
            self._declare(to.name, timeout)
            self._known.add(to)

    def forget_targets(self) -> None:
        """Forget which queues are known to exist."""
        self._known.clear()

    def declare_source(self, source: Destination | Subscription) -> DeclaredSource:
        """Declare the queue of a consumer; each unnamed subscriber gets a separate queue.

        Raises:
            NotSupportedError: An option for streams is set, and the source is neither a stream nor temporary.
        """
        topic = source.topic if isinstance(source, Subscription) else source
        source_address_of(topic, "encoded").check()
        if isinstance(topic, Queue):
            return _source(topic.name, counts=False) if topic.temporary else self._queue_source(topic.name)
        if self._streams and not topic.temporary:
            raise _no_stream_error(topic)
        if isinstance(source, Subscription) and source.name is not None:
            return self._declare_subscription(source)
        name = _unique_name("subscriber")
        self._node.declare_queue(name, dict(_CLASSIC), exclusive=True, auto_delete=True)
        self._bind(name, topic)
        return _source(name, counts=self._counts, private=True)

    def unsubscribe(self, subscription: Subscription) -> None:
        """Delete the queue of a durable subscription."""
        name = subscription_queue(subscription)
        found = self._node.find_queue(name)
        if found is None:
            raise InvalidDestinationError(f"There is no durable subscription {subscription.name!r} to remove.")
        if found.number("consumer_count"):
            raise IllegalStateError(f"The subscription {subscription.name!r} still has consumers; close them first.")
        self._node.delete_queue(name)

    def create_temporary(self, kind: DestinationKind) -> Destination:
        """Create a temporary destination, which the broker deletes with the connection."""
        name = _unique_name(kind)
        arguments = dict(_CLASSIC) if kind == "queue" else {**_CLASSIC, "x-max-length": 0}
        self._node.declare_queue(name, arguments, exclusive=True)
        created = destination(name, kind, temporary=True)
        if kind == "topic":
            self._node.declare_exchange(name, "fanout")
            self._bind(name, created)
        return created

    def delete_temporary(self, what: Destination) -> None:
        """Delete a temporary destination with its messages."""
        if what.kind == "topic":
            self._node.delete_exchange(what.name)
        self._node.delete_queue(what.name)

    def _queue_source(self, name: str) -> DeclaredSource:
        """Return the source of a consumer of a queue, or of a stream with the options for streams."""
        found = self._declare(name)
        source = self._source_of(name, found)
        if found.get("type") == _STREAM:
            return source._replace(filters=self._streams.filters, selects=self._streams.selects)
        if self._streams:
            raise _no_stream_error(destination(name, "queue"))
        return source

    def _source_of(self, name: str, found: ResponseFields) -> DeclaredSource:
        """Return the source of a consumer of a queue with this state."""
        limit = self.admin.limit_of(name, found)
        source = _source(name, counts=_counts(found))
        if limit is None or limit >= RARELY_REACHED:
            return source
        _warn_of_limit(name, limit)
        return source._replace(drops_returned=True)

    def _declare(self, name: str, timeout: float | None = None) -> ResponseFields:
        """Declare a queue, or find one of any type; return its state."""
        found = self._node.find_queue(name, timeout)
        if found is None:
            _, found = self._declare_new(name, self._arguments, timeout)
        if _is_starting(found):  # another client declares it
            self._await_leader(name, timeout)
        return found

    def _declare_new(
        self, name: str, arguments: Mapping[str, Any], timeout: float | None = None
    ) -> tuple[bool, ResponseFields]:
        """Declare a queue that did not exist; return whether it is new, and its state."""
        try:
            return self._node.declare_queue(name, dict(arguments), timeout=timeout)
        except JMSError:  # RabbitMQ 4.0 fails if another client declares the queue at the same time
            found = self._node.find_queue(name, timeout)
            if found is None:
                raise
            return False, found

    def _await_leader(self, name: str, timeout: float | None) -> None:
        for pause in _START_PAUSES:
            time.sleep(pause)
            found = self._node.find_queue(name, timeout)
            if found is None or not _is_starting(found):
                return

    def _declare_subscription(self, source: Subscription) -> DeclaredSource:
        name, topic = subscription_queue(source), source.topic
        for _ in range(2):
            created, found = self._declare_subscription_queue(name, source)
            if created:
                self._bind(name, topic)
            elif not self._joins(name, source, in_use=found.number("consumer_count") > 0):
                self._node.delete_queue(name)
                continue
            return self._source_of(name, found)
        raise IllegalStateError(f"Another client changes the subscription {source.name!r} at the same time; try again.")

    def _joins(self, name: str, source: Subscription, *, in_use: bool) -> bool:
        """Return True if a consumer joins a subscription that exists; False if it creates it.

        Without a consumer a volatile subscription has ended, and another topic is as good as unsubscribing (JMS 3.1,
        sections 8.3.2 and 8.3.3).
        """
        if in_use and not source.shared:
            raise IllegalStateError(f"The subscription {source.name!r} has a consumer already.")
        same_topic = self._node.is_bound(name, *_binding_of(source.topic))
        if in_use and not same_topic:
            raise IllegalStateError(f"The subscription {source.name!r} is in use with another topic.")
        return same_topic and (in_use or not source.volatile)

    def _declare_subscription_queue(self, name: str, source: Subscription) -> tuple[bool, ResponseFields]:
        """Return whether the queue of a subscription is new, and its state."""
        arguments = {**self._arguments, **(_VOLATILE if source.volatile else {})}
        if not source.shared:
            arguments[_ACTIVE] = True
        found = self._node.find_queue(name)
        if found is None:
            return self._declare_new(name, arguments)
        is_shared = ResponseFields(found.get("arguments")).get(_ACTIVE) is not True
        if is_shared is not source.shared:
            kind = "shared" if is_shared else "not shared"
            raise IllegalStateError(f"The durable subscription {source.name!r} exists, and is {kind}; remove it first.")
        return False, found

    def _bind(self, queue: str, topic: Destination) -> None:
        self._node.bind(queue, *_binding_of(topic))


def _no_stream_error(source: Destination) -> NotSupportedError:
    return NotSupportedError(
        f"{source} is not a stream, and the options stream_offset and stream_filter of the URL are for streams"
        " alone: consume it over a connection without them."
    )


@lru_cache(maxsize=1000)  # once for each queue
def _warn_of_limit(name: str, limit: int) -> None:
    logger.warning(
        "The queue %s drops a message that was returned more than %d times, also one that no handler saw: its consumers"
        " prefetch nothing. Declare it with x-delivery-limit=%d or more, and with a dead-letter exchange. A limit in a"
        " policy of the broker is known with the option management_url only.",
        name,
        limit,
        RARELY_REACHED,
    )


def _is_starting(found: ResponseFields) -> bool:
    """Return True for a quorum queue without a leader, which rejects messages."""
    return _counts(found) and not found.get("leader")


def _counts(found: ResponseFields) -> bool:
    return bool(found.get("type") == _QUORUM)


def _binding_of(topic: Destination) -> tuple[str, str]:
    """Return the exchange of a topic, and the routing key."""
    return (topic.name, "") if topic.temporary else (TOPICS, topic.name)


def _unique_name(kind: str) -> str:
    return f"jmsjca-{kind}-{uuid.uuid4().hex}"


def _source(name: str, *, counts: bool, private: bool = False) -> DeclaredSource:
    return DeclaredSource(
        address_of(destination(name, "queue"), "encoded"), counts, redelivers_locally=private or not counts
    )


RABBITMQ = AMQPBrokerProfile(
    "RabbitMQ",
    "AMQP",
    "3.10.8",
    OVER_AMQP,
    product="RabbitMQ",
    naming="path",
    credit="rabbitmq3",
    counts_deliveries=False,
)

RABBITMQ4 = AMQPBrokerProfile(
    "RabbitMQ 4",
    "AMQP",
    "4.0.5",
    OVER_AMQP_4,
    product=RABBITMQ.product,
    version=4,
    naming="encoded",
    max_sender_links=0,
    credit="rabbitmq4",
    keeps_sessions=True,
)


def rabbitmq4(queue_type: QueueType) -> AMQPBrokerProfile:
    """Return the profile of RabbitMQ 4 for a connection that declares queues of a type."""
    if queue_type == "quorum":
        return RABBITMQ4
    # Classic queues keep priorities, and count no failures.
    return RABBITMQ4.with_capabilities({"give_back": "local", "delivery_count": False, "priority": True})
