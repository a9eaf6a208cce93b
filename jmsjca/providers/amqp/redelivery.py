"""What went back to the broker, and should be the next to come."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from operator import eq, itemgetter
from typing import NamedTuple, Self

from jmsjca.providers.amqp.delivery import AMQPDelivery
from jmsjca.providers.amqp.sections import bare

__all__ = ["Awaited"]

_MOST_RETURNS = 20
_MOST_OTHERS = 5000


class Awaited(NamedTuple):
    """The messages that went back in order.

    Args:
        hashes: Theirs, as far as they have not come yet.
        returns: How often what comes instead is returned.
    """

    hashes: Sequence[int]
    returns: int = _MOST_RETURNS

    @classmethod
    def of(cls, deliveries: Iterable[AMQPDelivery]) -> Self:
        """Await what goes back now."""
        return cls([_hash_of(delivery) for delivery in deliveries])

    def before(self, others: "Awaited | None", here: Iterable[AMQPDelivery]) -> Self:
        """These, and behind them what else is still to come: who gives back one after the other begins at the end.

        Args:
            others: What else was awaited.
            here: What of these had come, and nobody had received.
        """
        if others is None or not others.returns:  # or somebody else has got them
            return self
        come = Counter(map(_hash_of, here))
        left = [each for each in others.hashes if not _took(come, each)]
        return self._replace(hashes=[*self.hashes, *left[:_MOST_OTHERS]])

    def again(self) -> Self:
        """The same once more, as something else came that is returned."""
        return self._replace(returns=self.returns - 1)

    def begins_with(self, chunk: Sequence[AMQPDelivery]) -> bool:
        """False if something else stands in a chunk before what is awaited.

        Artemis may have chosen the next message before it takes back what is before that one, and send it at the next
        credit. But if that happens again and again, somebody else has got what went back.
        """
        return not self.returns or all(map(eq, self.hashes, map(_hash_of, chunk)))

    def steps(self, deliveries: Iterable[AMQPDelivery]) -> Sequence[Sequence[AMQPDelivery]]:
        """Deliveries as they should have come: a broker with credit left sends each again as soon as it is back.

        Step by step, as proton joins neighbours that are settled together, and has them in the order of arrival again.
        """
        places: defaultdict[int, list[int]] = defaultdict(list)
        for place in reversed(range(len(self.hashes))):
            places[self.hashes[place]].append(place)
        placed = [(known.pop() if (known := places[_hash_of(d)]) else len(self.hashes), d) for d in deliveries]
        steps: list[list[AMQPDelivery]] = []
        for _, delivery in sorted(placed, key=itemgetter(0)):
            if not steps or delivery.handle < steps[-1][-1].handle:
                steps.append([])
            steps[-1].append(delivery)
        return steps

    def behind(self, chunk: Sequence[AMQPDelivery]) -> "Awaited | None":
        """What is still to come behind a chunk."""
        left = self.hashes[len(chunk) :]
        return self._replace(hashes=left) if left else None


def _took(come: Counter[int], each: int) -> bool:
    """Take one of these out, if it is there."""
    come[each] -= 1
    return come[each] >= 0


def _hash_of(delivery: AMQPDelivery) -> int:
    """Less than the message, which may be large, and needs no room any more."""
    return hash(bare(delivery.encoded))
