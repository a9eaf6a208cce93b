"""The interface of dispatchers, and the common part of those with several handlers at work."""

import threading
from abc import ABC, abstractmethod
from typing import Protocol

from jmsjca import spi
from jmsjca.errors import ConnectionLostError
from jmsjca.inbound.concurrency import Outstanding
from jmsjca.inbound.delivery_attempt import InHand
from jmsjca.inbound.endpoint import Endpoint
from jmsjca.inbound.hold_until_ack import HeldInHand, Keeper

__all__ = ["ConcurrentDelivery", "Delivery"]


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
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)  # `with` takes the lock itself: that costs less
        self._stopping = self._given_up = False
        self._error: Exception | None = None
        self._hands: set[InHand] = set()  # whose handlers are at work
        self._keeper = Keeper(endpoint.name, endpoint.clock, self.stop) if endpoint.terms.hold else None

    def run(self) -> None:
        """Deliver until told to stop; then wait for the handlers at work, and settle what is held.

        Raises:
            JMSError: The connection broke, or something else failed; handlers at work are not waited for then.
            Exception: There is a fault, in the provider or here; likewise.
        """
        try:
            self._run()
        except Exception as error:  # noqa: BLE001  # raised when all has ended
            self.stop(error)
        finally:
            self._give_up()
            self._close()
            if self._keeper is not None:
                self._keeper.close()
        if self._error is not None:
            raise self._error

    def stop(self, error: Exception | None = None) -> None:
        """Take no more messages; with an error let `run` end at once, whatever the handlers do."""
        with self._lock:
            self._stopping = True
            self._error = self._error or error
            self._changed.notify_all()
        self._wake()
        self.outstanding.close()

    def take_in_hand(self) -> InHand:
        """Open a unit, in a place that is reserved for it.

        Raises:
            ConnectionLostError: The connection is given up.
        """
        hand = self._open()
        with self._lock:
            if self._given_up:
                raise ConnectionLostError(
                    f"The connection of {self.endpoint.name} is given up; its messages come again."
                )
            self._hands.add(hand)
        return hand

    def put_down(self, hand: InHand) -> None:
        """Note that the handler is done with a unit."""
        with self._lock:
            self._hands.discard(hand)

    @abstractmethod
    def _run(self) -> None:
        """Deliver until told to stop."""

    @abstractmethod
    def _wake(self) -> None:
        """Let waits for messages end."""

    def _close(self) -> None:  # noqa: B027  # not everybody has something to close
        """Leave nothing behind."""

    def _place_is_free(self) -> None:  # noqa: B027  # who waits for one is told
        """A unit has been settled."""

    def _open(self) -> InHand:
        if self._keeper is None:
            return InHand(self.endpoint, self.link, self.outstanding)
        return HeldInHand(self.endpoint, self.link, self.outstanding, self._keeper)

    def _give_up(self) -> None:
        """From now on no handler begins; those at work are left alone."""
        with self._lock:
            self._given_up = True
            self.endpoint.abandon(self._hands)


class Delivery(Protocol):
    """Delivers the messages of one connection."""

    def run(self) -> None:
        """Deliver until told to stop.

        Raises:
            JMSError: The connection broke, or something else failed.
            Exception: There is a fault, in the provider or here.
        """
        ...

    def stop(self, error: Exception | None = None) -> None:
        """Let `run` end when the handlers at work are done; with an error at once, by raising it."""
        ...
