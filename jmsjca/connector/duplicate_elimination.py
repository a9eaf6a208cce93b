"""Duplicate event elimination: a monitor queue remembers the ids of the last delivered events.

An event that is there is not delivered again. The queue has one message with the ids. It is replaced in the transaction
that delivers the event to a queue or topic. A function is no part of that transaction: its call is recorded before and
after, so that an event is known to be in doubt if the call was interrupted. Outdated messages are removed several at a
time, and all of them at the end of a poll.
"""

import json
from collections.abc import Callable, Sequence
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
        in_flight: The id of the event that a function is processing; None for none.
    """

    sequence: int = 0
    delivered: tuple[str, ...] = ()
    in_flight: str | None = None


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
            session: The session that records the success of the event with its next commit, beside what a queue or
                topic gets; None records it at once.

        Returns:
            The outcome of the collaboration; SUCCEED for a duplicate, CONNECTOR_NOT_ACTIVE if it stays in doubt.

        Raises:
            MonitorFailedError: The monitor queue cannot be written; the event is delivered again later.
            Exception: The collaboration failed.
        """
        status = self.status(business_object.object_event_id)
        if status is EventStatus.IN_DOUBT:
            status = EventStatus.NEW if self._resolver is None else _resolved(self._resolver, business_object)
            logger.warning("Event %s was in doubt; it is treated as %s.", business_object.object_event_id, status)
        if status is EventStatus.IN_DOUBT:
            return DeliveryOutcome.CONNECTOR_NOT_ACTIVE
        if status is EventStatus.DUPLICATE:
            logger.info("Event %s is a duplicate and is not delivered.", business_object.object_event_id)
            return DeliveryOutcome.SUCCEED
        deliver = self._deliver_in_transaction if receiver.transactional else self._deliver_to_function
        return deliver(business_object, receiver.publish, session)

    def status(self, event_id: str | None) -> EventStatus:
        """Return the status of an event."""
        if event_id is None:
            return EventStatus.NEW
        if event_id in self._state.delivered:
            return EventStatus.DUPLICATE
        return EventStatus.IN_DOUBT if event_id == self._state.in_flight else EventStatus.NEW

    def remove_outdated(self, at_least: int = 1) -> None:
        """Remove all messages but the one that counts, if there are so many.

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
        if session is not None:
            self.remove_outdated(_CHUNK)
        try:
            outcome = publish(session or self._sends, business_object)
        except Exception:
            self._session.rollback()
            raise
        self._record(self._with(business_object.object_event_id), None, session)
        return outcome

    def _deliver_to_function(
        self, business_object: BusinessObject, publish: Publish, session: EventSession | None
    ) -> object:
        event_id = business_object.object_event_id
        self._record(self._state.delivered, event_id)
        try:
            outcome = publish(self._sends, business_object)
        except Exception:
            self._record(self._state.delivered, None)
            raise
        if outcome is None or outcome is DeliveryOutcome.SUCCEED:
            self._record(self._with(event_id), None, session)
        else:
            self._record(self._state.delivered, None)
        return outcome

    def _with(self, event_id: str | None) -> tuple[str, ...]:
        if event_id is None:
            return self._state.delivered
        return (*self._state.delivered, event_id)[-self._history :]

    def _record(self, delivered: Sequence[str], in_flight: str | None, session: EventSession | None = None) -> None:
        """Send a new state: in the transaction of a session, which must be committed before the next call, or now."""
        state = _State(self._state.sequence + 1, tuple(delivered), in_flight)
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
    """Return the status of an event in doubt. A resolver that fails has decided nothing, so it stays in doubt."""
    try:
        found = cast("object", resolver(business_object))  # that of an application may return anything
    except Exception:
        logger.exception("The resolver failed for event %s.", business_object.object_event_id)
        return EventStatus.IN_DOUBT
    if isinstance(found, EventStatus):
        return found
    logger.error("The resolver returned %.100r; it returns an EventStatus.", found)
    return EventStatus.IN_DOUBT


def _message(state: _State) -> Message:
    message = TextMessage(json.dumps([state.sequence, state.delivered, state.in_flight]))
    last = state.in_flight or (state.delivered[-1] if state.delivered else None)
    message.set_string_property(EVENT_ID_PROPERTY, last)
    return message


def _browsed(session: Session, queue: Destination) -> list[_State]:
    with session.create_browser(Queue(queue.name)) as browser:
        return [_state(message, queue) for message in browser]


def _state(message: Message, queue: Destination) -> _State:
    try:
        sequence, delivered, in_flight = cast("tuple[int, list[str], str | None]", json.loads(message.get_body(str)))
        return _State(int(sequence), tuple(map(str, delivered)), in_flight)
    except (ValueError, TypeError) as error:
        raise MonitorFailedError(
            f"Message {message.message_id} of the monitor queue {queue} is not of a connector ({excerpt(error, 100)}): "
            "the queue belongs to one connector alone. Remove the message."
        ) from error
