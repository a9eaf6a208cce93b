"""The units of a listener, how they end (alone or in a container-managed transaction), and units with an inbox."""

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Protocol

from jmsjca import spi
from jmsjca.destinations import Destination
from jmsjca.messages.message import Message
from jmsjca.outbound.unit_of_work import UnitOfWork

if TYPE_CHECKING:  # these modules need extras
    import asyncio

    from jmsjca.transactions.container_transaction import ContainerTransaction
    from jmsjca.transactions.inbox import ListenerInbox, UnitInbox
    from jmsjca.transactions.stored_message import StoredSend

__all__ = [
    "Inbox",
    "InboxUnit",
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
        """Create missing tables in the database, unless that needs an event loop."""
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
        """Add a message to send at the commit, in the same form in which a duplicate would send it again.

        Raises:
            MessageFormatError: The message cannot be stored.
            NotSupportedError: The broker cannot acknowledge and send together.
        """
        if self.inbox is None:
            super().send(message, to, atomic=atomic)
            return
        self.inbox.record(message, to, super().send)

    def begin_shared_call(self) -> None:
        """Begin a call of the handler for several messages: a whole batch, or the end of a batch."""
        if self.inbox is not None:
            self.inbox.begin_shared_call()

    def send_again(self, sends: "Sequence[StoredSend]") -> None:
        """Add the messages of a duplicate."""
        for send in sends:
            super().send(send.message, send.to)


def require_container_transactions(locator: str | None) -> None:
    """Raise an error if container-managed transactions are not available.

    Args:
        locator: The name of the locator of the thread's transaction manager; None for the manager of the package.

    Raises:
        ProviderNotInstalledError: The `transaction` package or SQLAlchemy is not installed.
        InvalidOptionError: There is no locator with that name, or it does not find a thread-local manager.
    """
    import_module("jmsjca.transactions.locators").threads_manager(locator)


def begin_container_transaction(
    locator: str | None, unit: UnitOfWork, connection: spi.Connection
) -> "ContainerTransaction":
    """Begin the container-managed transaction of a unit.

    Args:
        locator: The name of the locator of the thread's transaction manager; None for the manager of the package.
        unit: The unit of work.
        connection: The unit's connection.

    Raises:
        NotSupportedError: The broker does not commit units atomically.
    """
    from jmsjca.transactions.container_transaction import ContainerTransaction  # an optional package

    return ContainerTransaction(unit, connection, locator)
