"""Common parts of the asyncio classes: a thread for blocking calls, awaitable opening, asynchronous closing."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Generator
from concurrent.futures import Future
from contextlib import suppress
from contextvars import Context, copy_context
from functools import partial
from queue import SimpleQueue
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any, Generic, NoReturn, Self, TypeVar

from jmsjca.arguments import GuardedAttributes
from jmsjca.errors import IllegalStateError, InvalidAttributeError, JMSError
from jmsjca.forking import ForkGuard, ProcessBound
from jmsjca.outbound.connection_state import Closeable

__all__ = ["AsyncCloseable", "AwaitableContextManager", "SingleThreadExecutor", "open_in_thread", "run_in_thread"]

T = TypeVar("T")
CloseableT = TypeVar("CloseableT", bound=Closeable)


class SingleThreadExecutor:
    """Runs calls one after the other on its own thread, each in the context variables of its caller.

    The thread is a daemon, unlike the threads of `concurrent.futures`, so a program with a waiting receive can exit.

    Args:
        name: The name of the thread.
    """

    def __init__(self, name: str) -> None:
        self.fork_guard = ForkGuard()
        self._calls: SimpleQueue[Callable[[], None] | None] = SimpleQueue()  # None ends the thread
        self._submitting = Lock()  # no call may be queued after the None
        self._ended = False
        self._failure: BaseException | None = None  # of a detached call
        self._thread = Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    async def run(self, function: Callable[[], T]) -> T:
        """Run a call and return its result. If the await is cancelled before the call has begun, the call is not made.

        Raises:
            IllegalStateError: The executor has ended.
            BaseException: The error of the call, or of an earlier detached call; this call is not made then.
        """
        return await asyncio.wrap_future(self._submit(partial(self._unless_failed, function)))

    async def run_shielded(self, function: Callable[[], T]) -> T:
        """Run a call that ends something. It is made even if the await is cancelled or an earlier call failed."""
        return await asyncio.shield(asyncio.wrap_future(self._submit(partial(self._whatever_failed, function))))

    async def run_opening(self, function: Callable[[], CloseableT]) -> CloseableT:
        """Run a call that opens a resource. If the await is cancelled, the resource is closed."""
        opened = self._submit(partial(self._unless_failed, function))
        try:
            return await asyncio.wrap_future(opened)
        except asyncio.CancelledError:
            with suppress(JMSError):  # closing the session has already closed the resource
                self._submit(partial(_discard, opened))
            raise

    def submit_detached(self, function: Callable[[], None]) -> None:
        """Run a call without waiting for it. If it fails, the next call raises its error."""
        self._submit(function).add_done_callback(self._keep_failure)

    def raise_pending(self) -> None:
        """Raise the error of a failed detached call, if any. Only called on the thread."""
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def end(self) -> None:
        """Refuse new calls. The thread ends after the queued calls. Idempotent."""
        if self.fork_guard.in_child:
            return  # a forked child: the thread does not exist
        with self._submitting:
            if not self._ended:
                self._ended = True
                self._calls.put(None)

    def join(self) -> None:
        """End the executor and wait until its thread has ended. Must not be called on that thread."""
        self.end()
        self._thread.join()

    def _work(self) -> None:
        for call in iter(self._calls.get, None):
            call()

    def _submit(self, function: Callable[[], T]) -> Future[T]:
        self.fork_guard.check()
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

    def _keep_failure(self, ended: Future[None]) -> None:
        if not ended.cancelled():
            error = ended.exception()
            self._failure = self._failure if error is None else error


async def run_in_thread(function: Callable[[], T]) -> T:
    """Run a call on a new thread, to its end even if the await is cancelled.

    Use it for calls that must not wait for a session's thread.
    """
    executor = SingleThreadExecutor("jmsjca asyncio")
    try:
        return await executor.run_shielded(function)
    finally:
        executor.end()


async def open_in_thread(function: Callable[[], CloseableT]) -> CloseableT:
    """Open a resource on a new thread. If the await is cancelled, the resource is closed."""
    executor = SingleThreadExecutor("jmsjca asyncio")
    try:
        return await executor.run_opening(function)
    finally:
        executor.end()


def _run(outcome: Future[T], context: Context, function: Callable[[], T]) -> None:
    if not outcome.set_running_or_notify_cancel():
        return
    try:
        outcome.set_result(context.run(function))
    except BaseException as error:  # noqa: BLE001  # raised in the caller
        outcome.set_exception(error)


def _discard(opened: Future[CloseableT]) -> None:
    if not opened.cancelled() and opened.exception() is None:
        opened.result().close()


class AsyncCloseable(ProcessBound, GuardedAttributes, ABC):
    """An asynchronous context manager that closes itself on exit. It has no attributes that can be set."""

    @abstractmethod
    async def close(self) -> None:
        """Release all resources, even if the await is cancelled. Idempotent."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()


C = TypeVar("C", bound=AsyncCloseable)


class AwaitableContextManager(Generic[C]):
    """A resource to open: by ``await`` (the caller closes it), or by ``async with`` (which closes it).

    Any other use raises an error that says how to await it.

    Args:
        open_resource: Opens the resource.
        call: The call that returned this object, for error messages.
    """

    def __init__(self, open_resource: Callable[[], Awaitable[C]], call: str = "the call") -> None:
        self._open = open_resource
        self._call = call

    def __await__(self) -> Generator[Any, Any, C]:
        return self._open().__await__()

    async def __aenter__(self) -> C:
        opened = self._opened = await self
        entered = False
        try:
            resource = await opened.__aenter__()
            entered = True
            return resource
        finally:
            if not entered:
                await opened.close()

    async def __aexit__(self, *error: object) -> None:
        await self._opened.__aexit__(*error)

    def __repr__(self) -> str:
        return f"<{self._call}, not awaited>"

    if not TYPE_CHECKING:  # otherwise type checkers would accept these uses, which are refused

        def __getattr__(self, name: str) -> NoReturn:
            raise InvalidAttributeError(self._forgotten(f"has no attribute {name!r:.100}"))

        def __enter__(self) -> NoReturn:
            raise IllegalStateError(self._forgotten("cannot be entered with 'with'"))

        def __exit__(self, *error: object) -> None: ...

        def __iter__(self) -> NoReturn:
            raise IllegalStateError(self._forgotten("cannot be iterated"))

        def __aiter__(self) -> NoReturn:
            raise IllegalStateError(self._forgotten("cannot be iterated"))

    def _forgotten(self, problem: str) -> str:
        return f"{self._call} {problem}, because it was not awaited: write 'await {self._call}', or 'async with'."
