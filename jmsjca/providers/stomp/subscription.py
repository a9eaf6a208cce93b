"""The subscriptions of one consumer: SUBSCRIBE, UNSUBSCRIBE, renewal, and the return of messages."""

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

_RENEWAL_SECONDS = 5.0  # only spares quiet consumers of slow brokers: the message returns to the broker at once

_TOPIC_WINDOW = 1000
_ORDERED_WINDOW = 1000
_numbers = count(1)


class SubscriptionSet:
    """The subscriptions of one consumer: one at first, and more when the consumer of a queue exhausts its window.

    In STOMP the window of a subscription bounds the *unsettled* messages, and no frame widens it. A second subscription
    of the same queue does, and the broker continues in order. The consumer of a topic has no competitors, so its window
    is wide from the start.

    Args:
        session: The session.
        dialect: The dialect of the broker.
        source: The queue, topic or subscription.
        chosen: The SUBSCRIBE headers that select messages.
        arrive: Called with received frames.
        ack: The acknowledgement mode of SUBSCRIBE.
        window: The largest number of prefetched messages.
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
        self._open(max(window, 1) if self._widens else max(window, _TOPIC_WINDOW))

    def is_exhausted(self, held: int, size: int) -> bool:
        """Return True if the broker sends nothing more while `held` messages of `size` bytes are unsettled."""
        return self._widens and self._dialect.is_window_full(held, size, self._window)

    def needs_renewal(self) -> bool:
        """Return True if the subscription should be renewed now."""
        return False

    def wait_time(self, remaining: float | None) -> float | None:
        """Return the seconds that a consumer may wait before it checks again, of those that remain."""
        return remaining

    def add_subscription(self, wanted: int) -> None:
        """Add a subscription with a window for the wanted messages."""
        self._open(wanted)

    def barrier(self) -> None:
        """Wait for a receipt that the broker sends after everything in flight."""
        with self._session.exclusive_transaction(self._session.reply_timeout):
            round_trip(self._session)

    def unsubscribe(self, unsettled: Callable[[], Sequence[Frame]]) -> None:
        """Unsubscribe, which returns unsettled messages to the broker. If that fails, the connection ends."""
        try:
            if self._dialect.returns_by_nack:
                return_by_nack(self._session, self._dialect, self._ids, unsettled)
            else:
                self._send_unsubscribe()
        except JMSError as error:
            self._session.end(
                ConnectionLostError(f"Messages of a consumer could not be returned to the broker: {error}")
            )
        finally:
            self._remove_listeners()

    def abort(self, reason: str) -> None:
        """End the connection, so that the broker redelivers what it has sent to these subscriptions."""
        self._session.end(ConnectionLostError(reason))

    def _send_unsubscribe(self) -> None:
        self._remove_listeners()
        for name in self._ids:
            self._session.request("UNSUBSCRIBE", {"id": name})

    def _remove_listeners(self) -> None:
        for name in self._ids:
            self._session.dispatcher.remove_listener(name)

    def _open(self, window: int) -> None:
        """Subscribe. If that is not confirmed, the connection ends: the broker may have sent messages already."""
        try:
            self._subscribe(window)
        except ConnectionLostError as error:
            self._session.end(ConnectionLostError(f"A subscription was not confirmed: {error}"))
            raise
        except JMSError:
            raise
        except BaseException:  # of a signal handler: it may be subscribed, and not be known here
            self.abort("A signal handler interrupted a subscription.")
            raise

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
    """Return the default number of prefetched messages.

    Ordered messages need a single subscription. Its window bounds all unsettled messages, so it is wide.
    """
    return few if order is Order.ANY else max(few, _ORDERED_WINDOW)


class RenewingSubscription(SubscriptionSet):
    """A subscription of Open MQ that is renewed once if no message arrives within five seconds.

    The bridge creates a JMS consumer and then sets its listener. A first message that arrives in between stays with
    that consumer until another one arrives (MessageConsumerImpl.onMessage and setMessageListener, 6.5.1 and later).
    When the subscription ends, the message returns to the broker, which does not count it as delivered.

    Args:
        session: The session.
        dialect: The dialect of the broker.
        source: The queue or durable subscription; not a topic, which would lose messages
            that are published during the renewal.
        chosen: The SUBSCRIBE headers that select messages.
        arrive: Called with received frames.
        ack: The acknowledgement mode of SUBSCRIBE.
        window: The largest number of prefetched messages.
        clock: Source of time.
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
        )  # None: a message arrived, or it was renewed
        self._dropping = False
        self._stopped = False
        self._state = Lock()
        self._subscribing = Lock()  # held while subscribing and unsubscribing
        super().__init__(session, dialect, source, chosen, self._on_frames_unless_renewing, ack=ack, window=window)

    def wait_time(self, remaining: float | None) -> float | None:
        """Return the seconds that a consumer may wait before it checks again, of those that remain."""
        due = self._renewal_due
        if due is None:
            return remaining
        left = max(due - self._clock.monotonic(), 0)
        return left if remaining is None else min(left, remaining)

    def needs_renewal(self) -> bool:
        """Return True if it is time to renew the subscription."""
        due = self._renewal_due
        return due is not None and self._clock.monotonic() >= due

    def add_subscription(self, wanted: int) -> None:
        """Renew the subscription, unless a message has arrived meanwhile or the consumer is closed."""
        del wanted  # the window of this broker is unlimited
        with self._subscribing:
            try:
                if not self._stopped and self._starts_dropping():
                    self._renew()
            except BaseException:  # of a signal handler: without a subscription the next receive would wait forever
                self.abort("A signal handler interrupted the renewal of a subscription.")
                raise

    def unsubscribe(self, unsettled: Callable[[], Sequence[Frame]]) -> None:
        """Unsubscribe, and prevent further renewals."""
        with self._subscribing:
            self._stopped = True
            super().unsubscribe(unsettled)

    def _starts_dropping(self) -> bool:
        """Start dropping messages of the old subscription, which the new one receives again. False if not due."""
        with self._state:
            self._dropping = self._renewal_due is not None
            self._renewal_due = None
            return self._dropping

    def _renew(self) -> None:
        try:
            self._send_unsubscribe()  # when its receipt arrives, everything in flight has been dropped
            self._ids.clear()
            self._dropping = False
            window, self._window = self._window, 0
            self._subscribe(window)
        except JMSError as error:
            self._session.end(ConnectionLostError(f"A subscription could not be renewed: {error}"))

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
    """End subscriptions, and return to the broker all messages that they received or still receive.

    The broker looks up the subscription of each NACK, so each one is first replaced by another of the same name that
    receives nothing. At the commit, when the messages return, no subscription is left here that would receive them
    again.

    Args:
        session: The session.
        dialect: The dialect of the broker.
        names: The ids of the subscriptions.
        unsettled: Returns the frames that have been received and are not settled.
    """
    with session.exclusive_transaction(session.reply_timeout):
        session.send("BEGIN", _RETURN)
        for name in names:
            _park(session, dialect, name)
            frames = [frame for frame in unsettled() if frame.headers["subscription"] == name]
            session.request("UNSUBSCRIBE", {"id": name}, head=_nacks(session, dialect, frames))
        session.request("COMMIT", _RETURN)


def round_trip(session: STOMPSession) -> None:
    """Wait for a receipt that the broker sends after everything in flight."""
    session.send("BEGIN", _BARRIER)
    session.request("ABORT", _BARRIER)


def _park(session: STOMPSession, dialect: Dialect, name: str) -> None:
    """Replace a subscription by one of the same name that receives nothing.

    Both frames are one write: a message that the broker handled between them would belong to no subscription, and end
    the connection. Messages that it is sending by then arrive before the answer to the next request.
    """
    head = session.encode("UNSUBSCRIBE", {"id": name})
    session.request("SUBSCRIBE", {"id": name, **dialect.parking_subscription()}, head=head)
    round_trip(session)


def _nacks(session: STOMPSession, dialect: Dialect, frames: Sequence[Frame]) -> bytes:
    headers = ({**dialect.acknowledgement(frame), **_RETURN, "requeue": "true"} for frame in frames)
    return b"".join(session.encode("NACK", each) for each in headers)
