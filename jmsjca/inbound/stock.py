"""What is taken ahead for the handlers in mode cc."""

from collections import deque
from collections.abc import Iterable, Sequence

from jmsjca import spi
from jmsjca.inbound.endpoint import Endpoint

__all__ = ["Stock"]

_AHEAD = 2  # messages for each handler: while it is at work on one, its next one is there


class Stock:
    """Messages in the order in which they came. Used under one lock.

    Args:
        endpoint: Whose messages.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        terms = endpoint.terms
        self._endpoint = endpoint
        self._size = terms.batch_size or 1
        self._capacity = max(self._size, endpoint.limits.prefetch_messages, _AHEAD * terms.pool_size)
        self._ready: deque[spi.Delivery] = deque()

    def __len__(self) -> int:
        return len(self._ready)

    def room(self, *, calm: bool) -> int:
        """Tell how many more may be taken ahead; 0 while there are enough.

        A few at a time cost nearly as much as many, so there are until half is gone. Where one thread is enough, until
        all are: it need not wait for whoever receives more at the same time.
        """
        there = len(self._ready)
        enough = there > 0 if calm else 2 * there > self._capacity
        return 0 if enough else self._capacity - there

    def add(self, deliveries: Iterable[spi.Delivery]) -> None:
        """Put in what came."""
        self._ready.extend(deliveries)

    def put_back(self, deliveries: Sequence[spi.Delivery]) -> None:
        """Put in what came before all that is there."""
        self._ready.extendleft(reversed(deliveries))

    def take(self) -> list[spi.Delivery]:
        """Take out what one unit is to hold; there must be something."""
        batch = [self._ready.popleft()]
        if not self._endpoint.comes_alone(batch[0]):
            while self._ready and len(batch) < self._size and not self._endpoint.comes_alone(self._ready[0]):
                batch.append(self._ready.popleft())
        return batch

    def clear(self) -> list[spi.Delivery]:
        """Take out all."""
        rest = list(self._ready)
        self._ready.clear()
        return rest
