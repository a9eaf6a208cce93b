"""What the small broker keeps while connections come and go: queues and open transactions."""

from collections import defaultdict, deque
from dataclasses import dataclass, field
from itertools import count

from amqp_peer.values import Described, UInt, ULong, decode, encode

__all__ = ["Kept", "Store"]

_HEADER = 0x70


@dataclass(eq=False)
class Kept:
    """A message in a queue, as it was sent, its place in the order, and how often handling it failed."""

    queue: str
    payload: bytes
    number: int
    failures: int = 0

    def with_header(self):
        """Its bytes, with the failures in the header if there were any."""
        if not self.failures:
            return self.payload
        section, end = decode(self.payload)
        if not isinstance(section, Described) or section.descriptor != _HEADER:
            fields, end = [], 0
        else:
            fields = section.value
        fields = [*fields, None, None, None, None][:4]
        return encode(Described(ULong(_HEADER), [*fields, UInt(self.failures)])) + self.payload[end:]


@dataclass
class _Work:
    sent: list = field(default_factory=list)
    taken: list = field(default_factory=list)


class Store:
    """Queues by name, and transactions by id."""

    def __init__(self):
        self.queues = defaultdict(deque)
        self.transactions = {}
        self._numbers = count(1)

    def put(self, queue, payload):
        self.queues[queue].append(Kept(queue, payload, next(self._numbers)))

    def give_back(self, messages, *, failed):
        """Put messages where they were."""
        for message in messages:
            message.failures += failed
            queue = self.queues[message.queue]
            self.queues[message.queue] = deque(sorted([*queue, message], key=lambda m: m.number))

    def begin(self):
        txn_id = f"transaction {next(self._numbers)}".encode()
        self.transactions[txn_id] = _Work()
        return txn_id

    def end(self, txn_id, *, fail):
        """Let a transaction happen, or not at all."""
        work = self.transactions.pop(txn_id)
        if fail:
            self.give_back(work.taken, failed=True)
        else:
            for queue, payload in work.sent:
                self.put(queue, payload)
