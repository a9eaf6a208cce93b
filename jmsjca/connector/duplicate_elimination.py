"""Duplicate event elimination: a monitor queue remembers the ids of the last delivered events.

An event with a remembered id is not delivered again. The queue has one message with all ids. If the collaboration is a
queue or topic, the transaction that delivers the events of a poll replaces this message. If it is a function, its
effects are outside of the transaction. So the events are recorded before the calls and after them: if the calls are
interrupted, the events are known to be in doubt. Outdated messages are removed several at a time, and all of them at
the end of a poll.
"""

import json
from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias, cast

from jmsjca.connector.business_objects import BusinessObject
from jmsjca.connector.collaborations import EVENT_ID_PROPERTY, BrokerSession, EventSession, Publish, Receiver
from jmsjca.connector.outcomes import DeliveryOutcome
from jmsjca.destinations import Destination, Queue
from jmsjca.errors import JMSError, excerpt
from jmsjca.log_records import get_logger
from jmsjca.messages.message import Message, TextMessage
from jmsjca.outbound.connection import Connection
from jmsjca.outbound.consumer import MessageConsumer, limit_prefetch
from jmsjca.outbound.session import Session

__all__ = ["DuplicateElimination", "EventStatus", "MonitorFailedError", "Resolver"]

logger = get_logger("jmsjca.connector")

_CHUNK = 10  # outdated messages that are removed together
_MOST_IN_DOUBT = 1000  # ids of interrupted calls, if their messages are not redelivered


class EventStatus(StrEnum):
    """The status of an event before its delivery."""

    NEW = "New"
    """It was not delivered, as far as the monitor queue goes back."""
    DUPLICATE = "Duplicate"
    """It was delivered."""
    IN_DOUBT = "In doubt"
    """Its delivery to a function began, and its end is unknown."""


Resolver: TypeAlias = Callable[[BusinessObject], EventStatus]
"""Decides about an event in doubt: NEW delivers it, DUPLICATE drops it, IN_DOUBT keeps it and ends the poll."""


class MonitorFailedError(JMSError):
    """The monitor queue cannot be read or written, so that duplicates cannot be recognised."""


@dataclass(frozen=True)
class _State:
    """The content of the message in the monitor queue.

    Attributes:
        sequence: The number of the message; the one with the highest number counts.
        delivered: The ids of the last delivered events, the latest one at the end.
        in_flight: The ids of the events that a function is processing.
    """

    sequence: int = 0
    delivered: tuple[str, ...] = ()
    in_flight: tuple[str, ...] = ()


class DuplicateElimination:
    """Delivers each event once, as far as its history reaches. For one connector at a time.

    Args:
        connection: The connection of the connector.
        queue: The monitor queue.
        history: The number of ids that are remembered.
        resolver: Decides about events in doubt; None delivers them, so that a function may get them twice.

    Raises:
        NotSupportedError: The broker has no transactions or cannot browse.
        MonitorFailedError: The queue has messages that are not of a connector.
    """

    def __init__(
        self,
        connection: Connection,
        queue: Destination,
        history: int,
        resolver: Resolver | None,
    ) -> None:
        self._queue = queue
        self._history = history
        self._resolver = resolver
        self._exact = connection.capabilities.exact_credit
        self._session = connection.create_session(transacted=True)
        self._sends = BrokerSession(self._session)
        states = _browsed(self._session, queue)
        self._state = max(states, key=lambda state: state.sequence, default=_State())
        self._in_doubt = set(self._state.in_flight)  # until the resolver decides
        self._delivered = dict.fromkeys(self._state.delivered)  # also in the open transaction of the caller
        self._ended: set[str] = set()  # the events of the transaction that a function does not process any more
        # The message that counts is never received, because a process that dies would leave it locked for a moment.
        self._outdated = max(len(states) - 1, 0)
        self._consumer: MessageConsumer | None = None

    def deliver(
        self, business_object: BusinessObject, receiver: Receiver, session: EventSession | None = None
    ) -> DeliveryOutcome | object:
        """Deliver an event unless it is a duplicate.

        Args:
            business_object: The event; without ``object_event_id`` it is always new.
            receiver: The collaboration.
            session: The session that sends to a queue or topic, in its transaction. The owner of the session calls
                `record` before the commit. None records the success at once.

        Returns:
            The outcome of the collaboration; SUCCEED for a duplicate, CONNECTOR_NOT_ACTIVE if it stays in doubt.

        Raises:
            MonitorFailedError: The monitor queue cannot be written; the event is delivered again later.
            Exception: The collaboration failed.
        """
        status = self.status(business_object.object_event_id)
        if status is EventStatus.IN_DOUBT:
            self._ended.add(business_object.object_event_id or "")  # unless it stays in doubt
            status = EventStatus.NEW if self._resolver is None else _resolved(self._resolver, business_object)
            logger.warning("Event %s was in doubt; it is treated as %s.", business_object.object_event_id, status)
        if status is EventStatus.IN_DOUBT:
            return DeliveryOutcome.CONNECTOR_NOT_ACTIVE
        self._in_doubt.discard(business_object.object_event_id or "")
        if status is EventStatus.DUPLICATE:
            logger.info("Event %s is a duplicate and is not delivered.", business_object.object_event_id)
            return DeliveryOutcome.SUCCEED
        deliver = self._deliver_in_transaction if receiver.transactional else self._deliver_to_function
        return deliver(business_object, receiver.publish, session)

    def status(self, event_id: str | None) -> EventStatus:
        """Return the status of an event."""
        if event_id is None:
            return EventStatus.NEW
        if event_id in self._delivered:
            return EventStatus.DUPLICATE
        return EventStatus.IN_DOUBT if event_id in self._in_doubt else EventStatus.NEW

    @property
    def has_in_doubt_events(self) -> bool:
        """True while an event of an interrupted call of an earlier run is in doubt."""
        return bool(self._in_doubt)

    def begin(self, event_ids: Iterable[str | None]) -> None:
        """Record that a function is about to process several events. Then each of them is not recorded by itself.

        Args:
            event_ids: Their ids; `end` gets the same.

        Raises:
            MonitorFailedError: The monitor queue cannot be written.
        """
        new = [each for each in event_ids if each is not None and self.status(each) is EventStatus.NEW]
        if new:
            earlier = self._state.in_flight[-_MOST_IN_DOUBT:]
            self._record(self._state.delivered, tuple(dict.fromkeys((*earlier, *new))))

    def end(self, event_ids: Iterable[str | None]) -> None:
        """Mark events as processed by a function. The next `record` writes this to the queue."""
        self._ended.update(each for each in event_ids if each is not None)

    def record(self, session: EventSession | None = None) -> None:
        """Record what was delivered since the last call, if anything was.

        Args:
            session: The session that the caller commits next; None records it at once.

        Raises:
            MonitorFailedError: The monitor queue cannot be written.
        """
        delivered = tuple(self._delivered)
        in_flight = self._without(self._ended - self._in_doubt)
        self._ended.clear()
        if (delivered, in_flight) != (self._state.delivered, self._state.in_flight):
            if session is not None:
                self.remove_outdated(_CHUNK)
            self._record(delivered, in_flight, session)

    def remove_outdated(self, at_least: int = 1) -> None:
        """Remove the outdated messages if there are enough of them. Keep the current message.

        Raises:
            MonitorFailedError: They cannot be removed.
        """
        if self._outdated >= at_least:
            try:
                self._receive_outdated()
                self._session.commit()
            except JMSError as error:
                raise self._failure(error) from error

    def _deliver_in_transaction(
        self, business_object: BusinessObject, publish: Publish, session: EventSession | None
    ) -> object:
        try:
            outcome = publish(session or self._sends, business_object)
        except Exception:
            self._session.rollback()
            raise
        self._delivered_one(business_object.object_event_id, at_once=session is None)
        return outcome

    def _deliver_to_function(
        self, business_object: BusinessObject, publish: Publish, session: EventSession | None
    ) -> object:
        event_id = business_object.object_event_id
        if event_id is not None:
            if event_id not in self._state.in_flight:
                self._record(self._state.delivered, (*self._state.in_flight, event_id))
            self._ended.add(event_id)
        outcome = publish(self._sends, business_object)
        if outcome is None or outcome is DeliveryOutcome.SUCCEED:
            self._delivered_one(event_id, at_once=session is None)
        return outcome

    def _delivered_one(self, event_id: str | None, *, at_once: bool) -> None:
        """Record a delivered event, at once or by the `record` before the commit of an open transaction."""
        if event_id is None:
            return
        self._delivered[event_id] = None
        for _ in range(len(self._delivered) - self._history):
            del self._delivered[next(iter(self._delivered))]
        if at_once:
            self._record((*self._state.delivered, event_id)[-self._history :], self._without({event_id}))

    def _without(self, ended: AbstractSet[str]) -> tuple[str, ...]:
        return tuple(each for each in self._state.in_flight if each not in ended)

    def _record(
        self, delivered: tuple[str, ...], in_flight: tuple[str, ...], session: EventSession | None = None
    ) -> None:
        """Send a new state: in the transaction of a session, which must be committed before the next call, or now."""
        state = _State(self._state.sequence + 1, delivered, in_flight)
        try:
            if session is not None:
                session.send(_message(state), self._queue)
            else:
                if self._outdated >= _CHUNK:
                    self._receive_outdated()
                self._sends.send(_message(state), self._queue)
                self._session.commit()
        except JMSError as error:
            raise self._failure(error) from error
        self._outdated += self._state.sequence > 0
        self._state = state

    def _receive_outdated(self) -> None:
        """Receive the outdated messages, which are the oldest ones; the next commit removes them."""
        if self._consumer is None:
            self._consumer = self._session.create_consumer(self._queue)
        while self._outdated:
            if self._exact:
                limit_prefetch(self._consumer, min(self._outdated, _CHUNK))
            if self._consumer.receive(0) is None:
                break
            self._outdated -= 1

    def _failure(self, error: JMSError) -> MonitorFailedError:
        return MonitorFailedError(f"The monitor queue {self._queue} cannot be updated: {error}")


def _resolved(resolver: Resolver, business_object: BusinessObject) -> EventStatus:
    """Return the status of an event in doubt. If the resolver fails, the event stays in doubt."""
    try:
        found = cast("object", resolver(business_object))  # the application's function may return anything
    except Exception:
        logger.exception("The resolver failed for event %s.", business_object.object_event_id)
        return EventStatus.IN_DOUBT
    if isinstance(found, EventStatus):
        return found
    logger.error("The resolver returned %.100r; it returns an EventStatus.", found)
    return EventStatus.IN_DOUBT


def _message(state: _State) -> Message:
    message = TextMessage(json.dumps([state.sequence, state.delivered, state.in_flight]))
    message.set_string_property(EVENT_ID_PROPERTY, next(reversed(state.in_flight or state.delivered), None))
    return message


def _browsed(session: Session, queue: Destination) -> list[_State]:
    with session.create_browser(Queue(queue.name)) as browser:
        return [_state(message, queue) for message in browser]


def _state(message: Message, queue: Destination) -> _State:
    try:
        sequence, delivered, in_flight = cast(
            "tuple[int, list[str], list[str] | str | None]", json.loads(message.get_body(str))
        )
        if isinstance(in_flight, str):  # of a release that recorded each call by itself
            in_flight = [in_flight]
        return _State(int(sequence), tuple(map(str, delivered)), tuple(map(str, in_flight or ())))
    except (ValueError, TypeError) as error:
        raise MonitorFailedError(
            f"Message {message.message_id} of the monitor queue {queue} is not of a connector ({excerpt(error, 100)}): "
            "the queue belongs to one connector alone. Remove the message."
        ) from error
