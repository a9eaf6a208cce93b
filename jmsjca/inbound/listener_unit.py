"""Units of listeners with an inbox: what they send is stored, and a duplicate sends it again instead of the handler."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from jmsjca.destinations import Destination
from jmsjca.messages.message import Message
from jmsjca.outbound.unit_of_work import UnitOfWork

if TYPE_CHECKING:
    import asyncio

__all__ = ["Inbox", "InboxUnit", "ListenerInbox", "OpenInbox", "StoredSend"]


class StoredSend(Protocol):
    """A sent message as the inbox stores it."""

    @property
    def message(self) -> Message:
        """The message, to be sent."""
        ...

    @property
    def to(self) -> Destination:
        """Its destination."""
        ...


class OpenInbox(Protocol):
    """The inbox of one unit, such as `jmsjca.transactions.inbox.UnitInbox`."""

    def admit(self, message: Message, message_id: str | None, *, redelivered: bool) -> Sequence[StoredSend] | None:
        """Return None if the handler has to be called; for a duplicate, the messages to send again.

        Raises:
            TransactionRolledBackError: The inbox cannot be read, so that the message has to be redelivered, uncounted.
        """
        ...

    def begin_shared_call(self) -> None:
        """Begin a call of the handler for several messages: a whole batch, or the end of one."""
        ...

    def record(self, message: Message, to: Destination, send: Callable[[Message, Destination], None]) -> None:
        """Store a message, and send it as it is stored."""
        ...


class ListenerInbox(Protocol):
    """The inbox of one listener."""

    def open(self, manager: object) -> OpenInbox:
        """Return the inbox of one unit."""
        ...

    def is_known(self, message: Message, message_id: str | None) -> bool:
        """Return True if the effects of a message are committed."""
        ...

    def prune_if_due(self) -> None:
        """Delete expired rows from time to time."""
        ...


class Inbox(Protocol):
    """An inbox, such as `jmsjca.transactions.SqlInbox`."""

    @property
    def is_asynchronous(self) -> bool:
        """True if its sessions belong to the event loop of the handlers."""
        ...

    def prepare(self) -> None:
        """Create what is missing in the database, unless that needs an event loop."""
        ...

    def of_listener(self, name: str, loop: "Callable[[], asyncio.AbstractEventLoop]") -> ListenerInbox:
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

    inbox: OpenInbox | None

    def send(self, message: Message, to: Destination) -> None:
        """Add a message to send at the commit, in the form in which a duplicate would send it again.

        Raises:
            MessageFormatError: The message cannot be stored.
            NotSupportedError: The broker cannot acknowledge and send together.
        """
        if self.inbox is None:
            super().send(message, to)
            return
        self.inbox.record(message, to, super().send)

    def begin_shared_call(self) -> None:
        """Begin a call of the handler for several messages: a whole batch, or the end of one."""
        if self.inbox is not None:
            self.inbox.begin_shared_call()

    def send_again(self, sends: Sequence[StoredSend]) -> None:
        """Add the messages of a duplicate."""
        for send in sends:
            super().send(send.message, send.to)
