"""The polls of a connector: their schedule, their cycle, their session, and the in-progress destination."""

import queue
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, time
from functools import partial
from itertools import islice
from typing import TextIO, TypeAlias

from jmsjca import spi
from jmsjca.config import Limits
from jmsjca.config.clock import Clock
from jmsjca.connector.collaborations import BrokerSession
from jmsjca.connector.config import ConnectorConfig, InDoubtEvents
from jmsjca.connector.duplicate_elimination import DuplicateElimination
from jmsjca.connector.event_conversion import Event
from jmsjca.connector.event_flow import EventFlow, event_id_of
from jmsjca.connector.outcomes import DeliveryOutcome, ReturnCode
from jmsjca.connector.store_polling import StoredEvents
from jmsjca.destinations import Destination, Queue, Topic, destination
from jmsjca.errors import JMSError, MessageFormatError
from jmsjca.log_records import get_logger
from jmsjca.messages.delivery import PREFIX, vendor_names
from jmsjca.messages.message import Message
from jmsjca.outbound.connection import Connection
from jmsjca.outbound.consumer import MessageConsumer, PoppedDelivery, limit_prefetch, pop_delivery, receive_delivery
from jmsjca.outbound.factory import ConnectionFactory
from jmsjca.outbound.session import Session
from jmsjca.redelivery import MoveFacts, moved_copy

__all__ = [
    "POLL_LIMITS",
    "InProgress",
    "Keys",
    "PolledSession",
    "in_window",
    "key_polls",
    "poll_cycle",
    "polled_destinations",
    "timed_polls",
    "wait_for_window",
]

logger = get_logger("jmsjca.connector")


def poll_cycle(
    destinations: Sequence[str], poll_quantity: int, process_next: Callable[[str, int], DeliveryOutcome | None]
) -> ReturnCode:
    """Process up to `poll_quantity` messages of each destination, one per destination and turn.

    An empty destination is read again on each later turn. The cycle ends after `poll_quantity` turns, after a turn in
    which all destinations were empty, or at once when an outcome requires another return code than SUCCEED.

    Args:
        destinations: Names of the input destinations, in the order of their turns.
        poll_quantity: Largest number of messages of each destination.
        process_next: Reads and delivers the next message of a destination without waiting; it also gets the number of
            turns that are left, this one included. Returns None if the destination is empty. Its exceptions end the
            cycle.

    Returns:
        SUCCEED, also when no message was found, or the return code of the outcome that ended the cycle.
    """
    for turns in range(poll_quantity, 0, -1):
        found = False
        for each in destinations:
            outcome = process_next(each, turns)
            found = found or outcome is not None
            if outcome is not None and outcome.return_code is not ReturnCode.SUCCEED:
                return outcome.return_code
        if not found:
            break
    return ReturnCode.SUCCEED


_KEY = "p"
_SHORTEST_LOOK, _LONGEST_LOOK = 0.05, 60.0  # seconds between two looks at the time of day, outside of the window

Keys: TypeAlias = "queue.SimpleQueue[str | Exception]"
"""The lines of an operator; an empty one for the end of the input, and an exception for an input that failed."""


def in_window(now: time, start: time | None, end: time | None) -> bool:
    """Return whether polling is allowed at a time of day.

    Args:
        now: The time of day.
        start: The first time of the window.
        end: The first time after the window; before `start` for a window with midnight in it.

    Returns:
        True also if `start` or `end` is None, because half a window is ignored; and if both are the same.
    """
    if start is None or end is None or start == end:
        return True
    return start <= now < end if start < end else now >= start or now < end


def timed_polls(config: ConnectorConfig, pause: float, stopping: threading.Event, clock: Clock) -> Iterator[None]:
    """Yield for each poll, until the connector stops: at the start, and after a pause after each poll.

    Args:
        config: Names the window of the day; a pause that ends outside of it goes on until the window opens.
        pause: Seconds.
        stopping: Set when the connector stops.
        clock: The source of the time of day.
    """
    while wait_for_window(config, pause, stopping, clock):
        yield
        stopping.wait(pause)


def wait_for_window(config: ConnectorConfig, pause: float, stopping: threading.Event, clock: Clock) -> bool:
    """Wait until polling is allowed, and return True; False once the connector stops.

    Args:
        config: Names the window of the day.
        pause: Seconds after which the time of day is read again; from 0.05 to 60, whatever it is.
        stopping: Set when the connector stops.
        clock: The source of the time of day.
    """
    while not stopping.is_set():
        now = datetime.fromtimestamp(clock.now()).astimezone().time()
        if in_window(now, config.poll_start_time, config.poll_end_time):
            return True
        stopping.wait(min(max(pause, _SHORTEST_LOOK), _LONGEST_LOOK))
    return False


def key_polls(keyboard: TextIO, stopping: threading.Event, waiting: Keys) -> Iterator[None]:
    """Yield for each line ``p`` that an operator types, until the connector stops or the input ends.

    Args:
        keyboard: The input.
        stopping: Set when the connector stops.
        waiting: Gets the lines; an empty line, put by a stop, ends a wait.

    Raises:
        JMSError: The input cannot be read.
    """

    def read() -> None:
        """Read lines; in a thread, because a read cannot be interrupted."""
        try:
            for line in keyboard:
                waiting.put(line.rstrip("\r\n") + "\n")
        except Exception as error:  # noqa: BLE001  # `run` raises it; this thread has no caller
            waiting.put(error)
        waiting.put("")

    threading.Thread(target=read, name="jmsjca-connector-keys", daemon=True).start()
    while not stopping.is_set():
        line = waiting.get()
        if isinstance(line, Exception):
            raise JMSError(
                f"The keyboard cannot be read: {line}. Nothing polls any more: call run() again with an input of text."
            ) from line
        if not line:
            return
        if line.strip().lower() == _KEY:
            yield


_RUN = PREFIX + "ConnectorRun"
_NAME, _TYPE = PREFIX + "OriginalDestinationName", PREFIX + "OriginalDestinationType"
_ID = PREFIX + "OriginalJMSMessageID"
_ORIGINAL = tuple(
    spelling
    for name in ("OriginalDestinationName", "OriginalDestinationType", "OriginalTimestamp", "OriginalJMSMessageID")
    for spelling in vendor_names(name)
)
_ARRIVAL_TIMEOUT = 60.0  # seconds until a committed message arrives at the consumer of its sender


class InProgress:
    """The in-progress destination of one run of a connector, which is the time from its start to its end or restart.

    Each held message has the id of the run as a property. So a run delivers only its own messages, and the messages of
    earlier runs stay in the destination.

    Args:
        session: The transacted session of the connector.
        queue: The in-progress destination.
        reprocess: True to receive the messages of earlier runs.
        exact: True if the broker sends no more messages than it is asked for.

    Raises:
        NotSupportedError: The broker has no selectors.
    """

    def __init__(self, session: Session, queue: Destination, *, reprocess: bool, exact: bool) -> None:
        run = uuid.uuid4().hex
        self._session = session
        self._queue = queue
        self._run = run
        self._own = session.create_consumer(queue, f"{_RUN} = '{run}'")
        earlier = f"{_RUN} IS NULL OR {_RUN} <> '{run}'"
        self._earlier = session.create_consumer(queue, earlier) if reprocess else None
        self._producer = session.create_producer(queue)
        self._exact = exact
        self._held = 0  # moved messages that were not received again

    def hold(self, message: Message, origin: Destination) -> None:
        """Move a received message to the in-progress destination, in the open transaction of the session.

        Args:
            message: The message.
            origin: The input destination of the message.
        """
        copy = moved_copy(message, MoveFacts(origin, max(message.delivery_count - 1, 0)))
        copy.properties[_RUN] = self._run
        self._producer.send(copy, delivery_mode=copy.delivery_mode, priority=copy.priority)
        self._held += 1

    def held_events(self) -> Iterator[tuple[Event, PoppedDelivery]]:
        """Yield the events of the messages that were moved since the last call, from the in-progress destination.

        The move must be committed.

        Raises:
            JMSError: The broker does not deliver a held message.
        """
        held, self._held = self._held, 0
        for left in range(held, 0, -1):
            if self._exact:
                limit_prefetch(self._own, left)
            popped = pop_delivery(self._own, _ARRIVAL_TIMEOUT)
            if popped is None:
                raise JMSError(
                    f"The broker did not deliver {left} messages of {self._queue} within {_ARRIVAL_TIMEOUT:.0f} "
                    "seconds after they were moved there. They are delivered after a restart, as in_doubt_events says."
                )
            yield self._decoded(popped[0], popped[1].delivery), popped[1]

    def earlier_events(self, receive_timeout: float) -> Iterator[Event]:
        """Yield the events of earlier runs; each must be committed or rolled back before the next one.

        Nothing is received unless messages are to be reprocessed.

        Args:
            receive_timeout: Seconds to wait for each message.
        """
        while self._earlier is not None:
            received = receive_delivery(self._earlier, receive_timeout)
            if received is None:
                return
            yield self._earlier_event(*received)

    def is_empty(self) -> bool:
        """Return True if the in-progress destination has no message.

        Raises:
            NotSupportedError: The broker cannot browse.
        """
        with self._session.create_browser(Queue(self._queue.name)) as browser, suppress(MessageFormatError):
            return next(iter(browser), None) is None
        return False  # there is one, which cannot be decoded

    def _earlier_event(self, message: Message | MessageFormatError, delivery: spi.Delivery) -> Event:
        """Return the event of an earlier run. A message that cannot be decoded belongs to another program."""
        event = self._decoded(message, delivery)
        if event.damage is None:
            logger.info(
                "Message %s of %s is processed again: its delivery is in doubt.", event.message.message_id, self._queue
            )
        return event

    def _decoded(self, message: Message | MessageFormatError, delivery: spi.Delivery) -> Event:
        try:
            if isinstance(message, MessageFormatError):
                raise message
            return self._event(message, delivery)
        except MessageFormatError as error:
            return Event.undecodable(delivery.raw, self._queue, error)

    def _event(self, message: Message, delivery: spi.Delivery) -> Event:
        """Return the event of a held message: its copies have the origin of the message, not of the held copy."""
        properties = message.properties
        original = {name: properties[name] for name in _ORIGINAL if name in properties}
        event_id = original.get(_ID)
        return Event(
            message,
            self._origin(original),
            {**original, _RUN: None},
            event_id if isinstance(event_id, str) else message.message_id,
            raw=lambda: delivery.raw,
        )

    def _origin(self, original: Mapping[str, object]) -> Destination:
        name, kind = original.get(_NAME), str(original.get(_TYPE, ""))
        return (
            destination(name, "topic" if kind.endswith("Topic") else "queue")
            if isinstance(name, str) and name
            else self._queue
        )


# A prefetched message would be locked for the pause between two polls, and competing consumers would miss it; within a
# poll, `PolledSession` prefetches what the poll takes. A refused copy would keep its message, and all that wait behind
# it: SQLite, so the embedded broker too, stores no larger one.
POLL_LIMITS = Limits(prefetch_messages=0, message_bytes=1_000_000_000)
"""The bounds of the connections that receive events and send their copies."""
_LONGEST_PREFETCH = 10  # messages of a destination


class PolledSession:
    """A connection with one consumer per input destination. Like its session, it is for one thread at a time.

    Args:
        factory: Creates the connection.
        config: The configuration of the connector.
        flow: Delivers the events.
        is_stopping: Returns True once no further message may be received.
        store: The event store; None for messages only.
        one_by_one: True to commit after each event of the first poll: a poll failed, and one event may be the reason.
    """

    def __init__(
        self,
        factory: ConnectionFactory,
        config: ConnectorConfig,
        flow: EventFlow,
        is_stopping: Callable[[], bool],
        store: StoredEvents | None = None,
        *,
        one_by_one: bool = False,
    ) -> None:
        self._one_by_one = one_by_one
        self._store = store
        self._config = config
        self._flow = flow
        self._is_stopping = is_stopping
        self._factory = factory
        self._open: list[Connection] = []
        self._archive: BrokerSession | None = None
        self._in_progress: InProgress | None = None
        self._elimination: DuplicateElimination | None = None

    def open(self) -> None:
        """Connect, and create the consumers. Call `close` also after an error.

        Raises:
            JMSError: A connection or a consumer cannot be created.
        """
        config = self._config
        connection = self._connected(self._factory)
        if config.archival_connection_url is not None and config.archive_destination is not None:
            archival = self._connected(ConnectionFactory(config.archival_connection_url, limits=POLL_LIMITS))
            self._archive = BrokerSession(archival.create_session())
        connection.start()
        self._exact = connection.capabilities.exact_credit
        session = connection.create_session(transacted=True)
        if config.in_progress_destination is not None:
            reprocess = config.in_doubt_events is InDoubtEvents.REPROCESS
            self._in_progress = InProgress(
                session, config.in_progress_destination, reprocess=reprocess, exact=self._exact
            )
        self._consumers = {str(each): (each, _consumer(session, each)) for each in polled_destinations(config)}
        if config.duplicate_event_elimination and config.monitor_queue is not None:
            self._elimination = DuplicateElimination(
                connection, config.monitor_queue, config.duplicate_history, self._flow.resolver
            )
            self._one_by_one = self._one_by_one or self._elimination.has_in_doubt_events
        self._events = _Events(session, self._elimination)

    def poll(self) -> ReturnCode:
        """Deliver the in-doubt events to be reprocessed, the events of the store, and one cycle of the inputs.

        Events in doubt count as messages of each input: the inputs are read once fewer than the poll quantity are left.

        Raises:
            JMSError: The connection failed, or the broker refused an operation.
        """
        code = self._poll()
        if self._elimination is not None:
            self._elimination.remove_outdated()
        self._one_by_one = False
        return code

    def _poll(self) -> ReturnCode:
        code, processed = self._reprocess()
        if code is ReturnCode.SUCCEED and self._store is not None:
            code = self._store.poll(self._events, self._elimination, self._is_stopping)
        if code is not ReturnCode.SUCCEED:
            return code
        turns = self._config.poll_quantity - processed
        if self._one_by_one or not self._has_units:
            return poll_cycle(list(self._consumers), turns, self._process_next)
        collected: list[_Collected] = []
        code = poll_cycle(list(self._consumers), turns, partial(self._collect, collected))
        return code if self._is_stopping() else self._deliver(collected).return_code

    @property
    def _has_units(self) -> bool:
        """True if the events of a poll share their transactions.

        With an archive, an event is recorded as delivered before its message is removed, and the history may be short.
        """
        if self._elimination is not None:
            return self._config.archive_destination is None
        return self._in_progress is not None

    def has_in_doubt_events(self) -> bool:
        """Return True if the in-progress destination has messages, or the event store records in progress.

        Raises:
            NotSupportedError: The broker cannot browse.
        """
        if self._store is not None and self._store.has_in_doubt_events():
            return True
        return self._in_progress is not None and not self._in_progress.is_empty()

    def close(self) -> None:
        """Close the connections, which rolls back the open transaction. Errors of a lost connection are ignored."""
        for connection in self._open:
            with suppress(JMSError):
                connection.close()

    def _connected(self, factory: ConnectionFactory) -> Connection:
        self._open.append(factory.create_connection())
        return self._open[-1]

    def _reprocess(self) -> tuple[ReturnCode, int]:
        """Deliver up to the poll quantity of events in doubt; return how that ended, and their number."""
        processed = 0
        if self._in_progress is None or self._is_stopping():
            return ReturnCode.SUCCEED, processed
        events = self._in_progress.earlier_events(self._config.receive_timeout)
        for processed, event in enumerate(islice(events, self._config.poll_quantity), 1):
            outcome = self._process(event)
            if outcome.return_code is not ReturnCode.SUCCEED or self._is_stopping():
                return outcome.return_code, processed
        return ReturnCode.SUCCEED, processed

    def _process_next(self, name: str, turns: int) -> DeliveryOutcome | None:
        collected: list[_Collected] = []
        outcome = self._collect(collected, name, min(turns, _LONGEST_PREFETCH))
        delivered = self._deliver(collected)
        return outcome and delivered

    def _collect(self, collected: "list[_Collected]", name: str, turns: int) -> DeliveryOutcome | None:
        """Add the next message of a destination to those that are delivered together.

        Returns:
            SUCCEED if there is one; None if the destination is empty, or the connector stops.
        """
        if self._is_stopping():
            return None
        source, consumer = self._consumers[name]
        if self._exact:  # this poll takes all that are prefetched: none is locked during the pause after it
            limit_prefetch(consumer, turns)
        if self._in_progress is not None:
            received = receive_delivery(consumer, self._config.receive_timeout)
            return None if received is None else self._hold(self._in_progress, *received, source)
        popped = pop_delivery(consumer, self._config.receive_timeout)
        if popped is None:
            return None
        message, delivery = popped
        collected.append((_event(message, delivery.delivery, source), delivery))
        return DeliveryOutcome.SUCCEED

    def _hold(
        self,
        in_progress: InProgress,
        message: Message | MessageFormatError,
        delivery: spi.Delivery,
        source: Destination,
    ) -> DeliveryOutcome:
        """Move a message to the in-progress destination. A message that cannot be decoded is not in doubt."""
        try:
            if isinstance(message, MessageFormatError):
                raise message
            in_progress.hold(message, source)
        except MessageFormatError as error:  # also of a header, which the copy needs
            return self._process(Event.undecodable(delivery.raw, source, error))
        return DeliveryOutcome.SUCCEED

    def _deliver(self, collected: "Sequence[_Collected]") -> DeliveryOutcome:
        """Deliver events one by one, in one transaction, unless an event fails: that commits what was delivered so far.

        The end of a poll waits for held messages: they would be in doubt.
        """
        if self._in_progress is not None:
            self._events.commit()
            collected = list(self._in_progress.held_events())
        if len(collected) == 1:  # its transaction is its own, and a crash counts its delivery
            ((event, delivery),) = collected
            delivery.hand_over()
            with suppress(MessageFormatError):  # the event has the error
                delivery.take()
            return self._process(event)
        ids = [event_id_of(event) for event, _ in collected]
        if self._elimination is not None and not self._flow.receiver.transactional:
            self._elimination.begin(ids)
        outcome = DeliveryOutcome.SUCCEED
        for event, delivery in collected:
            if outcome.return_code is not ReturnCode.SUCCEED or (self._in_progress is None and self._is_stopping()):
                break
            delivery.hand_over()
            outcome = self._flow.process(self._events, event, self._elimination, self._archive, take=delivery.take)
        if self._elimination is not None:
            self._elimination.end(ids)
        self._events.commit()
        return outcome

    def _process(self, event: Event) -> DeliveryOutcome:
        return self._flow.process(self._events, event, self._elimination, self._archive)


class _Events(BrokerSession):
    """The session of the events. The end of a transaction also records the events that were delivered.

    Args:
        session: The transacted session.
        elimination: Eliminates duplicates; None for no elimination.
    """

    def __init__(self, session: Session, elimination: DuplicateElimination | None) -> None:
        super().__init__(session)
        self._session = session
        self._elimination = elimination
        self.commit, self.rollback = self._commit, self._rollback

    def _commit(self) -> None:
        if self._elimination is not None:
            self._elimination.record(self)
        self._session.commit()

    def _rollback(self) -> None:
        self._session.rollback()
        if self._elimination is not None:
            self._elimination.record()


_Collected: TypeAlias = tuple[Event, PoppedDelivery]
"""An event, and its delivery, which the session has not received yet."""


def polled_destinations(config: ConnectorConfig) -> Sequence[Destination]:
    """Return the destinations from which events are polled: the inputs, or the source of managed events."""
    managed = config.source_queue if config.container_managed_events else None
    return config.input_destination if managed is None else [managed]


def _event(message: Message | MessageFormatError, delivery: spi.Delivery, source: Destination) -> Event:
    """Return the event of a message of an input destination."""
    if isinstance(message, MessageFormatError):
        return Event.undecodable(delivery.raw, source, message)
    return Event(message, source, {}, raw=lambda: delivery.raw)


def _consumer(session: Session, source: Destination) -> MessageConsumer:
    if isinstance(source, Topic):
        return session.create_durable_consumer(source, source.name)
    return session.create_consumer(source)
