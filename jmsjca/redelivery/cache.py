"""The cache of encounters: which messages came again lately."""

from threading import Lock

from jmsjca.redelivery.encounter import Encounter

__all__ = ["EncounterCache"]

_LONGEST_ID = 256


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
    if len(message_id) <= _LONGEST_ID:
        return message_id
    from hashlib import sha256  # noqa: PLC0415  # loads OpenSSL, for few messages

    return sha256(message_id.encode("utf-8", "surrogatepass")).digest()
