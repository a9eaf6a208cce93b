"""What went back to the broker, and should be the next to come."""

from collections.abc import Iterable, Sequence
from operator import eq
from typing import NamedTuple, Self

from jmsjca.providers.amqp.delivery import AMQPDelivery
from jmsjca.providers.amqp.sections import bare

__all__ = ["Awaited"]

_MOST_RETURNS = 3


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

    def before(self, others: "Awaited | None") -> Self:
        """These, and behind them what else is still to come: who gives back one after the other begins at the end."""
        if others is None or not others.returns:  # or somebody else has got them
            return self
        known = set(self.hashes)
        return self._replace(hashes=[*self.hashes, *(each for each in others.hashes if each not in known)])

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
        places = {each: place for place, each in enumerate(self.hashes)}
        steps: list[list[AMQPDelivery]] = []
        for delivery in sorted(deliveries, key=lambda each: places.get(_hash_of(each), len(places))):
            if not steps or delivery.handle < steps[-1][-1].handle:
                steps.append([])
            steps[-1].append(delivery)
        return steps

    def behind(self, chunk: Sequence[AMQPDelivery]) -> "Awaited | None":
        """What is still to come behind a chunk."""
        left = self.hashes[len(chunk) :]
        return self._replace(hashes=left) if left else None


def _hash_of(delivery: AMQPDelivery) -> int:
    """Less than the message, which may be large, and needs no room any more."""
    return hash(bare(delivery.encoded))
