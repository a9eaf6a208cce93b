"""Consumers and producers around a current unit: what sessions and contexts have in common."""

from collections.abc import Generator
from contextlib import ExitStack, contextmanager, suppress
from typing import Self

from jmsjca.config import AcknowledgeMode
from jmsjca.destinations import Destination, DestinationKind, Subscription, TemporaryQueue, TemporaryTopic
from jmsjca.errors import ConnectionLostError
from jmsjca.messages import Message
from jmsjca.outbound.acknowledgement import acknowledging
from jmsjca.outbound.checks import require
from jmsjca.outbound.closing import Closing
from jmsjca.outbound.consumer import MessageConsumer
from jmsjca.outbound.gate import Gate
from jmsjca.outbound.ground import Ground
from jmsjca.outbound.making import Making
from jmsjca.outbound.modes import Mode
from jmsjca.outbound.subscribing import Subscribing
from jmsjca.outbound.transacted import Transacted

__all__ = ["BaseSession"]


class BaseSession(Making, Subscribing, Closing):
    """What a `Session` and a `JMSContext` have in common. For one thread at a time (JMS 3.1, section 6.2.5).

    A second thread that uses it, or what it made, at the same time gets an `IllegalStateError`. Any may close it.

    Args:
        ground: What the connection gives.
        transacted: True if what it receives and sends is committed together.
        acknowledge_mode: How receipt is acknowledged otherwise.
        mode: What these two amount to, if it is something else.

    Attributes:
        transacted: True if `commit` and `rollback` are yours to call.
        acknowledge_mode: How receipt is acknowledged otherwise.
    """

    def __init__(
        self, ground: Ground, *, transacted: bool, acknowledge_mode: AcknowledgeMode, mode: Mode | None = None
    ) -> None:
        if mode is None:
            mode = Transacted(ground.link) if transacted else acknowledging(acknowledge_mode, ground.link)
        self._ground = ground
        self._mode = mode
        self._gate = mode.gate
        self._sending = ground.hooks.sending(mode.send)
        self._consumers: list[MessageConsumer] = []
        self.transacted = transacted
        self.acknowledge_mode = acknowledge_mode

    @property
    def closed(self) -> bool:
        """True as soon as somebody began to close it."""
        return self._gate.closed

    def create_temporary_queue(self) -> TemporaryQueue:
        """Make a queue that lives as long as the connection, or until its ``delete()`` (JMS 3.1, section 6.2.2).

        Raises:
            NotSupportedError: The broker has none.
        """
        return TemporaryQueue(self._temporary("queue"), self._ground.link.remove)

    def create_temporary_topic(self) -> TemporaryTopic:
        """Make a topic that lives as long as the connection, or until its ``delete()`` (JMS 3.1, section 6.2.2).

        Raises:
            NotSupportedError: The broker has none.
        """
        return TemporaryTopic(self._temporary("topic"), self._ground.link.remove)

    @contextmanager
    def transaction(self) -> Generator[Self]:
        """Commit at the end of the block, roll back on an exception."""
        with self._gate:
            self._mode.check_commits()
        try:
            yield self
        except BaseException:
            if not self.closed and not self._gate.home.left:  # else who closes it does, or the parent
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
        with self._gate:
            self._mode.commit()

    def rollback(self) -> None:
        """Forget what was sent, and let what was received since the last commit come again."""
        with self._gate:
            self._mode.rollback()

    def recover(self) -> None:
        """Let everything that was received and not acknowledged come again, in order, counted (section 6.2.10).

        Under `AcknowledgeMode.AUTO` there is nothing; under ``DUPS_OK`` it is what was not acknowledged yet.

        Raises:
            IllegalStateError: The session is transacted: use `rollback`.
        """
        with self._gate:
            self._mode.recover()

    def acknowledge(self) -> None:
        """Acknowledge everything that was received, under `AcknowledgeMode.CLIENT` and ``INDIVIDUAL``.

        That holds for messages that could not be decoded, too. In other sessions it has no effect.
        """
        with self._gate:
            self._mode.acknowledge()

    def close(self) -> None:
        """Close consumers and roll back what is open (JMS 3.1, section 6.2.15). Closing twice does nothing.

        What is not acknowledged under `AcknowledgeMode.CLIENT` and ``INDIVIDUAL`` comes again, counted. Another thread
        may call it: a receive that waits returns None, and any other call is waited for.
        """
        if self._gate.closed or self._gate.home.left:
            return
        self._gate.closed = True
        for consumer in self._consumers:
            consumer.interrupt()
        # A lost connection has ended everything by itself: it comes again.
        with self._gate.left(), suppress(ConnectionLostError), ExitStack() as stack:
            for consumer in self._consumers:
                stack.callback(consumer.close)
            self._mode.close()

    def pause(self) -> None:
        """Return when no message is being handed over any more: the connection is stopped. For the connection."""
        for consumer in list(self._consumers):
            consumer.pause()

    def send(self, message: Message, to: Destination) -> None:
        """Send in the open unit, or in one of its own, inside all hooks. For producers, which have entered the gate."""
        self._sending(message, to)

    @property
    def gate(self) -> Gate:
        """What lets one thread in at a time. For producers."""
        return self._gate

    def _temporary(self, kind: DestinationKind) -> str:
        with self._gate:
            require(self._ground.link, "temporary", "temporary destinations")
            return self._ground.link.temporary(kind).name

    def _consume(
        self, source: Destination | Subscription, selector: str | None, *, no_local: bool = False
    ) -> MessageConsumer:
        with self._gate:
            self._mode.check_receives()
            require(self._ground.link, "selectors", "selectors", wanted=bool(selector))
            require(self._ground.link, "no_local", "no_local", wanted=no_local)
            supplier = self._ground.link.consumer(source, selector=selector, no_local=no_local, order=self._mode.order)
            consumer = MessageConsumer(
                supplier,
                self._mode,
                self._ground.flow,
                prefetch=self._ground.limits.chunk,
                selector=selector,
            )
            self._consumers = [c for c in self._consumers if not c.closed] + [consumer]
            return consumer

    def _check_open(self) -> None:
        self._gate.check_open()
