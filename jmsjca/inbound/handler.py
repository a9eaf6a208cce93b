"""Calls the user's handler, and runs coroutines of async handlers on an event loop."""

import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from threading import Lock
from typing import TYPE_CHECKING, Any

from jmsjca.errors import IllegalStateError
from jmsjca.forking import reset_in_child
from jmsjca.inbound.handler_arguments import Given, Parameters

if TYPE_CHECKING:
    import asyncio

__all__ = ["Handler", "HandlerLoop", "RunningCoroutine", "is_current"]

_LONGEST_END = 1.0  # seconds for coroutines that do not let themselves be cancelled


class HandlerLoop:
    """One loop for all handlers of an adapter, so that they can share what is bound to a loop.

    It is the application's, where the adapter was entered with ``async with``; else one of its own, on a thread that
    exists from the first coroutine on until no endpoint is left that may have another one.
    """

    def __init__(self) -> None:
        self._reset_after_fork()
        reset_in_child(self, HandlerLoop._reset_after_fork)

    def _reset_after_fork(self) -> None:
        """Begin anew, in a forked child, where no other thread is."""
        self._lock = threading.Lock()
        self._adopted: asyncio.AbstractEventLoop | None = None
        self._own: _OwnLoop | None = None
        self._members = 0

    def adopt(self, loop: "asyncio.AbstractEventLoop | None") -> None:
        """Let coroutines run on the application's loop from now on; None to let them run on our own again."""
        with self._lock:
            self._adopted = loop

    def is_here(self) -> bool:
        """Tell whether the caller is on that loop: as long as it blocks, no coroutine ends."""
        with self._lock:
            loop = self._adopted or (self._own.loop if self._own is not None else None)
        if loop is None:
            return False
        import asyncio  # noqa: PLC0415  # whoever has a loop has it

        try:
            return asyncio.get_running_loop() is loop
        except RuntimeError:  # none runs on this thread
            return False

    def join(self) -> None:
        """Note an endpoint that may have coroutines."""
        with self._lock:
            self._members += 1

    def leave(self) -> None:
        """Note that an endpoint has no more of them; after the last one our own loop ends."""
        with self._lock:
            self._members -= 1
            if self._members or self._own is None:
                return
            own, self._own = self._own, None
        own.close()

    def get(self) -> "asyncio.AbstractEventLoop":
        """Give the loop that coroutines run on now."""
        with self._lock:
            if self._adopted is not None:
                return self._adopted
            if self._own is None or self._own.loop.is_closed():  # a coroutine may have stopped it
                self._own = _OwnLoop()
            return self._own.loop


class _OwnLoop:
    """A loop on a thread of its own.

    Attributes:
        loop: The loop; it runs.
    """

    loop: "asyncio.AbstractEventLoop"

    def __init__(self) -> None:
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="jmsjca handlers' event loop", daemon=True)
        self._thread.start()
        self._ready.wait()

    def close(self) -> None:
        """Cancel what runs, and end the thread; it is not waited for if a coroutine of its own ends it."""
        with suppress(RuntimeError):  # it is closed already
            self.loop.call_soon_threadsafe(self._over.set)
        if threading.current_thread() is not self._thread:
            self._thread.join(_LONGEST_END)

    def _run(self) -> None:
        import asyncio  # noqa: PLC0415  # only async handlers need it

        with suppress(KeyboardInterrupt):  # raised by a task that a handler began itself
            asyncio.run(self._serve())

    async def _serve(self) -> None:
        import asyncio  # noqa: PLC0415  # likewise

        self._over = asyncio.Event()
        self.loop = asyncio.get_running_loop()
        self._ready.set()
        await self._over.wait()


class Handler:
    """A user's function, called with what its parameters ask for; `Parameters` tells what that may be.

    The function may be ``async``: then it runs on the loop while the handler is open, and the thread that delivers
    waits for it. For any number of threads.

    Args:
        function: The user's function.
        loop: Where coroutines run; None for a loop of its own.

    Attributes:
        whole_batches: True if it takes all messages of a batch in one call.
        takes_end_of_batch: True if it is called once more at the end of a batch.

    Raises:
        ConfigurationError: It needs a parameter that nothing is known for, or it is no function that can be called.
    """

    def __init__(self, function: Callable[..., object], loop: HandlerLoop | None = None) -> None:
        self._function = function
        self._loop = loop or HandlerLoop()
        self._parameters = Parameters(function)
        self.whole_batches = self._parameters.whole_batches
        self.takes_end_of_batch = self._parameters.takes_end_of_batch
        self._lock = Lock()
        self._running: set[RunningCoroutine] = set()
        self._open = False

    def __call__(self, given: Given) -> object:
        """Call the function, and wait for the coroutine that an ``async`` one returns.

        Raises:
            IllegalStateError: The event loop is gone; the endpoint is being stopped then.
            CancelledError: The coroutine was cancelled.
            BaseException: What the function raised.
        """
        by_place, by_name = self._parameters.filled(given)
        result = self._function(*by_place, **by_name)
        if result is not None and isinstance(result, Coroutine):
            return self._wait_for(result, given)  # pyright: ignore[reportUnknownArgumentType]
        return result

    def is_blocked_by_caller(self) -> bool:
        """Tell whether coroutines would run on the event loop that calls this, so that it cannot wait for them."""
        return self._loop.is_here()

    def open(self) -> None:
        """Let coroutines run."""
        with self._lock:
            if not self._open:
                self._open = True
                self._loop.join()

    def close(self) -> None:
        """Cancel what still runs, and let no more coroutines run. Twice is as once."""
        with self._lock:
            running, was_open, self._open = list(self._running), self._open, False
        for coroutine in running:
            coroutine.cancel()
        if was_open:
            self._loop.leave()

    def _wait_for(self, coroutine: Coroutine[Any, Any, object], given: Given) -> object:
        running = self._begin(coroutine, given)
        try:
            return running.result()
        finally:
            with self._lock:
                self._running.discard(running)
            if running.cut_off:  # nothing that comes can be delivered any more
                given.message.stop_message_delivery("the event loop of its handler does not run any more")

    def _begin(self, coroutine: Coroutine[Any, Any, object], given: Given) -> "RunningCoroutine":

        with self._lock:
            if not self._open:
                coroutine.close()
                raise IllegalStateError("The listener is down, so its handler cannot run.")
            running = RunningCoroutine(coroutine, self._loop.get(), given.began)
            self._running.add(running)
        return running


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
        self, coroutine: Coroutine[Any, Any, object], loop: "asyncio.AbstractEventLoop", began: Callable[[object], None]
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
        import asyncio  # noqa: PLC0415  # only async handlers need it

        self._began(asyncio.current_task())  # here, as a loop may run a task before it gives it to its maker
        try:
            return await self._coroutine
        except SystemExit as error:
            return _Exit(error)
        except KeyboardInterrupt as error:
            if threading.current_thread() is threading.main_thread():
                raise
            return _Exit(error)

    def _end(self, task: "asyncio.Task[object]") -> None:
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
    import asyncio  # noqa: PLC0415  # who asks is a task

    try:
        return asyncio.current_task() is task
    except RuntimeError:  # no loop runs on this thread
        return False
