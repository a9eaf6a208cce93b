"""Shared by the asyncio classes: a thread for blocking calls, awaitable opening, asynchronous closing."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Generator
from concurrent.futures import Future
from contextvars import Context, copy_context
from functools import partial
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Any, Generic, Self, TypeVar

from jmsjca.errors import IllegalStateError
from jmsjca.forking import ForkGuard
from jmsjca.outbound.connection_state import Closeable

__all__ = ["AsyncCloseable", "AwaitableContextManager", "SingleThreadExecutor", "open_in_thread", "run_in_thread"]

T = TypeVar("T")
ClosingT = TypeVar("ClosingT", bound=Closeable)


class SingleThreadExecutor:
    """Runs one call after the other, each in the context variables of whoever made it.

    The thread is a daemon, which those of executors are not: a program that forgets a waiting receive can still end.

    Args:
        name: The name of the thread.
    """

    def __init__(self, name: str) -> None:
        self._fork_guard = ForkGuard()
        self._calls: SimpleQueue[Callable[[], None] | None] = SimpleQueue()  # None is the last
        self._submitting = Lock()  # so that nothing comes after the last
        self._ended = False
        self._failure: BaseException | None = None  # used on the thread alone
        self._thread = Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    async def run(self, function: Callable[[], T]) -> T:
        """Run a call; if the await is cancelled before it began, it is not made.

        Raises:
            IllegalStateError: The executor has ended.
            BaseException: What the call raises, or an earlier one that nobody awaited: then this one is not made.
        """
        return await asyncio.wrap_future(self._submit(partial(self._unless_failed, function)))

    async def run_shielded(self, function: Callable[[], T]) -> T:
        """Run a call that ends something: it is made even if the await is cancelled, or an earlier call failed."""
        return await asyncio.shield(asyncio.wrap_future(self._submit(partial(self._whatever_failed, function))))

    async def run_opening(self, function: Callable[[], ClosingT]) -> ClosingT:
        """Run a call that makes something; if the await is cancelled, what it made is closed."""
        made = self._submit(partial(self._unless_failed, function))
        try:
            return await asyncio.wrap_future(made)
        except asyncio.CancelledError:
            self._submit(partial(_discard, made))
            raise

    def submit_detached(self, function: Callable[[], None]) -> None:
        """Run a call that nobody awaits; what it raises is raised by the next call."""
        self._submit(partial(self._keeping_failure, function))

    def raise_pending(self) -> None:
        """Raise what an earlier call has raised that nobody awaited. On the thread."""
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def end(self) -> None:
        """Take no more calls; the thread ends after those that were made. Again is harmless."""
        if self._fork_guard.in_child:
            return  # a forked child: the thread is not here
        with self._submitting:
            if not self._ended:
                self._ended = True
                self._calls.put(None)

    def join(self) -> None:
        """End, and wait until the thread has ended. On another thread."""
        self.end()
        self._thread.join()

    def _work(self) -> None:
        for call in iter(self._calls.get, None):
            call()

    def _submit(self, function: Callable[[], T]) -> Future[T]:
        self._fork_guard.check()
        outcome: Future[T] = Future()
        with self._submitting:
            if self._ended:
                raise IllegalStateError("The session is closed.")
            self._calls.put(partial(_run, outcome, copy_context(), function))
        return outcome

    def _unless_failed(self, function: Callable[[], T]) -> T:
        self.raise_pending()
        return function()

    def _whatever_failed(self, function: Callable[[], T]) -> T:
        self._failure = None
        return function()

    def _keeping_failure(self, function: Callable[[], None]) -> None:
        try:
            function()
        except BaseException as error:  # noqa: BLE001  # whoever calls next gets it
            self._failure = error


async def run_in_thread(function: Callable[[], T]) -> T:
    """Run a call on a thread of its own, to its end even if the await is cancelled.

    For what must not wait until a session's thread is free.
    """
    executor = SingleThreadExecutor("jmsjca aside")
    try:
        return await executor.run_shielded(function)
    finally:
        executor.end()


async def open_in_thread(function: Callable[[], ClosingT]) -> ClosingT:
    """Make something on a thread of its own; if the await is cancelled, what it made is closed."""
    executor = SingleThreadExecutor("jmsjca aside")
    try:
        return await executor.run_opening(function)
    finally:
        executor.end()


def _run(outcome: Future[T], context: Context, function: Callable[[], T]) -> None:
    if not outcome.set_running_or_notify_cancel():
        return
    try:
        outcome.set_result(context.run(function))
    except BaseException as error:  # noqa: BLE001  # it belongs to whoever called
        outcome.set_exception(error)


def _discard(made: Future[ClosingT]) -> None:
    if not made.cancelled() and made.exception() is None:
        made.result().close()


class AsyncCloseable(ABC):
    """Leaving it closes it."""

    @abstractmethod
    async def close(self) -> None:
        """Let go of what it holds, also if the await is cancelled. Closing twice does nothing."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()


C = TypeVar("C", bound=AsyncCloseable)


class AwaitableContextManager(Generic[C]):
    """Awaited it opens something, which is yours to close; ``async with`` closes it at the end of the block.

    Args:
        open_it: Opens it.
    """

    def __init__(self, open_it: Callable[[], Awaitable[C]]) -> None:
        self._open = open_it

    def __await__(self) -> Generator[Any, Any, C]:
        return self._open().__await__()

    async def __aenter__(self) -> C:
        self._opened = await self
        try:
            return await self._opened.__aenter__()
        except BaseException:
            await self._opened.close()
            raise

    async def __aexit__(self, *error: object) -> None:
        await self._opened.__aexit__(*error)
