"""The current unit of a session, and the rule that one thread at a time uses it."""

# pyright: reportPrivateUsage=false
# `_abort` is private to the objects of the API, and the decorator calls it.

import threading
from _thread import RLock
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from functools import partial, wraps
from threading import Lock, get_ident
from typing import ClassVar, Concatenate, ParamSpec, Protocol, Self, TypeVar, cast

from jmsjca import spi
from jmsjca.destinations import Destination
from jmsjca.errors import ConnectionLostError, IllegalStateError, JMSError, NotSupportedError, TransactionInDoubtError
from jmsjca.forking import Process, forked_error
from jmsjca.hooks import AroundCommit
from jmsjca.messages.delivery import DeliveryContext, Outcome, Settlement, bind_delivery, complete_settlement
from jmsjca.messages.message import Message

__all__ = [
    "Abortable",
    "ConnectionAbort",
    "CurrentUnit",
    "Enlistment",
    "JoinedUnit",
    "PrefetchOwner",
    "SessionLock",
    "SessionMember",
    "TransactionBlock",
    "UnitOfWork",
    "aborts_if_interrupted",
]

P = ParamSpec("P")
R = TypeVar("R")


class ConnectionAbort:
    """Aborts a connection because an exception has interrupted one of its calls; later calls get an error that says so.

    Args:
        end: Ends the connection because of the exception, without waiting for the broker: open units are lost, and
            their messages redelivered.

    Attributes:
        cause: The name of the exception that interrupted a call; None before.
    """

    __slots__ = ("_end", "cause")

    def __init__(self, end: Callable[[BaseException], object]) -> None:
        self._end = end
        self.cause: str | None = None

    def __call__(self, error: BaseException) -> None:
        """Abort the connection. It can be repeated."""
        self.cause = self.cause or type(error).__name__
        with suppress(JMSError):  # the connection is lost, and the broker redelivers by itself
            self._end(error)

    def error(self) -> ConnectionLostError:
        """Return the error for a later call."""
        return ConnectionLostError(
            f"A call on this connection was interrupted ({self.cause}), so the connection was aborted: its open "
            "transactions are lost, and messages that were not acknowledged are redelivered. Open another connection."
        )


class Abortable:
    """Base class of API objects. An interrupted call aborts the connection of its object, with `_abort`."""

    __slots__ = ()

    _abort: ConnectionAbort


A = TypeVar("A", bound=Abortable)


def aborts_if_interrupted(method: Callable[Concatenate[A, P], R]) -> Callable[Concatenate[A, P], R]:
    """Decorate a method of the API: if it is interrupted, its connection is aborted.

    An exception other than a `JMSError` comes from a signal handler (`KeyboardInterrupt`, `SystemExit`), was thrown
    into the thread, or is a bug. Each of them may leave a unit half done, so the connection ends with all of its units.
    No message is lost or duplicated by that.
    """

    @wraps(method)
    def call(self: A, /, *args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return method(self, *args, **kwargs)
        except JMSError as error:
            if self._abort.cause is None or type(error) is not IllegalStateError:
                raise
            raise self._abort.error() from error  # the provider has only seen a close
        except BaseException as error:
            self._abort(error)
            raise

    return call


class SessionLock(RLock):  # type: ignore[misc]  # it is no final class
    """Reentrant lock that is entered for every use of a session or of an object that it created.

    A second thread gets an error instead of waiting: two threads may use a session one after the other, but not at the
    same time. Only `exclusive` waits.

    Attributes:
        abort: Aborts the connection; set by the session.
        forks: The process of the session, see `Process.forks`.
        closed: True as soon as closing the session has begun.
    """

    __slots__ = ("_owner", "abort", "closed", "forks")

    def __init__(self) -> None:
        self._owner = 0
        self.abort = ConnectionAbort(_nothing)
        self.forks = Process.forks
        self.closed = False

    def __enter__(self) -> bool:  # type: ignore[override]
        if not self.acquire(False):  # positional: the keyword would cost half as much as this method
            self.check_open()
            # The closing thread holds it, or another one that uses the session; or it was held at a fork.
            raise IllegalStateError(
                f"Thread {threading.current_thread().name!r} cannot use this session while thread "
                f"{_thread_name(self._owner)!r} does: a session is for one thread at a time (JMS 3.1, section 6.2.5). "
                "Make one session for each thread; they may share the connection."
            )
        if self.closed or self.abort.cause is not None or self.forks != Process.forks:
            self.release()
            self.check_open()
        self._owner = get_ident()
        return True

    @property
    def in_child(self) -> bool:
        """True in a forked child of the process of the session."""
        return self.forks != Process.forks

    def check_open(self) -> None:
        """Raise an error if the session cannot be used.

        Raises:
            IllegalStateError: The session is closed.
            ConnectionLostError: The session belongs to the parent of this process, or its connection was aborted.
        """
        if self.in_child:
            raise forked_error()
        if self.closed:
            raise IllegalStateError("The session is closed.")
        if self.abort.cause is not None:
            raise self.abort.error()

    @contextmanager
    def exclusive(self) -> Generator[None]:
        """Wait until the call in progress has ended, and refuse other threads during the block.

        A session is closed in such a block, and its message listeners are called in one. After an abort it does not
        wait: the interrupted call may have left the session locked.
        """
        self.acquire(self.abort.cause is None)
        try:
            self._owner = get_ident()
            yield
        finally:
            with suppress(RuntimeError):  # this thread does not have it
                self.release()


class SessionMember(Abortable):
    """A session, or an object that it created: they share a lock, which knows the connection."""

    __slots__ = ()

    _lock: SessionLock
    _closed: bool
    _closed_text: ClassVar[str] = ""  # of objects that are closed on their own

    def _check_open(self) -> None:
        self._lock.check_open()
        if self._closed_text and self._closed:
            raise IllegalStateError(self._closed_text)

    @property
    def _abort(self) -> ConnectionAbort:  # type: ignore[override]  # not set by any object
        return self._lock.abort


def _nothing(_: BaseException) -> None:
    """Do nothing: no session has the lock yet."""


def _thread_name(ident: int) -> str:
    return next((thread.name for thread in threading.enumerate() if thread.ident == ident), f"number {ident}")


class UnitOfWork:
    """A provider's unit that records its outcome and reports it to a `Settlement`.

    Args:
        unit: The provider's unit.
        atomic: True if the broker acknowledges and sends together or not at all.
        lock: The lock of the session that owns the unit; None if the messages may outlive the session.

    Attributes:
        unit: The provider's unit.
        outcome: The outcome; None while the unit is open.
        sends: The number of messages that the handler of a listener has sent in this unit.
        rollback_only: True once `set_rollback_only` was called on a message of this unit.
        sending: Held during a send of a handler: it may use several threads.
        unused: Deliveries of this unit that no handler saw, so that a rollback does not count them.
    """

    __slots__ = (
        "_atomic",
        "_ending",
        "_lock",
        "_noted",
        "_settlement",
        "outcome",
        "rollback_only",
        "sending",
        "sends",
        "unit",
        "unused",
    )

    endpoint: None = None  # the messages of a session belong to no listener

    def __init__(self, unit: spi.Unit, *, atomic: bool = True, lock: SessionLock | None = None) -> None:
        self._atomic = atomic
        self._lock = lock
        self._ending = Lock()  # a settlement created while the unit ends must not miss the outcome
        self._settlement: Settlement | None = None
        self._noted: tuple[AroundCommit, list[tuple[Message, Destination]]] | None = None  # few units note anything
        self.unit = unit
        self.outcome: Outcome | None = None
        self.sends = 0
        self.sending = Lock()
        self.rollback_only = False
        self.unused: Sequence[spi.Delivery] = ()

    @classmethod
    def begin(cls, connection: spi.Connection, lock: SessionLock | None = None, *, sends: bool = True) -> Self:
        """Open a unit with the strongest guarantee of the broker.

        Args:
            connection: The provider's connection.
            lock: The lock of the session that owns the unit, if any.
            sends: False if the unit only acknowledges, which needs no atomicity.
        """
        atomic = sends and connection.capabilities.atomic
        return cls(connection.unit(atomic=atomic), atomic=atomic, lock=lock)

    @property
    def settlement(self) -> Settlement:
        """The settlement of the messages of this unit. Created on first use, because most are never asked for."""
        with self._ending:
            if self._settlement is None:
                self._settlement = Settlement()
                if self.outcome is not None:
                    complete_settlement(self._settlement, self.outcome)
            return self._settlement

    def send(self, message: Message, to: Destination, *, atomic: bool = True) -> None:
        """Add a message to send at the commit.

        Args:
            message: The message.
            to: Its destination.
            atomic: False to accept a broker that cannot acknowledge and send together: it gets the message before the
                acknowledgements.

        Raises:
            NotSupportedError: The broker cannot acknowledge and send together.
        """
        if atomic and not self._atomic:
            raise NotSupportedError(
                f"This broker cannot acknowledge a message and send another to {to} together (its capability atomic "
                "says so). Send with a session of your own, and expect the message again if the acknowledgement fails."
            )
        self.unit.send(message, to)

    def note(self, message: Message, to: Destination, around: AroundCommit) -> None:
        """Record a message that the commit sends, for hooks.

        Args:
            message: The message.
            to: Its destination.
            around: Called by `commit`, with all recorded messages and a function that commits.
        """
        if self._noted is None:
            self._noted = around, []
        self._noted[1].append((message, to))

    def take(self, delivery: spi.Delivery, bound_to: DeliveryContext | None = None) -> Message:
        """Add a delivery to this unit, bind its message to the unit and return the message.

        Args:
            delivery: The received delivery.
            bound_to: The context to bind the message to; None for this unit.

        Raises:
            MessageFormatError: The message cannot be decoded; its delivery belongs to the unit nevertheless.
        """
        self.unit.take([delivery])
        message = delivery.message
        bind_delivery(message, bound_to or self)
        return message

    def prepare(self) -> spi.Xid | None:
        """Prepare the unit, so that only `commit` or `rollback` may follow; None if it is empty.

        Raises:
            TransactionRolledBackError: It cannot be committed.
        """
        return cast("spi.TwoPhaseUnit", self.unit).prepare()

    def abandon(self) -> None:
        """Leave the prepared unit to recovery, as the database does not answer. The connection ends."""
        try:
            cast("spi.TwoPhaseUnit", self.unit).abandon()
        finally:
            self._end(Outcome.IN_DOUBT)

    def commit(self, *, confirmed: bool = True) -> None:
        """Commit the unit.

        Args:
            confirmed: False to return without waiting for the broker to confirm the acknowledgements.

        Raises:
            TransactionRolledBackError: The unit was not committed.
            TransactionInDoubtError: The unit may or may not have been committed.
            ConnectionLostError: The connection was lost before; nothing was committed.
        """
        if self._noted is not None:
            (around, sends), self._noted = self._noted, None
            around(sends, partial(self.commit, confirmed=confirmed))
            return
        outcome = Outcome.IN_DOUBT  # if it is interrupted
        try:
            self.unit.commit(confirmed=confirmed)
            outcome = Outcome.COMMITTED
        except JMSError as error:
            outcome = _outcome(error)
            raise
        finally:
            self._end(outcome)

    def rollback(self, *, delay: float = 0.0) -> None:
        """Roll the unit back: its deliveries are redelivered after ``delay`` seconds, and counted but the unused."""
        outcome = Outcome.LOST  # if it is interrupted
        try:
            if delay or self.unused:
                self.unit.rollback(delay=delay, unused=self.unused)
            else:
                self.unit.rollback()
            outcome = Outcome.ROLLED_BACK
        except JMSError as error:
            outcome = _outcome(error)
            raise
        finally:
            self._end(outcome)

    def mark_lost(self) -> None:
        """Set the outcome of an open unit to lost, without a call of the provider: the unit was abandoned."""
        if self.outcome is None:
            self._end(Outcome.LOST)

    def acknowledge(self) -> Settlement:
        """Return the settlement. The end of the unit acknowledges.

        Raises:
            IllegalStateError: The session is closed (JMS 3.1, section 6.2.15).
        """
        if self._lock is not None:
            self._lock.check_open()
        return self.settlement

    def set_rollback_only(self) -> None:
        """Mark the unit so that it ends in a rollback.

        Raises:
            IllegalStateError: The unit has ended.
        """
        if self.outcome is not None:
            raise IllegalStateError(f"The unit of this message is settled already: {self.outcome.value}.")
        self.rollback_only = True

    def _end(self, outcome: Outcome) -> None:
        with self._ending:
            self.outcome = outcome
            settlement = self._settlement
        if settlement is not None:
            complete_settlement(settlement, outcome)


def _outcome(error: JMSError) -> Outcome:
    if isinstance(error, TransactionInDoubtError):
        return Outcome.IN_DOUBT
    return Outcome.LOST if isinstance(error, ConnectionLostError) else Outcome.ROLLED_BACK


class PrefetchOwner(Protocol):
    """The consumer that a delivery came from, and that may hold prefetched messages."""

    def discard_prefetched(self) -> None:
        """Forget all prefetched messages: a rollback has released them, to keep the order."""
        ...

    def return_prefetched(self) -> None:
        """Release the prefetched messages that are not released already."""
        ...


class TransactionBlock:
    """The block of ``with session.transaction()``: it cannot be nested, as its end ends the only open unit."""

    __slots__ = ("_entered",)

    def __init__(self) -> None:
        self._entered = False

    def __enter__(self) -> None:
        if self._entered:
            raise IllegalStateError(
                "session.transaction() cannot be nested: the end of the inner block would commit what the outer block "
                "has sent and received. Use one block, or a second session."
            )
        self._entered = True

    def __exit__(self, *error: object) -> None:
        self._entered = False


class CurrentUnit:
    """The open unit of a session; the next one is opened when it is needed.

    Args:
        begin: Opens a unit.
        context: Returns the context that messages are bound to, for a unit and this object; None to bind them to the
            unit itself.

    Attributes:
        unit: The open unit; None before anything belongs to it.
    """

    def __init__(
        self,
        begin: Callable[[], UnitOfWork],
        context: "Callable[[UnitOfWork, CurrentUnit], DeliveryContext] | None" = None,
    ) -> None:
        self._begin = begin
        self._context = context
        self._bound_to: DeliveryContext | None = None
        self._sources: set[PrefetchOwner] = set()
        self.unit: UnitOfWork | None = None

    def get_or_begin(self) -> UnitOfWork:
        """Return the open unit, or open one."""
        if self.unit is None:
            unit = self._begin()
            self._bound_to = self._context and self._context(unit, self)
            self.unit = unit
        return self.unit

    def take(self, delivery: spi.Delivery, source: PrefetchOwner) -> Message:
        """Add a delivery to the unit and return its message.

        Args:
            delivery: The received delivery.
            source: The consumer that it came from.

        Raises:
            MessageFormatError: The message cannot be decoded; its delivery belongs to the unit nevertheless.
        """
        unit = self.unit or self.get_or_begin()
        self._sources.add(source)
        return unit.take(delivery, self._bound_to)

    def send(self, message: Message, to: Destination) -> None:
        """Add a message to send at the commit."""
        self.get_or_begin().send(message, to)

    def prepare(self) -> spi.Xid | None:
        """Prepare the open unit, if any, as `UnitOfWork.prepare` does."""
        return None if self.unit is None else self.unit.prepare()

    def abandon(self) -> None:
        """Leave the prepared unit to recovery, as `UnitOfWork.abandon` does."""
        self._end(UnitOfWork.abandon)

    def commit(self, *, confirmed: bool = True) -> None:
        """Commit the open unit, if any. See `UnitOfWork.commit` for ``confirmed``."""
        self._end(lambda unit: unit.commit(confirmed=confirmed))

    def rollback(self, *, delay: float = 0.0) -> None:
        """Roll the open unit back, if any. See `UnitOfWork.rollback` for ``delay``."""
        self._end(lambda unit: unit.rollback(delay=delay))

    def _end(self, end: Callable[[UnitOfWork], None]) -> None:
        unit, self.unit, self._bound_to = self.unit, None, None  # the ended unit must not be kept alive from here
        sources, self._sources = self._sources, set()
        if unit is None:
            return
        try:
            end(unit)
        finally:
            for source in sources:
                if unit.outcome is Outcome.ROLLED_BACK:
                    source.discard_prefetched()
                elif unit.outcome is Outcome.IN_DOUBT:  # its deliveries may be released, and all prefetched after them
                    source.return_prefetched()


class JoinedUnit(Protocol):
    """The unit with which the sessions of a connection take part in a transaction of a transaction manager."""

    @property
    def is_over(self) -> bool:
        """True once the transaction has ended."""
        ...

    @property
    def current(self) -> CurrentUnit:
        """The receipts and sends, which the end of the transaction ends."""
        ...


class Enlistment(Protocol):
    """Joins the sessions of one connection to the transactions of a transaction manager."""

    @property
    def emulates(self) -> bool:
        """True if the sessions may end their unit before the transaction does (``JMSJCA.NoXA``)."""
        ...

    @property
    def is_inside(self) -> bool:
        """True if the caller is in a transaction."""
        ...

    def unit(self) -> JoinedUnit | None:
        """Return the unit in the caller's transaction, which it joins if it has not; None outside of one.

        Raises:
            IllegalStateError: Another connection has joined the transaction.
            NotSupportedError: The broker does not commit units atomically.
        """
        ...

    def keep(self, key: object, kept: object, release: Callable[[], None]) -> None:
        """Call a function when all joined transactions of the connection are over; at once if no one is open.

        Args:
            key: Identifies the users of the connection that may go on with it in the same transaction.
            kept: The connection for them, which `take_kept` returns; then ``release`` is not called.
            release: The function.
        """
        ...

    def take_kept(self, key: object, record: Callable[[object], object]) -> object | None:
        """Return what is kept under a key, for further use; None if nothing is."""
        ...
