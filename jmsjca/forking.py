"""Forked child processes: what belongs to the parent is refused there, and registered objects are reset."""

import os
from typing import Protocol
from weakref import WeakSet

from jmsjca.errors import ConnectionLostError

__all__ = ["ForkGuard", "forked_error", "reset_in_child"]


class _Process:
    """This process, by how often it was forked on its way here: to ask the system for its id at every step is dear."""

    forks = 0


class ForkGuard:
    """The process that opened something. Asked before any of its locks is taken."""

    __slots__ = ("_forks",)

    def __init__(self) -> None:
        self._forks = _Process.forks

    @property
    def in_child(self) -> bool:
        """True in a forked child."""
        return self._forks != _Process.forks

    def check(self) -> None:
        """Refuse the use of what is the parent's.

        Raises:
            ConnectionLostError: This is a forked child.
        """
        if self._forks != _Process.forks:
            raise forked_error()


def forked_error() -> ConnectionLostError:
    """What a forked child is told that uses what is its parent's."""
    return ConnectionLostError(
        "This process was forked, and a connection belongs to the process that opened it: open another one."
    )


def _begin_another() -> None:
    _Process.forks += 1


os.register_at_fork(after_in_child=_begin_another)


class ForkAware(Protocol):
    """Something whose threads and connections are another process's in a forked child."""

    def forget(self) -> None:
        """Begin anew, without touching any of them, or waiting for a lock that one of them may hold."""
        ...


_forgetful: WeakSet[ForkAware] = WeakSet()


def reset_in_child(thing: ForkAware) -> None:
    """Let a forked child begin anew with something."""
    _forgetful.add(thing)


def _forget() -> None:
    for thing in list(_forgetful):
        thing.forget()


os.register_at_fork(after_in_child=_forget)
