"""Sessions: consumers, browsers, producers and subscriptions around a current unit."""

from abc import ABC, abstractmethod
from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from types import NoneType
from typing import Any, Self, Unpack

from jmsjca import spi
from jmsjca.arguments import FLAG, Constraint, GuardedAttributes, check, enum_member, wrong_argument
from jmsjca.config.limits import AcknowledgeMode
from jmsjca.destinations import (
    Destination,
    DestinationKind,
    Queue,
    Subscription,
    TemporaryQueue,
    TemporaryTopic,
    Topic,
    check_destination,
    named_destination,
)
from jmsjca.errors import (
    ConnectionLostError,
    IllegalStateError,
    InvalidDestinationError,
    InvalidSelectorError,
    JMSError,
    MissingClientIDError,
    NotSupportedError,
)
from jmsjca.messages.bytes_and_stream import BytesMessage, StreamMessage
from jmsjca.messages.converters import Body, message_from_body
from jmsjca.messages.map_message import MapMessage
from jmsjca.messages.message import Message, TextMessage
from jmsjca.messages.object_message import ObjectMessage
from jmsjca.outbound.asynchronous_sends import AsynchronousSends
from jmsjca.outbound.connection_state import Closeable, ConnectionContext
from jmsjca.outbound.consumer import (
    ListenerDispatcher,
    MessageConsumer,
    ObservedReceiver,
    PrefetchingReceiver,
    QueueBrowser,
)
from jmsjca.outbound.producer import (
    MessageProducer,
    ProducerPool,
    SendOptions,
    check_options,
    delivery_fields,
    set_headers,
)
from jmsjca.outbound.session_mode import (
    ListenerTransaction,
    ManagedMode,
    SessionMode,
    SessionTransacted,
    session_mode_of,
)
from jmsjca.outbound.unit_of_work import (
    ConnectionAbort,
    SessionMember,
    TransactionBlock,
    UnitOfWork,
    aborts_if_interrupted,
)

__all__ = [
    "BaseSession",
    "MessageFactory",
    "Session",
    "checked_acknowledge_mode",
    "require_capability",
    "session_for_delivery",
]


_ARGUMENTS: dict[str, Constraint[Any]] = {
    "queue": Constraint("a Queue(…): only queues can be browsed", Queue, error=InvalidDestinationError),
    "selector": Constraint(  # the broker checks the text
        "a str, such as \"region = 'EU'\", or None", (str, NoneType), error=InvalidSelectorError
    ),
    "no_local": FLAG,
}
_SUBSCRIPTION_NAME = Constraint[str]("a str", str, error=InvalidDestinationError)


def _check_subscription(topic: Destination, name: str, *, durable: bool) -> None:
    """Raise an error if a shared or durable subscription cannot have this topic and name.

    Raises:
        InvalidDestinationError: The topic is not a `Topic`, or is temporary although the subscription is durable; or
            the name is not a str, or is empty.
    """
    check_destination(topic)
    if not isinstance(topic, Topic) or (durable and topic.temporary):
        raise InvalidDestinationError(
            f"A {'durable' if durable else 'shared'} subscription of {topic} cannot be: it needs a topic that is not "
            "temporary."
        )
    _SUBSCRIPTION_NAME("The name of a subscription", name)
    if not name:
        raise InvalidDestinationError(f"A subscription of {topic} that is shared or durable needs a name; it is empty.")


def checked_acknowledge_mode(name: str, value: object, transacted: object) -> AcknowledgeMode:
    """Return an acknowledge mode, given as a member or by its name, after validation of both arguments of a session.

    Args:
        name: The name of the argument with the acknowledge mode.
        value: That argument.
        transacted: The argument of this name.

    Raises:
        InvalidArgumentError: There is no such acknowledge mode, or ``transacted`` is neither True nor False.
    """
    if not isinstance(transacted, bool):
        raise wrong_argument("transacted", transacted, f"True or False; the acknowledge mode is the argument {name}")
    if isinstance(value, bool):
        raise wrong_argument(name, value, "an AcknowledgeMode, or its name; a transacted session has transacted=True")
    return enum_member(name, value, AcknowledgeMode)


def require_capability(connection: spi.Connection, capability: str, purpose: str, *, wanted: bool = True) -> None:
    """Raise an error if the broker lacks a capability.

    Args:
        connection: The provider's connection.
        capability: The field of `spi.Capabilities`.
        purpose: The feature that needs the capability, in the plural.
        wanted: False if the feature is not used.

    Raises:
        NotSupportedError: The broker lacks the capability.
    """
    if wanted and not getattr(connection.capabilities, capability):
        raise NotSupportedError(f"This broker has no {purpose}: it lacks the capability {capability}.")


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


class BaseSession(SessionMember, MessageFactory, Closeable, GuardedAttributes):
    """Common part of `Session` and `JMSContext`. For one thread at a time (JMS 3.1, section 6.2.5).

    A second thread that uses the session, or an object that it created, at the same time gets an `IllegalStateError`.
    Any thread may close it.

    Args:
        context: The resources of the connection.
        transacted: True to commit all receipts and sends together.
        acknowledge_mode: The acknowledgement of receipts; ignored if transacted.
        mode: The session mode; None for the one that the two above select.
    """

    def __init__(
        self,
        context: ConnectionContext,
        *,
        transacted: bool,
        acknowledge_mode: AcknowledgeMode,
        mode: SessionMode | None = None,
    ) -> None:
        connection = context.connection
        transacted = transacted or context.ignore_transacted
        if mode is None:
            mode = SessionTransacted(connection) if transacted else session_mode_of(acknowledge_mode, connection)
            enlistment = context.enlistment
            if enlistment is not None and (transacted or not enlistment.emulates):
                mode = ManagedMode(connection, mode, enlistment, strict=context.strict)
        self._context = context
        self._mode = mode
        self._lock = mode.lock
        if context.abort is not None:
            self._lock.abort = context.abort
        wrap_send = partial(context.hooks.wrap_send, transaction=mode)
        self._send = wrap_send(mode.send)
        self._asynchronous = AsynchronousSends(mode.begin_send, mode.lock, wrap_send, context.limits.sends_in_flight)
        self._listeners = ListenerDispatcher(mode, context.state, context.report)
        self._receivers: list[PrefetchingReceiver] = []
        self._producers = ProducerPool() if context.producer_pooling else None
        self._block = TransactionBlock()
        self._released = False
        self._transacted = transacted
        self._acknowledge_mode = acknowledge_mode

    @property
    def transacted(self) -> bool:
        """True if the application calls `commit` and `rollback`."""
        self._check_open()
        return self._transacted

    @property
    def acknowledge_mode(self) -> AcknowledgeMode:
        """The acknowledgement of receipts; ignored if transacted."""
        self._check_open()
        return self._acknowledge_mode

    @property
    def closed(self) -> bool:
        """True as soon as closing has begun."""
        return self._lock.closed

    def create_consumer(
        self, source: Destination, selector: str | None = None, *, no_local: bool = False
    ) -> MessageConsumer:
        """Create a consumer of a queue, or of a topic from now on (JMS 3.1, sections 8.2 and 8.3.1).

        Args:
            source: The queue or topic.
            selector: Only matching messages are received; needs the capability ``selectors``.
            no_local: True to exclude messages that this connection sends to the topic; needs the capability
                ``no_local``.

        Raises:
            InvalidDestinationError: The source is not a destination, or is a temporary one of another connection.
            InvalidSelectorError: The selector is invalid.
            NotSupportedError: The broker lacks a capability.
        """
        check_destination(source)
        if no_local and isinstance(source, Queue):
            raise InvalidDestinationError(f"no_local is for topics; {source} is a queue. Use a selector instead.")
        return self._consume(self._context.resolve(source), selector, no_local=no_local)

    def create_shared_consumer(self, topic: Topic, name: str, selector: str | None = None) -> MessageConsumer:
        """Create a consumer of a shared subscription (JMS 3.1, section 8.3.2).

        Its consumers compete for the messages; it ends with its last consumer. Needs the capability ``shared``.

        Args:
            topic: The topic.
            name: The subscription's name, unique within the client id, if the connection has one.
            selector: Only matching messages are received.

        Raises:
            IllegalStateError: The subscription has consumers with another topic or selector.
            InvalidDestinationError: The name is empty, or the topic is not a `Topic`.
            NotSupportedError: The broker lacks a capability.
        """
        return self._subscribe(topic, name, selector, self._context.client_id, shared=True, volatile=True)

    def create_durable_consumer(
        self, topic: Topic, name: str, selector: str | None = None, *, no_local: bool = False
    ) -> MessageConsumer:
        """Create the only consumer of a durable subscription, which outlives it (JMS 3.1, section 8.3.3).

        The subscription collects messages while it has no consumer. Needs the capability ``durable``. A subscription of
        that name with another topic, selector or ``no_local`` is replaced, and its messages are deleted.

        Args:
            topic: The topic.
            name: The subscription's name, unique within the client id.
            selector: Only matching messages are received.
            no_local: True to exclude messages that connections of this client id send.

        Raises:
            MissingClientIDError: The connection has no client id. The class is a subclass of `IllegalStateError`.
            IllegalStateError: The subscription has a consumer, or is shared.
            InvalidDestinationError: The name is empty, or the topic is not a `Topic`, or is temporary.
            NotSupportedError: The broker lacks a capability.
        """
        _check_subscription(topic, name, durable=True)
        return self._subscribe(topic, name, selector, self._needed_client_id(), no_local=no_local)

    def create_shared_durable_consumer(self, topic: Topic, name: str, selector: str | None = None) -> MessageConsumer:
        """Create a consumer of a shared durable subscription (JMS 3.1, section 8.3.4).

        Like `create_durable_consumer`, but any number of consumers compete for the messages. It also needs the
        capability ``shared``, but no client id.

        Args:
            topic: The topic.
            name: The subscription's name, unique within the client id, if the connection has one.
            selector: Only matching messages are received.

        Raises:
            IllegalStateError: The subscription has consumers with another topic or selector, or is not shared.
            InvalidDestinationError: The name is empty, or the topic is not a `Topic`, or is temporary.
            NotSupportedError: The broker lacks a capability.
        """
        return self._subscribe(topic, name, selector, self._context.client_id, shared=True)

    @aborts_if_interrupted
    def unsubscribe(self, topic: Topic, name: str) -> None:
        """Delete a durable subscription, shared or not, with its messages (JMS 3.1, section 8.3.3).

        Args:
            topic: The topic.
            name: The subscription's name.

        Raises:
            IllegalStateError: The subscription has consumers.
            MissingClientIDError: The connection has no client id, and the broker has no shared subscriptions.
            InvalidDestinationError: There is no such subscription; or the name is empty, or the topic is not a `Topic`.
        """
        _check_subscription(topic, name, durable=True)
        with self._lock:
            connection = self._context.connection
            client_id = self._context.client_id if connection.capabilities.shared else self._needed_client_id()
            connection.remove(Subscription(self._context.resolve(topic), name, client_id, shared=client_id is None))

    @aborts_if_interrupted
    def create_browser(self, queue: Queue, selector: str | None = None) -> QueueBrowser:
        """Create a browser: iterate over it to read the messages of a queue without consuming them (section 4.1.6).

        Args:
            queue: The queue to browse.
            selector: Only matching messages are returned; needs the capability ``selectors``.

        Raises:
            InvalidDestinationError: The queue is not a `Queue`, or the broker cannot browse it.
            InvalidSelectorError: The selector is invalid.
            NotSupportedError: The broker lacks a capability.
        """
        check(_ARGUMENTS, queue=queue, selector=selector)
        with self._lock:
            require_capability(self._context.connection, "browse", "queue browsers")
            require_capability(self._context.connection, "selectors", "selectors", wanted=bool(selector))
            return QueueBrowser(self._context.connection, self._context.resolve(queue), selector, self._lock)

    def create_temporary_queue(self) -> TemporaryQueue:
        """Create a queue that exists until the connection closes or ``delete()`` is called (JMS 3.1, section 6.2.2).

        Raises:
            NotSupportedError: The broker has no temporary destinations.
        """
        return TemporaryQueue(self._temporary("queue"), self._context.delete_temporary)

    def create_temporary_topic(self) -> TemporaryTopic:
        """Create a topic that exists until the connection closes or ``delete()`` is called (JMS 3.1, section 6.2.2).

        Raises:
            NotSupportedError: The broker has no temporary destinations.
        """
        return TemporaryTopic(self._temporary("topic"), self._context.delete_temporary)

    @contextmanager
    def transaction(self) -> Generator[Self]:
        """Commit at the end of the block, or roll back on an exception. Blocks cannot be nested.

        Raises:
            IllegalStateError: The session is not transacted, or is in such a block already.
        """
        self._check_commits()
        with self._block:
            completed = False
            try:
                yield self
                completed = True
            finally:  # unless closing, the abort or the parent of a forked child rolls back
                if not (completed or self.closed or self._abort.cause or self._lock.in_child):
                    self.rollback()
            self.commit()

    @aborts_if_interrupted
    def _check_commits(self) -> None:
        with self._lock:
            if text := self._mode.no_commits:
                raise IllegalStateError(text)

    @aborts_if_interrupted
    def commit(self) -> None:
        """Acknowledge all messages received and send all messages sent since the last commit, as one (section 6.2.7).

        Raises:
            IllegalStateError: The session is not transacted, or belongs to a delivery; or a completion listener of the
                session calls this, which waits for the listeners.
            TransactionRolledBackError: Nothing was committed.
            TransactionInDoubtError: The transaction may or may not have been committed.
        """
        with self._lock:
            self._asynchronous.wait("commit()")
            self._mode.commit()

    @aborts_if_interrupted
    def rollback(self) -> None:
        """Discard all sends and request redelivery of all messages received since the last commit.

        Raises:
            IllegalStateError: The session is not transacted, or belongs to a delivery; or a completion listener of the
                session calls this, which waits for the listeners.
        """
        with self._lock:
            self._asynchronous.wait("rollback()")
            self._mode.rollback()

    @aborts_if_interrupted
    def recover(self) -> None:
        """Request redelivery of all messages that are not acknowledged, in order; they are counted (section 6.2.10).

        Under `AcknowledgeMode.AUTO` always empty; under ``DUPS_OK`` the messages that are not acknowledged yet.

        Raises:
            IllegalStateError: The session is transacted: use `rollback`.
        """
        with self._lock:
            self._mode.recover()

    @aborts_if_interrupted
    def acknowledge(self) -> None:
        """Acknowledge all received messages under `AcknowledgeMode.CLIENT` and ``INDIVIDUAL``.

        It also acknowledges messages that could not be decoded. It has no effect in sessions with another mode.
        """
        with self._lock:
            self._mode.acknowledge()

    @aborts_if_interrupted
    def close(self) -> None:
        """Close the consumers and roll back the open transaction (JMS 3.1, section 6.2.15). Idempotent.

        Messages that are not acknowledged under `AcknowledgeMode.CLIENT` and ``INDIVIDUAL`` are redelivered, and
        counted. Any thread may call it: a waiting receive returns None, and it waits for any other call, for a running
        message listener, and until all asynchronous sends are complete.

        Raises:
            IllegalStateError: A completion listener or message listener of the session calls it.
        """
        if self._released or self._lock.in_child:
            return
        self._check_close_allowed()
        self._listeners.close()  # listeners may use the session until they have returned
        self._asynchronous.wait("close()")
        self._lock.closed = True
        if self._producers is not None:
            self._producers.clear()
        for receiver in self._receivers:
            receiver.interrupt()
        # On a lost or aborted connection there is nothing to end: the broker redelivers by itself.
        ended = ConnectionLostError if self._abort.cause is None else JMSError
        with self._lock.exclusive(), suppress(ended), ExitStack() as stack:
            stack.callback(self._asynchronous.close)
            for receiver in self._receivers:
                stack.callback(receiver.close)
            self._mode.close()
        self._released = True

    def _check_close_allowed(self) -> None:
        """Raise an error if the caller is one that a close of this session, or of its connection, would wait for.

        Raises:
            IllegalStateError: The caller is a completion listener or message listener of the session.
        """
        self._asynchronous.check_allowed("close()")
        self._listeners.check_allowed("close()")

    def _subscribe(
        self,
        topic: Topic,
        name: str,
        selector: str | None,
        client_id: str | None,
        *,
        shared: bool = False,
        volatile: bool = False,
        no_local: bool = False,
    ) -> MessageConsumer:
        connection = self._context.connection
        require_capability(connection, "durable", "durable subscriptions", wanted=not volatile)
        require_capability(connection, "shared", "shared subscriptions", wanted=shared)
        _check_subscription(topic, name, durable=not volatile)
        subscription = Subscription(self._context.resolve(topic), name, client_id, shared, volatile)
        return self._consume(subscription, selector, no_local=no_local)

    def _needed_client_id(self) -> str:
        if not self._context.client_id:
            raise MissingClientIDError(
                "A durable subscription that is not shared belongs to a client id: give one to the ConnectionFactory "
                "(client_id=…)."
            )
        return self._context.client_id

    @aborts_if_interrupted
    def _temporary(self, kind: DestinationKind) -> str:
        with self._lock:
            self._context.resolve(Queue("-") if kind == "queue" else Topic("-"))  # refuses the other domain
            require_capability(self._context.connection, "temporary", "temporary destinations")
            return self._context.create_temporary(kind)

    @aborts_if_interrupted
    def _consume(
        self, source: Destination | Subscription, selector: str | None, *, no_local: bool = False
    ) -> MessageConsumer:
        check(_ARGUMENTS, selector=selector, no_local=no_local)
        with self._lock:
            if self._mode.no_consumers:
                raise IllegalStateError(self._mode.no_consumers)
            require_capability(self._context.connection, "selectors", "selectors", wanted=bool(selector))
            require_capability(self._context.connection, "no_local", "no_local", wanted=no_local)
            consumer = self._context.connection.consumer(
                source, selector=selector, no_local=no_local, order=self._mode.order
            )
            return self._keep(consumer, source, selector)

    def _keep(
        self, consumer: spi.Consumer, source: Destination | Subscription, selector: str | None
    ) -> MessageConsumer:
        """Return the consumer of a provider's one, which the session closes."""
        parts = consumer, self._mode, self._context.state, self._context.limits.chunk
        hooks = self._context.hooks
        receiver = ObservedReceiver(*parts, hooks, source) if hooks.observe_receives else PrefetchingReceiver(*parts)
        self._receivers = [r for r in self._receivers if not r.released] + [receiver]
        return MessageConsumer(receiver, self._listeners, selector)

    def create_queue(self, name: str) -> Queue:
        """Return the queue of a name. Creates nothing on the broker.

        Args:
            name: The name at the broker; or ``lookup://name`` for the queue bound to a name, see `NamingContext`.

        Raises:
            IllegalStateError: The session is closed, or its connection is for topics only.
            NameNotFoundError: The name is not bound.
            InvalidDestinationError: The name is empty, or another object is bound to it.
        """
        self._check_open()
        return self._context.resolve(Queue(name))

    def create_topic(self, name: str) -> Topic:
        """Return the topic of a name. Creates nothing on the broker.

        Args:
            name: The name at the broker; or ``lookup://name`` for the topic bound to a name, see `NamingContext`.

        Raises:
            IllegalStateError: The session is closed, or its connection is for queues only.
            NameNotFoundError: The name is not bound.
            InvalidDestinationError: The name is empty, or another object is bound to it.
        """
        self._check_open()
        return self._context.resolve(Topic(name))

    def _producer_for(self, destination: Destination | None) -> MessageProducer:
        parts = self._send, self._lock, self._asynchronous, self._context.resolve
        return MessageProducer(*parts, destination, self._producers)


class Session(BaseSession):
    """Creates producers and consumers, and settles what they send and receive (JMS 3.1, section 6.2).

    `Connection.create_session` creates it. A transacted session always has an open transaction: receipts and sends
    belong to it until `commit` or `rollback` ends it and the next one begins. In any other session each send is a
    separate unit.
    """

    _sends: MessageProducer | None = None  # the producer of `send`

    @aborts_if_interrupted
    def create_producer(self, destination: Destination | None = None) -> MessageProducer:
        """Create a producer. Without a destination each send names one.

        If the factory has ``producer_pooling``, a closed producer for the same destination is used again.

        Raises:
            InvalidDestinationError: The value is not a destination.
        """
        with self._lock:
            return self._producer_for(destination)

    def send(self, destination: str | Destination, body: Message | Body, **options: Unpack[SendOptions]) -> Message:
        """Send a message, or a body as a message, in the unit of the session, without a producer to create.

        Example: ``session.send("invoices", "an invoice", priority=7)``.

        Args:
            destination: A queue's name, ``queue:name`` or ``topic:name``, or a `Queue` or a `Topic`.
            body: The message, or a body, as for `MessageProducer.send`.
            **options: See `jmsjca.outbound.sender.SendOptions`.

        Returns:
            The message, with its headers set.

        Raises:
            JMSError: As `MessageProducer.send`.
        """
        to = named_destination(destination) if isinstance(destination, str) else destination
        message = body if isinstance(body, Message) else message_from_body(body)
        if options:
            check_options("A send", options, SendOptions)
            set_headers(message, options)
        with self._lock:
            self._sends = self._sends or self._producer_for(None)
        self._sends.send(message, to, **delivery_fields(options))
        return message


def session_for_delivery(context: ConnectionContext, unit: UnitOfWork, *, atomic: bool = True) -> Session:
    """Return a session that sends in the unit of a delivery; the listener settles the unit.

    Args:
        context: The resources of the listener's connection.
        unit: The unit.
        atomic: As for `UnitOfWork.send`.
    """
    mode = ListenerTransaction(context.connection, unit, atomic=atomic)
    mode.lock.abort = ConnectionAbort(lambda _: setattr(unit, "rollback_only", True))  # the listener has the connection
    return Session(context, transacted=True, acknowledge_mode=AcknowledgeMode.AUTO, mode=mode)
