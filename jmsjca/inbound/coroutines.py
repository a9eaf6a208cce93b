"""The coroutine of an async handler, as the thread that delivers sees it."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError, Future
from typing import Any

from jmsjca.errors import IllegalStateError

__all__ = ["RunningCoroutine", "is_current"]

_LOOK = 0.5  # seconds after which a waiting thread looks whether the loop is still there
_GONE = (
    "The event loop that the adapter was entered on does not run any more, so no async handler can. Leave the "
    "'async with adapter' block before its loop ends."
)


class RunningCoroutine:
    """Runs on an event loop, in the context of the thread that made it, which waits for it.

    Args:
        coroutine: What runs.
        loop: Where.
        began: Told the task, as soon as there is one.

    Attributes:
        cut_off: True if its loop does not run any more.
    """

    def __init__(
        self, coroutine: Coroutine[Any, Any, object], loop: asyncio.AbstractEventLoop, began: Callable[[object], None]
    ) -> None:
        self._coroutine = coroutine
        self._loop = loop
        self._began = began
        self._task: asyncio.Task[object] | None = None
        self._ended: Future[object] = Future()
        self.cut_off = False
        try:
            loop.call_soon_threadsafe(self._begin)
        except RuntimeError:  # the loop is closed; who waits is told
            coroutine.close()

    def result(self) -> object:
        """Wait for what the coroutine returns.

        Raises:
            IllegalStateError: The loop does not run any more.
            CancelledError: The coroutine was cancelled.
            BaseException: What the coroutine raised.
        """
        self._wait()
        ended, self._ended = self._ended, Future()
        self._task = None
        try:
            return ended.result()
        finally:
            del ended  # what it raised has this frame, and would have itself through this: no circle stays behind

    def cancel(self) -> None:
        """Cancel the coroutine; it has ended when it has cleaned up."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._cancel)

    def _wait(self) -> None:
        was_there = not self._loop.is_closed()
        while not self._has_ended():
            is_there = self._loop.is_running()
            if not (is_there or was_there):  # looked at twice: the application may just be between two runs of it
                self._give_up()
                raise IllegalStateError(_GONE)
            was_there = is_there

    def _has_ended(self) -> bool:
        """Tell whether the coroutine has ended, after waiting for that for a while."""
        try:
            self._ended.exception(_LOOK)
        except TimeoutError:
            return self._ended.done()
        return True

    def _give_up(self) -> None:
        self.cut_off = True
        self.cancel()
        if self._task is None:
            self._coroutine.close()

    def _begin(self) -> None:
        self._task = self._loop.create_task(self._contained())
        self._task.add_done_callback(self._end)

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _contained(self) -> object:
        """Keep from the loop, and from all that runs there, what would end it: it ends a delivery, no more.

        A `KeyboardInterrupt` on the main thread may be the user's, so it ends the application's loop as ever.
        """
        self._began(asyncio.current_task())  # here, as a loop may run a task before it gives it to its maker
        try:
            return await self._coroutine
        except SystemExit as error:
            return _Exit(error)
        except KeyboardInterrupt as error:
            if threading.current_thread() is threading.main_thread():
                raise
            return _Exit(error)

    def _end(self, task: asyncio.Task[object]) -> None:
        if task.cancelled():
            self._ended.set_exception(CancelledError("The handler was cancelled before it had finished."))
        elif error := task.exception():
            self._ended.set_exception(error)
        elif isinstance(result := task.result(), _Exit):
            self._ended.set_exception(result.error)
        else:
            self._ended.set_result(result)


class _Exit:
    def __init__(self, error: BaseException) -> None:
        self.error = error


def is_current(task: object) -> bool:
    """Tell whether it is this task that asks."""
    try:
        return asyncio.current_task() is task
    except RuntimeError:  # no loop runs on this thread
        return False
