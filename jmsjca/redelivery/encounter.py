"""The state of a message between its deliveries: redeliveries counted, last failure, and whether it is settled."""

import traceback
from collections import OrderedDict
from collections.abc import Iterable
from threading import Lock
from types import MappingProxyType
from typing import TYPE_CHECKING, Self

from jmsjca.errors import MessageFormatError, ResourceAllocationError
from jmsjca.messages.delivery import PreviousFailure, rollback_names
from jmsjca.messages.properties import check_name

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jmsjca.redelivery.policy import RedeliveryPolicy

__all__ = ["Encounter", "EncounterCache", "Failure", "UnsettledMessages", "encodable"]

_MAX_DATA = 10_000
_MAX_UNSETTLED = 5000

_MAX_ID_LENGTH = 256

_MAX_MESSAGE_LENGTH = 1_000
_MAX_TRACE_LENGTH = 10_000
_MAX_FRAMES = 50

_INTERRUPTIONS_PER_FAILURE = 5
"""A broker may end the connection because of a copy. This many interrupted moves in a row count as one failed move."""


class Encounter:
    """The state of one message between its deliveries. Thread-safe.

    Attributes:
        count: The number of redeliveries seen up to the last delivery; 0 before the first redelivery.
        policy: The redelivery policy that the handler set for this message; None for the listener's policy.
        failure: The failure of the handler's last attempt; None if it never failed.
        hand_overs: The number of hand-overs to a handler of this process that did not end in a commit.
        move_failures: The number of moves that failed, including those without a known result.
        unmovable: True if the last attempt to move the message failed permanently, so that it is delivered instead.
        rejection: The handler's reason to reject the message; None if it was not rejected, or is moved or deleted.
    """

    __slots__ = (
        "_arrived",
        "_broker_count",
        "_data",
        "_interruptions",
        "_lock",
        "_move_resets",
        "_own_count",
        "_retry_delay",
        "_returned",
        "_returned_count",
        "_uncounted",
        "_waited",
        "count",
        "failure",
        "hand_overs",
        "move_failures",
        "policy",
        "rejection",
        "unmovable",
    )

    def __init__(self) -> None:
        self._lock = Lock()
        self._own_count = 0  # arrivals here with the redelivered flag, except after a return without delivery
        self._broker_count = 0  # the broker's count of redeliveries at the last arrival
        self._returned_count = 0  # part of that count that no handler saw, because the message was returned
        self._returned = self._waited = self._uncounted = self._arrived = False
        self._data: dict[str, str] = {}
        self.count = self.hand_overs = 0
        self.policy: RedeliveryPolicy | None = None
        self.failure: Failure | None = None
        self.move_failures = 0
        self.unmovable = False
        self.rejection: str | None = None
        self._retry_delay: float | None = None  # seconds
        self._move_resets = 0  # the number of calls to `reset_move_failures`
        self._interruptions = 0  # consecutive moves that failed, but not because of their copy

    def __getstate__(self) -> dict[str, object]:
        with self._lock:
            return {name: getattr(self, name) for name in self.__slots__ if name != "_lock"}

    def __setstate__(self, state: dict[str, object]) -> None:
        self._lock = Lock()
        for name, value in state.items():
            setattr(self, name, value)

    def is_first_arrival(self) -> bool:
        """Return True for the first arrival with the redelivered flag. Call this once per arrival."""
        with self._lock:
            before, self._arrived = self._arrived, True
            return not before

    def count_arrival(self, delivery_count: int | None, *, shared: bool = False) -> tuple[int, bool]:
        """Count an arrival with the redelivered flag. `count` is the greater of the broker's count and the local one.

        The broker's count survives a restart of this process. The local count also works if the broker does not count.

        Args:
            delivery_count: The broker's count of deliveries, including this one; None if it does not count.
            shared: True if other messages may share this state, so that only the broker's count is reliable.

        Returns:
            The count, and True if this is an uncounted arrival after a delay.
        """
        with self._lock:
            redeliveries = max((delivery_count or 0) - 1, 0)
            again, waited, uncounted = self._returned, self._waited, self._uncounted
            self._returned = self._waited = self._uncounted = False
            if not again:
                self._own_count += 1
            elif redeliveries > self._broker_count and not uncounted:  # otherwise another consumer had the message
                self._returned_count += 1
            self._broker_count = redeliveries
            own = max(self._own_count, self.hand_overs)
            known = redeliveries if shared else max(redeliveries - self._returned_count, own)
            before, self.count = self.count, known
            return self.count, waited and self.count == before

    def proven_count(self, unproven: int | None, *, shared: bool = False) -> int:
        """Return the number of redeliveries at the last arrival that certainly followed a hand-over to a handler.

        Args:
            unproven: The number of redeliveries in the broker's count that may come from prefetching; None if the
                broker proves nothing.
            shared: As for `count_arrival`.
        """
        with self._lock:
            if unproven is None:
                return self.hand_overs
            if shared:  # counts the hand-overs of all messages with this content: the broker's count is the maximum
                return min(self._broker_count, max(self._broker_count - unproven, self.hand_overs))
            return max(self._broker_count - self._returned_count - unproven, self.hand_overs)

    def record_hand_over(self) -> None:
        """Count a hand-over to a handler. Call this before the message is returned to the broker."""
        with self._lock:
            self.hand_overs += 1
            self._returned = self._waited = self._uncounted = False

    def mark_returned(self, *, waited: bool = False, uncounted: bool = False) -> None:
        """Mark the delivery as returned to the broker unseen by the handler, so that its next arrival is not counted.

        Call this before the return: another thread may receive the message before the return is confirmed.

        Args:
            waited: True if the broker holds the message during its delay, so that the delay is over at its next
                arrival.
            uncounted: True if the broker does not count the returned delivery.
        """
        with self._lock:
            self._returned, self._waited, self._uncounted = True, waited, uncounted

    def mark_return_failed(self) -> None:
        """Record that a return failed: the broker may count the delivery, as it does after a lost connection."""
        with self._lock:
            self._uncounted = False

    def begin_move(self) -> int:
        """Count a move as failed until its result is known: another thread may receive the message at once.

        Returns:
            The token of this move for `move_in_doubt`.
        """
        with self._lock:
            self.move_failures += 1
            return self._move_resets

    def move_in_doubt(self, move: int) -> None:
        """Stop counting a move as failed, because its result is unknown."""
        with self._lock:
            if move == self._move_resets:
                self.move_failures -= 1

    def move_interrupted(self, move: int) -> None:
        """Stop counting a move as failed, because the connection or a limit failed. Too many in a row count as one."""
        with self._lock:
            self._interruptions += 1
            if move == self._move_resets and self._interruptions % _INTERRUPTIONS_PER_FAILURE:
                self.move_failures -= 1

    def reset_move_failures(self) -> None:
        """Reset the count of failed moves: the message was moved, or is delivered instead."""
        with self._lock:
            self.move_failures = self._interruptions = 0
            self._move_resets += 1

    def set_retry_delay(self, seconds: float) -> None:
        """Set the delay of the next redelivery. It replaces the policy's delay."""
        with self._lock:
            self._retry_delay = seconds

    def take_retry_delay(self) -> float | None:
        """Return and clear the delay in seconds that was set for this redelivery; None if none was set."""
        with self._lock:
            seconds, self._retry_delay = self._retry_delay, None
            return seconds

    @property
    def rollback_data(self) -> "Mapping[str, str]":
        """A copy of the user rollback data, which the handler sets for the next delivery."""
        with self._lock:
            return MappingProxyType(dict(self._data))

    def set_rollback_data(self, key: str, value: str | None) -> None:
        """Set user rollback data.

        Args:
            key: The name.
            value: The text; None removes the key.

        Raises:
            MessageFormatError: The value is not a text, or the key cannot be part of a property name.
            ResourceAllocationError: All names and values of the message together exceed 10,000 characters.
        """
        if value is not None and not isinstance(value, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise MessageFormatError(f"User rollback data is text, but {key:.100} is {type(value).__name__}.")
        check_name(rollback_names(key)[0])
        with self._lock:
            data = {name: text for name, text in self._data.items() if name != key}
            if value is not None:
                data[key] = value
            size = sum(len(name) + len(text) for name, text in data.items())
            if size > _MAX_DATA:
                raise ResourceAllocationError(
                    f"The user rollback data of a message has {size} characters; the maximum is {_MAX_DATA}. Store it "
                    "elsewhere, and keep only its key here."
                )
            self._data = data


class EncounterCache:
    """A cache of the most recent encounters, in two generations. Thread-safe.

    Each lookup puts the state into the young generation. When that exceeds the capacity, it becomes the old generation,
    and the previous old generation is discarded. The cache holds at least the last ``capacity`` messages, and at most
    twice as many plus one.

    Args:
        capacity: The minimum number of messages that the cache holds.

    Raises:
        ValueError: The capacity is less than 1.
    """

    def __init__(self, capacity: int = 5000) -> None:
        if capacity < 1:
            raise ValueError(f"The cache of encounters needs a capacity of 1 at least, not {capacity}.")
        self._capacity = capacity
        self._lock = Lock()
        self._young: dict[str | bytes, Encounter] = {}
        self._old: dict[str | bytes, Encounter] = {}

    def __getstate__(self) -> dict[str, object]:
        with self._lock:
            return {**self.__dict__, "_lock": None, "_young": dict(self._young), "_old": dict(self._old)}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state, _lock=Lock())

    def __len__(self) -> int:
        with self._lock:
            return len(self._young) + len(self._old)

    def __bool__(self) -> bool:
        return bool(self._young or self._old)

    def find(self, message_id: str) -> Encounter | None:
        """Return the state of a message, or None."""
        key = _key(message_id)
        with self._lock:
            return self._find(key)

    def encounter(self, message_id: str) -> Encounter:
        """Return the state of a message, which is created if the cache does not have it."""
        key = _key(message_id)
        with self._lock:
            return self._find(key) or self._put(key, Encounter())

    def _find(self, key: str | bytes) -> Encounter | None:
        found = self._young.get(key)
        if found is None and key in self._old:
            found = self._put(key, self._old.pop(key))
        return found

    def _put(self, key: str | bytes, encounter: Encounter) -> Encounter:
        self._young[key] = encounter
        if len(self._young) > self._capacity:
            self._old, self._young = self._young, {}
        return encounter


class UnsettledMessages:
    """The identities of messages that an endpoint delivered and did not settle. Thread-safe.

    A broker that is killed may forget a delivery and deliver the message again without the redelivered flag. Messages
    are looked up only after a connection was lost: until then the broker's flags are reliable.

    Attributes:
        known: The identities. For each message the listener only checks whether the collection is empty.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self.known: OrderedDict[str, None] = OrderedDict()
        self._connections = 0

    def __contains__(self, identity: str) -> bool:
        return identity in self.known

    @property
    def may_look_new(self) -> bool:
        """True if the broker may deliver one of them without the redelivered flag."""
        return self._connections > 1 and bool(self.known)

    def begin_connection(self) -> None:
        """Count a connection: an earlier connection may have delivered the messages that it delivers."""
        self._connections += 1

    def add(self, identities: Iterable[str]) -> None:
        """Add messages. Beyond the capacity the oldest are dropped."""
        with self._lock:
            for identity in identities:
                self.known[identity] = None
                self.known.move_to_end(identity)
            while len(self.known) > _MAX_UNSETTLED:
                self.known.popitem(last=False)

    def discard(self, identities: Iterable[str]) -> None:
        """Remove messages that are settled."""
        with self._lock:
            for identity in identities:
                self.known.pop(identity, None)


def _key(message_id: str) -> str | bytes:
    """Return the id, or the digest of a long id: senders choose the length, and thousands of ids are kept in memory."""
    if len(message_id) <= _MAX_ID_LENGTH:
        return message_id
    from hashlib import sha256  # loads OpenSSL, needed for few messages

    return sha256(message_id.encode("utf-8", "surrogatepass")).digest()


class Failure(PreviousFailure):
    """The exception of a handler, as texts of limited length."""

    __slots__ = ()

    @classmethod
    def of(cls, error: BaseException) -> Self:
        """Return the failure for an exception, even if its conversion to text fails."""
        kind = type(error)
        return cls(
            encodable(f"{kind.__module__}.{kind.__qualname__}".removeprefix("builtins."))[:_MAX_MESSAGE_LENGTH],
            text_of(error)[:_MAX_MESSAGE_LENGTH],
            _trace(error)[-_MAX_TRACE_LENGTH:],
        )


def text_of(error: BaseException) -> str:
    """Return the text of an exception in an encodable form, even if its conversion to text fails."""
    try:
        return encodable(str(error))
    except Exception as failed:  # noqa: BLE001  # the class belongs to the application
        return f"(its text cannot be had: {type(failed).__name__})"


def _trace(error: BaseException) -> str:
    try:
        return encodable("".join(traceback.format_exception(error, limit=-_MAX_FRAMES)))
    except Exception as failed:  # noqa: BLE001  # as above
        return f"(its stack trace cannot be had: {type(failed).__name__})"


def encodable(text: str) -> str:
    """Return a text that every protocol can carry. A move fails with any other text."""
    return text.encode("utf-8", "backslashreplace").decode().replace("\0", r"\x00")
