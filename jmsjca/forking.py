"""Objects of one process: a forked child may not use its parent's connections, and no other process gets a pickle."""

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from itertools import chain
from typing import Any, NoReturn, Self, SupportsIndex, TypeVar, cast
from weakref import WeakKeyDictionary

from jmsjca.errors import ConnectionLostError
from jmsjca.log_records import exc_info_of, get_logger

__all__ = ["ForkGuard", "Process", "ProcessBound", "end_child", "forked_error", "reset_in_child"]

logger = get_logger("jmsjca.forking")

T = TypeVar("T")


class Process:
    """The current process, identified by the number of forks that led to it: `os.getpid` is too slow for each call.

    Attributes:
        forks: The number of forks; a resource of another number belongs to a parent of this process.
    """

    forks = 0


class ForkGuard:
    """Remembers the process that opened a resource. Check it before any lock of the resource is acquired."""

    __slots__ = ("_forks",)

    def __init__(self) -> None:
        self._forks = Process.forks

    @property
    def in_child(self) -> bool:
        """True in a forked child of the process that opened the resource."""
        return self._forks != Process.forks

    def check(self) -> None:
        """Raise an error in a forked child.

        Raises:
            ConnectionLostError: The resource belongs to the parent of this process.
        """
        if self._forks != Process.forks:
            raise forked_error()


class ProcessBound:
    """Base class of objects that cannot be pickled. The error names the remedy.

    Without this class, pickling would fail at a lock or a connection inside the object, with an error that does not
    name the object. `copy.copy` works as for any other object: the copy shares the locks and connections.
    """

    __slots__ = ()

    def __reduce_ex__(self, protocol: SupportsIndex) -> str | tuple[Any, ...]:
        raise TypeError(
            f"This {type(self).__name__} cannot be pickled: it belongs to its process. Create it in the process that "
            "uses it, for example within the function that Spark runs, from a ConnectionFactory, which can be pickled, "
            "or its URL."
        )

    def __copy__(self) -> Self:
        reduced = cast("tuple[Any, ...]", object.__reduce_ex__(self, 4))
        create, arguments, state, *_ = *reduced, None
        twin: Self = create(*arguments)
        parts = cast("tuple[dict[str, Any] | None, ...]", state if isinstance(state, tuple) else (state,))
        for name, value in chain.from_iterable((part or {}).items() for part in parts):
            object.__setattr__(twin, name, value)
        return twin


def end_child(name: str, error: BaseException | None) -> NoReturn:
    """End a forked child in which a handler has returned, or raised an exception.

    The parent settles the message, and calls the handler with the next one. The child has no thread for that.

    Args:
        name: The name of the handler, or of its coroutine.
        error: The exception; None if the handler has returned.
    """
    status = 1
    if isinstance(error, SystemExit):  # the child ends as the handler wants it
        status = error.code if isinstance(error.code, int) else int(error.code is not None)
    else:
        text = "The handler %s forked, and the child (process %d) came back from it: the child ends."
        logger.error(text, name, os.getpid(), exc_info=None if error is None else exc_info_of(error))
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):  # there may be none
            stream.flush()
    os._exit(status)


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
    Process.forks += 1
    for instance, reset in list(_resets.items()):
        reset(instance)


os.register_at_fork(after_in_child=_after_fork)
