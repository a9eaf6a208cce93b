"""Encounters: what is remembered of a message between its deliveries, the cache of them, and failures as text."""

import traceback
from dataclasses import dataclass
from threading import Lock
from types import MappingProxyType
from typing import TYPE_CHECKING, Self

from jmsjca.errors import MessageFormatError, ResourceAllocationError
from jmsjca.messages.vendor_properties import check_rollback_key

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jmsjca.redelivery.policy import RedeliveryPolicy

__all__ = ["Encounter", "EncounterCache", "Failure"]

_MAX_DATA = 10_000

_MAX_ID_LENGTH = 256

_MAX_MESSAGE_LENGTH = 1_000
_MAX_TRACE_LENGTH = 10_000
_MAX_FRAMES = 50


class Encounter:
    """What is remembered of one message; for any number of threads.

    Attributes:
        count: For the how-manieth time it was seen redelivered when it came last; 0 if it never was.
        policy: What the handler wants to be done with this message; None for what holds for all.
        failure: What the handler raised last; None if it never did.
        move_failures: How often it was to be moved and could not be, or that is not known yet.
    """

    __slots__ = (
        "_arrived",
        "_broker_count",
        "_data",
        "_lock",
        "_move_resets",
        "_own_count",
        "_returned",
        "_returned_count",
        "_uncounted",
        "_waited",
        "count",
        "failure",
        "move_failures",
        "policy",
    )

    def __init__(self) -> None:
        self._lock = Lock()
        self._own_count = 0  # arrivals here with the redelivered flag, but those after being put off
        self._broker_count = 0  # redeliveries that the broker had counted at the last arrival
        self._returned_count = 0  # those of them that were put off, so that no handler saw them
        self._returned = self._waited = self._uncounted = self._arrived = False
        self._data: dict[str, str] = {}
        self.count = 0
        self.policy: RedeliveryPolicy | None = None
        self.failure: Failure | None = None
        self.move_failures = 0
        self._move_resets = 0  # how often

    def is_first_arrival(self) -> bool:
        """Tell whether it arrives for the first time with the redelivered flag; to be asked once for each arrival."""
        with self._lock:
            before, self._arrived = self._arrived, True
            return not before

    def count_arrival(self, delivery_count: int | None) -> tuple[int, bool]:
        """Count an arrival with the redelivered flag: `count` is the greater of the broker's count and our own.

        The broker's survives our restart, ours is there where the broker does not count.

        Args:
            delivery_count: The broker's count of deliveries, this one included; None if it does not count.

        Returns:
            The count, and True if this is the same encounter as before and its delay is over.
        """
        with self._lock:
            redeliveries = max((delivery_count or 0) - 1, 0)
            again, waited, uncounted = self._returned, self._waited, self._uncounted
            self._returned = self._waited = self._uncounted = False
            if not again:
                self._own_count += 1
            elif redeliveries > self._broker_count and not uncounted:  # else somebody else had it meanwhile, and failed
                self._returned_count += 1
            self._broker_count = redeliveries
            before, self.count = self.count, max(redeliveries - self._returned_count, self._own_count)
            return self.count, waited and self.count == before

    def mark_returned(self, *, waited: bool = False) -> None:
        """Note that the delivery goes back to the broker and the handler did not see it: its return is not counted.

        Args:
            waited: True if the delay of the message is over when it returns, as the broker holds it so long.
        """
        with self._lock:
            self._returned, self._waited, self._uncounted = True, waited, False

    def mark_returned_uncounted(self) -> None:
        """Note that the broker did not count what was put off; without this it may have, as after a lost connection."""
        with self._lock:
            self._uncounted = self._returned

    def begin_move(self) -> int:
        """Count a move as failed, until it is known: should the message return, another thread may have it at once.

        Returns:
            Which move it is, for `move_in_doubt`.
        """
        with self._lock:
            self.move_failures += 1
            return self._move_resets

    def move_in_doubt(self, move: int) -> None:
        """Count a move no more, as nobody knows whether it failed."""
        with self._lock:
            if move == self._move_resets:
                self.move_failures -= 1

    def reset_move_failures(self) -> None:
        """Count from the beginning: the message was moved, or is delivered instead."""
        with self._lock:
            self.move_failures = 0
            self._move_resets += 1

    @property
    def rollback_data(self) -> "Mapping[str, str]":
        """What the handler wants to be remembered until the next delivery; a copy."""
        with self._lock:
            return MappingProxyType(dict(self._data))

    def set_rollback_data(self, key: str, value: str | None) -> None:
        """Set user rollback data.

        Args:
            key: Its name.
            value: A text; None to forget it.

        Raises:
            MessageFormatError: The value is no text, or the message could not be moved with that name.
            ResourceAllocationError: All names and values of the message together exceed 10,000 characters.
        """
        if value is not None and not isinstance(value, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise MessageFormatError(f"User rollback data is text, but {key:.100} is {type(value).__name__}.")
        check_rollback_key(key)
        with self._lock:
            data = {name: text for name, text in self._data.items() if name != key}
            if value is not None:
                data[key] = value
            _check_size(data)
            self._data = data


def _check_size(data: "Mapping[str, str]") -> None:
    size = sum(len(name) + len(text) for name, text in data.items())
    if size > _MAX_DATA:
        raise ResourceAllocationError(
            f"The user rollback data of a message has {size} characters; {_MAX_DATA} are kept. Store it elsewhere, and"
            " remember where."
        )


class EncounterCache:
    """Remembers the messages that were seen last, in two generations; for any number of threads.

    Whatever is looked up and was not in the young generation is put there. When that has grown beyond the capacity, it
    becomes the old one, and what was the old one is forgotten: the last ``capacity`` messages are always remembered,
    and never more than twice as many and one.

    Args:
        capacity: How many messages are remembered at least.

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

    def __len__(self) -> int:
        with self._lock:
            return len(self._young) + len(self._old)

    def find(self, message_id: str) -> Encounter | None:
        """Give what is remembered of a message; None if nothing is."""
        key = _key(message_id)
        with self._lock:
            return self._find(key)

    def encounter(self, message_id: str) -> Encounter:
        """Give what is remembered of a message, from now on if it was nothing."""
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


def _key(message_id: str) -> str | bytes:
    """The id, or its digest: senders choose how long ids are, and thousands are kept."""
    if len(message_id) <= _MAX_ID_LENGTH:
        return message_id
    from hashlib import sha256  # noqa: PLC0415  # loads OpenSSL, for few messages

    return sha256(message_id.encode("utf-8", "surrogatepass")).digest()


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a handler failed; no longer than is useful.

    Attributes:
        error_class: The exception's class, with its module.
        message: Its text; at most 1,000 characters from the beginning.
        stack_trace: Where it was raised, with its causes; at most 10,000 characters from the end.
    """

    error_class: str
    message: str
    stack_trace: str

    @classmethod
    def of(cls, error: BaseException) -> Self:
        """Write an exception down, whatever its class does when asked for its text."""
        kind = type(error)
        return cls(
            _encodable(f"{kind.__module__}.{kind.__qualname__}".removeprefix("builtins."))[:_MAX_MESSAGE_LENGTH],
            _text(error)[:_MAX_MESSAGE_LENGTH],
            _trace(error)[-_MAX_TRACE_LENGTH:],
        )


def _text(error: BaseException) -> str:
    try:
        return _encodable(str(error))
    except Exception as failed:  # noqa: BLE001  # its class is the application's
        return f"(its text cannot be had: {type(failed).__name__})"


def _trace(error: BaseException) -> str:
    try:
        return _encodable("".join(traceback.format_exception(error, limit=-_MAX_FRAMES)))
    except Exception as failed:  # noqa: BLE001  # likewise
        return f"(its stack trace cannot be had: {type(failed).__name__})"


def _encodable(text: str) -> str:
    """Replace what no protocol can carry, or the message could not be moved."""
    return text.encode("utf-8", "backslashreplace").decode().replace("\0", r"\x00")
