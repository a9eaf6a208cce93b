"""A session: what `Connection.create_session` makes, and what a listener's handler gets."""

from typing import Self

from jmsjca import spi
from jmsjca.config import AcknowledgeMode, Limits
from jmsjca.destinations import Destination
from jmsjca.hooks import HookChain
from jmsjca.outbound.base_session import BaseSession
from jmsjca.outbound.flow import Flow
from jmsjca.outbound.ground import Ground
from jmsjca.outbound.producer import MessageProducer
from jmsjca.outbound.transacted import Joined
from jmsjca.outbound.work import WorkUnit

__all__ = ["Session"]


class Session(BaseSession):
    """Made by `Connection.create_session` (JMS 3.1, section 6.2).

    A transacted session always has an open unit: what it receives and sends belongs to it until `commit` or
    `rollback` ends it and the next one begins. Otherwise each send is a unit of its own.
    """

    @classmethod
    def joined_to(cls, link: spi.Connection, work: WorkUnit, limits: Limits, hooks: HookChain | None = None) -> Self:
        """Make a session whose sends belong to a unit that somebody else settles: that of a delivery."""
        ground = Ground(link, limits, Flow(running=True), hooks=hooks or HookChain())
        return cls(ground, transacted=True, acknowledge_mode=AcknowledgeMode.AUTO, mode=Joined(link, work))

    def create_producer(self, destination: Destination | None = None) -> MessageProducer:
        """Make a producer; without a destination each send names one.

        Raises:
            InvalidDestinationError: It is no destination.
        """
        with self._gate:
            return MessageProducer(self, destination)
