"""A session: consumers and producers around a current unit."""

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from threading import Event
from typing import Self

from jmsjca import spi
from jmsjca.config import AcknowledgeMode, Limits
from jmsjca.destinations import Destination, Queue, Subscription, Topic
from jmsjca.errors import IllegalStateError, InvalidClientIDError, TransactionRolledBackError
from jmsjca.messages import BytesMessage, Message, Outcome, TextMessage
from jmsjca.outbound.acknowledgement import Acknowledgement
from jmsjca.outbound.browser import QueueBrowser
from jmsjca.outbound.closing import Closing
from jmsjca.outbound.consumer import MessageConsumer
from jmsjca.outbound.producer import MessageProducer
from jmsjca.outbound.work import WorkUnit

__all__ = ["Session"]


class Session(Closing):
    """Made by `Connection.create_session`. For one thread at a time (JMS 3.1, section 6.2.5).

    A transacted session always has an open unit: what it receives and sends belongs to it until `commit` or
    `rollback` ends it and the next one begins. Otherwise each send and each acknowledgement is a unit of its own.

    Attributes:
        transacted: True if `commit` and `rollback` are yours to call.
        acknowledge_mode: How receipt is acknowledged otherwise.
    """

    def __init__(
        self,
        link: spi.Connection,
        *,
        transacted: bool,
        acknowledge_mode: AcknowledgeMode,
        client_id: str | None,
        limits: Limits,
        running: Event,
    ) -> None:
        self._link = link
        self._client_id = client_id
        self._limits = limits
        self._running = running
        self._work: WorkUnit | None = None
        self._joined = False
        self._consumers: list[MessageConsumer] = []
        self._acknowledgement = Acknowledgement(link, acknowledge_mode)
        self.transacted = transacted
        self.acknowledge_mode = acknowledge_mode
        self.closed = False

    @classmethod
    def joined_to(cls, link: spi.Connection, work: WorkUnit, limits: Limits) -> Self:
        """Make a session whose sends belong to a unit that somebody else settles: that of a delivery."""
        running = Event()
        running.set()
        session = cls(
            link, transacted=True, acknowledge_mode=AcknowledgeMode.AUTO, client_id=None, limits=limits, running=running
        )
        session._work, session._joined = work, True
        return session

    def create_producer(self, destination: Destination | None = None) -> MessageProducer:
        """Make a producer; without a destination each send names one."""
        self._check_open()
        return MessageProducer(self, destination)

    def create_consumer(
        self, source: Destination, selector: str | None = None, *, no_local: bool = False
    ) -> MessageConsumer:
        """Make a consumer of a queue, or of a topic from now on.

        Args:
            source: The queue or topic.
            selector: Only messages that match; needs the capability ``selectors``.
            no_local: True to be spared what this connection sends; needs the capability ``no_local``.
        """
        return self._consume(source, selector, no_local=no_local)

    def create_durable_consumer(
        self, topic: Topic, name: str, selector: str | None = None, *, no_local: bool = False
    ) -> MessageConsumer:
        """Make a consumer of a durable subscription, which keeps messages while nobody consumes.

        Args:
            topic: What is subscribed to.
            name: The subscription's name, unique within the client id.
            selector: Only messages that match.
            no_local: True to be spared what this connection sends.

        Raises:
            InvalidClientIDError: The connection has no client id.
        """
        return self._consume(Subscription(topic, name, self._needed_client_id()), selector, no_local=no_local)

    def create_browser(self, queue: Queue, selector: str | None = None) -> QueueBrowser:
        """Make a browser: iterate over it to look at what waits in a queue, without taking anything."""
        self._check_open()
        return QueueBrowser(self._link, queue, selector)

    def unsubscribe(self, topic: Topic, name: str) -> None:
        """Remove a durable subscription with what waits in it."""
        self._check_open()
        self._link.remove(Subscription(topic, name, self._needed_client_id()))

    def create_message(self, *, properties: Mapping[str, object] | None = None) -> Message:
        """Make a message without a body."""
        return Message(properties=properties)

    def create_text_message(
        self, body: str | None = None, *, properties: Mapping[str, object] | None = None
    ) -> TextMessage:
        """Make a text message."""
        return TextMessage(body, properties=properties)

    def create_bytes_message(
        self, body: bytes | None = None, *, properties: Mapping[str, object] | None = None
    ) -> BytesMessage:
        """Make a bytes message."""
        return BytesMessage(body, properties=properties)

    @contextmanager
    def transaction(self) -> Generator[Self]:
        """Commit at the end of the block, roll back on an exception."""
        self._check_transacted()
        try:
            yield self
        except BaseException:
            self.rollback()
            raise
        self.commit()

    def commit(self) -> None:
        """Acknowledge what was received and send what was sent since the last commit, together.

        Raises:
            IllegalStateError: The session is not transacted, or its unit is settled by the listener.
            TransactionRolledBackError: It did not happen.
            TransactionInDoubtError: It may or may not have happened.
        """
        self._check_transacted()
        if self._work is not None and self._work.rollback_only:
            self.rollback()
            raise TransactionRolledBackError(
                "The unit was rolled back: one of its messages demanded it (set_rollback_only)."
            )
        self._end(WorkUnit.commit)

    def rollback(self) -> None:
        """Forget what was sent, and let what was received since the last commit come again."""
        self._check_transacted()
        self._end(WorkUnit.rollback)

    def close(self) -> None:
        """Roll back what is open and close consumers. Closing twice does nothing."""
        if self.closed:
            return
        if self._work is not None and not self._joined:
            self.rollback()
        self._acknowledgement.give_up()
        self.closed = True
        for consumer in self._consumers:
            consumer.close()

    def send(self, message: Message, to: Destination) -> None:
        """Send in the open unit, or in one of its own. For producers."""
        self._check_open()
        if self.transacted:
            self._open_work().send(message, to)
        else:
            unit = self._link.unit(atomic=False)  # there is only one thing to do
            unit.send(message, to)
            unit.commit()

    def take(self, delivery: spi.Delivery) -> Message:
        """Hand a delivery over, acknowledged as the session's mode says. For consumers."""
        return self._open_work().take(delivery) if self.transacted else self._acknowledgement.received(delivery)

    def _consume(self, source: Destination | Subscription, selector: str | None, *, no_local: bool) -> MessageConsumer:
        self._check_open()
        if self._joined:
            raise IllegalStateError(
                "The session of a listener sends; it does not consume. Open a connection of your own."
            )
        supplier = self._link.consumer(source, selector=selector, no_local=no_local)
        consumer = MessageConsumer(self, supplier, self._running, self._limits.prefetch_messages)
        self._consumers = [c for c in self._consumers if not c.closed] + [consumer]
        return consumer

    def _open_work(self) -> WorkUnit:
        if self._work is None:
            self._work = WorkUnit.opened_on(self._link)
        return self._work

    def _end(self, how: Callable[[WorkUnit], None]) -> None:
        work, self._work = self._work, None
        if work is None:
            return
        try:
            how(work)
        finally:
            rolled_back = work.settlement.outcome is Outcome.ROLLED_BACK
            for consumer in self._consumers:
                consumer.unit_ended(rolled_back=rolled_back)

    def _needed_client_id(self) -> str:
        if not self._client_id:
            raise InvalidClientIDError(
                "A durable subscription belongs to a client id: give one to the ConnectionFactory (client_id=…)."
            )
        return self._client_id

    def _check_transacted(self) -> None:
        self._check_open()
        if self._joined:
            raise IllegalStateError(
                "This session belongs to a delivery: the handler's return commits, its exception rolls back."
            )
        if not self.transacted:
            raise IllegalStateError("This session is not transacted: create_session(transacted=True).")

    def _check_open(self) -> None:
        if self.closed:
            raise IllegalStateError("The session is closed.")
