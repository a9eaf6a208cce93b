"""Connections in forked children: they are the parent's, and the thread that has them is not there."""

import os
from typing import Protocol
from weakref import WeakSet

from jmsjca.config.forks import refusal
from jmsjca.errors import ConnectionLostError

__all__ = ["left_by_forks"]


class _Left(Protocol):
    def leave(self, error: ConnectionLostError) -> None: ...


_left: WeakSet[_Left] = WeakSet()


def left_by_forks(connection: _Left) -> None:
    """Let a connection be left by whoever is forked off this process from now on."""
    _left.add(connection)


def _leave_all() -> None:
    for connection in list(_left):
        connection.leave(refusal())


os.register_at_fork(after_in_child=_leave_all)
