"""The subscriptions behind one consumer: SUBSCRIBE, UNSUBSCRIBE, renewal, and messages given back."""

from collections.abc import Callable, Mapping, Sequence
from itertools import count
from threading import Lock

from jmsjca.config import Clock
from jmsjca.destinations import Destination, Subscription
from jmsjca.errors import ConnectionLostError, JMSError
from jmsjca.providers.stomp.brokers.dialect import INDIVIDUAL_ACK_PREFIX, Dialect
from jmsjca.providers.stomp.protocol.frames import Frame
from jmsjca.providers.stomp.protocol.session import STOMPSession
from jmsjca.spi import Order

__all__ = ["RenewingSubscription", "SubscriptionSet", "default_window", "return_by_nack", "round_trip"]

_RENEWAL_SECONDS = 5.0  # seconds; the message is back at once, so this only spares quiet consumers of slow brokers

_TOPIC_WINDOW = 1000
_ORDERED_WINDOW = 1000
_numbers = count(1)


class SubscriptionSet:
    """One subscription; more of them when a queue's consumer holds all that one may have, and asks for more.

    In STOMP a subscription's window is what may be *unsettled*, and nothing widens it. A second one of the same queue
    does, and the broker goes on in order. A topic's consumer competes with nobody, so its window is wide at once.

    Args:
        session: The connection.
        dialect: What the broker calls things.
        source: What to subscribe to.
        chosen: The headers that say which messages.
        arrive: Takes the frames.
        ack: How they are acknowledged.
        window: How many messages may be taken ahead.
    """

    def __init__(
        self,
        session: STOMPSession,
        dialect: Dialect,
        source: Destination | Subscription,
        chosen: Mapping[str, str],
        arrive: Callable[[Sequence[Frame]], None],
        *,
        ack: str,
        window: int,
    ) -> None:
        self._session = session
        self._dialect = dialect
        self._source = source
        self._filter_headers = chosen
        self._ack = ack
        self._on_frames = arrive
        self._ids: list[str] = []
        self._window = 0
        self._widens = not isinstance(source, Subscription)
        self._subscribe(max(window, 1) if self._widens else max(window, _TOPIC_WINDOW))

    def is_exhausted(self, held: int, size: int) -> bool:
        """True if the broker sends no more as long as so many messages, of so many bytes, are unsettled."""
        return self._widens and self._dialect.is_window_full(held, size, self._window)

    def needs_renewal(self) -> bool:
        """True if the broker should have sent something by now."""
        return False

    def wait_time(self, remaining: float | None) -> float | None:
        """How long a consumer may wait before it asks again, of the seconds that remain."""
        return remaining

    def add_subscription(self, wanted: int) -> None:
        """Subscribe once more, with room for what is wanted."""
        self._subscribe(wanted)

    def barrier(self) -> None:
        """Wait for a receipt behind what was on its way."""
        with self._session.exclusive_transaction(self._session.reply_timeout):
            round_trip(self._session)

    def unsubscribe(self, unsettled: Callable[[], Sequence[Frame]]) -> None:
        """Unsubscribe: the broker takes back what is not settled, or loses the connection, which gives it back too."""
        try:
            if self._dialect.returns_by_nack:
                return_by_nack(self._session, self._dialect, self._ids, unsettled)
            else:
                self._send_unsubscribe()
        except JMSError as error:
            self._session.end(ConnectionLostError(f"What a consumer had could not be given back: {error}"))
        finally:
            self._remove_listeners()

    def _send_unsubscribe(self) -> None:
        self._remove_listeners()
        for name in self._ids:
            self._session.request("UNSUBSCRIBE", {"id": name})

    def _remove_listeners(self) -> None:
        for name in self._ids:
            self._session.dispatcher.remove_listener(name)

    def _subscribe(self, window: int) -> None:
        name = f"{'s' if self._ack == 'client' else INDIVIDUAL_ACK_PREFIX}{next(_numbers)}"
        headers = {"id": name, "ack": self._ack, **self._filter_headers}
        self._session.dispatcher.add_listener(name, self._on_frames)
        try:
            self._session.request("SUBSCRIBE", {**headers, **self._dialect.subscribe(self._source, window)})
        except JMSError:
            self._session.dispatcher.remove_listener(name)
            raise
        self._ids.append(name)
        self._window += window


def default_window(order: Order, few: int) -> int:
    """How many messages are taken ahead unless somebody says so.

    What must stay in order comes over one subscription, whose window is all that may be unsettled; so it is wide.
    """
    return few if order is Order.ANY else max(few, _ORDERED_WINDOW)


class RenewingSubscription(SubscriptionSet):
    """One of Open MQ's, made again once if nothing has come for five seconds.

    The bridge makes a JMS consumer and then sets its listener. If the first message comes just then, it stays with that
    consumer until another one comes (MessageConsumerImpl.onMessage and setMessageListener, 6.5.1 and later). When the
    subscription ends it goes back to the broker, which does not count it as delivered.

    Args:
        session: The connection.
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
        session: STOMPSession,
        dialect: Dialect,
        source: Destination | Subscription,
        chosen: Mapping[str, str],
        arrive: Callable[[Sequence[Frame]], None],
        *,
        ack: str,
        window: int,
        clock: Clock,
    ) -> None:
        self._deliver = arrive
        self._clock = clock
        self._renewal_due: float | None = (
            clock.monotonic() + _RENEWAL_SECONDS
        )  # None: something came, or it was made again
        self._dropping = False
        self._stopped = False
        self._state = Lock()
        self._subscribing = Lock()  # of what subscribes and unsubscribes
        super().__init__(session, dialect, source, chosen, self._on_frames_unless_renewing, ack=ack, window=window)

    def wait_time(self, remaining: float | None) -> float | None:
        """How long a consumer may wait before it asks again, of the seconds that remain."""
        due = self._renewal_due
        if due is None:
            return remaining
        left = max(due - self._clock.monotonic(), 0)
        return left if remaining is None else min(left, remaining)

    def needs_renewal(self) -> bool:
        """True if it is time to make it again."""
        due = self._renewal_due
        return due is not None and self._clock.monotonic() >= due

    def add_subscription(self, wanted: int) -> None:
        """Make it again, unless something has come by now or nobody receives any more."""
        del wanted  # the broker sends all it has
        with self._subscribing:
            if not self._stopped and self._starts_dropping():
                self._renew()

    def unsubscribe(self, unsettled: Callable[[], Sequence[Frame]]) -> None:
        """Unsubscribe, for good."""
        with self._subscribing:
            self._stopped = True
            super().unsubscribe(unsettled)

    def _starts_dropping(self) -> bool:
        """What comes from now on over the old one comes again over the new one."""
        with self._state:
            self._dropping = self._renewal_due is not None
            self._renewal_due = None
            return self._dropping

    def _renew(self) -> None:
        try:
            self._send_unsubscribe()  # by its receipt, all that was on its way has been dropped
            self._ids.clear()
            self._dropping = False
            window, self._window = self._window, 0
            self._subscribe(window)
        except JMSError as error:
            self._session.end(ConnectionLostError(f"A subscription could not be made again: {error}"))

    def _on_frames_unless_renewing(self, frames: Sequence[Frame]) -> None:
        with self._state:
            self._renewal_due = None
            dropping = self._dropping
        if not dropping:
            self._deliver(frames)


_RETURN = {"transaction": "return"}
_BARRIER = {"transaction": "barrier"}


def return_by_nack(
    session: STOMPSession, dialect: Dialect, names: Sequence[str], unsettled: Callable[[], Sequence[Frame]]
) -> None:
    """End subscriptions, and return all that came or still comes over them.

    The broker looks a subscription up when it reads a NACK, so each one is first exchanged for another of the same name
    to which nothing is ever sent. By the commit, when messages go back, nobody is subscribed here who would get them
    again.

    Args:
        session: The connection.
        dialect: What the broker calls things.
        names: The subscriptions.
        unsettled: Tells what has come up to now and is not settled.
    """
    with session.exclusive_transaction(session.reply_timeout):
        session.send("BEGIN", _RETURN)
        for name in names:
            _park(session, dialect, name)
            frames = [frame for frame in unsettled() if frame.headers["subscription"] == name]
            session.request("UNSUBSCRIBE", {"id": name}, head=_nacks(session, dialect, frames))
        session.request("COMMIT", _RETURN)


def round_trip(session: STOMPSession) -> None:
    """Wait for a receipt behind all that was on its way."""
    session.send("BEGIN", _BARRIER)
    session.request("ABORT", _BARRIER)


def _park(session: STOMPSession, dialect: Dialect, name: str) -> None:
    """Let nothing more come.

    Both frames are one write: a message that the broker handles between them would belong to no subscription, and end
    the connection. What it has in hand by then comes before the answer to its next request.
    """
    head = session.encode("UNSUBSCRIBE", {"id": name})
    session.request("SUBSCRIBE", {"id": name, **dialect.parking_subscription()}, head=head)
    round_trip(session)


def _nacks(session: STOMPSession, dialect: Dialect, frames: Sequence[Frame]) -> bytes:
    headers = ({**dialect.acknowledgement(frame), **_RETURN, "requeue": "true"} for frame in frames)
    return b"".join(session.encode("NACK", each) for each in headers)
