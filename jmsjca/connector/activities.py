"""The activities of Jitterbit's JMS connector: listen, acknowledge, poll, browse and send, with their defaults.

::

    activities = Activities(adapter)
    activities.listen(
        "orders",
        lambda response: book(response.payload),
        on_success=activities.acknowledging("JBXCommit"),
        on_failure=activities.acknowledging("JBXRollback"),
    )
"""

import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from threading import Event, Lock, Thread
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self

from jmsjca.arguments import TIMEOUT, Constraint, check
from jmsjca.config.clock import SYSTEM_CLOCK
from jmsjca.config.limits import AcknowledgeMode
from jmsjca.connector.collaborations import FUNCTION, FUNCTION_OR_NONE
from jmsjca.destinations import Destination, Queue, Topic
from jmsjca.errors import (
    ConfigurationError,
    ConnectionLostError,
    IllegalStateError,
    InvalidArgumentError,
    JMSError,
    TransactionInDoubtError,
)
from jmsjca.inbound.delay_queue import DelayQueue
from jmsjca.inbound.endpoint import several_deliveries
from jmsjca.log_records import get_logger
from jmsjca.messages.delivery import Outcome, Settlement, complete_settlement
from jmsjca.messages.message import DeliveryMode, Message
from jmsjca.outbound.connection import Connection
from jmsjca.outbound.consumer import MessageConsumer
from jmsjca.outbound.sender import SendOptions
from jmsjca.outbound.session import Session

if TYPE_CHECKING:
    from jmsjca.adapter import ResourceAdapter
    from jmsjca.config.activation_spec import ListenerFields
    from jmsjca.inbound.activation import Activation

__all__ = [
    "Activities",
    "HeldPoll",
    "HeldPolls",
    "ListenResponse",
    "MessageType",
    "Operation",
    "PollResponse",
    "close_settled",
    "commit_poll",
    "create_poll_session",
    "destination_of_kind",
    "is_rollback",
    "polled_messages",
    "queue_of",
    "response_of",
    "waiting_messages",
]

logger = get_logger("jmsjca.connector")

_MAX_LATE = 1000  # consecutive messages; one alone may have a higher priority than others that waited
_MAX_UNDATED = 10_000  # messages without JMSTimestamp, of which nothing shows whether they waited

_COMMIT, _ROLLBACK = "jbxcommit", "jbxrollback"


def queue_of(queue: object) -> Queue:
    """Return the queue of a listen, poll or browse activity.

    Raises:
        ArgumentTypeError: The argument is neither a queue nor the name of a queue.
    """
    found: str | Queue = _CONSTRAINTS["queue"]("queue", queue)
    return Queue(found) if isinstance(found, str) else found


def destination_of_kind(destination: str | Destination, kind: object) -> Destination:
    """Return the destination of a send activity.

    Args:
        destination: The destination, or its name.
        kind: ``queue`` or ``topic``, for a name.

    Raises:
        ConfigurationError: The kind is another one.
    """
    if kind not in {"queue", "topic"}:
        raise ConfigurationError(f"destination_type is 'queue' or 'topic', not {kind!r:.50}.")
    if not isinstance(destination, str):
        return destination
    return Topic(destination) if kind == "topic" else Queue(destination)


def is_rollback(action: object) -> bool:
    """Return whether an action is a rollback, and not a commit.

    Raises:
        ConfigurationError: It is neither of the two.
    """
    name = action.lower() if isinstance(action, str) else action
    if name not in {_COMMIT, _ROLLBACK}:
        raise ConfigurationError(f"The action is 'JBXCommit' or 'JBXRollback', not {action!r:.50}.")
    return name == _ROLLBACK


_NUMBER_OF_MESSAGES = Constraint[int](
    "a number of messages, from 0 on", int, fits=lambda number: number >= 0, error=InvalidArgumentError
)
_CONSTRAINTS: dict[str, Constraint[Any]] = {
    "message_type": Constraint(
        "'TEXT' or 'BYTE'", fits=lambda kind: kind in ("TEXT", "BYTE"), misfit=ConfigurationError
    ),
    "operation": FUNCTION,
    "on_success": FUNCTION_OR_NONE,
    "on_failure": FUNCTION_OR_NONE,
    "batch_size": _NUMBER_OF_MESSAGES,
    "messages_to_receive": _NUMBER_OF_MESSAGES,
    "messages_to_browse": _NUMBER_OF_MESSAGES,
    "acknowledgement_timeout": TIMEOUT,
    "payload": Constraint("text or bytes", (str, bytes)),
    "message_id": Constraint("the message_id of a response", str),
    "request": Constraint("a dict with AcknowledgmentAction and AcknowledgmentMessageID", Mapping),
    "queue": Constraint("a name or a Queue(…); ResourceAdapter.activate consumes topics", (str, Queue)),
}


class HeldPoll:
    """The open session of a poll. Its messages are locked until it is settled.

    Args:
        connection: The connection of the poll, which is closed with it.
        session: The session, of `create_poll_session`.

    Attributes:
        settled: Set when the poll is settled.
    """

    def __init__(self, connection: Connection, session: Session) -> None:
        self._connection = connection
        self._session = session
        self.settled = Event()

    def settle(self, *, roll_back: bool) -> Settlement:
        """Commit or roll back, and close the connection.

        Args:
            roll_back: True returns the messages to the queue.

        Returns:
            The settlement, which has its outcome already.
        """
        self.settled.set()
        settlement = Settlement()
        complete_settlement(settlement, self._finish(roll_back=roll_back))
        return settlement

    def _finish(self, *, roll_back: bool) -> Outcome:
        try:
            if roll_back:
                if self._session.transacted:
                    self._session.rollback()
                return Outcome.ROLLED_BACK  # at the latest the end of the connection releases the messages
            commit_poll(self._session)
        except TransactionInDoubtError:
            return Outcome.IN_DOUBT
        except ConnectionLostError:
            return Outcome.LOST
        except JMSError:
            return Outcome.ROLLED_BACK
        finally:
            close_settled(self._connection)
        return Outcome.COMMITTED


def create_poll_session(connection: Connection) -> Session:
    """Return a session that keeps messages locked until `commit_poll`, also on a broker without transactions."""
    if connection.capabilities.atomic:
        return connection.create_session(transacted=True)
    return connection.create_session(acknowledge_mode=AcknowledgeMode.CLIENT)


def commit_poll(session: Session) -> None:
    """Remove the received messages from their queue.

    Raises:
        TransactionInDoubtError: They may have been removed.
        JMSError: The broker refuses, or cannot be reached.
    """
    if session.transacted:
        session.commit()
    else:
        session.acknowledge()


def close_settled(connection: Connection) -> None:
    """Close the connection of settled messages. An error changes nothing of that, so it is logged."""
    try:
        connection.close()
    except JMSError as error:
        logger.warning("The connection of a poll could not be closed: %s", error)


def polled_messages(consumer: MessageConsumer, limit: int, timeout: float | None) -> Iterator[Message]:
    """Yield the messages of one poll.

    Args:
        consumer: The consumer.
        limit: The maximum number; 0 for all that were waiting when the first one was received.
        timeout: Seconds to wait for the first message; None waits forever. Nothing waits for further messages.
    """
    messages = _received(consumer, timeout)
    return islice(messages, limit) if limit else waiting_messages(messages)


def _received(consumer: MessageConsumer, timeout: float | None) -> Iterator[Message]:
    message = consumer.receive(timeout=timeout)
    while message is not None:
        yield message
        message = consumer.receive(timeout=0)


def waiting_messages(messages: Iterable[Message]) -> Iterator[Message]:
    """Yield messages until enough show that all those were read that were waiting: a queue may never be empty.

    Args:
        messages: The messages of a queue, as they are received or browsed.
    """
    began: datetime | None = None
    late = undated = 0
    for message in messages:
        yield message
        began = began or datetime.fromtimestamp(SYSTEM_CLOCK.now(), UTC)
        undated += message.timestamp is None
        late = late + 1 if message.timestamp is not None and message.timestamp > began else 0
        if late >= _MAX_LATE or undated >= _MAX_UNDATED:
            return


class HeldPolls:
    """The polls that are not acknowledged yet. Thread-safe."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._held: dict[str, HeldPoll] = {}

    def hold(self, acknowledge_id: str, connection: Connection, session: Session, timeout: float | None) -> None:
        """Hold the messages of a session.

        Args:
            acknowledge_id: Their id.
            connection: The connection of the session.
            session: The session.
            timeout: Seconds after which the session is rolled back; None for never.
        """
        poll = HeldPoll(connection, session)
        with self._lock:
            self._held[acknowledge_id] = poll
        if timeout is not None:
            due = DelayQueue[str](SYSTEM_CLOCK)
            due.put(acknowledge_id, timeout)
            Thread(target=self._wait, args=(due, poll), name="jmsjca-held-poll", daemon=True).start()

    def take(self, acknowledge_id: str) -> HeldPoll | None:
        """Remove a poll, for the one caller who settles it; None if it is not held."""
        with self._lock:
            return self._held.pop(acknowledge_id, None)

    def close(self) -> None:
        """Roll back all polls."""
        for acknowledge_id in list(self._held):
            self._expire(acknowledge_id)

    def _wait(self, due: DelayQueue[str], poll: HeldPoll) -> None:
        """Roll a poll back at its deadline, unless it is settled before. Runs on a separate thread."""
        while not poll.settled.wait(due.time_to_next(None)):
            for acknowledge_id in due.pop_due():
                self._expire(acknowledge_id)

    def _expire(self, acknowledge_id: str) -> None:
        poll = self.take(acknowledge_id)
        if poll is not None:
            poll.settle(roll_back=True)


MessageType = Literal["TEXT", "BYTE"]
"""The kind of the payload: text, or bytes."""


@dataclass(frozen=True)
class ListenResponse:
    """A message as a listen activity hands it to an operation.

    Attributes:
        payload: The body: text, or bytes with the message type "BYTE".
        message: The message, with headers and properties.
        message_id: The JMS message id; None if the message has none.
        acknowledge_id: The id of the unit of the message, for `Activities.acknowledge`; None without a transacted
            session. All messages of a batch have the same one.
    """

    payload: str | bytes
    message: Message
    message_id: str | None
    acknowledge_id: str | None

    @property
    def delivery_id(self) -> str | None:
        """The id of this delivery of the message, for `Activities.acknowledge`; None without a transacted session.

        A redelivery of the message has the same message id, and another delivery id.
        """
        return self.message.delivery_id


@dataclass(frozen=True)
class PollResponse:
    """The messages of one poll.

    Attributes:
        responses: The messages, in the order of the queue; empty if none was waiting.
        acknowledge_id: The id with which `Activities.acknowledge` settles all of them; None if nothing waits for an
            acknowledgement: the session was not transacted, or the queue was empty.
    """

    responses: Sequence[ListenResponse]
    acknowledge_id: str | None


def response_of(message: Message, message_type: MessageType, acknowledge_id: str | None) -> ListenResponse:
    """Return the response for a message.

    Args:
        message: The received message.
        message_type: The kind of payload that the activity wants.
        acknowledge_id: The id of the message's unit; None if it needs no acknowledgement.

    Raises:
        MessageFormatError: The body is of another kind.
    """
    payload = message.get_body(str) if message_type == "TEXT" else message.get_body(bytes)
    return ListenResponse(payload, message, message.message_id, acknowledge_id)


_PRUNE_FROM = 100  # acknowledge ids, of which settled ones are removed then


Operation = Callable[[ListenResponse], object]
"""What a listen activity calls with each message."""


class Activities:
    """The activities of one adapter. Thread-safe.

    The queue activities use the adapter's connection URL and credentials. `close` rolls back the polls that are not
    acknowledged; the adapter's own ``stop`` ends the listeners.

    Args:
        adapter: The adapter.
    """

    def __init__(self, adapter: "ResourceAdapter") -> None:
        self._adapter = adapter
        self._lock = Lock()
        self._units: dict[str, tuple[Activation, Sequence[Message]]] = {}
        self._prune_at = _PRUNE_FROM
        self._polls = HeldPolls()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def listen(
        self,
        queue: str | Queue,
        operation: Operation,
        *,
        message_type: MessageType = "TEXT",
        selector: str | None = None,
        transacted: bool = True,
        acknowledge_mode: Literal["AUTO", "DUPS_OK"] | None = None,
        acknowledgement_timeout: float | None = None,
        max_outstanding: int = 1,
        batch_size: int = 0,
        on_success: Operation | None = None,
        on_failure: Operation | None = None,
    ) -> "Activation":
        """Call an operation with each message of a queue.

        The listener starts with the adapter; if the adapter runs already, call ``start()`` of the returned activation.

        With a transacted session, the broker keeps the message locked until `acknowledge` is called for it, from any
        thread. The message is rolled back after a disconnection, a crash or the acknowledgement timeout, and when the
        operation raises an exception and there is no ``on_failure``.

        Args:
            queue: The queue.
            operation: Called with each message.
            message_type: "TEXT" for text payloads, "BYTE" for bytes. A message of the other kind fails.
            selector: Selects messages by headers and properties; None or an empty text selects all.
            transacted: True holds each message until it is acknowledged; with False, a message is acknowledged when
                the operation returns.
            acknowledge_mode: "AUTO" or "DUPS_OK", only without a transacted session; None for "AUTO".
            acknowledgement_timeout: Seconds after which an unacknowledged message is rolled back; None for
                never. The property ``JBXAcknowledgmentTimeout`` of a message takes precedence.
            max_outstanding: The number of units that wait for an acknowledgement at the same time. With the default, 1,
                the next message is taken only after the previous one is finished.
            batch_size: The maximum number of messages in one unit; 0 or 1 for one.
            on_success: Called with the message after the operation.
            on_failure: Called with the message when the operation, or ``on_success``, has raised an exception, which is
                logged.

        Returns:
            The activation.

        Raises:
            ConfigurationError: An argument is invalid, or an acknowledge mode is given for a transacted session.
            ArgumentTypeError: The queue is neither a queue nor a name; or an operation is not a synchronous function.
            JMSError: As `ResourceAdapter.activate`.
        """
        check(
            _CONSTRAINTS,
            operation=operation,
            on_success=on_success,
            on_failure=on_failure,
            batch_size=batch_size,
            message_type=message_type,
        )
        if transacted and acknowledge_mode is not None:
            raise ConfigurationError(
                f"acknowledge_mode={acknowledge_mode!r} is for listeners with transacted=False; leave it out."
            )
        from jmsjca.config.activation_spec import ActivationSpec  # loads pydantic

        fields: ListenerFields = {
            "concurrency_mode": "sync",
            "endpoint_pool_max_size": 1,
            "selector": selector or None,
            "batch_size": batch_size if batch_size > 1 else 0,
        }
        if transacted:
            fields |= {
                "hold_until_ack": True,
                "acknowledgement_timeout": acknowledgement_timeout,
                "max_outstanding": max_outstanding,
            }
        else:
            fields |= {"transaction": "none", "acknowledge_mode": acknowledge_mode or "AUTO"}
        spec = ActivationSpec(destination=queue_of(queue), **fields)
        chain = _Chain(operation, on_success, on_failure)

        def deliver(messages: Sequence[Message]) -> None:
            """Call the operations with the messages of a unit."""
            unit = self._register(activation, messages) if transacted else None
            for message in messages:
                chain(response_of(message, message_type, unit))

        activation = self._adapter.activate(spec, deliver)
        return activation

    def acknowledge(
        self, message_id: str | None = None, action: str = "JBXCommit", *, acknowledge_id: str | None = None
    ) -> Settlement:
        """Commit or roll back a held message by its id, or all messages of a unit by their acknowledge id.

        The message may be held by any listener of the adapter. Never blocks.

        Args:
            message_id: The JMS message id, while no listener of the adapter remembers another delivery of the message
                (`Activation.has_delivered`); or the ``delivery_id`` of the response.
            action: "JBXCommit" or "JBXRollback"; upper and lower case do not matter.
            acknowledge_id: The acknowledge id of a listen or poll activity, instead of the message id.

        Returns:
            The settlement of the unit; its ``wait`` returns the outcome.

        Raises:
            ConfigurationError: The action is neither of the two.
            InvalidArgumentError: Neither or both of the ids are given.
            IllegalStateError: Nothing with this id is held: it never was, it is settled, or it is acknowledged already.
                Or the message id does not say which of several deliveries is meant.
        """
        roll_back = is_rollback(action)
        if (message_id is None) == (acknowledge_id is None):
            raise InvalidArgumentError("Give either a message id or an acknowledge id.")
        if message_id is not None:
            check(_CONSTRAINTS, message_id=message_id)
            return self._settle_message(message_id, action)
        return self._settle_unit(str(acknowledge_id), roll_back=roll_back)

    def acknowledge_request(self, request: Mapping[str, str]) -> Settlement:
        """Acknowledge a message by a request: a mapping with ``AcknowledgmentAction`` and ``AcknowledgmentMessageID``.

        Args:
            request: The request. It may have ``AcknowledgeID`` instead of ``AcknowledgmentMessageID``.

        Raises:
            ConfigurationError: The request has no action, or an unknown key.
            ArgumentTypeError: The request is not a mapping.
            JMSError: As `acknowledge`.
        """
        check(_CONSTRAINTS, request=request)
        known = {"AcknowledgmentAction", "AcknowledgmentMessageID", "AcknowledgeID"}
        if unknown := sorted(set(request) - known):
            raise ConfigurationError(f"An acknowledge request has the keys {sorted(known)}, not {unknown}.")
        if "AcknowledgmentAction" not in request:
            raise ConfigurationError(
                "The acknowledge request has no AcknowledgmentAction: 'JBXCommit' or 'JBXRollback'."
            )
        return self.acknowledge(
            request.get("AcknowledgmentMessageID"),
            request["AcknowledgmentAction"],
            acknowledge_id=request.get("AcknowledgeID"),
        )

    def acknowledging(self, action: str) -> Operation:
        """Return an operation that acknowledges the message it is called with, for ``on_success`` or ``on_failure``.

        Args:
            action: "JBXCommit" or "JBXRollback"; upper and lower case do not matter.

        Raises:
            ConfigurationError: The action is neither of the two.
        """
        roll_back = is_rollback(action)

        def operation(response: ListenResponse) -> Settlement:
            """Acknowledge one message."""
            message = response.message
            if roll_back:
                message.set_rollback_only()
            return message.acknowledge()

        return operation

    def poll(
        self,
        queue: str | Queue,
        *,
        message_type: MessageType = "TEXT",
        selector: str | None = None,
        messages_to_receive: int = 1,
        receive_timeout: float | None = None,
        transacted: bool = False,
        acknowledgement_timeout: float | None = None,
    ) -> PollResponse:
        """Receive messages of a queue once.

        Args:
            queue: The queue.
            message_type: As for `listen`.
            selector: As for `listen`.
            messages_to_receive: The maximum number of messages; 0 for all that are waiting. With 0, messages that are
                sent during the poll are also received, but the poll ends after 1,000 of them in a row. It recognises
                them by JMSTimestamp, and ends after 10,000 messages that have none.
            receive_timeout: Seconds to wait for the first message; None waits forever, 0 does not wait. The poll never
                waits for further messages.
            transacted: False removes the messages from the queue; True holds them until `acknowledge` is called with
                the acknowledge id of the response.
            acknowledgement_timeout: Seconds after which a transacted poll is rolled back; None for never.

        Raises:
            MessageFormatError: A message is of another kind; all messages of this poll stay in the queue.
            JMSError: The broker cannot be reached or refuses.
        """
        check(
            _CONSTRAINTS,
            message_type=message_type,
            messages_to_receive=messages_to_receive,
            acknowledgement_timeout=acknowledgement_timeout,
        )
        source = queue_of(queue)
        with ExitStack() as stack:  # an error releases the messages
            connection = stack.enter_context(self._adapter.connection_factory().create_connection())
            session = create_poll_session(connection)
            consumer = session.create_consumer(source, selector=selector or None)
            connection.start()
            messages = list(polled_messages(consumer, messages_to_receive, receive_timeout))
            unit = f"ID:acknowledge-{uuid.uuid4().hex}" if transacted and messages else None
            responses = [response_of(message, message_type, unit) for message in messages]
            if unit is None:
                commit_poll(session)
            else:
                self._polls.hold(unit, connection, session, TIMEOUT("acknowledgement_timeout", acknowledgement_timeout))
            stack.pop_all()
        if unit is None:
            close_settled(connection)
        return PollResponse(responses, unit)

    def browse(
        self,
        queue: str | Queue,
        *,
        message_type: MessageType = "TEXT",
        selector: str | None = None,
        messages_to_browse: int = 1,
    ) -> Sequence[ListenResponse]:
        """Return messages of a queue without removing them.

        Args:
            queue: The queue.
            message_type: As for `listen`.
            selector: As for `listen`.
            messages_to_browse: The maximum number of messages; 0 for all that are waiting, bounded as for `poll`.

        Raises:
            MessageFormatError: A message is of another kind.
            JMSError: The broker cannot be reached, refuses, or cannot browse.
        """
        check(_CONSTRAINTS, message_type=message_type, messages_to_browse=messages_to_browse)
        source = queue_of(queue)
        seen: list[ListenResponse] = []
        with self._adapter.connection_factory().create_connection() as connection:
            browser = connection.create_session().create_browser(source, selector=selector or None)
            for message in browser if messages_to_browse else waiting_messages(browser):
                seen.append(response_of(message, message_type, None))
                if len(seen) == messages_to_browse:
                    break
        return seen

    def send(
        self,
        destination: str | Destination,
        payload: str | bytes,
        *,
        destination_type: Literal["queue", "topic"] = "queue",
        delivery_mode: DeliveryMode = DeliveryMode.PERSISTENT,
        priority: int = 4,
        time_to_live: float = 0.0,
        acknowledgement_timeout: float | None = None,
        properties: Mapping[str, bool | int | float | str | None] | None = None,
    ) -> Message:
        """Send or publish a message. In a handler it joins the unit of the delivery, as `ResourceAdapter.send` does.

        Args:
            destination: The name of a queue or topic, or a `Queue` or `Topic`.
            payload: Text or bytes; it decides the message type.
            destination_type: The kind of a destination that is given by name.
            delivery_mode: Whether the message survives a restart of the broker.
            priority: 0 to 9.
            time_to_live: Seconds until the message expires; 0 means never.
            acknowledgement_timeout: Seconds after which a listener in a transacted session rolls the message back;
                None leaves it to the listener.
            properties: Properties of the message.

        Returns:
            The message, with its id.

        Raises:
            ArgumentTypeError: The payload is neither text nor bytes.
            ConfigurationError: The kind of destination is neither of the two.
            JMSError: As `ResourceAdapter.send`.
        """
        check(_CONSTRAINTS, payload=payload)
        target = destination_of_kind(destination, destination_type)
        options: SendOptions = {
            "delivery_mode": delivery_mode,
            "priority": priority,
            "time_to_live": time_to_live,
            "properties": properties or {},
        }
        if acknowledgement_timeout is not None:
            options["acknowledgement_timeout"] = acknowledgement_timeout
        return self._adapter.sender.send(target, payload, **options)

    def close(self) -> None:
        """Roll back all polls that are not acknowledged. Listeners end with the adapter."""
        self._polls.close()

    def _settle_message(self, message_id: str, action: str) -> Settlement:
        holder = next((it for it in self._adapter.activations if it.is_held(message_id)), None)
        if holder is not None:
            if any(it.has_delivered(message_id) for it in self._adapter.activations if it is not holder):
                raise several_deliveries(message_id)
            return holder.settle(message_id, action)
        reasons: list[JMSError] = []
        for activation in self._adapter.activations:
            try:
                return activation.settle(message_id, action)
            except IllegalStateError as error:
                reasons.append(error)
        known = [error for error in reasons if "settled already" in str(error)]
        raise IllegalStateError(
            str((known or reasons)[0]) if reasons else f"No listener of the adapter holds {message_id[:100]!r}."
        )

    def _settle_unit(self, acknowledge_id: str, *, roll_back: bool) -> Settlement:
        held = self._polls.take(acknowledge_id)
        if held is not None:
            return held.settle(roll_back=roll_back)
        with self._lock:
            unit = self._units.pop(acknowledge_id, None)
        if unit is None or not any(_is_held(unit[0], message) for message in unit[1]):
            raise IllegalStateError(
                f"No unit {acknowledge_id[:100]!r} is held: its messages are settled already, by an acknowledgement or"
                " the acknowledgement timeout, or it never was."
            )
        _, messages = unit
        if roll_back:
            messages[-1].set_rollback_only()
        return [message.acknowledge() for message in messages][-1]

    def _register(self, activation: "Activation", messages: Sequence[Message]) -> str:
        acknowledge_id = f"ID:acknowledge-{uuid.uuid4().hex}"
        with self._lock:
            if len(self._units) >= self._prune_at:
                self._units = {
                    each: (holder, held)
                    for each, (holder, held) in self._units.items()
                    if any(_is_held(holder, message) for message in held)
                }
                self._prune_at = max(_PRUNE_FROM, 2 * len(self._units))
            self._units[acknowledge_id] = (activation, messages)
        return acknowledge_id


class _Chain:
    """An operation with the operations after its success and its failure.

    Args:
        operation: Called first.
        on_success: Called after it; None for nothing.
        on_failure: Called when one of the two raised an exception; None lets the exception pass.
    """

    def __init__(self, operation: Operation, on_success: Operation | None, on_failure: Operation | None) -> None:
        self._operation = operation
        self._on_success = on_success
        self._on_failure = on_failure

    def __call__(self, response: ListenResponse) -> None:
        """Run the chain with one message."""
        try:
            self._operation(response)
            if self._on_success is not None:
                self._on_success(response)
        except Exception:
            if self._on_failure is None:
                raise
            logger.warning("The operation for the message %s failed.", response.message_id, exc_info=True)
            self._on_failure(response)


def _is_held(activation: "Activation", message: Message) -> bool:
    return message.delivery_id is not None and activation.is_held(message.delivery_id)
