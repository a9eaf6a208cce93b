"""Sessions: consumers, browsers, producers and subscriptions around a current unit."""

from abc import ABC, abstractmethod
from collections.abc import Generator
from contextlib import ExitStack, contextmanager, suppress
from typing import Self

from jmsjca import spi
from jmsjca.config import AcknowledgeMode, Limits
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
from jmsjca.hooks import HookChain
from jmsjca.messages import Message
from jmsjca.outbound.browser import QueueBrowser
from jmsjca.outbound.connection_state import Closeable, ConnectionContext, ConnectionState
from jmsjca.outbound.consumer import MessageConsumer
from jmsjca.outbound.message_factory import MessageFactory
from jmsjca.outbound.producer import MessageProducer
from jmsjca.outbound.session_lock import SessionLock
from jmsjca.outbound.session_mode import ListenerTransaction, SessionMode, SessionTransacted, session_mode_of
from jmsjca.outbound.unit_of_work import UnitOfWork

__all__ = ["BaseSession", "Session", "Subscribing", "require"]


class Subscribing(ABC):
    """Consumers of queues and of the four sorts of subscriptions (JMS 3.1, sections 8.2 and 8.3)."""

    _context: ConnectionContext
    _lock: SessionLock

    @abstractmethod
    def _consume(
        self, source: Destination | Subscription, selector: str | None, *, no_local: bool = False
    ) -> MessageConsumer: ...

    def create_consumer(
        self, source: Destination, selector: str | None = None, *, no_local: bool = False
    ) -> MessageConsumer:
        """Make a consumer of a queue, or of a topic from now on (JMS 3.1, sections 8.2 and 8.3.1).

        Args:
            source: The queue or topic.
            selector: Only messages that match; needs the capability ``selectors``.
            no_local: True to be spared what this connection sends to the topic; needs the capability ``no_local``.

        Raises:
            InvalidDestinationError: It is no destination, or a temporary one of another connection.
            InvalidSelectorError: The selector is none.
            NotSupportedError: The broker lacks a capability.
        """
        if no_local and isinstance(source, Queue):
            raise InvalidDestinationError(f"no_local is for topics; {source} is a queue. Use a selector instead.")
        check_destination(source)
        return self._consume(source, selector, no_local=no_local)

    def create_shared_consumer(self, topic: Topic, name: str, selector: str | None = None) -> MessageConsumer:
        """Make one of several consumers that compete for the messages of a subscription (JMS 3.1, section 8.3.2).

        The subscription lives as long as it has consumers. Needs the capability ``shared``.

        Args:
            topic: What is subscribed to.
            name: The subscription's name, unique within the client id, if the connection has one.
            selector: Only messages that match.

        Raises:
            IllegalStateError: The subscription has consumers with another topic or selector.
            InvalidDestinationError: The name is empty, or the topic is none.
            NotSupportedError: The broker lacks a capability.
        """
        return self._subscribe(topic, name, selector, self._context.client_id, shared=True, volatile=True)

    def create_durable_consumer(
        self, topic: Topic, name: str, selector: str | None = None, *, no_local: bool = False
    ) -> MessageConsumer:
        """Make the one consumer of a durable subscription, which keeps messages meanwhile (JMS 3.1, section 8.3.3).

        Needs the capability ``durable``. A subscription of that name with another topic, selector or ``no_local`` is
        replaced: what waits in it is gone.

        Args:
            topic: What is subscribed to.
            name: The subscription's name, unique within the client id.
            selector: Only messages that match.
            no_local: True to be spared what connections of this client id send.

        Raises:
            InvalidClientIDError: The connection has no client id.
            IllegalStateError: The subscription has a consumer, or is shared.
            InvalidDestinationError: The name is empty, or the topic is none or a temporary one.
            NotSupportedError: The broker lacks a capability.
        """
        return self._subscribe(topic, name, selector, self._needed_client_id(), no_local=no_local)

    def create_shared_durable_consumer(self, topic: Topic, name: str, selector: str | None = None) -> MessageConsumer:
        """Make one of several consumers that compete for a durable subscription (JMS 3.1, section 8.3.4).

        As `create_durable_consumer`, but that it needs no client id, and the capability ``shared`` as well.

        Args:
            topic: What is subscribed to.
            name: The subscription's name, unique within the client id, if the connection has one.
            selector: Only messages that match.

        Raises:
            IllegalStateError: The subscription has consumers with another topic or selector, or is not shared.
            InvalidDestinationError: The name is empty, or the topic is none or a temporary one.
            NotSupportedError: The broker lacks a capability.
        """
        return self._subscribe(topic, name, selector, self._context.client_id, shared=True)

    def unsubscribe(self, topic: Topic, name: str) -> None:
        """Remove a durable subscription, shared or not, with what waits in it (JMS 3.1, section 8.3.3).

        Args:
            topic: What is subscribed to.
            name: The subscription's name.

        Raises:
            IllegalStateError: It has consumers.
            InvalidClientIDError: The connection has no client id, and the broker no shared subscriptions.
            InvalidDestinationError: There is no such subscription.
        """
        with self._lock:
            connection = self._context.connection
            client_id = self._context.client_id if connection.capabilities.shared else self._needed_client_id()
            connection.remove(Subscription(topic, name, client_id, shared=client_id is None))

    def create_browser(self, queue: Queue, selector: str | None = None) -> QueueBrowser:
        """Make a browser: iterate over it to look at what waits in a queue, without taking anything (section 4.1.6).

        Args:
            queue: What to look at.
            selector: Only messages that match; needs the capability ``selectors``.
        """
        with self._lock:
            require(self._context.connection, "browse", "queue browsers")
            require(self._context.connection, "selectors", "selectors", wanted=bool(selector))
            return QueueBrowser(self._context.connection, queue, selector, self._lock)

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
        require(connection, "durable", "durable subscriptions", wanted=not volatile)
        require(connection, "shared", "shared subscriptions", wanted=shared)
        _check_named(topic, name, durable=not volatile)
        subscription = Subscription(topic, name, client_id, shared, volatile)
        return self._consume(subscription, selector, no_local=no_local)

    def _needed_client_id(self) -> str:
        if not self._context.client_id:
            raise InvalidClientIDError(
                "A durable subscription that is not shared belongs to a client id: give one to the ConnectionFactory "
                "(client_id=…)."
            )
        return self._context.client_id


def _check_named(topic: Destination, name: str, *, durable: bool) -> None:
    check_destination(topic)
    if not isinstance(topic, Topic) or (durable and topic.temporary):
        raise InvalidDestinationError(
            f"A {'durable' if durable else 'shared'} subscription of {topic} cannot be: it is of a topic that lasts."
        )
    if not name:
        raise InvalidDestinationError(f"A subscription of {topic} that is shared or durable needs a name; it is empty.")


class BaseSession(MessageFactory, Subscribing, Closeable):
    """What a `Session` and a `JMSContext` have in common. For one thread at a time (JMS 3.1, section 6.2.5).

    A second thread that uses it, or what it made, at the same time gets an `IllegalStateError`. Any may close it.

    Args:
        context: What the connection gives.
        transacted: True if what it receives and sends is committed together.
        acknowledge_mode: How receipt is acknowledged otherwise.
        mode: What these two amount to, if it is something else.

    Attributes:
        transacted: True if `commit` and `rollback` are yours to call.
        acknowledge_mode: How receipt is acknowledged otherwise.
    """

    def __init__(
        self,
        context: ConnectionContext,
        *,
        transacted: bool,
        acknowledge_mode: AcknowledgeMode,
        mode: SessionMode | None = None,
    ) -> None:
        if mode is None:
            mode = (
                SessionTransacted(context.connection)
                if transacted
                else session_mode_of(acknowledge_mode, context.connection)
            )
        self._context = context
        self._mode = mode
        self._lock = mode.lock
        self._send = context.hooks.wrap_send(mode.send)
        self._consumers: list[MessageConsumer] = []
        self.transacted = transacted
        self.acknowledge_mode = acknowledge_mode

    @property
    def closed(self) -> bool:
        """True as soon as somebody began to close it."""
        return self._lock.closed

    def create_temporary_queue(self) -> TemporaryQueue:
        """Make a queue that lives as long as the connection, or until its ``delete()`` (JMS 3.1, section 6.2.2).

        Raises:
            NotSupportedError: The broker has none.
        """
        return TemporaryQueue(self._temporary("queue"), self._context.connection.remove)

    def create_temporary_topic(self) -> TemporaryTopic:
        """Make a topic that lives as long as the connection, or until its ``delete()`` (JMS 3.1, section 6.2.2).

        Raises:
            NotSupportedError: The broker has none.
        """
        return TemporaryTopic(self._temporary("topic"), self._context.connection.remove)

    @contextmanager
    def transaction(self) -> Generator[Self]:
        """Commit at the end of the block, roll back on an exception."""
        with self._lock:
            self._mode.check_commits()
        try:
            yield self
        except BaseException:
            if not self.closed and not self._lock.fork_guard.in_child:  # else who closes it does, or the parent
                self.rollback()
            raise
        self.commit()

    def commit(self) -> None:
        """Acknowledge what was received and send what was sent since the last commit, together (section 6.2.7).

        Raises:
            IllegalStateError: The session is not transacted, or its unit is settled by the listener.
            TransactionRolledBackError: It did not happen.
            TransactionInDoubtError: It may or may not have happened.
        """
        with self._lock:
            self._mode.commit()

    def rollback(self) -> None:
        """Forget what was sent, and let what was received since the last commit come again."""
        with self._lock:
            self._mode.rollback()

    def recover(self) -> None:
        """Let everything that was received and not acknowledged come again, in order, counted (section 6.2.10).

        Under `AcknowledgeMode.AUTO` there is nothing; under ``DUPS_OK`` it is what was not acknowledged yet.

        Raises:
            IllegalStateError: The session is transacted: use `rollback`.
        """
        with self._lock:
            self._mode.recover()

    def acknowledge(self) -> None:
        """Acknowledge everything that was received, under `AcknowledgeMode.CLIENT` and ``INDIVIDUAL``.

        That holds for messages that could not be decoded, too. In other sessions it has no effect.
        """
        with self._lock:
            self._mode.acknowledge()

    def close(self) -> None:
        """Close consumers and roll back what is open (JMS 3.1, section 6.2.15). Closing twice does nothing.

        What is not acknowledged under `AcknowledgeMode.CLIENT` and ``INDIVIDUAL`` comes again, counted. Another thread
        may call it: a receive that waits returns None, and any other call is waited for.
        """
        if self._lock.closed or self._lock.fork_guard.in_child:
            return
        self._lock.closed = True
        for consumer in self._consumers:
            consumer.interrupt()
        # A lost connection has ended everything by itself: it comes again.
        with self._lock.exclusive(), suppress(ConnectionLostError), ExitStack() as stack:
            for consumer in self._consumers:
                stack.callback(consumer.close)
            self._mode.close()

    def pause(self) -> None:
        """Return when no message is being handed over any more: the connection is stopped. For the connection."""
        for consumer in list(self._consumers):
            consumer.pause()

    def send(self, message: Message, to: Destination) -> None:
        """Send in the open unit, or in one of its own, inside all hooks. For producers, which have entered the lock."""
        self._send(message, to)

    @property
    def lock(self) -> SessionLock:
        """What lets one thread in at a time. For producers."""
        return self._lock

    def _temporary(self, kind: DestinationKind) -> str:
        with self._lock:
            require(self._context.connection, "temporary", "temporary destinations")
            return self._context.connection.temporary(kind).name

    def _consume(
        self, source: Destination | Subscription, selector: str | None, *, no_local: bool = False
    ) -> MessageConsumer:
        with self._lock:
            self._mode.check_receives()
            require(self._context.connection, "selectors", "selectors", wanted=bool(selector))
            require(self._context.connection, "no_local", "no_local", wanted=no_local)
            provider_consumer = self._context.connection.consumer(
                source, selector=selector, no_local=no_local, order=self._mode.order
            )
            consumer = MessageConsumer(
                provider_consumer,
                self._mode,
                self._context.state,
                prefetch=self._context.limits.chunk,
                selector=selector,
            )
            self._consumers = [c for c in self._consumers if not c.closed] + [consumer]
            return consumer

    def _check_open(self) -> None:
        self._lock.check_open()


class Session(BaseSession):
    """Made by `Connection.create_session` (JMS 3.1, section 6.2).

    A transacted session always has an open unit: what it receives and sends belongs to it until `commit` or
    `rollback` ends it and the next one begins. Otherwise each send is a unit of its own.
    """

    @classmethod
    def for_delivery(
        cls, connection: spi.Connection, work: UnitOfWork, limits: Limits, hooks: HookChain | None = None
    ) -> Self:
        """Make a session whose sends belong to a unit that somebody else settles: that of a delivery."""
        context = ConnectionContext(connection, limits, ConnectionState(started=True), hooks=hooks or HookChain())
        return cls(
            context, transacted=True, acknowledge_mode=AcknowledgeMode.AUTO, mode=ListenerTransaction(connection, work)
        )

    def create_producer(self, destination: Destination | None = None) -> MessageProducer:
        """Make a producer; without a destination each send names one.

        Raises:
            InvalidDestinationError: It is no destination.
        """
        with self._lock:
            return MessageProducer(self.send, self._lock, destination)


def require(connection: spi.Connection, capability: str, purpose: str, *, wanted: bool = True) -> None:
    """Refuse what the broker behind a connection cannot do.

    Args:
        connection: The provider's connection.
        capability: The field of `spi.Capabilities`.
        purpose: What it is needed for.
        wanted: False if it is not needed after all.

    Raises:
        NotSupportedError: The broker lacks it.
    """
    if wanted and not getattr(connection.capabilities, capability):
        raise NotSupportedError(f"This broker has no {purpose}: it lacks the capability {capability}.")
