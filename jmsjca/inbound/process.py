"""What the end of the process, and a copy of it, mean for listeners."""

import atexit
import os
import time
from typing import Protocol
from weakref import WeakSet

__all__ = ["end_with_process", "forget_in_children"]

_GRACE = 10.0  # seconds that handlers at work have when the program ends and nobody stopped their endpoint


class Forgetful(Protocol):
    """Something whose threads and connections are another process's in a forked child."""

    def forget(self) -> None:
        """Begin anew, without touching any of them, or waiting for a lock that one of them may hold."""
        ...


class Ending(Protocol):
    """Something that ends with the process."""

    def end_intake(self) -> object:
        """Begin to end, and return at once."""
        ...

    def stop(self, timeout: float | None = None) -> bool:
        """End, within so many seconds."""
        ...


_forgetful: WeakSet[Forgetful] = WeakSet()
_ending: WeakSet[Ending] = WeakSet()


def forget_in_children(thing: Forgetful) -> None:
    """Let a forked child begin anew with something."""
    _forgetful.add(thing)


def end_with_process(thing: Ending) -> None:
    """Stop something that nobody stopped, when the interpreter ends: before all that is there already ends."""
    _ending.add(thing)
    atexit.unregister(_end)  # what is registered last comes first: providers may have registered something meanwhile
    atexit.register(_end)


def _forget() -> None:
    for thing in list(_forgetful):
        thing.forget()


def _end() -> None:
    things, deadline = list(_ending), time.monotonic() + _GRACE
    for thing in things:
        thing.end_intake()
    for thing in things:
        thing.stop(max(deadline - time.monotonic(), 0.0))


os.register_at_fork(after_in_child=_forget)
