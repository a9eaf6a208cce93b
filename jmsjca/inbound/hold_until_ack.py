"""Held acknowledgement: a unit that somebody else settles, later."""

from threading import Lock
from typing import TYPE_CHECKING

from jmsjca import spi
from jmsjca.inbound.asked import asked_timeout
from jmsjca.inbound.delivered import Held
from jmsjca.inbound.in_hand import InHand
from jmsjca.messages import Message, Settlement

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from jmsjca.inbound.endpoint import Endpoint
    from jmsjca.inbound.keeper import Keeper
    from jmsjca.inbound.outstanding import Outstanding

__all__ = ["HeldInHand"]


class HeldInHand(InHand):
    """Settled when every message of it is acknowledged, and the end of its batch too.

    The delivering thread goes on as soon as the handler has returned. Whoever acknowledges last does not wait either:
    the keeper settles.

    Args:
        endpoint: Whose messages.
        link: Where they came from.
        outstanding: Where a place is reserved for it.
        keeper: Keeps the unit until it is acknowledged.

    Attributes:
        claimed: True once somebody settles it, or is about to.
        timeout: Seconds after which it is rolled back; None for never.
    """

    def __init__(
        self, endpoint: "Endpoint", link: spi.Connection, outstanding: "Outstanding", keeper: "Keeper"
    ) -> None:
        super().__init__(endpoint, link, outstanding)
        self._keeper = keeper
        self._lock = Lock()
        self._contexts: list[Held] = []
        self._before = 0  # how many there were before the handler was called last
        self._acknowledged = 0
        self._complete = self.claimed = False
        self._settlement: Settlement | None = None
        self.timeout = endpoint.terms.acknowledgement_timeout

    def finish(self) -> None:
        """Tell the handler that the batch is over, and leave the rest to whoever acknowledges."""
        self.end_batch()
        with self._lock:
            self._complete = True
            settle_now = self._claim_if_acknowledged()
        if settle_now:
            self.settle()
        else:
            self._keeper.keep(self)
        self._keeper.help()

    def acknowledged(self, context: Held) -> None:
        """Note that a message is acknowledged; it is not the last time that the unit hears of that message."""
        with self._lock:
            if context.acknowledged:
                return
            context.acknowledged = True
            self._acknowledged += 1
            settle_now = self._complete and self._claim_if_acknowledged()
        if settle_now:
            self._keeper.settle_soon(self)

    @property
    def settlement(self) -> Settlement:
        """Tells how it ended; the same for all of its messages, and whoever asks at the same time makes the same."""
        if self._settlement is None:
            settlement = self.work.settlement
            settlement.guard(self.is_asked_by_handler)
            self._settlement = settlement
        return self._settlement

    def give_up(self) -> bool:
        """Roll back instead of waiting any longer; False if it is being settled already."""
        with self._lock:
            if self.claimed:
                return False
            self.claimed = True
        self.work.set_rollback_only()
        return True

    def settle(self) -> None:
        """Commit or roll back, and let the messages be unknown to the registry."""
        try:
            super().settle()
        finally:
            self.endpoint.held.forget(self._contexts, self.work.outcome)
            self._contexts = []

    def _claim_if_acknowledged(self) -> bool:
        """True for the one who has to settle; asked when all is handed over."""
        if self.claimed or self._acknowledged < len(self._contexts):
            return False
        self.claimed = True
        return True

    def _context(self, message: Message, index: int, *, end_of_batch: bool = False) -> Held:
        context = Held(message, self, self._batch_index(index), end_of_batch=end_of_batch)
        self._contexts.append(context)
        if not end_of_batch:
            asked = asked_timeout(message, self.endpoint.limits.acknowledgement_timeout)
            if asked is not None:
                self.timeout = asked if self.timeout is None else min(asked, self.timeout)
            self.endpoint.held.note(context)
        return context

    def _guarded(self, deliveries: "Sequence[spi.Delivery]", act: "Callable[[], None]") -> None:
        self._before = len(self._contexts)
        super()._guarded(deliveries, act)

    def _failed(self, error: BaseException, deliveries: "Sequence[spi.Delivery]") -> None:
        """A message whose handler failed needs no acknowledgement: the unit is rolled back."""
        super()._failed(error, deliveries)
        for context in self._contexts[self._before :]:
            self.acknowledged(context)
