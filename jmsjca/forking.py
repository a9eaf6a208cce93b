"""Fork safety: a forked child may not use its parent's connections, and registered objects are reset in it."""

import os
from collections.abc import Callable
from weakref import WeakMethod

from jmsjca.errors import ConnectionLostError

__all__ = ["ForkGuard", "forked_error", "reset_in_child"]


class _Process:
    """The current process, identified by the number of forks that led to it: `os.getpid` is too slow for each call."""

    forks = 0


class ForkGuard:
    """Remembers the process that opened a resource. Check it before any lock of the resource is acquired."""

    __slots__ = ("_forks",)

    def __init__(self) -> None:
        self._forks = _Process.forks

    @property
    def in_child(self) -> bool:
        """True in a forked child of the process that opened the resource."""
        return self._forks != _Process.forks

    def check(self) -> None:
        """Raise an error in a forked child.

        Raises:
            ConnectionLostError: The resource belongs to the parent of this process.
        """
        if self._forks != _Process.forks:
            raise forked_error()


def forked_error() -> ConnectionLostError:
    """Return the error for the use of a parent's connection in a forked child."""
    return ConnectionLostError(
        "This process was forked, and a connection belongs to the process that opened it: open another one."
    )


_resets: set[WeakMethod[Callable[[], None]]] = set()


def reset_in_child(method: Callable[[], None]) -> None:
    """Register a bound method that resets its object in each forked child.

    The parent's threads and connections do not exist in the child. The method must not use them, and must not acquire
    a lock that one of those threads may have held at the fork. The object is referenced weakly.
    """
    _resets.add(WeakMethod(method, _resets.discard))


def _after_fork() -> None:
    _Process.forks += 1
    for reference in list(_resets):
        method = reference()
        if method is not None:
            method()


os.register_at_fork(after_in_child=_after_fork)
