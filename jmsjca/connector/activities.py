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
from collections.abc import Callable, Mapping, Sequence
from threading import Lock
from types import TracebackType
from typing import TYPE_CHECKING, Literal, Self

from jmsjca.arguments import check_instance, check_timeout
from jmsjca.connector.activity_arguments import (
    check_message_type,
    check_number,
    check_operations,
    destination_of_kind,
    is_rollback,
    queue_of,
)
from jmsjca.connector.polls import (
    HeldPolls,
    close_settled,
    commit_poll,
    create_poll_session,
    polled_messages,
    waiting_messages,
)
from jmsjca.connector.responses import ListenResponse, MessageType, PollResponse, response_of
from jmsjca.destinations import Destination, Queue
from jmsjca.errors import ConfigurationError, IllegalStateError, InvalidArgumentError, JMSError
from jmsjca.log_records import get_logger
from jmsjca.messages.message import DeliveryMode, Message
from jmsjca.messages.settlement import Settlement
from jmsjca.outbound.sender import SendOptions

if TYPE_CHECKING:
    from jmsjca.adapter import ResourceAdapter
    from jmsjca.config.activation_spec_fields import ListenerFields
    from jmsjca.inbound.activation import Activation

__all__ = ["Activities", "Operation"]

logger = get_logger("jmsjca.connector")

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
        thread. A disconnection, a crash or the acknowledgement timeout rolls it back. If the operation raises an
        exception, and there is no ``on_failure``, the message is rolled back, too.

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
            batch_size: Messages of one unit at most; 0 or 1 for one.
            on_success: Called with the message after the operation.
            on_failure: Called with the message when the operation, or ``on_success``, has raised an exception, which is
                logged.

        Returns:
            The activation.

        Raises:
            ConfigurationError: An argument is invalid, or an acknowledge mode is given for a transacted session.
            ArgumentTypeError: The queue is neither a queue nor a name; or an operation is no function, or asynchronous.
            JMSError: As `ResourceAdapter.activate`.
        """
        check_operations(operation, on_success, on_failure)
        check_number("batch_size", batch_size)
        if transacted and acknowledge_mode is not None:
            raise ConfigurationError(
                f"acknowledge_mode={acknowledge_mode!r} is for listeners with transacted=False; leave it out."
            )
        check_message_type(message_type)
        from jmsjca.config.activation_spec import ActivationSpec  # noqa: PLC0415  # loads pydantic

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
            message_id: The JMS message id.
            action: "JBXCommit" or "JBXRollback"; upper and lower case do not matter.
            acknowledge_id: The acknowledge id of a listen or poll activity, instead of the message id.

        Returns:
            The settlement of the unit; its ``wait`` returns the outcome.

        Raises:
            ConfigurationError: The action is neither of the two.
            InvalidArgumentError: Neither or both of the ids are given.
            IllegalStateError: Nothing with this id is held: it never was, it is settled, or it is acknowledged already.
        """
        roll_back = is_rollback(action)
        if (message_id is None) == (acknowledge_id is None):
            raise InvalidArgumentError("Give either a message id or an acknowledge id.")
        if message_id is not None:
            check_instance("message_id", message_id, str, "the message_id of a response")
            return self._settle_message(message_id, action)
        return self._settle_unit(str(acknowledge_id), roll_back=roll_back)

    def acknowledge_request(self, request: Mapping[str, str]) -> Settlement:
        """Acknowledge as a request says: a mapping with ``AcknowledgmentAction`` and ``AcknowledgmentMessageID``.

        Args:
            request: The request. ``AcknowledgeID`` may stand instead of the message id.

        Raises:
            ConfigurationError: The request has no action, or an unknown key.
            ArgumentTypeError: The request is no mapping.
            JMSError: As `acknowledge`.
        """
        check_instance("request", request, Mapping, "a dict with AcknowledgmentAction and AcknowledgmentMessageID")
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
            messages_to_receive: The maximum number of messages; 0 for all that are waiting. Others that are sent
                meanwhile are received as well, but the poll ends after 1,000 of them in a row, by their JMSTimestamp,
                or after 10,000 messages without one.
            receive_timeout: Seconds to wait for the first message; None waits forever, 0 does not wait. Nothing waits
                for further messages.
            transacted: False removes the messages from the queue; True holds them until `acknowledge` is called with
                the acknowledge id of the response.
            acknowledgement_timeout: Seconds after which a transacted poll is rolled back; None for never.

        Raises:
            MessageFormatError: A message is of another kind; all messages of this poll stay in the queue.
            JMSError: The broker cannot be reached or refuses.
        """
        check_message_type(message_type)
        check_number("messages_to_receive", messages_to_receive)
        check_timeout("acknowledgement_timeout", acknowledgement_timeout)
        source = queue_of(queue)
        connection = self._adapter.connection_factory().create_connection()
        try:
            session = create_poll_session(connection)
            consumer = session.create_consumer(source, selector=selector or None)
            connection.start()
            messages = list(polled_messages(consumer, messages_to_receive, receive_timeout))
            unit = f"ID:acknowledge-{uuid.uuid4().hex}" if transacted and messages else None
            responses = [response_of(message, message_type, unit) for message in messages]
            if unit is not None:
                self._polls.hold(unit, connection, session, acknowledgement_timeout)
                return PollResponse(responses, unit)
            commit_poll(session)
        except BaseException:
            connection.close()  # releases the messages
            raise
        close_settled(connection)
        return PollResponse(responses, None)

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
        check_message_type(message_type)
        check_number("messages_to_browse", messages_to_browse)
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
        """Send or publish a message.

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
        check_instance("payload", payload, (str, bytes), "text or bytes")
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
    """Return True if a message may be held; one without an id is not known to the registry."""
    return message.message_id is None or activation.is_held(message.message_id)
