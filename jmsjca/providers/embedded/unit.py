"""A unit of work of the embedded broker: one short SQLite transaction at its end, none before."""

import sqlite3
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import cast

from jmsjca.destinations import Destination
from jmsjca.errors import (
    ConnectionLostError,
    IllegalStateError,
    JMSError,
    TransactionInDoubtError,
    TransactionRolledBackError,
)
from jmsjca.messages import Message
from jmsjca.providers.common.unit import (
    finished_unit_error,
    lost_unit_error,
    size_limit_error,
    takes_deliveries_error,
)
from jmsjca.providers.embedded.codec import Outgoing, encode
from jmsjca.providers.embedded.delivery import EmbeddedDelivery, settled_error
from jmsjca.providers.embedded.store.messages import SenderInfo, enqueue, release, settle
from jmsjca.providers.embedded.store.queues import check_exists
from jmsjca.providers.embedded.store.store import Store
from jmsjca.spi import Delivery

__all__ = ["EmbeddedUnit", "UnitContext"]


class UnitContext:
    """The state that the units of a connection share.

    Args:
        store: The broker's database.
        message_bytes: The largest body that may be sent.
        sender: Identity and settings of the sender.

    Attributes:
        closed: True once the connection is closed; it keeps no list of its units.
    """

    __slots__ = ("closed", "message_bytes", "sender", "store")

    def __init__(self, store: Store, message_bytes: int, sender: SenderInfo) -> None:
        self.store = store
        self.message_bytes = message_bytes
        self.sender = sender
        self.closed = False


class EmbeddedUnit:
    """Records deliveries and sends; `commit` writes them in one transaction.

    Args:
        context: The state shared by the units of its connection, which may be closed before the unit ends.
    """

    def __init__(self, context: UnitContext) -> None:
        self._context = context
        self._store = context.store
        self._taken: list[EmbeddedDelivery] = []
        self._outgoing: list[Outgoing] = []
        self._size = 0  # of the bodies in bytes
        self._finished = False

    def take(self, deliveries: Sequence[Delivery]) -> None:
        """Add deliveries, which are settled when this unit ends.

        Raises:
            IllegalStateError: A delivery is settled already or belongs to a unit, or this unit has ended.
            ConnectionLostError: The connection is closed.
        """
        if self._finished or self._context.closed:
            raise self._unusable()
        for delivery in cast("Sequence[EmbeddedDelivery]", deliveries):
            if delivery not in delivery.unsettled:
                raise settled_error()
            if delivery.unit is not None:
                raise IllegalStateError("This delivery belongs to a unit already.")
            delivery.unit = self
            self._taken.append(delivery)

    def send(self, message: Message, to: Destination) -> None:
        """Add a message to send. It is encoded here, so later changes of the message have no effect.

        Raises:
            InvalidDestinationError: The temporary destination does not exist any more.
            MessageFormatError: The message cannot be encoded.
            ResourceAllocationError: Its body exceeds the limit.
        """
        if self._finished or self._context.closed:
            raise self._unusable()
        if to.temporary:
            with self._store.read() as cursor:
                check_exists(cursor, to)
        outgoing = encode(message, to, with_checksum=self._store.path is not None)
        if outgoing.body is not None:
            size = len(outgoing.body)
            if size > self._context.message_bytes:
                raise size_limit_error("body", size, self._context.message_bytes, to)
            self._size += size
        self._outgoing.append(outgoing)

    def commit(self, *, confirmed: bool = True, timeout: float | None = None) -> None:
        """Settle and send in one transaction. The commit is always confirmed here.

        Raises:
            TransactionRolledBackError: Nothing was committed; the deliveries are released, perhaps later.
            TransactionInDoubtError: The commit may or may not have happened; if not, the deliveries are released.
        """
        del confirmed, timeout
        self._finish()
        try:
            wakeup_paths = self._write()
        except ConnectionLostError:
            self._forget_deliveries()
            raise
        except JMSError as error:
            released = self._try_release()
            if isinstance(error, TransactionInDoubtError):  # if the commit did happen, there was nothing to release
                raise
            held = "" if released else " Its messages stay held until their release succeeds, which is repeated."
            raise TransactionRolledBackError(f"The unit was rolled back: {error}{held}") from error
        if self._taken:
            self._forget_deliveries()
        if self._outgoing:  # without sends there is nothing new for consumers
            self._store.wake_consumers(wakeup_paths)

    def start_commit(self) -> Callable[[], None]:
        """Send in one transaction, together with other units that wait for the disk.

        Returns:
            A function that waits for the transaction, and raises as `commit` does.

        Raises:
            IllegalStateError: The unit took deliveries.
        """
        if self._taken:
            raise takes_deliveries_error()
        self._finish()
        with _rolled_back_on_failure():
            self._store.check_disk_space(self._size)
            wait = self._store.enqueue(self._settle_and_send, self._store.wake_consumers)
        return partial(_await, wait)

    def rollback(self, *, delay: float = 0.0, unused: Sequence[Delivery] = ()) -> None:
        """Discard the sends and release the deliveries; all but the unused ones count as delivered.

        If the file cannot be written the release is repeated until it succeeds. In the meantime the deliveries stay
        held, and this process claims no other message of their queues.

        Args:
            delay: Seconds until they may be delivered again.
            unused: Deliveries of this unit that were not processed; their delivery count is not incremented.

        Raises:
            ConnectionLostError: The connection is closed, or the file was removed.
        """
        self._finish()
        due = self._store.now() + round(delay * 1000) if delay else None
        self._release(due=due, unused=unused)

    def _write(self) -> list[str]:
        if not (self._taken or self._outgoing):
            return []
        if self._outgoing:
            self._store.check_disk_space(self._size)
        return self._store.submit(self._settle_and_send)

    def _settle_and_send(self, cursor: sqlite3.Cursor) -> list[str]:
        if self._taken and not settle(cursor, self._taken):
            raise TransactionRolledBackError("a delivery is not ours any more; another consumer has it or had it.")
        if not self._outgoing:
            return []
        self._store.count_added(cursor, enqueue(cursor, self._outgoing, self._context.sender))
        return self._store.other_wakeup_paths(cursor)

    def _release(self, *, due: int | None = None, unused: Sequence[Delivery] = ()) -> bool:
        """Release the deliveries; return False if that failed, and is repeated."""
        if not self._taken:
            return True
        job = partial(self._release_in_transaction, due=due, unused=unused)
        queue_ids = {d.lease.queue_id for d in self._taken}
        try:
            return self._store.release_or_postpone(job, self._released, queue_ids)
        except ConnectionLostError:
            self._forget_deliveries()
            raise

    def _released(self, result: tuple[Sequence[EmbeddedDelivery], list[str]]) -> None:
        later, wakeup_paths = result
        self._store.forget(later)
        self._forget_deliveries()
        self._store.wake_consumers(wakeup_paths)

    def _try_release(self) -> bool:
        """Release what a failed commit has left. On a lost connection there is nothing to release."""
        try:
            return self._release()
        except ConnectionLostError:
            return True

    def _release_in_transaction(
        self, cursor: sqlite3.Cursor, due: int | None, unused: Sequence[Delivery]
    ) -> tuple[Sequence[EmbeddedDelivery], list[str]]:
        """Release all deliveries, after later ones of their consumers that belong to no unit; return the later ones.

        Otherwise the later ones would overtake the released ones.
        """
        spared = {id(d) for d in unused}
        first_by_consumer = {id(d.unsettled): d for d in reversed(self._taken)}
        later = [d for first in first_by_consumer.values() for d in first.unsettled.received_after(first)]
        release(cursor, later, uncount=1)
        release(cursor, [d for d in self._taken if id(d) not in spared], uncount=0, due=due)
        release(cursor, [d for d in self._taken if id(d) in spared], uncount=1, due=due)
        return later, self._store.other_wakeup_paths(cursor)

    def _forget_deliveries(self) -> None:
        taken, self._taken = self._taken, []  # they refer to this unit: leave no reference cycle
        self._store.forget(taken)

    def _finish(self) -> None:
        """Mark the unit as used."""
        if self._finished or self._context.closed:
            raise self._unusable()
        self._finished = True

    def _unusable(self) -> JMSError:
        return lost_unit_error() if self._context.closed else finished_unit_error()


@contextmanager
def _rolled_back_on_failure() -> Generator[None]:
    """Raise `TransactionRolledBackError` for an error of a unit without deliveries that did not commit."""
    try:
        yield
    except (ConnectionLostError, TransactionInDoubtError):
        raise
    except JMSError as error:
        raise TransactionRolledBackError(f"The unit was rolled back: {error}") from error


def _await(wait: Callable[[], object]) -> None:
    with _rolled_back_on_failure():
        wait()
