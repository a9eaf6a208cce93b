"""The queues, exchanges and bindings of RabbitMQ 4: queues and subscriptions are declared before links attach."""

import time
import uuid
from collections.abc import Mapping
from typing import Any, Literal

from jmsjca.destinations import Destination, DestinationKind, Queue, Subscription, destination
from jmsjca.errors import IllegalStateError, InvalidDestinationError, JMSError, NotSupportedError
from jmsjca.providers.amqp.admin import ResponseFields
from jmsjca.providers.amqp.brokers.rabbitmq_admin import RabbitMQAdmin, subscription_queue
from jmsjca.providers.amqp.brokers.rabbitmq_management import ManagementNode
from jmsjca.providers.amqp.brokers.rabbitmq_stream import StreamOptions
from jmsjca.providers.amqp.codec.addresses import address_of
from jmsjca.providers.amqp.links.topology import DeclaredSource

__all__ = ["QueueType", "RabbitMQTopology"]

QueueType = Literal["classic", "quorum"]

_TOPICS = "amq.topic"  # the exchange of all topics, also over STOMP and MQTT
_TYPE, _QUORUM, _STREAM = "x-queue-type", "quorum", "stream"
_CLASSIC: Mapping[str, Any] = {_TYPE: "classic"}
_QUEUE_ARGUMENTS: Mapping[QueueType, Mapping[str, Any]] = {
    "classic": {**_CLASSIC, "x-max-priority": 9},
    # By default a message is dropped after 20 failures. Without a limit what is released goes behind all others.
    "quorum": {_TYPE: _QUORUM, "x-delivery-limit": 1_000_000_000},
}
_ACTIVE = "x-single-active-consumer"  # a second consumer would get nothing
_START_PAUSES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2)  # seconds to wait for the leader of a quorum queue
_VOLATILE: Mapping[str, Any] = {"x-expires": 60_000}  # milliseconds without a consumer


class RabbitMQTopology:
    """Declares what links attach to. Queues that exist are used as they are.

    A topic is a routing key of the exchange ``amq.topic``. Each subscription is a queue that is bound to it. A
    temporary topic is an exchange of its own, with a queue that belongs to the connection and drops all messages: with
    that queue the broker deletes the exchange.

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
        """Declare the queue of a consumer; each subscriber without a name gets one of its own.

        Raises:
            NotSupportedError: An option for streams is set, and the source is neither a stream nor temporary.
        """
        topic = source.topic if isinstance(source, Subscription) else source
        address_of(topic, "encoded").check()
        if isinstance(topic, Queue):
            return _source(topic.name, counts=False) if topic.temporary else self._queue_source(topic.name)
        self._refuse_stream_options(topic)
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
        source = _source(name, counts=_counts(found))
        if found.get("type") == _STREAM:
            return source._replace(filters=self._streams.filters, selects=self._streams.selects)
        self._refuse_stream_options(Queue(name))
        return source

    def _refuse_stream_options(self, source: Destination) -> None:
        if self._streams and not source.temporary:
            raise NotSupportedError(
                f"{source} is not a stream, and the options stream_offset and stream_filter of the URL are for streams"
                " alone: consume it over a connection without them."
            )

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
            return _source(name, counts=_counts(found))
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


def _is_starting(found: ResponseFields) -> bool:
    """Return True for a quorum queue without a leader, which rejects messages."""
    return _counts(found) and not found.get("leader")


def _counts(found: ResponseFields) -> bool:
    return bool(found.get("type") == _QUORUM)


def _binding_of(topic: Destination) -> tuple[str, str]:
    """Return the exchange of a topic, and the routing key."""
    return (topic.name, "") if topic.temporary else (_TOPICS, topic.name)


def _unique_name(kind: str) -> str:
    return f"jmsjca-{kind}-{uuid.uuid4().hex}"


def _source(name: str, *, counts: bool, private: bool = False) -> DeclaredSource:
    return DeclaredSource(address_of(Queue(name), "encoded"), counts, redelivers_locally=private or not counts)
