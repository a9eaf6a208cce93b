"""The subscriptions behind one consumer: SUBSCRIBE, UNSUBSCRIBE, renewal, and messages given back."""

from collections.abc import Callable, Mapping, Sequence
from itertools import count
from threading import Lock

from jmsjca.config import Clock
from jmsjca.destinations import Destination, Subscription
from jmsjca.errors import ConnectionLostError, JMSError
from jmsjca.providers.stomp.brokers.dialect import INDIVIDUALLY, Dialect
from jmsjca.providers.stomp.protocol.frames import Frame
from jmsjca.providers.stomp.protocol.session import Wire
from jmsjca.spi import Order

__all__ = ["RenewedSubscriptions", "Subscriptions", "return_by_nack", "round_trip", "taken_ahead"]

_PATIENCE = 5.0  # seconds; the message is back at once, so this only spares quiet consumers of slow brokers

_TOPIC_WINDOW = 1000
_ORDERED_WINDOW = 1000
_numbers = count(1)


class Subscriptions:
    """One subscription; more of them when a queue's consumer holds all that one may have, and asks for more.

    In STOMP a subscription's window is what may be *unsettled*, and nothing widens it. A second one of the same queue
    does, and the broker goes on in order. A topic's consumer competes with nobody, so its window is wide at once.

    Args:
        wire: The connection.
        dialect: What the broker calls things.
        source: What to subscribe to.
        chosen: The headers that say which messages.
        arrive: Takes the frames.
        ack: How they are acknowledged.
        window: How many messages may be taken ahead.
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
    ) -> None:
        self._wire = wire
        self._dialect = dialect
        self._source = source
        self._chosen = chosen
        self._ack = ack
        self._arrive = arrive
        self._ids: list[str] = []
        self._window = 0
        self._widens = not isinstance(source, Subscription)
        self._subscribe(max(window, 1) if self._widens else max(window, _TOPIC_WINDOW))

    def short(self, held: int, size: int) -> bool:
        """True if the broker sends no more as long as so many messages, of so many bytes, are unsettled."""
        return self._widens and self._dialect.is_full(held, size, self._window)

    def overdue(self) -> bool:
        """True if the broker should have sent something by now."""
        return False

    def patience(self, remaining: float | None) -> float | None:
        """How long a consumer may wait before it asks again, of the seconds that remain."""
        return remaining

    def extend(self, wanted: int) -> None:
        """Subscribe once more, with room for what is wanted."""
        self._subscribe(wanted)

    def barrier(self) -> None:
        """Wait for a receipt behind what was on its way."""
        with self._wire.turn(self._wire.reply_timeout):
            round_trip(self._wire)

    def stop(self, unsettled: Callable[[], Sequence[Frame]]) -> None:
        """Unsubscribe: the broker takes back what is not settled, or loses the connection, which gives it back too."""
        try:
            if self._dialect.returns_by_nack:
                return_by_nack(self._wire, self._dialect, self._ids, unsettled)
            else:
                self._unsubscribe()
        except JMSError as error:
            self._wire.end(ConnectionLostError(f"What a consumer had could not be given back: {error}"))
        finally:
            self._unlisten()

    def _unsubscribe(self) -> None:
        self._unlisten()
        for name in self._ids:
            self._wire.request("UNSUBSCRIBE", {"id": name})

    def _unlisten(self) -> None:
        for name in self._ids:
            self._wire.incoming.unlisten(name)

    def _subscribe(self, window: int) -> None:
        name = f"{'s' if self._ack == 'client' else INDIVIDUALLY}{next(_numbers)}"
        headers = {"id": name, "ack": self._ack, **self._chosen}
        self._wire.incoming.listen(name, self._arrive)
        try:
            self._wire.request("SUBSCRIBE", {**headers, **self._dialect.subscribe(self._source, window)})
        except JMSError:
            self._wire.incoming.unlisten(name)
            raise
        self._ids.append(name)
        self._window += window


def taken_ahead(order: Order, few: int) -> int:
    """How many messages are taken ahead unless somebody says so.

    What must stay in order comes over one subscription, whose window is all that may be unsettled; so it is wide.
    """
    return few if order is Order.ANY else max(few, _ORDERED_WINDOW)


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


_RETURN = {"transaction": "return"}
_BARRIER = {"transaction": "barrier"}


def return_by_nack(
    wire: Wire, dialect: Dialect, names: Sequence[str], unsettled: Callable[[], Sequence[Frame]]
) -> None:
    """End subscriptions, and return all that came or still comes over them.

    The broker looks a subscription up when it reads a NACK, so each one is first exchanged for another of the same name
    to which nothing is ever sent. By the commit, when messages go back, nobody is subscribed here who would get them
    again.

    Args:
        wire: The connection.
        dialect: What the broker calls things.
        names: The subscriptions.
        unsettled: Tells what has come up to now and is not settled.
    """
    with wire.turn(wire.reply_timeout):
        wire.tell("BEGIN", _RETURN)
        for name in names:
            _silence(wire, dialect, name)
            frames = [frame for frame in unsettled() if frame.headers["subscription"] == name]
            wire.request("UNSUBSCRIBE", {"id": name}, head=_nacks(wire, dialect, frames))
        wire.request("COMMIT", _RETURN)


def round_trip(wire: Wire) -> None:
    """Wait for a receipt behind all that was on its way."""
    wire.tell("BEGIN", _BARRIER)
    wire.request("ABORT", _BARRIER)


def _silence(wire: Wire, dialect: Dialect, name: str) -> None:
    """Let nothing more come.

    Both frames are one write: a message that the broker handles between them would belong to no subscription, and end
    the connection. What it has in hand by then comes before the answer to its next request.
    """
    head = wire.encode("UNSUBSCRIBE", {"id": name})
    wire.request("SUBSCRIBE", {"id": name, **dialect.silence()}, head=head)
    round_trip(wire)


def _nacks(wire: Wire, dialect: Dialect, frames: Sequence[Frame]) -> bytes:
    headers = ({**dialect.acknowledgement(frame), **_RETURN, "requeue": "true"} for frame in frames)
    return b"".join(wire.encode("NACK", each) for each in headers)
