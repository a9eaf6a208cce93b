"""The links that the units of a connection share: its senders, and the coordinator."""

import threading
from collections.abc import Callable, Collection
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, TypeVar

from jmsjca.config import Clock, Limits
from jmsjca.destinations import Destination
from jmsjca.errors import ConnectionLostError, JMSError
from jmsjca.providers.amqp.broker import AMQPBroker
from jmsjca.providers.amqp.codec import encode
from jmsjca.providers.amqp.coordinator import Coordinator
from jmsjca.providers.amqp.engine import Engine
from jmsjca.providers.amqp.senders import Outgoing, Senders
from jmsjca.providers.amqp.sending import Then
from jmsjca.providers.amqp.states import ACCEPTED
from jmsjca.providers.amqp.temporary import Temporaries

__all__ = ["Wire"]

T = TypeVar("T")


class Wire:
    """What units write with.

    Args:
        engine: The connection.
        clock: Tells the time from which a time to live counts.
        limits: The bounds.
        broker: What is at the other end.
        reply_timeout: Seconds to wait for the broker's answers.

    Attributes:
        temporaries: The temporary destinations of the connection.
        check: Raises `ConnectionLostError` if the connection is gone.
        mailbox: Its `error` tells that, too, and costs no call.
        committing: Held while a unit ends: two never overlap on a connection.
        closing: True once nothing new is to be begun.
    """

    def __init__(
        self, engine: Engine, clock: Clock, limits: Limits, broker: AMQPBroker, *, reply_timeout: float
    ) -> None:
        self._engine = engine
        self._clock = clock
        self._senders = Senders(engine, broker, reply_timeout)
        self._coordinator: Coordinator | None = None
        self.committing = threading.RLock()
        self.closing = False
        self.broker = broker
        self.check = engine.check
        self.mailbox = engine.mailbox
        self.temporaries = Temporaries(engine, reply_timeout)
        self.message_bytes = limits.message_bytes
        self.reply_timeout = reply_timeout

    def encode(self, message: Any, to: Destination) -> bytes:
        """Encode a message for a destination.

        Raises:
            InvalidDestinationError: It is a temporary one that this connection has removed.
        """
        if to.temporary:
            self.temporaries.check_not_removed(to)
        now = 0.0 if message.expiration is None else self._clock.now()
        return encode(message, to, now, self.broker.naming)

    def tell(self, function: Callable[[], None], reply: "Future[Any]") -> None:
        """Run a function on the engine's thread; the reply hears of it if that fails or is never done."""
        self._engine.tell(function, reply)

    def wait(self, reply: "Future[T]", timeout: float, what: str) -> T:
        """Wait for an answer of the broker."""
        return self._engine.wait(reply, timeout, what)

    def abort(self, error: JMSError) -> None:
        """Give the connection up."""
        self._engine.abort(error)

    def interrupt(self) -> None:
        """Give the connection up, as a unit was interrupted at its end: nobody knows how much of that is written."""
        self.abort(ConnectionLostError("The end of a unit was interrupted, by a signal handler for one."))

    def check_target(self, to: Destination) -> None:
        """Attach a sender to a destination.

        Raises:
            InvalidDestinationError: The broker does not let us send there.
        """
        self.check()
        with self.committing:
            self._senders.check(to, self.reply_timeout)

    def prepare(self, destinations: Collection[Destination], timeout: float) -> None:
        """Attach the senders that are missing.

        Args:
            destinations: Where to.
            timeout: Seconds to wait for each.

        Raises:
            InvalidDestinationError: The broker does not let us send there.
        """
        self.check()
        self._senders.prepare(destinations, timeout)

    def send(self, outgoing: Outgoing, transaction: bytes | None, timeout: float, then: Then | None = None) -> Any:
        """Send encoded messages, and wait until the broker took them all; then for what follows."""
        return self._senders.send(outgoing, transaction, timeout, then)

    def declare(self, timeout: float) -> bytes:
        """Begin a transaction."""
        if self._coordinator is None or self._coordinator.error is not None:
            coordinator = Coordinator(self._engine, self.reply_timeout)
            coordinator.attach(timeout)
            self._coordinator = coordinator
        return self._coordinator.declare(timeout)

    def check_coordinator(self) -> None:
        """Raise why the coordinator ended, if it did: then nothing can be committed."""
        if self._coordinator is not None and self._coordinator.error is not None:
            raise self._coordinator.error

    def discharge(self, transaction: bytes, reply: "Future[Any]", *, fail: bool = False) -> None:
        """End a transaction; the reply gets the broker's answer. On the engine's thread."""
        if self._coordinator is None:
            raise ConnectionLostError("There is no transaction to end.")
        self._coordinator.discharge(transaction, reply, fail=fail)

    def roll_back(self, transaction: bytes) -> bool:
        """End a transaction so that nothing of it happened; a lost connection does that, too.

        Returns:
            True if the broker says that it did.
        """
        reply: Future[Any] = Future()
        with suppress(JMSError):
            self.tell(lambda: self.discharge(transaction, reply, fail=True), reply)
            state, _ = self.wait(reply, self.reply_timeout, "a rollback")
            return bool(state == ACCEPTED)
        return False
