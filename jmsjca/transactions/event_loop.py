"""Work of asynchronous sessions for threads: it runs on the event loop of the sessions, and the thread waits for it."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from jmsjca.errors import IllegalStateError

__all__ = ["run_on_loop", "running_loop"]

_POLL_INTERVAL = 0.5  # seconds between checks of a waiting thread that the loop still runs

T = TypeVar("T")


def running_loop() -> asyncio.AbstractEventLoop | None:
    """Return the event loop that runs on the current thread; None if none does."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def run_on_loop(loop: asyncio.AbstractEventLoop, coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on the loop of another thread, wait for it, and return its result.

    Args:
        loop: The loop.
        coroutine: The coroutine.

    Raises:
        IllegalStateError: The loop does not run any more.
        BaseException: The error of the coroutine.
    """
    try:
        running = asyncio.run_coroutine_threadsafe(coroutine, loop)
    except RuntimeError as error:  # it is closed
        coroutine.close()
        raise _not_running() from error
    while not running.done():
        if not loop.is_running():
            raise _not_running()
        try:
            return running.result(_POLL_INTERVAL)
        except TimeoutError:
            continue  # of the wait, or of the coroutine, which is done then
    return running.result()


def _not_running() -> IllegalStateError:
    return IllegalStateError("The event loop of an asynchronous database session does not run any more.")
