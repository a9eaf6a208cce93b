"""Moves or deletes redelivered messages, each in a unit of its own."""

import logging
import uuid
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from jmsjca import spi
from jmsjca.destinations import Destination
from jmsjca.errors import JMSError, MessageFormatError, TransactionRolledBackError
from jmsjca.inbound.endpoint import Endpoint, message_identity
from jmsjca.messages.bytes_message import BytesMessage
from jmsjca.messages.message import Message
from jmsjca.messages.settlement import Outcome
from jmsjca.redelivery import moved_copy
from jmsjca.redelivery.moved_copy import MoveFacts, redirected_copy
from jmsjca.redelivery.policy import Delete, Move

__all__ = ["MessageMover"]

logger = logging.getLogger("jmsjca.inbound")

_MAX_FAILURES = 2


class MessageMover:
    """Moves or deletes each message in a unit of its own: the copy is sent and the message acknowledged, or neither.

    Args:
        endpoint: The endpoint that the messages were received for.
        connection: The provider connection to receive from and to send the copies on.
    """

    def __init__(self, endpoint: Endpoint, connection: spi.Connection) -> None:
        self._endpoint = endpoint
        self._connection = connection

    def check_target(self) -> None:
        """Check that messages can be moved to the destination of the redelivery handling.

        Raises:
            InvalidDestinationError: They cannot.
        """
        last = self._endpoint.settings.redelivery.last_action
        if isinstance(last, Move) and self._connection.capabilities.checks:
            self._connection.check(last.destination)

    def execute(self, action: Delete | Move, delivery: spi.Delivery, count: int) -> Outcome | None:
        """Delete or move a message.

        Args:
            action: The action of the redelivery handling.
            delivery: The message.
            count: Number of redeliveries seen so far.

        Returns:
            The outcome of the unit; None if the message cannot be moved, so that it has to be delivered.
        """
        unit = self._connection.unit(atomic=self._connection.capabilities.atomic)
        if isinstance(action, Move) and not self._send_copy(unit, action, delivery, count):
            return None
        self._endpoint.statistics.record_bypass()
        unit.take([delivery])
        outcome = self._commit(unit, action, delivery)
        if outcome is Outcome.COMMITTED and isinstance(action, Delete):
            logger.info(
                "%s deleted the message %s after %d redeliveries.",
                self._name,
                message_identity(delivery),
                count,
            )
        return outcome

    def _commit(self, unit: spi.Unit, action: Delete | Move, delivery: spi.Delivery) -> Outcome:
        encounter = self._endpoint.redelivery.encounter(message_identity(delivery))
        encounter.mark_returned()  # before the commit, as another thread may receive a redelivery at once
        move = encounter.begin_move()
        try:
            unit.commit()
        except TransactionRolledBackError as error:
            logger.warning("%s: %s was rolled back; the message is redelivered: %s", self._name, action, error)
            return Outcome.ROLLED_BACK
        except JMSError:
            encounter.move_in_doubt(move)
            raise
        encounter.reset_move_failures()
        self._endpoint.statistics.record_bypass_commit()
        return Outcome.COMMITTED

    def delay_at_broker(self, delivery: spi.Delivery, seconds: float) -> None:
        """Return a message to the broker, which redelivers it after ``seconds``."""
        encounter = self._endpoint.redelivery.find_encounter(message_identity(delivery))
        unit = self._connection.unit()
        unit.take([delivery])
        if encounter is not None:
            encounter.mark_returned(waited=True)
        unit.rollback(delay=seconds, unused=[delivery])
        if encounter is not None and self._connection.capabilities.give_back == "uncounted":
            encounter.mark_returned_uncounted()

    @property
    def _name(self) -> str:
        return self._endpoint.name

    def _send_copy(self, unit: spi.Unit, action: Move, delivery: spi.Delivery, count: int) -> bool:
        """Add the copy to the unit, or else a copy without the facts of the move; False if neither can be sent."""
        for make in self._copies(delivery):
            try:
                copy = make(delivery, count)
                unit.send(_with_new_headers(copy, action.destination), action.destination)
            except JMSError as error:
                logger.warning("%s could not copy a message to %s: %s", self._name, action.destination, error)
                continue
            logger.info(
                "%s moves %s to %s as %s.", self._name, message_identity(delivery), action.destination, copy.message_id
            )
            return True
        logger.warning("%s could not move a message to %s: it is delivered.", self._name, action.destination)
        return False

    def _copies(self, delivery: spi.Delivery) -> Sequence[Callable[[spi.Delivery, int], Message]]:
        """Return the functions that copy a message, in the order to try, without one that failed at a commit."""
        encounter = self._endpoint.redelivery.encounter(message_identity(delivery))
        failures = encounter.move_failures
        if failures >= _MAX_FAILURES:
            encounter.reset_move_failures()
            return ()
        return (
            (self._redirected,)
            if failures or self._endpoint.settings.redirect_moved
            else (self._copy, self._redirected)
        )

    def _copy(self, delivery: spi.Delivery, count: int) -> Message:
        settings, known = self._endpoint.settings, self._endpoint.redelivery.encounter(message_identity(delivery))
        facts = MoveFacts(
            destination=settings.destination,
            count=count,
            subscription_name=settings.subscription_name,
            client_id=settings.client_id,
            context_name=settings.context_name,
            rollback_data=known.rollback_data,
            failure=known.failure,
        )
        return moved_copy(_decoded_or_raw(delivery), facts)

    def _redirected(self, delivery: spi.Delivery, count: int) -> Message:
        del count
        return redirected_copy(_decoded_or_raw(delivery))


def _decoded_or_raw(delivery: spi.Delivery) -> Message:
    """Return the message; one that cannot be decoded is returned as a bytes message with its raw bytes."""
    try:
        message = delivery.message
        message.properties  # noqa: B018  # decodes the headers, too
    except MessageFormatError:
        return BytesMessage(delivery.raw)
    return message


def _with_new_headers(message: Message, to: Destination) -> Message:
    message.message_id = f"ID:{uuid.uuid4().hex}"
    message.timestamp = datetime.now(UTC)
    message.destination = to
    message.delivery_time = None
    return message
