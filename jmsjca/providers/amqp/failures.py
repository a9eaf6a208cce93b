"""How often messages failed here that come again as they were: Artemis counts none over 100 KiB."""

from collections.abc import Iterable, Sequence
from itertools import repeat
from threading import Lock

from jmsjca.errors import MessageFormatError
from jmsjca.providers.amqp.delivery import AMQPDelivery

__all__ = ["Failures"]


class Failures:
    """What the consumers of a connection gave back as failed; for any number of threads.

    A broker that counts writes the count into the header, so what comes again with the very same bytes was not counted.
    What has no id may be another message like it, and is not remembered.

    Args:
        most: How many messages are remembered; the one that failed first is forgotten first.
    """

    def __init__(self, most: int = 5000) -> None:
        self._most = most
        self._lock = Lock()
        self._counts: dict[int, int] = {}  # by the hash of the bytes, for those may be large

    def note(self, deliveries: Iterable[AMQPDelivery]) -> None:
        """Remember deliveries that failed; before the broker hears of it, and sends them again."""
        with self._lock:
            for delivery in filter(_is_known, deliveries):
                key = hash(delivery.encoded)
                self._counts[key] = self._counts.pop(key, 0) + 1
                if len(self._counts) > self._most:
                    del self._counts[next(iter(self._counts))]

    def of(self, messages: Sequence[bytes]) -> Iterable[int]:
        """Tell of each message how often it failed here and the broker did not count that."""
        return (
            (self._counts.get(hash(encoded), 0) for encoded in messages) if self._counts else repeat(0, len(messages))
        )


def _is_known(delivery: AMQPDelivery) -> bool:
    """True if no other message has the same bytes; one that cannot be decoded is known by them."""
    try:
        return delivery.message.delivered_id is not None
    except MessageFormatError:
        return True
