"""What the two modes with several handlers at work have in common."""

import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable

from jmsjca import spi
from jmsjca.errors import JMSError
from jmsjca.inbound.endpoint import Endpoint
from jmsjca.inbound.held import HeldInHand
from jmsjca.inbound.in_hand import InHand
from jmsjca.inbound.keeper import Keeper
from jmsjca.inbound.outstanding import Outstanding

__all__ = ["ConcurrentDelivery"]


class ConcurrentDelivery(ABC):
    """Several units are open at one time, and are settled in any order.

    Args:
        endpoint: Whose messages.
        link: Where they come from.
    """

    def __init__(self, endpoint: Endpoint, link: spi.Connection) -> None:
        self.endpoint = endpoint
        self.link = link
        self.outstanding = Outstanding(endpoint.terms.max_outstanding, self._place_is_free)
        self._changed = threading.Condition()
        self._stopping = False
        self._error: JMSError | None = None
        self._keeper = Keeper(endpoint.name, endpoint.clock, self.stop) if endpoint.terms.hold else None

    def run(self) -> None:
        """Deliver until told to stop; then wait for the handlers at work, and settle what is held.

        Raises:
            JMSError: The connection broke, or something else failed; handlers at work are not waited for then.
        """
        try:
            self._run()
        finally:
            self.endpoint.abandon(self._at_work())
            if self._keeper is not None:
                self._keeper.close()
        if self._error is not None:
            raise self._error

    def stop(self, error: JMSError | None = None) -> None:
        """Take no more messages; with an error let `run` end at once, whatever the handlers do."""
        with self._changed:
            self._stopping = True
            self._error = self._error or error
            self._changed.notify_all()
        self.outstanding.wake()
        self._wake()

    def take_in_hand(self) -> InHand:
        """Open a unit, in a place that is reserved for it."""
        if self._keeper is None:
            return InHand(self.endpoint, self.link, self.outstanding)
        return HeldInHand(self.endpoint, self.link, self.outstanding, self._keeper)

    @abstractmethod
    def _run(self) -> None:
        """Deliver until told to stop."""

    @abstractmethod
    def _wake(self) -> None:
        """Let waits for messages end."""

    def _place_is_free(self) -> None:  # noqa: B027  # who waits for one is told
        """A unit has been settled."""

    @abstractmethod
    def _at_work(self) -> Iterable[InHand]:
        """Give the units whose handlers are at work."""
