"""Messages that this client gave back: which come next, and failures that the broker does not count."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import repeat
from operator import eq, itemgetter
from threading import Lock
from typing import NamedTuple, Self

from jmsjca.errors import MessageFormatError
from jmsjca.messages.delivery import original_message_id
from jmsjca.providers.amqp.codec.sections import bare_message
from jmsjca.providers.amqp.delivery import AMQPDelivery

__all__ = ["FailureCounts", "ReturnOrder"]

_MAX_RETRIES = 20
_MAX_EARLIER = 5000


class ReturnOrder(NamedTuple):
    """The messages that went back in order.

    Args:
        hashes: Theirs, as far as they have not come yet.
        returns: How often what comes instead is returned.
    """

    hashes: Sequence[int]
    retries: int = _MAX_RETRIES

    @classmethod
    def of(cls, deliveries: Iterable[AMQPDelivery]) -> Self:
        """Await what goes back now."""
        return cls([_hash_of(delivery) for delivery in deliveries])

    def merged_before(self, others: "ReturnOrder | None", here: Iterable[AMQPDelivery]) -> Self:
        """These, and behind them what else is still to come: who gives back one after the other begins at the end.

        Args:
            others: What else was awaited.
            here: What of these had come, and nobody had received.
        """
        if others is None or not others.retries:  # or somebody else has got them
            return self
        come = Counter(map(_hash_of, here))
        left = [each for each in others.hashes if not _take_one(come, each)]
        return self._replace(hashes=[*self.hashes, *left[:_MAX_EARLIER]])

    def retry(self) -> Self:
        """The same once more, as something else came that is returned."""
        return self._replace(retries=self.retries - 1)

    def is_kept_by(self, chunk: Sequence[AMQPDelivery]) -> bool:
        """False if something else stands in a chunk before what is awaited.

        Artemis may have chosen the next message before it takes back what is before that one, and send it at the next
        credit. But if that happens again and again, somebody else has got what went back.
        """
        return not self.retries or all(map(eq, self.hashes, map(_hash_of, chunk)))

    def in_settlement_order(self, deliveries: Iterable[AMQPDelivery]) -> Sequence[Sequence[AMQPDelivery]]:
        """Deliveries as they should have come: a broker with credit left sends each again as soon as it is back.

        Step by step, as proton joins neighbours that are settled together, and has them in the order of arrival again.
        """
        places: defaultdict[int, list[int]] = defaultdict(list)
        for place in reversed(range(len(self.hashes))):
            places[self.hashes[place]].append(place)
        placed = [(known.pop() if (known := places[_hash_of(d)]) else len(self.hashes), d) for d in deliveries]
        steps: list[list[AMQPDelivery]] = []
        for _, delivery in sorted(placed, key=itemgetter(0)):
            if not steps or delivery.sequence < steps[-1][-1].sequence:
                steps.append([])
            steps[-1].append(delivery)
        return steps

    def after(self, chunk: Sequence[AMQPDelivery]) -> "ReturnOrder | None":
        """What is still to come behind a chunk."""
        left = self.hashes[len(chunk) :]
        return self._replace(hashes=left) if left else None


def _take_one(come: Counter[int], each: int) -> bool:
    """Take one of these out, if it is there."""
    come[each] -= 1
    return come[each] >= 0


def _hash_of(delivery: AMQPDelivery) -> int:
    """Less than the message, which may be large, and needs no room any more."""
    return hash(bare_message(delivery.encoded))


class FailureCounts:
    """What the consumers of a connection gave back as failed; for any number of threads.

    A broker that counts writes the count into the header, so what comes again with the very same bytes was not counted.
    What has no id may be another message like it, and is not remembered.

    Args:
        most: How many messages are remembered; the one that failed first is forgotten first.
    """

    def __init__(self, max_messages: int = 5000) -> None:
        self._max_messages = max_messages
        self._lock = Lock()
        self._counts: dict[int, int] = {}  # by the hash of the bytes, for those may be large

    def record(self, deliveries: Iterable[AMQPDelivery]) -> None:
        """Remember deliveries that failed; before the broker hears of it, and sends them again."""
        with self._lock:
            for delivery in filter(_is_identifiable, deliveries):
                key = hash(delivery.encoded)
                self._counts[key] = self._counts.pop(key, 0) + 1
                if len(self._counts) > self._max_messages:
                    del self._counts[next(iter(self._counts))]

    def counts_for(self, messages: Sequence[bytes]) -> Iterable[int]:
        """Tell of each message how often it failed here and the broker did not count that."""
        return (
            (self._counts.get(hash(encoded), 0) for encoded in messages) if self._counts else repeat(0, len(messages))
        )


def _is_identifiable(delivery: AMQPDelivery) -> bool:
    """True if no other message has the same bytes; one that cannot be decoded is known by them."""
    try:
        return original_message_id(delivery.message) is not None
    except MessageFormatError:
        return True
