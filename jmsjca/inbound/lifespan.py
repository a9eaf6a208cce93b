"""The lifespan of an adapter: code around its listeners, which opens and closes what their handlers share."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    AsyncExitStack,
    ExitStack,
    contextmanager,
)
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from jmsjca.errors import ConfigurationError
from jmsjca.inbound.handler import HandlerLoop

__all__ = ["Lifespan", "LifespanFunction", "Startable"]

A = TypeVar("A")
LifespanFunction = Callable[[A], AbstractContextManager[object] | AbstractAsyncContextManager[object]]
"""Returns the context manager around the listeners of an adapter."""


class Lifespan(Generic[A]):
    """Enters the context manager of an adapter before its listeners start, and leaves it after they have stopped.

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
        """Enter the context manager, then start; leave it if the start fails.

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
        try:
            yield
        except BaseException as error:
            self.leave(lambda: None, type(error), error, error.__traceback__)
            raise
        self.leave(lambda: None, None, None, None)

    def leave(
        self,
        stop: Callable[[], object],
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop, then leave the context manager that was entered last."""
        try:
            stop()
        finally:
            stack = self._entered.pop()
            assert isinstance(stack, ExitStack)  # noqa: S101  # `enter` has entered it
            stack.__exit__(kind, error, trace)

    async def enter_on_loop(self, start: Callable[[], None]) -> None:
        """Enter the context manager, asynchronous or not, then start; leave it if the start fails.

        Handlers run on this event loop from now on.

        Raises:
            Exception: The error of the context manager or of the start.
        """
        import asyncio  # noqa: PLC0415  # already loaded here; other applications need not load it

        self._loop.use(asyncio.get_running_loop())
        async with AsyncExitStack() as stack:
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
        stop: Callable[[], object],
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop on another thread, then leave the context manager that was entered last, on the event loop."""
        import asyncio  # noqa: PLC0415  # see above

        try:
            await asyncio.to_thread(stop)
        finally:
            self._loop.use(None)
            stack = self._entered.pop()
            assert isinstance(stack, AsyncExitStack)  # noqa: S101  # `enter_on_loop` has entered it
            await stack.__aexit__(kind, error, trace)


class Startable(ABC):
    """An object that ``with`` and ``async with`` start and stop, within its lifespan."""

    _lifespan: Lifespan[Any]

    @abstractmethod
    def start(self) -> None:
        """Start."""

    @abstractmethod
    def stop(self) -> object:
        """Stop."""

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
