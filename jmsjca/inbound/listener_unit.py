"""The units of a listener: how they end, alone or in a container-managed transaction, and those with an inbox."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from importlib import import_module
from typing import TYPE_CHECKING, Protocol

from jmsjca import spi
from jmsjca.destinations import Destination
from jmsjca.messages.message import Message
from jmsjca.outbound.unit_of_work import UnitOfWork

if TYPE_CHECKING:  # the inbox needs SQLAlchemy, an extra
    import asyncio

    from jmsjca.transactions.inbox import ListenerInbox, UnitInbox
    from jmsjca.transactions.stored_message import StoredSend

__all__ = [
    "BeginTransaction",
    "Inbox",
    "InboxUnit",
    "LocalTransaction",
    "UnitTransaction",
    "begin_container_transaction",
    "require_container_transactions",
]


class Inbox(Protocol):
    """An inbox, such as `jmsjca.transactions.SqlInbox`."""

    @property
    def is_asynchronous(self) -> bool:
        """True if its sessions belong to the event loop of the handlers."""
        ...

    def prepare(self) -> None:
        """Create what is missing in the database, unless that needs an event loop."""
        ...

    def of_listener(self, name: str, loop: "Callable[[], asyncio.AbstractEventLoop]") -> "ListenerInbox":
        """Return the inbox of one listener.

        Args:
            name: The name of the listener.
            loop: Returns the event loop of its handler.
        """
        ...


class InboxUnit(UnitOfWork):
    """A unit of work that stores what the handler sends.

    Attributes:
        inbox: The inbox of the unit; None until the unit has one.
    """

    __slots__ = ("inbox",)

    inbox: "UnitInbox | None"

    def send(self, message: Message, to: Destination, *, atomic: bool = True) -> None:
        """Add a message to send at the commit, in the form in which a duplicate would send it again.

        Raises:
            MessageFormatError: The message cannot be stored.
            NotSupportedError: The broker cannot acknowledge and send together.
        """
        if self.inbox is None:
            super().send(message, to, atomic=atomic)
            return
        self.inbox.record(message, to, super().send)

    def begin_shared_call(self) -> None:
        """Begin a call of the handler for several messages: a whole batch, or the end of one."""
        if self.inbox is not None:
            self.inbox.begin_shared_call()

    def send_again(self, sends: "Sequence[StoredSend]") -> None:
        """Add the messages of a duplicate."""
        for send in sends:
            super().send(send.message, send.to)


class UnitTransaction(Protocol):
    """The transaction of one unit, which the unit's end ends."""

    @property
    def manager(self) -> object:
        """The transaction manager, for handlers; None without a container-managed transaction."""
        ...

    @property
    def is_doomed(self) -> bool:
        """True if the handler has marked the transaction for rollback."""
        ...

    def current(self) -> AbstractContextManager[None]:
        """Make the transaction that of the current thread during the block."""
        ...

    def commit(self) -> None:
        """Commit, as `UnitOfWork.commit` does."""
        ...

    def rollback(self, *, delay: float = 0.0) -> None:
        """Roll back, as `UnitOfWork.rollback` does."""
        ...

    def abandon(self) -> None:
        """Roll back what is still open, after an error."""
        ...


BeginTransaction = Callable[[UnitOfWork, spi.Connection], UnitTransaction]
"""Begins the transaction of a unit."""

_NO_CONTEXT = nullcontext()


class LocalTransaction:
    """A unit that is a transaction of its own.

    Args:
        confirmed: False to return from the commit without waiting for the broker.
        unit: The unit of work.
        connection: The unit's connection.
    """

    __slots__ = ("_confirmed", "_unit")

    manager: None = None
    is_doomed: bool = False

    def __init__(self, confirmed: bool, unit: UnitOfWork, connection: spi.Connection) -> None:  # for `partial`
        del connection
        self._unit = unit
        self._confirmed = confirmed

    def current(self) -> AbstractContextManager[None]:
        """Return a context without effect: there is no transaction manager."""
        return _NO_CONTEXT

    def commit(self) -> None:
        """Commit the unit."""
        self._unit.commit(confirmed=self._confirmed)

    def rollback(self, *, delay: float = 0.0) -> None:
        """Roll the unit back."""
        self._unit.rollback(delay=delay)

    def abandon(self) -> None:
        """Do nothing: the caller marks the unit as lost."""


def require_container_transactions(locator: str | None) -> None:
    """Raise an error if container-managed transactions cannot be.

    Args:
        locator: The name of the locator of the thread's transaction manager; None for that of the package.

    Raises:
        ProviderNotInstalledError: The `transaction` package or SQLAlchemy is not installed.
        InvalidOptionError: There is no locator of that name, or it finds no manager of threads.
    """
    import_module("jmsjca.transactions.locators").threads_manager(locator)


def begin_container_transaction(locator: str | None, unit: UnitOfWork, connection: spi.Connection) -> UnitTransaction:
    """Begin the container-managed transaction of a unit.

    Args:
        locator: The name of the locator of the thread's transaction manager; None for that of the package.
        unit: The unit of work.
        connection: The unit's connection.

    Raises:
        NotSupportedError: The broker does not commit units atomically.
    """
    from jmsjca.transactions.container_transaction import ContainerTransaction  # an optional package

    return ContainerTransaction(unit, connection, locator)
