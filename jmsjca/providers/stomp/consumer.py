"""A STOMP consumer, its subscriptions and its deliveries: SUBSCRIBE, prefetch, return of messages, UNSUBSCRIBE."""

from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import accumulate, count, islice
from threading import Lock

from jmsjca.config import Clock
from jmsjca.destinations import Destination, Subscription
from jmsjca.errors import ConnectionLostError, IllegalStateError, JMSError
from jmsjca.messages import Message
from jmsjca.providers.common.consumer import BaseConsumer
from jmsjca.providers.stomp.dialect import INDIVIDUAL_ACK_PREFIX, Dialect, destination_of
from jmsjca.providers.stomp.protocol.frames import Frame
from jmsjca.providers.stomp.protocol.session import STOMPSession
from jmsjca.spi import Delivery, Order, Unit

__all__ = [
    "RenewingSubscription",
    "STOMPConsumer",
    "STOMPDelivery",
    "SubscriptionSet",
    "default_window",
    "return_by_nack",
    "round_trip",
]

_RENEWAL_SECONDS = 5.0  # only spares quiet consumers of slow brokers: the message returns to the broker at once

_TOPIC_WINDOW = 1000
_ORDERED_WINDOW = 1000
# Windows that may be in flight: brokers send more when they have read an acknowledgement, which counts here only when
# it is confirmed.
_SLACK_WINDOWS, _SLACK_MESSAGES, _SLACK_BYTES = 4, 1000, 16 * 1024 * 1024
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
        arrive: Called with received frames; returns how many messages are buffered, and their size in bytes.
        ack: The acknowledgement mode of SUBSCRIBE.
        window: The largest number of prefetched messages.
    """

    def __init__(
        self,
        session: STOMPSession,
        dialect: Dialect,
        source: Destination | Subscription,
        chosen: Mapping[str, str],
        arrive: Callable[[Sequence[Frame]], tuple[int, int]],
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

    def _subscribe(self, window: int) -> None:
        name = f"{'s' if self._ack == 'client' else INDIVIDUAL_ACK_PREFIX}{next(_numbers)}"
        headers = {"id": name, "ack": self._ack, **self._filter_headers}
        self._session.dispatcher.add_listener(name, self._on_arrival)
        self._window += window
        try:
            self._session.request("SUBSCRIBE", {**headers, **self._dialect.subscribe(self._source, window)})
        except JMSError:
            self._session.dispatcher.remove_listener(name)
            self._window -= window
            raise
        self._ids.append(name)

    def _on_arrival(self, frames: Sequence[Frame]) -> None:
        """Hand frames to the consumer. A broker that sends far more than the window would fill the memory."""
        held, size = self._on_frames(frames)
        if self._dialect.is_window_full(held - _SLACK_MESSAGES, size - _SLACK_BYTES, _SLACK_WINDOWS * self._window):
            self.abort(
                f"{held} messages wait for the consumer of {destination_of(self._source)}, and the broker sends"
                " far more than its window allows: the connection is ended before they fill the memory."
            )


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
        arrive: Callable[[Sequence[Frame]], tuple[int, int]],
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
        """Renew the subscription, unless a message arrived since the caller checked or the consumer is closed."""
        del wanted  # the window of this broker is unlimited
        with self._subscribing:
            if not self._stopped and self._starts_dropping():
                self._renew()

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

    def _on_frames_unless_renewing(self, frames: Sequence[Frame]) -> tuple[int, int]:
        with self._state:
            self._renewal_due = None
            dropping = self._dropping
        return (0, 0) if dropping else self._deliver(frames)


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


_OF_ONE_DELIVERY = {"subscription", "message-id", "ack", "redelivered"}


class STOMPDelivery:
    """A MESSAGE frame that a consumer received, decoded on first access.

    Args:
        frame: The frame.
        handle: Its place in the order of receipt.
        consumer: The consumer that received it.
        failures: How often it failed here, which the broker does not know.

    Attributes:
        size: Its size on the wire, in bytes.
        unit: The unit that took it; None until a unit takes it.
    """

    __slots__ = ("_failures", "_message", "consumer", "frame", "sequence", "size", "unit")

    def __init__(self, frame: Frame, sequence: int, consumer: "STOMPConsumer", failures: int = 0) -> None:
        self.frame = frame
        self.sequence = sequence
        self.size = frame.size
        self.consumer = consumer
        self.unit: Unit | None = None
        self._failures = failures
        self._message: Message | None = None

    @property
    def message(self) -> Message:
        """The message, decoded on first access; a body that cannot be decoded raises `MessageFormatError` here."""
        if self._message is None:
            told = {"delivery_count": self.count, "redelivered": self.redelivered}
            self._message = self.consumer.dialect.decode(self.frame, self.consumer.source, **told)
        return self._message

    @property
    def raw(self) -> bytes:
        """The body as received."""
        return self.frame.body

    @property
    def digest(self) -> str:
        """A digest of the body and of those headers that are the same for each delivery."""
        from hashlib import sha256  # loads OpenSSL, for few messages

        kept = sorted(item for item in self.frame.headers.items() if item[0] not in _OF_ONE_DELIVERY)
        return sha256(repr(kept).encode() + self.frame.body).hexdigest()

    @property
    def count(self) -> int:
        """Lower bound of the delivery count: over STOMP brokers report only whether it was delivered before."""
        return 1 + self._came_before + self._failures

    @property
    def redelivered(self) -> bool:
        """True if it was delivered before."""
        return self._came_before or self._failures > 0

    def drop_content(self) -> None:
        """Free the memory of the message and its body; its acknowledgement needs the headers."""
        self.frame = self.frame._replace(body=b"")
        self._message = None

    def for_redelivery(self, *, counted: bool) -> "STOMPDelivery":
        """Return the same message for another attempt; this delivery cannot be used afterwards."""
        return STOMPDelivery(self.frame, self.sequence, self.consumer, self._failures + counted)

    @property
    def _came_before(self) -> bool:
        return self.frame.headers.get("redelivered") == "true"


class STOMPConsumer(BaseConsumer[STOMPDelivery]):
    """A consumer that redelivers rolled-back and released messages itself: over STOMP none can be returned alone.

    Args:
        source: The destination that the messages come from.
        dialect: The dialect of the broker.
        supply: Opens the subscriptions, given the callback for their frames.
        order: The order in which deliveries are settled.
        max_bytes: The largest size of one chunk, in bytes on the wire.
        clock: Source of time.
    """

    def __init__(
        self,
        source: Destination,
        dialect: Dialect,
        supply: Callable[[Callable[[Sequence[Frame]], tuple[int, int]]], SubscriptionSet],
        *,
        order: Order,
        max_bytes: int,
        clock: Clock,
    ) -> None:
        super().__init__(order)
        self._max_bytes = max_bytes
        self._clock = clock
        self._sequence = count()
        self._unsubscribed = False
        self.source = source
        self.dialect = dialect
        self._subscriptions = supply(self._on_frames)

    def receive(self, limit: int, timeout: float | None) -> Sequence[STOMPDelivery]:
        """Return received messages up to a limit; wait for the first one.

        Args:
            limit: The largest number of messages.
            timeout: Seconds to wait; None waits forever, 0 does not wait.
        """
        deadline = None if timeout is None else self._clock.monotonic() + timeout
        while True:
            with self._changed:
                chunk = self._wait(limit, deadline)
            if chunk is not None:
                return chunk
            self._subscriptions.add_subscription(limit)

    def release(self, deliveries: Sequence[Delivery]) -> None:
        """Requeue deliveries that no unit took, without counting an attempt."""
        with self._changed:
            self._requeue([d for d in self._owned(deliveries) if d.unit is None])

    def drain(self) -> Sequence[STOMPDelivery]:
        """Return the messages that were in flight. The broker sends more after each settlement: STOMP has no drain."""
        self._subscriptions.barrier()
        with self._changed:
            self._check_connected()
            return self._buffer.take(len(self._buffer.ready))

    def close(self) -> None:
        """Requeue everything that no unit took; it returns to the broker when the last unit has ended."""
        with self._changed:
            if self.closed:
                return
            self.closed = True
            self._requeue(self._buffer.unassigned())
        self._unsubscribe_if_finished()

    def frames_to_acknowledge(self, deliveries: Sequence[STOMPDelivery]) -> Sequence[Frame]:
        """Return the frames to acknowledge in order to settle exactly these deliveries.

        Raises:
            IllegalStateError: The broker would also settle earlier messages that are not settled yet.
        """
        if not (self.order is Order.PREFIX and self.dialect.acks_cumulatively):
            return [d.frame for d in deliveries]
        ours = {d.sequence for d in deliveries}
        with self._changed:
            left = (*self._buffer.unsettled, *(d.sequence for d in islice(self._buffer.ready, 1)))
        if min((handle for handle in left if handle not in ours), default=max(ours)) < max(ours):
            raise IllegalStateError(
                "A message that came earlier is not settled yet, and this consumer settles in the order of receipt:"
                " commit that one's unit first, or make the consumer with Order.ANY or MIXED."
            )
        in_order = sorted(deliveries, key=lambda d: d.sequence)
        return list({d.frame.headers["subscription"]: d.frame for d in in_order}.values())

    def settle(self, deliveries: Sequence[STOMPDelivery]) -> None:
        """Forget deliveries that a unit settled, or lost with the connection."""
        self.forget(deliveries)
        self._unsubscribe_if_finished()

    def requeue(self, failed: Sequence[STOMPDelivery], unused: Sequence[STOMPDelivery]) -> None:
        """Requeue deliveries of a unit, the failed ones counted, and later ones with them where order must hold."""
        with self._changed:
            self._requeue(self._buffer.with_later([*failed, *unused]), {d.sequence for d in failed})
        self._unsubscribe_if_finished()

    def _on_frames(self, frames: Sequence[Frame]) -> tuple[int, int]:
        """Buffer messages; return how many are buffered, and their size in bytes without the largest new one."""
        deliveries = [STOMPDelivery(frame, place, self) for frame, place in zip(frames, self._sequence, strict=False)]
        with self._changed:
            self._buffer.append(deliveries)
            self._changed.notify_all()
            return len(self._buffer.ready), self._buffer.size - max([d.size for d in deliveries])

    def _wait(self, limit: int, deadline: float | None) -> Sequence[STOMPDelivery] | None:
        """Return a chunk, or None if the broker sends nothing more on the present subscriptions."""
        while True:
            if self._woken or self.closed:
                self._woken = False
                return []
            self._check_connected()
            remaining = None if deadline is None else deadline - self._clock.monotonic()
            chunk = self._buffer.take(self._messages_that_fit(limit))
            if chunk or (remaining is not None and remaining <= 0):
                return chunk
            if self._needs_subscription():
                return None
            self._changed.wait(self._subscriptions.wait_time(remaining))

    def _messages_that_fit(self, limit: int) -> int:
        """Return how many buffered messages make a chunk: at least one, whatever its size."""
        sizes = accumulate(d.size for d in islice(self._buffer.ready, limit))
        return min(limit, max(1, sum(size <= self._max_bytes for size in sizes)))

    def _needs_subscription(self) -> bool:
        held = self._buffer.unsettled
        if not held:
            return self._subscriptions.needs_renewal()
        return self._subscriptions.is_exhausted(len(held), sum(d.size for d in held.values()))

    def _requeue(self, deliveries: Sequence[STOMPDelivery], counted: Collection[int] = ()) -> None:
        self._buffer.requeue(deliveries, counted)
        self._changed.notify_all()

    def _unsubscribe_if_finished(self) -> None:
        with self._changed:
            stop = self.is_finished and not self._unsubscribed
            self._unsubscribed = self._unsubscribed or stop
        if stop:
            self._subscriptions.unsubscribe(self._buffered_frames)

    def _buffered_frames(self) -> list[Frame]:
        with self._changed:
            return [d.frame for d in self._buffer.ready]
