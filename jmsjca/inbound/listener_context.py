"""Context variables of listeners: the context name in the log, and whether the caller is inside a listener."""

import logging
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar

__all__ = ["ContextFilter", "current_context", "entered", "inside", "is_inside"]

_ENTER = logging.getLogger("com.stc.EnterContext")
_EXIT = logging.getLogger("com.stc.ExitContext")

current_context: ContextVar[str | None] = ContextVar("jmsjca.inbound.context", default=None)
"""The context name of the activation whose handler is at work here; None where there is none."""


class ContextFilter(logging.Filter):
    """Puts the context name before what a handler logs. Add it to a `logging.Handler`, or to a logger.

    It also gives each record an attribute ``context``, the name or an empty text, for formatters that want it
    elsewhere. It lets every record pass.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Mark a record, once."""
        if not hasattr(record, "context"):
            name = current_context.get()
            record.context = name or ""
            if name is not None:
                prefix = f"[{name}] "
                record.msg = (prefix.replace("%", "%%") if record.args else prefix) + str(record.msg)
        return True


@contextmanager
def entered(name: str) -> Generator[None]:
    """Log the name on entering and on leaving the block, and let it be the context in between."""
    _ENTER.info("%s", name)
    before = current_context.set(name)
    try:
        yield
    finally:
        current_context.reset(before)
        _EXIT.info("%s", name)


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
