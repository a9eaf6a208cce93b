"""Whether the caller is a listener at work: whoever waited for it there would wait for itself."""

from collections.abc import Callable
from contextvars import ContextVar

__all__ = ["inside", "is_inside"]

_inside: ContextVar[bool] = ContextVar("jmsjca.inbound.inside", default=False)


def inside(work: Callable[[], None]) -> Callable[[], None]:
    """Mark what a listener's thread does, and the coroutines and threads that take over its context."""

    def marked() -> None:
        before = _inside.set(True)
        try:
            work()
        finally:
            _inside.reset(before)

    return marked


def is_inside() -> bool:
    """Tell whether this is called by a handler, or by a hook around one."""
    return _inside.get()
