"""What the consumers of providers share: what each has in hand, and who waits for more."""

import threading
from collections.abc import Sequence
from typing import Any, Generic, TypeVar

from jmsjca.config.forks import Home
from jmsjca.errors import ConnectionLostError, JMSError
from jmsjca.providers.shelf import Shelf, Shelved
from jmsjca.spi import Delivery, Order

__all__ = ["Holder"]

D = TypeVar("D", bound=Shelved)


class Holder(Generic[D]):
    """A consumer as its units see it.

    Args:
        order: How its deliveries are settled.

    Attributes:
        order: The same.
        closed: True once nobody receives from it any more.
    """

    def __init__(self, order: Order) -> None:
        self._lock = threading.RLock()  # that of the condition: it costs less where nobody waits or is told
        self._changed = threading.Condition(self._lock)
        self._shelf: Shelf[D] = Shelf(order)
        self._woken = False
        self._error: JMSError | None = None
        self._home = Home()
        self.order = order
        self.closed = False

    def wake(self) -> None:
        """Let a waiting `receive` return."""
        if self._home.left:
            return  # a forked child: nobody waits here
        with self._changed:
            self._woken = True
            self._changed.notify_all()

    def take(self, deliveries: Sequence[D], unit: Any) -> None:
        """Let a unit have deliveries, all or none.

        Raises:
            IllegalStateError: One is settled, given back or a unit's already.
            ConnectionLostError: The connection is gone.
        """
        with self._lock:
            self._check_lost()
            self._shelf.claim(deliveries, unit)

    def let_go(self, deliveries: Sequence[D]) -> None:
        """Forget deliveries that are settled or given back."""
        with self._lock:
            self._shelf.let_go(deliveries)

    def broken(self, error: JMSError) -> None:
        """Nothing more will come: waiting and later calls learn why."""
        with self._changed:
            self._error = error
            self._shelf.clear()
            self._changed.notify_all()

    @property
    def done(self) -> bool:
        """True if it is closed and no unit holds anything of it."""
        return self.closed and not self._shelf.outstanding

    def _own(self, deliveries: Sequence[Delivery]) -> list[D]:
        self._check_lost()
        return self._shelf.own(deliveries)

    def _check_lost(self) -> None:
        if self._error is not None:
            raise ConnectionLostError(str(self._error)) from self._error
