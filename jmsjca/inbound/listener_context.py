"""Context variables of listeners: the context name in the log, and whether the caller runs inside a listener."""

import logging
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar

from jmsjca.log_records import get_logger, one_line

__all__ = ["ContextFilter", "as_listener", "current_context", "in_listener", "log_context"]

_ENTER = get_logger("com.stc.EnterContext")
_EXIT = get_logger("com.stc.ExitContext")

current_context: ContextVar[str | None] = ContextVar("jmsjca.inbound.context", default=None)
"""The context name of the activation whose handler is at work here; None where there is none."""


class ContextFilter(logging.Filter):
    """Prefixes log records of a handler with the context name. Add it to a `logging.Handler`, or to a logger.

    It also sets the attribute ``context`` of each record to the name, or to an empty string, for formatters that print
    it
    elsewhere. No record is dropped.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Add the prefix and the attribute to a record, once."""
        if not hasattr(record, "context"):
            name = current_context.get()
            record.context = name or ""
            if name is not None:
                prefix = f"[{one_line(name)}] "
                record.msg = (prefix.replace("%", "%%") if record.args else prefix) + str(record.msg)
        return True


@contextmanager
def log_context(name: str) -> Generator[None]:
    """Set the context name during the block, and log entry and exit."""
    _ENTER.info("%s", name)
    before = current_context.set(name)
    try:
        yield
    finally:
        current_context.reset(before)
        _EXIT.info("%s", name)


_in_listener: ContextVar[bool] = ContextVar("jmsjca.inbound.inside", default=False)


def as_listener(work: Callable[[], None]) -> Callable[[], None]:
    """Mark ``work`` as listener code, including the coroutines and threads that inherit its context."""

    def _marked() -> None:
        before = _in_listener.get()
        try:
            _in_listener.set(True)  # here, as a signal handler may raise an exception once this has returned
            work()
        finally:
            _in_listener.set(before)

    return _marked


def in_listener() -> bool:
    """Return True if the caller is a handler, or a hook around one."""
    return _in_listener.get()
