"""Carries out redelivery decisions before a handler sees a message: delays, deletes or moves it."""

import logging
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from threading import Lock

from jmsjca import spi
from jmsjca.destinations import Destination
from jmsjca.errors import JMSError, MessageFormatError, TransactionRolledBackError
from jmsjca.inbound.concurrency import Outstanding
from jmsjca.inbound.delay_queue import Waiting
from jmsjca.inbound.endpoint import Endpoint, identity
from jmsjca.messages import BytesMessage, Message, Outcome
from jmsjca.redelivery import Delay, Delete, Move, MoveFacts, moved_copy, redirected_copy

__all__ = ["Arrivals", "Mover"]

logger = logging.getLogger("jmsjca.inbound")

_LOOK_AGAIN = 0.2

_MOST_FAILURES = 2


class Arrivals:
    """Takes the redelivery decision for each message that arrives, and carries it out. For one thread.

    What waits for the end of a delay may be asked for by any thread.

    Args:
        endpoint: Whose messages.
        link: Where they come from.
        outstanding: Where those that wait are counted.
    """

    def __init__(self, endpoint: Endpoint, link: spi.Connection, outstanding: Outstanding) -> None:
        self._endpoint = endpoint
        self._link = link
        self._outstanding = outstanding
        self._mover = Mover(endpoint, link)
        self._mover.check_target()
        self._lock = Lock()
        self._waiting: Waiting[spi.Delivery] = Waiting(endpoint.clock)

    def admit(self, deliveries: Iterable[spi.Delivery]) -> Iterator[spi.Delivery]:
        """Give those that the handler is to see now. The others wait, have gone elsewhere, or are no more."""
        for delivery in deliveries:
            fate = self.decide(delivery)
            if isinstance(fate, Outcome):
                continue
            if self._endpoint.still_running(delivery):
                fate = max(fate, _LOOK_AGAIN)
            if fate > 0:
                self._let_wait(delivery, fate)
            else:
                yield delivery

    def due(self) -> Iterator[spi.Delivery]:
        """Give those that have waited long enough."""
        if not self._waiting:  # as nearly always, and asked for each message
            return
        with self._lock:
            due = list(self._waiting.due())
        for delivery in due:
            if self._endpoint.still_running(delivery):
                self._put(delivery, _LOOK_AGAIN)
            else:
                self._outstanding.release()
                yield delivery

    def patience(self, most: float | None) -> float | None:
        """Tell how long to wait for something else, at most."""
        if not self._waiting:
            return most
        with self._lock:
            return self._waiting.patience(most)

    def clear(self) -> list[spi.Delivery]:
        """Take out all that wait."""
        with self._lock:
            rest = self._waiting.clear()
        for _ in rest:
            self._outstanding.release()
        return rest

    def give_back(self, consumer: spi.Consumer, deliveries: Sequence[spi.Delivery], *, waited: bool = False) -> None:
        """Give back what no handler saw, although it was decided about: its return is not counted.

        Args:
            consumer: Where it came from.
            deliveries: Which.
            waited: True if they need not wait any more when they return.

        Raises:
            JMSError: They cannot be given back; on a lost connection they come again by themselves.
        """
        self._endpoint.put_off(deliveries, waited=waited)
        consumer.release(deliveries)
        if self._link.capabilities.give_back == "uncounted":
            self._endpoint.went_back_uncounted(deliveries)

    def decide(self, delivery: spi.Delivery) -> float | Outcome:
        """Tell after how many seconds the handler is to see a message, or what became of it instead."""
        count, redelivered = delivery.count, delivery.redelivered
        if not redelivered and (count or 0) <= 1:
            return 0.0
        decision = self._endpoint.redelivery.decide(identity(delivery), redelivered=redelivered, delivery_count=count)
        self._endpoint.statistics.redelivered(new=decision.new)
        match decision.action:
            case Delay(milliseconds):
                return milliseconds / 1000
            case Delete() | Move() as action:
                return self._mover.carry_out(action, delivery, decision.count) or 0.0
            case _:
                return 0.0

    def _let_wait(self, delivery: spi.Delivery, seconds: float) -> None:
        if self._link.capabilities.redelivery_delay:
            self._mover.put_off(delivery, seconds)
            return
        self._outstanding.add()
        self._put(delivery, seconds)

    def _put(self, delivery: spi.Delivery, seconds: float) -> None:
        with self._lock:
            self._waiting.put(delivery, seconds)


class Mover:
    """Each message in a unit of its own: the copy is sent and the message acknowledged, or neither.

    Args:
        endpoint: Whose messages.
        link: Where they come from, and where the copies go.
    """

    def __init__(self, endpoint: Endpoint, link: spi.Connection) -> None:
        self._endpoint = endpoint
        self._link = link

    def check_target(self) -> None:
        """Find out whether messages can be moved where the redelivery handling says.

        Raises:
            InvalidDestinationError: They cannot.
        """
        last = self._endpoint.terms.redelivery.last_action
        if isinstance(last, Move) and self._link.capabilities.checks:
            self._link.check(last.destination)

    def carry_out(self, action: Delete | Move, delivery: spi.Delivery, count: int) -> Outcome | None:
        """Delete or move a message.

        Args:
            action: What to do.
            delivery: The message.
            count: For the how-manieth time it is seen redelivered.

        Returns:
            How that ended; None if it cannot be moved, so that the handler has to see it.
        """
        unit = self._link.unit(atomic=self._link.capabilities.atomic)
        if isinstance(action, Move) and not self._send_copy(unit, action, delivery, count):
            return None
        self._endpoint.statistics.bypassed()
        unit.take([delivery])
        outcome = self._commit(unit, action, delivery)
        if outcome is Outcome.COMMITTED and isinstance(action, Delete):
            logger.info("%s deleted the message %s, which came again %d times.", self._name, identity(delivery), count)
        return outcome

    def _commit(self, unit: spi.Unit, action: Delete | Move, delivery: spi.Delivery) -> Outcome:
        encounter = self._endpoint.redelivery.encounter(identity(delivery))
        encounter.mark_returned()  # before it is known: should it come again, another thread may have it at once
        move = encounter.begin_move()
        try:
            unit.commit()
        except TransactionRolledBackError as error:
            logger.warning("%s: %s of a message did not happen, it comes again: %s", self._name, action, error)
            return Outcome.ROLLED_BACK
        except JMSError:
            encounter.move_in_doubt(move)
            raise
        encounter.reset_move_failures()
        self._endpoint.statistics.bypass_committed()
        return Outcome.COMMITTED

    def put_off(self, delivery: spi.Delivery, seconds: float) -> None:
        """Let the broker hold a message for so long."""
        encounter = self._endpoint.redelivery.find_encounter(identity(delivery))
        unit = self._link.unit()
        unit.take([delivery])
        if encounter is not None:
            encounter.mark_returned(waited=True)
        unit.rollback(delay=seconds, unused=[delivery])
        if encounter is not None and self._link.capabilities.give_back == "uncounted":
            encounter.mark_returned_uncounted()

    @property
    def _name(self) -> str:
        return self._endpoint.name

    def _send_copy(self, unit: spi.Unit, action: Move, delivery: spi.Delivery, count: int) -> bool:
        """Note the copy, or else a copy that tells nothing of where it was; False if neither can be."""
        for make in self._copies(delivery):
            try:
                copy = make(delivery, count)
                unit.send(_stamped(copy, action.destination), action.destination)
            except JMSError as error:
                logger.warning("%s could not copy a message to %s: %s", self._name, action.destination, error)
                continue
            logger.info("%s moves %s to %s as %s.", self._name, identity(delivery), action.destination, copy.message_id)
            return True
        logger.warning("%s could not move a message to %s: it is delivered.", self._name, action.destination)
        return False

    def _copies(self, delivery: spi.Delivery) -> Sequence[Callable[[spi.Delivery, int], Message]]:
        """What to try, in order: what failed at a commit is not tried again the next time."""
        encounter = self._endpoint.redelivery.encounter(identity(delivery))
        failures = encounter.move_failures
        if failures >= _MOST_FAILURES:
            encounter.reset_move_failures()
            return ()
        return (self._redirected,) if failures or self._endpoint.terms.redirect else (self._copy, self._redirected)

    def _copy(self, delivery: spi.Delivery, count: int) -> Message:
        terms, known = self._endpoint.terms, self._endpoint.redelivery.encounter(identity(delivery))
        facts = MoveFacts(
            destination=terms.destination,
            count=count,
            subscription_name=terms.subscription_name,
            client_id=terms.client_id,
            context_name=terms.context_name,
            rollback_data=known.rollback_data,
            failure=known.failure,
        )
        return moved_copy(_readable(delivery), facts)

    def _redirected(self, delivery: spi.Delivery, count: int) -> Message:
        del count
        return redirected_copy(_readable(delivery))


def _readable(delivery: spi.Delivery) -> Message:
    """The message; what cannot be decoded is moved as the bytes that it is."""
    try:
        message = delivery.message
        message.properties  # noqa: B018  # decodes the headers, too
    except MessageFormatError:
        return BytesMessage(delivery.raw)
    return message


def _stamped(message: Message, to: Destination) -> Message:
    message.message_id = f"ID:{uuid.uuid4().hex}"
    message.timestamp = datetime.now(UTC)
    message.destination = to
    message.delivery_time = None
    return message
