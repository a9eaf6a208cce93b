"""Moves or deletes messages: a redelivered one in a separate unit, a rejected one in the unit of its delivery."""

import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress

from jmsjca import spi
from jmsjca.destinations import Destination
from jmsjca.errors import (
    ConnectionLostError,
    JMSError,
    MessageFormatError,
    ResourceAllocationError,
    TransactionRolledBackError,
)
from jmsjca.hooks import DeadLetter
from jmsjca.inbound.endpoint import Endpoint, message_identity
from jmsjca.inbound.listener_log import log_fields
from jmsjca.log_records import get_logger
from jmsjca.messages.bytes_and_stream import BytesMessage
from jmsjca.messages.delivery import Outcome
from jmsjca.messages.message import Message, time_of_send
from jmsjca.redelivery.encounter import Encounter
from jmsjca.redelivery.moved_copy import MoveFacts, moved_copy, raw_copy, redirected_copy
from jmsjca.redelivery.policy import Delete, Move

__all__ = ["MessageMover"]

logger = get_logger("jmsjca.inbound")


class MessageMover:
    """Moves or deletes messages: the copy is sent and the message acknowledged, or neither.

    A message that cannot be copied is moved as a bytes message, with the reason in its properties.

    Args:
        endpoint: The endpoint that the messages were received for.
        connection: The provider connection to receive from and to send the copies on.
    """

    def __init__(self, endpoint: Endpoint, connection: spi.Connection) -> None:
        self._endpoint = endpoint
        self._connection = connection

    def execute(self, action: Delete | Move, delivery: spi.Delivery, count: int) -> Outcome | None:
        """Delete or move a message in a separate unit.

        Args:
            action: The action of the redelivery handling.
            delivery: The message.
            count: Number of redeliveries seen so far.

        Returns:
            The outcome of the unit; None if the message cannot be moved, and must be delivered.

        Raises:
            ConnectionLostError: The connection is lost; the message is redelivered.
            TransactionInDoubtError: The move may or may not have been committed.
        """
        began = self._endpoint.activity.now()
        unit = self._connection.unit(atomic=self._connection.capabilities.atomic)
        letter = self.add(unit, action, delivery, count)
        self._encounter(message_identity(delivery)).unmovable = letter is None
        if letter is None:
            return None
        self._endpoint.statistics.record_bypass()
        unit.take([delivery])
        outcome = self._commit(unit, action, letter, began)
        if outcome is Outcome.COMMITTED:
            self._endpoint.statistics.record_bypass_commit()
            self.report(letter, began)
        return outcome

    def add(self, unit: spi.Unit, action: Delete | Move, delivery: spi.Delivery, count: int) -> DeadLetter | None:
        """Add the copy of a message to the unit that acknowledges it, or nothing if the message is deleted.

        Args:
            unit: The unit.
            action: The action.
            delivery: The message.
            count: Number of redeliveries seen so far.

        Returns:
            The argument of `report` after the unit is committed; None if the message cannot be moved.

        Raises:
            ConnectionLostError: The connection is lost.
        """
        known = self._encounter(message_identity(delivery))
        copy = self._send_copy(unit, action, delivery, count) if isinstance(action, Move) else None
        if copy is None and isinstance(action, Move):
            return None
        return DeadLetter(
            message_id=message_identity(delivery),
            source=self._endpoint.settings.destination,
            target=action.destination if isinstance(action, Move) else None,
            count=count,
            reason=_reason(known, count),
            copy_id=None if copy is None else copy.message_id,
        )

    def report(self, letter: DeadLetter, began: float) -> None:
        """Log that a message was moved or deleted, call the hooks, and delete the reason.

        Args:
            letter: The message.
            began: The time of the monotonic clock at which its move began.
        """
        known = self._encounter(letter.message_id)
        rejected, known.rejection = known.rejection is not None, None
        known.reset_move_failures()
        self._endpoint.unsettled.discard([letter.message_id])
        logger.warning(
            "%s %s the message %s from %s after %d redeliveries: %s%s",
            self._endpoint.name,
            f"moved to {letter.target}, as {letter.copy_id}," if letter.target else "deleted",
            letter.message_id,
            letter.source,
            letter.count,
            letter.reason,
            _ADVICE if rejected and letter.target is None else "",
            extra=log_fields(
                "dead_lettered",
                self._endpoint.log_source,
                message_id=letter.message_id,
                delivery_count=letter.count + 1,
                outcome="moved" if letter.target else "deleted",
                target=letter.target and str(letter.target),
                reason=letter.reason,
                duration=self._endpoint.activity.now() - began,
            ),
        )
        self._endpoint.hooks.dead_lettered(self._endpoint.name, letter)

    def delay_at_broker(self, delivery: spi.Delivery, seconds: float) -> None:
        """Return a message to the broker, to be redelivered after ``seconds``."""
        encounter = self._endpoint.redelivery.find_encounter(message_identity(delivery))
        unit = self._connection.unit()
        unit.take([delivery])
        if encounter is not None:
            uncounted = self._connection.capabilities.give_back == "uncounted"
            encounter.mark_returned(waited=True, uncounted=uncounted)
        try:
            unit.rollback(delay=seconds, unused=[delivery])
        except Exception:
            if encounter is not None:
                encounter.mark_return_failed()
            raise

    def _encounter(self, identity: str) -> Encounter:
        return self._endpoint.redelivery.encounter(identity)

    def _commit(self, unit: spi.Unit, action: Delete | Move, letter: DeadLetter, began: float) -> Outcome:
        encounter = self._encounter(letter.message_id)
        encounter.mark_returned()  # before the commit, because another thread may receive a redelivery at once
        move = encounter.begin_move()
        try:
            unit.commit()
        except TransactionRolledBackError as error:
            if not _blames_copy(error):
                encounter.move_interrupted(move)
            name = self._endpoint.name
            fields = log_fields(
                "move_rolled_back",
                self._endpoint.log_source,
                message_id=letter.message_id,
                outcome=Outcome.ROLLED_BACK.value,
                duration=self._endpoint.activity.now() - began,
            )
            logger.warning(
                "%s: %s was rolled back; the message will be redelivered: %s", name, action, error, extra=fields
            )
            return Outcome.ROLLED_BACK
        except JMSError:
            encounter.move_in_doubt(move)
            raise
        return Outcome.COMMITTED

    def _send_copy(self, unit: spi.Unit, action: Move, delivery: spi.Delivery, count: int) -> Message | None:
        """Add the best copy that can be sent to the unit, and return it; None if no copy can be sent."""
        name, source = self._endpoint.name, self._endpoint.log_source
        identity, failure = message_identity(delivery), ""
        for make in self._copies(identity):
            try:
                copy = make(delivery, count)
                unit.send(_with_new_headers(copy, action.destination), action.destination)
            except ConnectionLostError:  # no copy can be sent; the message is redelivered
                raise
            except Exception as error:  # noqa: BLE001  # another copy may work, whatever is wrong with this one
                failure = failure or str(error)
                continue
            if failure:
                fields = log_fields("copy_changed", source, message_id=identity, target=str(action.destination))
                told = (name, identity, action.destination, failure)
                logger.warning("%s could not copy %s as it is to %s: %s", *told, extra=fields)
            return copy
        fields = log_fields("move_failed", source, message_id=identity, target=str(action.destination))
        told = (name, identity, action.destination, failure)
        logger.warning("%s could not move %s to %s: it is delivered. %s", *told, extra=fields)
        return None

    def _copies(self, identity: str) -> Sequence[Callable[[spi.Delivery, int], Message]]:
        """Return the functions that copy a message, in the order to try, without those that failed at a commit."""
        encounter = self._encounter(identity)
        makers = [self._redirected, self._bare]
        if not self._endpoint.settings.redirect_moved:
            makers = [self._copy, self._redirected, self._raw, self._bare]
        failures = encounter.move_failures
        if failures >= len(makers):
            encounter.reset_move_failures()
        return makers[failures:]

    def _copy(self, delivery: spi.Delivery, count: int) -> Message:
        return moved_copy(delivery.message, self._facts(delivery, count))

    def _redirected(self, delivery: spi.Delivery, count: int) -> Message:
        del count
        return redirected_copy(delivery.message)

    def _raw(self, delivery: spi.Delivery, count: int) -> Message:
        return raw_copy(delivery.raw, _decoded(delivery), self._facts(delivery, count))

    def _bare(self, delivery: spi.Delivery, count: int) -> Message:
        del count
        return BytesMessage(delivery.raw)

    def _facts(self, delivery: spi.Delivery, count: int) -> MoveFacts:
        settings, known = self._endpoint.settings, self._encounter(message_identity(delivery))
        return MoveFacts(
            destination=settings.destination,
            count=count,
            subscription_name=settings.subscription_name,
            client_id=settings.given_client_id,
            context_name=settings.context_name,
            rollback_data=known.rollback_data,
            failure=known.failure,
        )


_ADVICE = (
    ". No dead-letter queue is configured: end the redelivery handling with a move, "
    "redelivery_handling='3:1000; 5:move(queue:dlq.$)' for instance."
)


def _reason(known: Encounter, count: int) -> str:
    if known.rejection is not None:
        return f"the handler rejected it: {known.rejection}"
    failure = known.failure
    return f"redelivered {count} times" + (f", last {failure.error_class}: {failure.message}" if failure else "")


def _blames_copy(error: TransactionRolledBackError) -> bool:
    """Return False if a broken connection, or a limit of the broker such as a full queue, caused the error."""
    cause = error.__cause__
    # Subclasses of the provider are refusals by which a broker ends the connection.
    return not (
        type(cause) is ConnectionLostError
        or isinstance(cause, ResourceAllocationError)
        or (isinstance(cause, OSError) and not isinstance(cause, JMSError))
    )


def _decoded(delivery: spi.Delivery) -> Message | None:
    with suppress(MessageFormatError):
        return delivery.message
    return None


def _with_new_headers(message: Message, to: Destination) -> Message:
    message.message_id = f"ID:{uuid.uuid4().hex}"
    message.timestamp = time_of_send()
    message.destination = to
    message.delivery_time = None
    return message
