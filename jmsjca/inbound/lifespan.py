"""The lifespan of an adapter: code around its listeners that opens and closes what their handlers share."""

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator
from concurrent.futures import Future
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    AsyncExitStack,
    ExitStack,
    contextmanager,
    suppress,
)
from contextvars import copy_context
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar, cast

from jmsjca.errors import ConfigurationError
from jmsjca.forking import ProcessBound
from jmsjca.inbound.handler import HandlerLoop, fulfil

if TYPE_CHECKING:
    import asyncio

__all__ = ["Lifespan", "LifespanFunction", "Startable"]

A = TypeVar("A")
LifespanFunction = Callable[[A], AbstractContextManager[object] | AbstractAsyncContextManager[object]]
"""Returns the context manager around the listeners of an adapter."""


class Lifespan(Generic[A]):
    """Enters the context manager of an adapter before its listeners start, and exits it after they have stopped.

    Args:
        function: Called with the adapter at each start; None for no lifespan.
        adapter: The adapter.
        loop: The event loop of asynchronous handlers.
    """

    def __init__(self, function: LifespanFunction[A] | None, adapter: A, loop: HandlerLoop) -> None:
        self._function = function
        self._adapter = adapter
        self._loop = loop
        self._entered: list[ExitStack | AsyncExitStack] = []

    def enter(self, start: Callable[[], None]) -> None:
        """Enter the context manager, then start. Exit it if the start fails.

        Raises:
            ConfigurationError: The context manager is asynchronous.
            Exception: The error of the context manager or of the start.
        """
        with ExitStack() as stack:
            if self._function is not None:
                manager = self._function(self._adapter)
                if not isinstance(manager, AbstractContextManager):
                    raise ConfigurationError(
                        "The lifespan of the adapter is asynchronous: enter the adapter with 'async with', or make "
                        "the lifespan a context manager."
                    )
                stack.enter_context(manager)
            start()
            self._entered.append(stack.pop_all())

    @contextmanager
    def around(self) -> Generator[None]:
        """Return a context manager around a block that starts and stops the listeners itself.

        Raises:
            ConfigurationError: The context manager of the adapter is asynchronous.
        """
        self.enter(lambda: None)
        with ExitStack() as stack:
            stack.push(partial(self.leave, lambda _: None))
            yield

    def leave(
        self,
        stop: Callable[[float | None], object],
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop, then exit the context manager that was entered last.

        Args:
            stop: Stops within a number of seconds; None waits for the handlers. An exception of a signal handler during
                the wait, for example of a second Ctrl-C, ends the wait like the deadline.
            kind: The class of the error of the block, if any.
            error: The error.
            trace: Its traceback.
        """
        is_stopped = False
        try:
            stop(None)
            is_stopped = True
        finally:
            try:
                if not is_stopped:  # a signal handler interrupted the wait
                    stop(0)
            finally:
                cast("ExitStack", self._entered.pop()).__exit__(kind, error, trace)

    async def enter_on_loop(self, start: Callable[[], None]) -> None:
        """Enter the context manager, asynchronous or not, then start. Exit it if the start fails.

        Handlers run on this event loop from now on.

        Raises:
            Exception: The error of the context manager or of the start.
        """
        import asyncio  # here the application has imported it; other applications should not have to

        async with AsyncExitStack() as stack:
            self._loop.use(asyncio.get_running_loop())
            stack.callback(self._loop.use, None)
            if self._function is not None:
                manager = self._function(self._adapter)
                if isinstance(manager, AbstractAsyncContextManager):
                    await stack.enter_async_context(manager)
                else:
                    stack.enter_context(manager)
            start()
            self._entered.append(stack.pop_all())

    async def leave_on_loop(
        self,
        stop: Callable[[float | None], object],
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop on another thread, then exit the context manager that was entered last, on the event loop.

        Args:
            stop: As of `leave`. A cancellation during the wait ends the wait like the deadline.
            kind: As of `leave`.
            error: As of `leave`.
            trace: As of `leave`.
        """
        try:
            await _stop_on_thread(stop)
        finally:
            await cast("AsyncExitStack", self._entered.pop()).__aexit__(kind, error, trace)


async def _stop_on_thread(stop: Callable[[float | None], object]) -> None:
    """Stop without blocking the event loop. Return when nothing is active anymore, even if it is cancelled.

    Raises:
        CancelledError: The wait was cancelled, and active handlers were abandoned.
    """
    import asyncio  # see above

    ending = {_run_on_thread(partial(stop, None))}
    try:
        await asyncio.wait(ending)
    except asyncio.CancelledError:
        ending.add(_run_on_thread(partial(stop, 0)))
        while not all(each.done() for each in ending):
            with suppress(asyncio.CancelledError):
                await asyncio.wait(ending)
        raise
    for each in ending:
        each.result()


def _run_on_thread(work: Callable[[], object]) -> "asyncio.Future[object]":
    """Run work on a new thread, because handlers may occupy all threads of the event loop's executor."""
    import asyncio  # see above

    outcome: Future[object] = Future()

    call = partial(copy_context().run, work)
    threading.Thread(target=fulfil, args=(outcome, call), name="jmsjca stop", daemon=True).start()
    return asyncio.wrap_future(outcome)


class Startable(ProcessBound, ABC):
    """An object that ``with`` and ``async with`` start and stop, within its lifespan."""

    _lifespan: Lifespan[Any]

    @abstractmethod
    def start(self) -> None:
        """Start."""

    @abstractmethod
    def stop(self, timeout: float | None = None) -> object:
        """Stop within ``timeout`` seconds; None waits for active handlers."""

    def __enter__(self) -> Self:
        self._lifespan.enter(self.start)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lifespan.leave(self.stop, kind, error, trace)

    async def __aenter__(self) -> Self:
        await self._lifespan.enter_on_loop(self.start)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._lifespan.leave_on_loop(self.stop, kind, error, trace)
