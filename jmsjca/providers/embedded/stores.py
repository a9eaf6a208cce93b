"""The stores that this process has open: one per file, one per name in memory."""

import atexit
import os
import threading
from contextlib import suppress
from pathlib import Path

from jmsjca.config import Clock, Limits
from jmsjca.errors import JMSError
from jmsjca.providers.embedded.store import Store

__all__ = ["enter", "forget", "leave"]

_lock = threading.Lock()
_stores: dict[Path | str, Store] = {}
_abandoned: list[Store] = []  # of the parent process: kept, so that nothing closes them here


def enter(place: Path | str, limits: Limits, clock: Clock) -> Store:
    """Open the store of a place, or join those who have it open.

    Args:
        place: The resolved path of a file, or the name of a memory broker.
        limits: The bounds, if it is opened now.
        clock: Where time comes from, if it is opened now.
    """
    with _lock:
        store = _stores.get(place)
        if store is None or store.lost:
            store = _stores[place] = Store(place if isinstance(place, Path) else None, limits, clock)
        store.users += 1
        return store


def leave(store: Store) -> None:
    """Close a file when its last connection closes. A memory broker stays until the process ends."""
    with _lock:
        store.users -= 1
        if store.users == 0 and store.path is not None:
            if _stores.get(store.path) is store:  # else it was lost, and another has taken its place
                del _stores[store.path]
            store.close()


def forget(name: str) -> None:
    """Drop a memory broker with all that is in it."""
    with _lock:
        store = _stores.pop(name, None)
        if store is not None:
            store.close()


@atexit.register
def _close_files() -> None:
    for store in [s for s in _stores.values() if s.path is not None]:
        with suppress(JMSError):  # what is held is given back when others find this process dead
            store.close()


def _abandon_all() -> None:
    global _lock  # noqa: PLW0603  # the parent's may be held by a thread that does not exist here
    _lock = threading.Lock()
    for store in _stores.values():
        store.abandon()
    _abandoned.extend(_stores.values())
    _stores.clear()


os.register_at_fork(after_in_child=_abandon_all)
