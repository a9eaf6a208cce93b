"""A message received over AMQP, decoded on first access, and the messages that this client returned."""

import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import repeat
from operator import eq, itemgetter
from threading import Lock
from typing import NamedTuple, Protocol, Self

from jmsjca.errors import MessageFormatError
from jmsjca.messages import BytesMessage, Message, ObjectMessage, TextMessage
from jmsjca.messages.delivery import original_message_id
from jmsjca.messages.object_message import plain_data_of
from jmsjca.providers.amqp.codec.addresses import ReceiveContext
from jmsjca.providers.amqp.codec.decoder import decode
from jmsjca.providers.amqp.codec.sections import bare_message, encoded_body, has_damaged_header, read_header
from jmsjca.providers.common.unit import DeliveryOwner
from jmsjca.spi import Unit

__all__ = ["AMQPDelivery", "AMQPDeliveryOwner", "FailureCounts", "ReceivedMessage", "ReturnOrder"]

_MAX_RETRIES = 20
_MAX_EARLIER = 5000


class ReceivedMessage:
    """An encoded message, decoded on first access.

    Args:
        encoded: The message as received.
        origin: The source of the message and properties of its broker.
        failures: The number of failed deliveries on this connection that the broker did not count.

    Attributes:
        size: The size in bytes.
    """

    __slots__ = ("_failures", "_message", "_origin", "_received_at", "encoded", "size")

    def __init__(self, encoded: bytes, origin: ReceiveContext, failures: int = 0) -> None:
        self.encoded = encoded
        self.size = len(encoded)
        self._origin = origin
        self._received_at = time.time()  # the start of the time to live, if the message has no creation time
        self._failures = failures
        self._message: Message | None = None

    @property
    def message(self) -> Message:
        """The message. Its body is decoded on first access, which raises `MessageFormatError` if that fails."""
        if self._message is None:
            self._message = decode(self.encoded, self._origin, self._received_at, self._failures)
        return self._message

    @property
    def raw(self) -> bytes:
        """The bytes of the body; if the message cannot be decoded, all of its bytes."""
        try:
            message = self.message
        except MessageFormatError:
            return self.encoded
        return _body_bytes(message, self.encoded)

    @property
    def digest(self) -> str:
        """A digest of the bare message, which brokers keep unchanged."""
        from hashlib import sha256  # loads OpenSSL, for few messages

        return sha256(bare_message(self.encoded)).hexdigest()

    @property
    def count(self) -> int | None:
        """The number of deliveries, including this one; None if the broker does not count them."""
        return read_header(self.encoded).jms_delivery_count(self._failures, counts=self._origin.counts_deliveries)

    @property
    def redelivered(self) -> bool:
        """True if the message was delivered before."""
        return read_header(self.encoded).redelivered(self._failures, counts=self._origin.counts_deliveries)

    def drop_content(self) -> None:
        """Free the memory of the message and its bytes."""
        self.encoded = b""
        self._message = None


def _body_bytes(message: Message, encoded: bytes) -> bytes:
    """Return the content of text, bytes and pickled object messages; for other types the encoded body."""
    if isinstance(message, TextMessage):
        return (message.body or "").encode("utf-8", "surrogatepass")  # some charsets have halves of surrogate pairs
    if isinstance(message, BytesMessage):
        return message.body or b""
    if isinstance(message, ObjectMessage) and plain_data_of(message) is None:
        return message.pickled or b""
    return encoded_body(encoded)


class AMQPDeliveryOwner(DeliveryOwner, Protocol):
    """The consumer of a delivery, as far as the delivery uses it."""

    @property
    def origin(self) -> ReceiveContext:
        """The source as messages name it, and properties of its broker."""
        ...


class AMQPDelivery(ReceivedMessage):
    """An unsettled delivery.

    Attributes:
        sequence: The number of proton's delivery, which only the engine thread may use.
        consumer: The consumer that received it.
        unit: The unit that took it; None as long as none did.
    """

    __slots__ = ("consumer", "sequence", "unit")

    def __init__(
        self, encoded: bytes, sequence: int, consumer: AMQPDeliveryOwner, received_at: float, failures: int = 0
    ) -> None:
        self.encoded = encoded  # set here: calling the base class's __init__ for each message would double the cost
        self._origin = consumer.origin
        self._received_at = received_at
        self._failures = failures
        self._message = None
        self.sequence = sequence
        self.size = len(encoded)
        self.consumer = consumer
        self.unit: Unit | None = None

    def for_redelivery(self, *, counted: bool) -> "AMQPDelivery":
        """Return a new delivery of the same message; the old one can no longer be settled."""
        return AMQPDelivery(self.encoded, self.sequence, self.consumer, self._received_at, self._failures + counted)


class ReturnOrder(NamedTuple):
    """The expected order of messages that were returned to the broker.

    Args:
        hashes: The hashes of the messages that have not been received again.
        retries: How many more times other messages are returned that arrive before them.
        places: For each of them its place: the round, negated, and the number of the delivery that was returned.
        newest: The number of the newest delivery when the round began.
        in_steps: True if they were returned in several steps, so that the broker may have another order.
    """

    hashes: Sequence[int]
    retries: int = _MAX_RETRIES
    places: Sequence[tuple[int, int]] = ()
    newest: int = 0
    in_steps: bool = False

    @classmethod
    def of(cls, deliveries: Sequence[AMQPDelivery], newest: int = 0) -> Self:
        """Return the order of deliveries that are about to be returned.

        Args:
            deliveries: The deliveries, in order.
            newest: The number of the newest delivery of the consumer.
        """
        hashes = [_hash_of(delivery) for delivery in deliveries]
        return cls(hashes, places=[(0, delivery.sequence) for delivery in deliveries], newest=newest)

    def merged_with(self, others: "ReturnOrder | None", here: Iterable[AMQPDelivery]) -> Self:
        """Return this order and an earlier one.

        Deliveries that were received before the earlier ones were returned stand among them, as several units may
        return theirs one after the other. Later ones stand before them: that is a new round.

        Args:
            others: The earlier order.
            here: The deliveries of the earlier order that were buffered here and not received.
        """
        if others is None or not others.retries:  # without retries left, another consumer has probably received them
            return self
        come = Counter(map(_hash_of, here))
        left = [each for each in zip(others.places, others.hashes, strict=True) if not _take_one(come, each[1])]
        current = min(turn for turn, _ in others.places)
        own = [
            ((current - (number > others.newest), number), each)
            for (_, number), each in zip(self.places, self.hashes, strict=True)
        ]
        is_new_round = any(place[0] < current for place, _ in own)
        merged = sorted([*own, *left[:_MAX_EARLIER]])
        return self._replace(
            hashes=[each for _, each in merged],
            places=[place for place, _ in merged],
            newest=self.newest if is_new_round else others.newest,
            in_steps=True,
        )

    def retry(self) -> Self:
        """Return this order with one retry less."""
        return self._replace(retries=self.retries - 1)

    def is_kept_by(self, chunk: Sequence[AMQPDelivery]) -> bool:
        """Return False if a chunk does not begin with the expected messages.

        Artemis may have selected the next message before it requeues an earlier one, and sends it at the next credit.
        If that happens repeatedly, another consumer has received the returned messages.
        """
        return not self.retries or all(map(eq, self.hashes, map(_hash_of, chunk)))

    def in_settlement_order(self, deliveries: Iterable[AMQPDelivery]) -> Sequence[Sequence[AMQPDelivery]]:
        """Return deliveries in expected order, as a broker with credit left resends each as soon as it is released.

        They are split into steps that are settled separately, since proton merges adjacent deliveries of one step into
        a range, which is in order of arrival.
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
        """Return the order that is expected after a chunk; None if nothing is left."""
        begin = len(chunk)
        left = self._replace(hashes=self.hashes[begin:], places=self.places[begin:])
        return left if left.hashes else None


def _take_one(come: Counter[int], each: int) -> bool:
    """Remove one occurrence; return False if it does not occur."""
    come[each] -= 1
    return come[each] >= 0


def _hash_of(delivery: AMQPDelivery) -> int:
    """Return a hash of a message, so that large messages need not be kept in memory."""
    return hash(bare_message(delivery.encoded))


class FailureCounts:
    """Failed deliveries of a connection, by message. Thread-safe.

    A broker that counts deliveries writes the count into the header. So a message that is redelivered with identical
    bytes was not counted. Messages without an id are not recorded: two of them can be identical.

    Args:
        most: How many messages are remembered; the one that failed first is forgotten first.
    """

    def __init__(self, max_messages: int = 5000) -> None:
        self._max_messages = max_messages
        self._lock = Lock()
        self._counts: dict[int, int] = {}  # by the hash of the bytes, as messages may be large

    def record(self, deliveries: Iterable[AMQPDelivery]) -> None:
        """Record failed deliveries. Call it before they are settled, as the broker may redeliver them at once."""
        with self._lock:
            for delivery in filter(_is_identifiable, deliveries):
                key = hash(delivery.encoded)
                self._counts[key] = self._counts.pop(key, 0) + 1
                if len(self._counts) > self._max_messages:
                    del self._counts[next(iter(self._counts))]

    def counts_for(self, messages: Sequence[bytes]) -> Iterable[int]:
        """Return for each message the number of failed deliveries that the broker did not count."""
        return (
            (self._counts.get(hash(encoded), 0) for encoded in messages) if self._counts else repeat(0, len(messages))
        )


def _is_identifiable(delivery: AMQPDelivery) -> bool:
    """Return True if no other message has the same bytes; assumed for one that is damaged."""
    try:
        return has_damaged_header(delivery.encoded) or original_message_id(delivery.message) is not None
    except MessageFormatError:
        return True
