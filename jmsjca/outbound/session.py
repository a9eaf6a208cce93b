"""Sessions: consumers, browsers, producers and subscriptions around a current unit."""

from collections.abc import Generator
from contextlib import ExitStack, contextmanager, suppress
from typing import Self

from jmsjca import spi
from jmsjca.config.settings import AcknowledgeMode
from jmsjca.destinations import (
    Destination,
    DestinationKind,
    Queue,
    Subscription,
    TemporaryQueue,
    TemporaryTopic,
    Topic,
    check_destination,
)
from jmsjca.errors import ConnectionLostError, InvalidClientIDError, InvalidDestinationError, NotSupportedError
from jmsjca.outbound.acknowledge_modes import session_mode_of
from jmsjca.outbound.asynchronous_sends import AsynchronousSends
from jmsjca.outbound.browser import QueueBrowser
from jmsjca.outbound.connection_state import Closeable, ConnectionContext
from jmsjca.outbound.consumer import MessageConsumer, PrefetchingReceiver
from jmsjca.outbound.message_factory import MessageFactory
from jmsjca.outbound.message_listeners import ListenerDispatcher
from jmsjca.outbound.producer import MessageProducer
from jmsjca.outbound.session_mode import ListenerTransaction, SessionMode, SessionTransacted
from jmsjca.outbound.unit_of_work import UnitOfWork

__all__ = ["BaseSession", "Session", "session_for_delivery"]


class BaseSession(MessageFactory, Closeable):
    """Common part of `Session` and `JMSContext`. For one thread at a time (JMS 3.1, section 6.2.5).

    A second thread that uses the session, or an object that it created, at the same time gets an `IllegalStateError`.
    Any thread may close it.

    Args:
        context: The resources of the connection.
        transacted: True to commit all receipts and sends together.
        acknowledge_mode: The acknowledgement of receipts; ignored if transacted.
        mode: The session mode; None for the one that the two above select.

    Attributes:
        transacted: True if the application calls `commit` and `rollback`.
        acknowledge_mode: The acknowledgement of receipts; ignored if transacted.
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
        self._context = context
        self._mode = mode
        self._lock = mode.lock
        self._send = context.hooks.wrap_send(mode.send)
        self._asynchronous = AsynchronousSends(mode, context.hooks, context.limits.sends_in_flight)
        self._listeners = ListenerDispatcher(mode, context.state, context.report)
        self._receivers: list[PrefetchingReceiver] = []
        self.transacted = transacted
        self.acknowledge_mode = acknowledge_mode

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
            InvalidDestinationError: The value is no destination, or a temporary one of another connection.
            InvalidSelectorError: The selector is invalid.
            NotSupportedError: The broker lacks a capability.
        """
        if no_local and isinstance(source, Queue):
            raise InvalidDestinationError(f"no_local is for topics; {source} is a queue. Use a selector instead.")
        check_destination(source)
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
            InvalidDestinationError: The name is empty, or the value is no topic.
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
            InvalidClientIDError: The connection has no client id.
            IllegalStateError: The subscription has a consumer, or is shared.
            InvalidDestinationError: The name is empty, or the value is no topic, or a temporary one.
            NotSupportedError: The broker lacks a capability.
        """
        return self._subscribe(topic, name, selector, self._needed_client_id(), no_local=no_local)

    def create_shared_durable_consumer(self, topic: Topic, name: str, selector: str | None = None) -> MessageConsumer:
        """Create a consumer of a shared durable subscription (JMS 3.1, section 8.3.4).

        Like `create_durable_consumer`, but any number of consumers compete for the messages. It needs the capability
        ``shared`` as well, and no client id.

        Args:
            topic: The topic.
            name: The subscription's name, unique within the client id, if the connection has one.
            selector: Only matching messages are received.

        Raises:
            IllegalStateError: The subscription has consumers with another topic or selector, or is not shared.
            InvalidDestinationError: The name is empty, or the value is no topic, or a temporary one.
            NotSupportedError: The broker lacks a capability.
        """
        return self._subscribe(topic, name, selector, self._context.client_id, shared=True)

    def unsubscribe(self, topic: Topic, name: str) -> None:
        """Delete a durable subscription, shared or not, with its messages (JMS 3.1, section 8.3.3).

        Args:
            topic: The topic.
            name: The subscription's name.

        Raises:
            IllegalStateError: The subscription has consumers.
            InvalidClientIDError: The connection has no client id, and the broker has no shared subscriptions.
            InvalidDestinationError: There is no such subscription.
        """
        with self._lock:
            connection = self._context.connection
            client_id = self._context.client_id if connection.capabilities.shared else self._needed_client_id()
            connection.remove(Subscription(self._context.resolve(topic), name, client_id, shared=client_id is None))

    def create_browser(self, queue: Queue, selector: str | None = None) -> QueueBrowser:
        """Create a browser: iterate over it to read the messages of a queue without consuming them (section 4.1.6).

        Args:
            queue: The queue to browse.
            selector: Only matching messages are returned; needs the capability ``selectors``.
        """
        with self._lock:
            _require(self._context.connection, "browse", "queue browsers")
            _require(self._context.connection, "selectors", "selectors", wanted=bool(selector))
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
        """Commit at the end of the block, or roll back on an exception.

        Raises:
            IllegalStateError: The session is not transacted.
        """
        with self._lock:
            self._mode.check_commits()
        try:
            yield self
        except BaseException:
            if not self.closed and not self._lock.fork_guard.in_child:  # else closing rolls back, or the parent does
                self.rollback()
            raise
        self.commit()

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

    def rollback(self) -> None:
        """Discard all sends and request redelivery of all messages received since the last commit.

        Raises:
            IllegalStateError: The session is not transacted, or belongs to a delivery; or a completion listener of the
                session calls this, which waits for the listeners.
        """
        with self._lock:
            self._asynchronous.wait("rollback()")
            self._mode.rollback()

    def recover(self) -> None:
        """Request redelivery of all messages that are not acknowledged, in order; they are counted (section 6.2.10).

        Under `AcknowledgeMode.AUTO` there are none; under ``DUPS_OK`` those that are not acknowledged yet.

        Raises:
            IllegalStateError: The session is transacted: use `rollback`.
        """
        with self._lock:
            self._mode.recover()

    def acknowledge(self) -> None:
        """Acknowledge all received messages under `AcknowledgeMode.CLIENT` and ``INDIVIDUAL``.

        Messages that could not be decoded are acknowledged, too. No effect in other sessions.
        """
        with self._lock:
            self._mode.acknowledge()

    def close(self) -> None:
        """Close the consumers and roll back the open transaction (JMS 3.1, section 6.2.15). Idempotent.

        Messages that are not acknowledged under `AcknowledgeMode.CLIENT` and ``INDIVIDUAL`` are redelivered, and
        counted. Any thread may call it: a waiting receive returns None, and it waits for any other call, for a running
        message listener, and until all asynchronous sends are complete.

        Raises:
            IllegalStateError: A completion listener or message listener of the session calls it.
        """
        if self._lock.closed or self._lock.fork_guard.in_child:
            return
        self._check_close_allowed()
        self._listeners.close()  # listeners may use the session until they have returned
        self._asynchronous.wait("close()")
        self._lock.closed = True
        for receiver in self._receivers:
            receiver.interrupt()
        # On a lost connection there is nothing to end: the broker redelivers by itself.
        with self._lock.exclusive(), suppress(ConnectionLostError), ExitStack() as stack:
            stack.callback(self._asynchronous.close)
            for receiver in self._receivers:
                stack.callback(receiver.close)
            self._mode.close()

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
        _require(connection, "durable", "durable subscriptions", wanted=not volatile)
        _require(connection, "shared", "shared subscriptions", wanted=shared)
        _check_named(topic, name, durable=not volatile)
        subscription = Subscription(self._context.resolve(topic), name, client_id, shared, volatile)
        return self._consume(subscription, selector, no_local=no_local)

    def _needed_client_id(self) -> str:
        if not self._context.client_id:
            raise InvalidClientIDError(
                "A durable subscription that is not shared belongs to a client id: give one to the ConnectionFactory "
                "(client_id=…)."
            )
        return self._context.client_id

    def _temporary(self, kind: DestinationKind) -> str:
        with self._lock:
            self._context.resolve(Queue("-") if kind == "queue" else Topic("-"))  # refuses the other domain
            _require(self._context.connection, "temporary", "temporary destinations")
            return self._context.create_temporary(kind)

    def _consume(
        self, source: Destination | Subscription, selector: str | None, *, no_local: bool = False
    ) -> MessageConsumer:
        with self._lock:
            self._mode.check_receives()
            _require(self._context.connection, "selectors", "selectors", wanted=bool(selector))
            _require(self._context.connection, "no_local", "no_local", wanted=no_local)
            consumer = self._context.connection.consumer(
                source, selector=selector, no_local=no_local, order=self._mode.order
            )
            receiver = PrefetchingReceiver(consumer, self._mode, self._context.state, self._context.limits.chunk)
            self._receivers = [r for r in self._receivers if not r.closed] + [receiver]
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

    def _check_open(self) -> None:
        self._lock.check_open()


class Session(BaseSession):
    """Creates producers and consumers, and settles what they send and receive (JMS 3.1, section 6.2).

    `Connection.create_session` creates it. A transacted session always has an open transaction: receipts and sends
    belong to it until `commit` or `rollback` ends it and the next one begins. In any other session each send is a unit
    of its own.
    """

    def create_producer(self, destination: Destination | None = None) -> MessageProducer:
        """Create a producer. Without a destination each send names one.

        Raises:
            InvalidDestinationError: The value is no destination.
        """
        with self._lock:
            resolved = self._context.resolve(destination) if isinstance(destination, Destination) else destination
            return MessageProducer(self._send, self._lock, self._asynchronous, resolved)


def session_for_delivery(context: ConnectionContext, unit: UnitOfWork) -> Session:
    """Return a session that sends in the unit of a delivery; the listener settles the unit."""
    mode = ListenerTransaction(context.connection, unit)
    return Session(context, transacted=True, acknowledge_mode=AcknowledgeMode.AUTO, mode=mode)


def _check_named(topic: Destination, name: str, *, durable: bool) -> None:
    check_destination(topic)
    if not isinstance(topic, Topic) or (durable and topic.temporary):
        raise InvalidDestinationError(
            f"A {'durable' if durable else 'shared'} subscription of {topic} cannot be: it needs a topic that is not "
            "temporary."
        )
    if not name:
        raise InvalidDestinationError(f"A subscription of {topic} that is shared or durable needs a name; it is empty.")


def _require(connection: spi.Connection, capability: str, purpose: str, *, wanted: bool = True) -> None:
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
