"""The schedule of a connector's polls: a pause after each poll, a window of the day, or the key of an operator."""

import queue
import threading
from collections.abc import Iterator
from datetime import datetime, time
from typing import TextIO

from jmsjca.config.settings import Clock
from jmsjca.connector.config import ConnectorConfig

__all__ = ["in_window", "key_polls", "timed_polls"]

_KEY = "p"


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
        config: Names the window of the day; outside of it the pause goes on.
        pause: Seconds.
        stopping: Set when the connector stops.
        clock: The source of the time of day.
    """
    while not stopping.is_set():
        now = datetime.fromtimestamp(clock.now()).astimezone().time()
        if in_window(now, config.poll_start_time, config.poll_end_time):
            yield
        stopping.wait(pause)


def key_polls(keyboard: TextIO, stopping: threading.Event, waiting: "queue.SimpleQueue[str]") -> Iterator[None]:
    """Yield for each line ``p`` that an operator types, until the connector stops or the input ends.

    Args:
        keyboard: The input.
        stopping: Set when the connector stops.
        waiting: Gets the lines; an empty line, put by a stop, ends a wait.
    """

    def read() -> None:
        """Read lines; in a thread, because a read cannot be interrupted."""
        for line in keyboard:
            waiting.put(line.rstrip("\r\n") + "\n")
        waiting.put("")

    threading.Thread(target=read, name="jmsjca-connector-keys", daemon=True).start()
    while not stopping.is_set():
        line = waiting.get()
        if not line:
            return
        if line.strip().lower() == _KEY:
            yield
