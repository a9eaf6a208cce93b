"""The log of listeners: the fields of records, the context name, and a limit for records that repeat."""

import logging
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from threading import Lock
from typing import Literal

from jmsjca.config.clock import Clock
from jmsjca.log_records import get_logger, one_line

__all__ = [
    "ContextFilter",
    "Event",
    "EventSource",
    "RepeatLimit",
    "as_listener",
    "current_context",
    "in_listener",
    "log_context",
    "log_fields",
]

_ENTER = get_logger("com.stc.EnterContext")
_EXIT = get_logger("com.stc.ExitContext")

_BURST = 50
_PER_SECOND = 1.0

Event = Literal[
    "committed_before",
    "connection_failed",
    "connection_lost",
    "connection_waiting",
    "copy_changed",
    "dead_lettered",
    "delivery_limit",
    "failed_while_stopping",
    "handler_failed",
    "handlers_abandoned",
    "inbox_failed",
    "move_failed",
    "move_rolled_back",
    "no_end_of_redelivery",
    "records_suppressed",
    "reply_dropped",
    "resize_limited",
    "settlement_failed",
    "status_changed",
    "stop_requested",
    "stopped_permanently",
    "stopping",
    "unit_late",
    "unit_rolled_back",
]
"""The events of listeners. The page on logging describes each."""


@dataclass(frozen=True, slots=True)
class EventSource:
    """The fields that all log records of one listener have.

    Attributes:
        adapter: The name of the adapter's management bean; for an adapter without a name, the URL of the broker.
        endpoint: The display name of the activation.
        destination: The destination of the listener.
    """

    adapter: str
    endpoint: str
    destination: str


def log_fields(
    event: Event, source: EventSource, *, duration: float | None = None, **fields: object
) -> dict[str, object]:
    """Return the argument ``extra`` of a log record: attributes that a formatter can print.

    Args:
        event: The event.
        source: The listener.
        duration: Seconds that it took; None for an event without a duration.
        **fields: Further attributes, for example ``message_id``; never the body of a message or a secret. Control
            characters in texts are escaped.
    """
    if duration is not None:
        fields["duration"] = round(duration, 6)
    named = {"adapter": source.adapter, "endpoint": source.endpoint, "destination": source.destination, **fields}
    return {"event": event} | {
        name: one_line(value) if isinstance(value, str) else value for name, value in named.items()
    }


class RepeatLimit:
    """Admits a burst of records, then one per second. Each idle second admits one more, up to the burst. Thread-safe.

    Args:
        clock: The source of time.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = Lock()
        self._left = float(_BURST)
        self._at = clock.monotonic()
        self._suppressed = 0

    def admit(self) -> int | None:
        """Return the number of records suppressed since the last admitted one; None to suppress this record."""
        with self._lock:
            now = self._clock.monotonic()
            self._left, self._at = min(self._left + (now - self._at) * _PER_SECOND, _BURST), now
            if self._left < 1:
                self._suppressed += 1
                return None
            self._left -= 1
            suppressed, self._suppressed = self._suppressed, 0
            return suppressed

    def take_suppressed(self) -> int:
        """Return and reset the number of records suppressed since the last admitted one."""
        with self._lock:
            suppressed, self._suppressed = self._suppressed, 0
            return suppressed


current_context: ContextVar[str | None] = ContextVar("jmsjca.inbound.context", default=None)
"""The context name of the activation whose handler is running; None if no handler is running."""


class ContextFilter(logging.Filter):
    """Prefixes log records of a handler with the context name. Add it to a `logging.Handler`, or to a logger.

    It also sets the attribute ``context`` of each record to the name, or to an empty string, for formatters that print
    it elsewhere. No record is dropped.
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
    """Mark ``work`` as listener code. Coroutines and threads that inherit its context are also marked."""

    def _marked() -> None:
        before = _in_listener.get()
        try:
            _in_listener.set(True)  # here, because a signal handler may raise an exception once this has returned
            work()
        finally:
            _in_listener.set(before)

    return _marked


def in_listener() -> bool:
    """Return True if the caller is a handler, or a hook around one."""
    return _in_listener.get()
