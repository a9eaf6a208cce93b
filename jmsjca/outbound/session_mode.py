"""What a session does with what it receives and sends, by its mode."""

from abc import ABC, abstractmethod
from typing import ClassVar

from jmsjca import spi
from jmsjca.destinations import Destination
from jmsjca.errors import IllegalStateError
from jmsjca.messages import Message
from jmsjca.outbound.gate import Gate
from jmsjca.outbound.open_unit import Source

__all__ = ["Mode"]


class Mode(ABC):
    """One of the modes of JMS 3.1, sections 6.2.7 and 6.2.10; here what all have in common but the transacted ones.

    Args:
        link: The provider's connection.

    Attributes:
        transacted: True if sends and receipts belong to a transaction.
        automatic: True if a message is acknowledged because `receive` returned it.
        order: In which order what was received is settled.
        gate: Entered for every use of the session.
    """

    transacted: ClassVar[bool] = False
    automatic: ClassVar[bool] = False
    order: ClassVar[spi.Order] = spi.Order.PREFIX

    def __init__(self, link: spi.Connection) -> None:
        self._link = link
        self.gate = Gate()

    @abstractmethod
    def take(self, delivery: spi.Delivery, source: Source) -> Message:
        """Hand a delivery over, acknowledged as the mode says.

        Raises:
            MessageFormatError: The message cannot be decoded.
        """

    def send(self, message: Message, to: Destination) -> None:
        """Send at once."""
        unit = self._link.unit(atomic=False)  # there is only one thing to do
        unit.send(message, to)
        unit.commit()

    def idle(self) -> None:  # noqa: B027  # nothing, in most modes
        """Do what was put off until a consumer has nothing left to hand over."""

    def acknowledge(self) -> None:  # noqa: B027  # nothing, in most modes
        """Acknowledge what was received, where that is up to the client; no effect elsewhere."""

    def check_receives(self) -> None:  # noqa: B027  # nothing, in most modes
        """Refuse consumers, where somebody else receives."""

    def check_commits(self) -> None:
        """Refuse `commit` and `rollback` but in a transacted session.

        Raises:
            IllegalStateError: It has no transaction, or not one of its own.
        """
        raise IllegalStateError("This session is not transacted: create_session(transacted=True).")

    def commit(self) -> None:
        """Commit what is open."""
        self.check_commits()

    def rollback(self) -> None:
        """Roll back what is open."""
        self.check_commits()

    @abstractmethod
    def recover(self) -> None:
        """Let what was not acknowledged come again."""

    @abstractmethod
    def close(self) -> None:
        """End what is open. Closing twice does nothing."""
