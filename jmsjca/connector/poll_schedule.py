"""The schedule of a connector's polls: a pause after each poll, a window of the day, or the key of an operator."""

import queue
import threading
from collections.abc import Iterator
from datetime import datetime, time
from typing import TextIO, TypeAlias

from jmsjca.config.settings import Clock
from jmsjca.connector.config import ConnectorConfig
from jmsjca.errors import JMSError

__all__ = ["Keys", "in_window", "key_polls", "timed_polls", "wait_for_window"]

_KEY = "p"
_SHORTEST_LOOK, _LONGEST_LOOK = 0.05, 60.0  # seconds between two looks at the time of day, outside of the window

Keys: TypeAlias = "queue.SimpleQueue[str | Exception]"
"""The lines of an operator; an empty one for the end of the input, and an exception for an input that failed."""


def in_window(now: time, start: time | None, end: time | None) -> bool:
    """Return whether polling is allowed at a time of day.

    Args:
        now: The time of day.
        start: The first time of the window.
        end: The first time after the window; before `start` for a window with midnight in it.

    Returns:
        True also if `start` or `end` is None, because half a window is ignored; and if both are the same.
    """
    if start is None or end is None or start == end:
        return True
    return start <= now < end if start < end else now >= start or now < end


def timed_polls(config: ConnectorConfig, pause: float, stopping: threading.Event, clock: Clock) -> Iterator[None]:
    """Yield for each poll, until the connector stops: at the start, and after a pause after each poll.

    Args:
        config: Names the window of the day; a pause that ends outside of it goes on until the window opens.
        pause: Seconds.
        stopping: Set when the connector stops.
        clock: The source of the time of day.
    """
    while wait_for_window(config, pause, stopping, clock):
        yield
        stopping.wait(pause)


def wait_for_window(config: ConnectorConfig, pause: float, stopping: threading.Event, clock: Clock) -> bool:
    """Wait until polling is allowed, and return True; False once the connector stops.

    Args:
        config: Names the window of the day.
        pause: Seconds after which the time of day is read again; from 0.05 to 60, whatever it is.
        stopping: Set when the connector stops.
        clock: The source of the time of day.
    """
    while not stopping.is_set():
        now = datetime.fromtimestamp(clock.now()).astimezone().time()
        if in_window(now, config.poll_start_time, config.poll_end_time):
            return True
        stopping.wait(min(max(pause, _SHORTEST_LOOK), _LONGEST_LOOK))
    return False


def key_polls(keyboard: TextIO, stopping: threading.Event, waiting: Keys) -> Iterator[None]:
    """Yield for each line ``p`` that an operator types, until the connector stops or the input ends.

    Args:
        keyboard: The input.
        stopping: Set when the connector stops.
        waiting: Gets the lines; an empty line, put by a stop, ends a wait.

    Raises:
        JMSError: The input cannot be read.
    """

    def read() -> None:
        """Read lines; in a thread, because a read cannot be interrupted."""
        try:
            for line in keyboard:
                waiting.put(line.rstrip("\r\n") + "\n")
        except Exception as error:  # noqa: BLE001  # `run` raises it; this thread has no caller
            waiting.put(error)
        waiting.put("")

    threading.Thread(target=read, name="jmsjca-connector-keys", daemon=True).start()
    while not stopping.is_set():
        line = waiting.get()
        if isinstance(line, Exception):
            raise JMSError(
                f"The keyboard cannot be read: {line}. Nothing polls any more: call run() again with an input of text."
            ) from line
        if not line:
            return
        if line.strip().lower() == _KEY:
            yield
