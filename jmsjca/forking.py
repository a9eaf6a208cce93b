"""Fork safety: a forked child may not use its parent's connections, and registered objects are reset in it."""

import os
from collections.abc import Callable
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from jmsjca.errors import ConnectionLostError

__all__ = ["ForkGuard", "forked_error", "reset_in_child"]

T = TypeVar("T")


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


_resets: WeakKeyDictionary[object, Callable[[Any], None]] = WeakKeyDictionary()


def reset_in_child(instance: T, reset: Callable[[T], None]) -> None:
    """Register an object that is reset in each forked child. It is referenced weakly.

    Args:
        instance: The object.
        reset: Resets it. The parent's threads and connections do not exist in the child: it must not use them, and must
            not acquire a lock that one of those threads may have held at the fork.
    """
    _resets[instance] = reset


def _after_fork() -> None:
    _Process.forks += 1
    for instance, reset in list(_resets.items()):
        reset(instance)


os.register_at_fork(after_in_child=_after_fork)
