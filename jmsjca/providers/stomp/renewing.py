"""A subscription that is made again when nothing comes over it: the broker may keep its first message back."""

from collections.abc import Callable, Mapping, Sequence
from threading import Lock

from jmsjca.config import Clock
from jmsjca.destinations import Destination, Subscription
from jmsjca.errors import ConnectionLostError, JMSError
from jmsjca.providers.stomp.dialect import Dialect
from jmsjca.providers.stomp.frames import Frame
from jmsjca.providers.stomp.supply import Subscriptions
from jmsjca.providers.stomp.wire import Wire

__all__ = ["RenewedSubscriptions"]

_PATIENCE = 5.0  # seconds; the message is back at once, so this only spares quiet consumers of slow brokers


class RenewedSubscriptions(Subscriptions):
    """One of Open MQ's, made again once if nothing has come for five seconds.

    The bridge makes a JMS consumer and then sets its listener. If the first message comes just then, it stays with that
    consumer until another one comes (MessageConsumerImpl.onMessage and setMessageListener, 6.5.1 and later). When the
    subscription ends it goes back to the broker, which does not count it as delivered.

    Args:
        wire: The connection.
        dialect: What the broker calls things.
        source: What to subscribe to; not a topic, which would lose what is published meanwhile.
        chosen: The headers that say which messages.
        arrive: Takes the frames.
        ack: How they are acknowledged.
        window: How many messages may be taken ahead.
        clock: Where time comes from.
    """

    def __init__(
        self,
        wire: Wire,
        dialect: Dialect,
        source: Destination | Subscription,
        chosen: Mapping[str, str],
        arrive: Callable[[Sequence[Frame]], None],
        *,
        ack: str,
        window: int,
        clock: Clock,
    ) -> None:
        self._pass_on = arrive
        self._clock = clock
        self._due: float | None = clock.monotonic() + _PATIENCE  # None: something came, or it was made again
        self._dropping = False
        self._stopped = False
        self._state = Lock()
        self._turn = Lock()  # of what subscribes and unsubscribes
        super().__init__(wire, dialect, source, chosen, self._came, ack=ack, window=window)

    def patience(self, remaining: float | None) -> float | None:
        """How long a consumer may wait before it asks again, of the seconds that remain."""
        due = self._due
        if due is None:
            return remaining
        left = max(due - self._clock.monotonic(), 0)
        return left if remaining is None else min(left, remaining)

    def overdue(self) -> bool:
        """True if it is time to make it again."""
        due = self._due
        return due is not None and self._clock.monotonic() >= due

    def extend(self, wanted: int) -> None:
        """Make it again, unless something has come by now or nobody receives any more."""
        del wanted  # the broker sends all it has
        with self._turn:
            if not self._stopped and self._starts_dropping():
                self._renew()

    def stop(self, unsettled: Callable[[], Sequence[Frame]]) -> None:
        """Unsubscribe, for good."""
        with self._turn:
            self._stopped = True
            super().stop(unsettled)

    def _starts_dropping(self) -> bool:
        """What comes from now on over the old one comes again over the new one."""
        with self._state:
            self._dropping = self._due is not None
            self._due = None
            return self._dropping

    def _renew(self) -> None:
        try:
            self._unsubscribe()  # by its receipt, all that was on its way has been dropped
            self._ids.clear()
            self._dropping = False
            window, self._window = self._window, 0
            self._subscribe(window)
        except JMSError as error:
            self._wire.end(ConnectionLostError(f"A subscription could not be made again: {error}"))

    def _came(self, frames: Sequence[Frame]) -> None:
        with self._state:
            self._due = None
            dropping = self._dropping
        if not dropping:
            self._pass_on(frames)
