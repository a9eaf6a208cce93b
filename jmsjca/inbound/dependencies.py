"""Dependencies of handlers: values that functions and context managers provide for the parameters of one call."""

import inspect
from collections.abc import Awaitable, Callable, Coroutine, Generator
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    AsyncExitStack,
    asynccontextmanager,
    contextmanager,
)
from functools import partial
from threading import Lock
from types import TracebackType
from typing import Any, cast

from jmsjca.errors import ConfigurationError
from jmsjca.inbound.handler_arguments import ArgumentResolver, Depends, Invocation, callable_name
from jmsjca.messages.converters import Converters
from jmsjca.messages.settlement import Settlement

__all__ = ["CallScope", "DependencyResolver", "is_async", "override_dependency", "run_without_waiting"]

_overrides: dict[Callable[..., object], Callable[..., object]] = {}


@contextmanager
def override_dependency(dependency: Callable[..., object], replacement: Callable[..., object]) -> Generator[None]:
    """Replace a dependency in all handlers of this process for the duration of a block, for tests.

    The replacement may be a function, a generator function or a context manager, and may have dependencies of its own.

    Args:
        dependency: The function that `Depends` names.
        replacement: The function to call in its place.
    """
    missing = object()
    previous = _overrides.get(dependency, missing)
    _overrides[dependency] = replacement
    try:
        yield
    finally:
        if previous is missing:
            del _overrides[dependency]
        else:
            _overrides[dependency] = cast("Callable[..., object]", previous)


class DependencyResolver:
    """Calls a handler within the scope of its dependencies. Thread-safe.

    Args:
        function: The handler.
        arguments: The arguments of the handler.
        converters: Converts bodies for parameters of dependencies.
        joined: True if the deliveries are parts of container-managed transactions.

    Raises:
        ConfigurationError: A dependency has a parameter for which there is no value, depends on itself, or is
            asynchronous although the handler is not.
    """

    def __init__(
        self, function: Callable[..., object], arguments: ArgumentResolver, converters: Converters, *, joined: bool
    ) -> None:
        self.function = function
        self.arguments = arguments
        self._create = partial(ArgumentResolver, converters=converters, joined=joined, may_yield=True)
        self._resolvers: dict[Callable[..., object], ArgumentResolver] = {}
        self._lock = Lock()
        self._check(arguments, ())

    def resolver_of(self, function: Callable[..., object]) -> ArgumentResolver:
        """Return the arguments of a dependency."""
        with self._lock:
            if function not in self._resolvers:
                self._resolvers[function] = self._create(function)
            return self._resolvers[function]

    async def call(self, invocation: Invocation) -> object:
        """Call the handler, and leave the context managers of its dependencies with its error, if any."""
        async with AsyncExitStack() as stack:
            positional, keyword = await CallScope(self, invocation, stack).arguments_of(self.arguments)
            result = self.function(*positional, **keyword)
            if inspect.isawaitable(result) and not isinstance(result, Settlement):  # it would wait for its own end
                return await result
            return result

    def check_synchronous(self, function: Callable[..., object]) -> None:
        """Refuse an asynchronous dependency of a handler that is not.

        Raises:
            ConfigurationError: The function is asynchronous, and the handler is not.
        """
        if is_async(function) and not is_async(self.function):
            raise ConfigurationError(
                f"The handler {callable_name(self.function)} cannot wait for its asynchronous dependency "
                f"{callable_name(function)}. Declare the handler with 'async def', or make the dependency synchronous."
            )

    def _check(self, arguments: ArgumentResolver, path: tuple[Callable[..., object], ...]) -> None:
        for dependency in (each.dependency for each in arguments.dependencies.values()):
            if dependency in path:
                names = " -> ".join(callable_name(each) for each in (*path, dependency))
                raise ConfigurationError(f"The dependencies of a handler depend on each other: {names}.")
            self.check_synchronous(dependency)
            self._check(self.resolver_of(dependency), (*path, dependency))


class CallScope:
    """The values of the dependencies of one call.

    Args:
        resolver: Has the arguments of each dependency.
        invocation: The call.
        stack: Leaves the context managers of the dependencies, the last one first.
    """

    def __init__(self, resolver: DependencyResolver, invocation: Invocation, stack: AsyncExitStack) -> None:
        self._resolver = resolver
        self._invocation = invocation
        self._stack = stack
        self._values: dict[Callable[..., object], object] = {}

    async def arguments_of(self, arguments: ArgumentResolver) -> tuple[list[object], dict[str, object]]:
        """Return the positional and the keyword arguments of the handler, or of a dependency."""
        provided = {name: await self._value_of(each) for name, each in arguments.dependencies.items()}
        return arguments.resolve(self._invocation._replace(provided=provided))

    async def _value_of(self, depends: Depends) -> object:
        function = _overrides.get(depends.dependency, depends.dependency)
        if not depends.use_cache:
            return await self._create(function)
        if function not in self._values:
            self._values[function] = await self._create(function)
        return self._values[function]

    async def _create(self, function: Callable[..., object]) -> object:
        self._resolver.check_synchronous(function)
        positional, keyword = await self.arguments_of(self._resolver.resolver_of(function))
        create: Any = _as_context_manager(function)
        created = create(*positional, **keyword)
        if not _is_generator(function):
            return await cast("Awaitable[object]", created) if inspect.isawaitable(created) else created
        explain = partial(_explain, function, self._resolver.function)
        if is_async(function):
            return await self._stack.enter_async_context(_AsyncYield(explain, created))
        return self._stack.enter_context(_Yield(explain, created))


class _Yield(AbstractContextManager[object]):
    """The context manager of a generator, with errors that name the dependency if it does not yield exactly once.

    Args:
        explain: Raises an error that names both instead of one of contextlib, given that and its text.
        manager: The context manager.
    """

    def __init__(self, explain: Callable[[RuntimeError, str], None], manager: AbstractContextManager[object]) -> None:
        self._explain = explain
        self._manager = manager

    def __enter__(self) -> object:
        try:
            return self._manager.__enter__()
        except RuntimeError as error:
            self._explain(error, _NEVER)
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        try:
            return self._manager.__exit__(kind, error, trace)
        except RuntimeError as failure:
            self._explain(failure, _AGAIN)
            raise


class _AsyncYield(AbstractAsyncContextManager[object]):
    """As `_Yield`, for an asynchronous generator.

    Args:
        explain: Raises an error that names both instead of one of contextlib, given that and its text.
        manager: The context manager.
    """

    def __init__(
        self, explain: Callable[[RuntimeError, str], None], manager: AbstractAsyncContextManager[object]
    ) -> None:
        self._explain = explain
        self._manager = manager

    async def __aenter__(self) -> object:
        try:
            return await self._manager.__aenter__()
        except RuntimeError as error:
            self._explain(error, _NEVER)
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        try:
            return await self._manager.__aexit__(kind, error, trace)
        except RuntimeError as failure:
            self._explain(failure, _AGAIN)
            raise


_NEVER = (
    "yields no value, so that its parameter has none. Let it yield exactly once on each path, or return its value "
    "without a yield."
)
_AGAIN = "yields again after the handler. Let it yield exactly once; what follows the yield runs after the handler."


def _explain(dependency: Callable[..., object], handler: Callable[..., object], error: RuntimeError, text: str) -> None:
    """Raise an error with this text if contextlib itself has raised the given one, and not the code of the dependency.

    Raises:
        ConfigurationError: contextlib has raised it.
    """
    trace = error.__traceback__
    if trace is not None and trace.tb_next is not None and trace.tb_next.tb_next is None:
        names = f"The dependency {callable_name(dependency)} of the handler {callable_name(handler)}"
        raise ConfigurationError(f"{names} {text}") from None


def is_async(function: Callable[..., object]) -> bool:
    """Return True for a coroutine function, an asynchronous generator function, or one that was decorated as such."""
    plain = _undecorated(function)
    return inspect.iscoroutinefunction(plain) or inspect.isasyncgenfunction(plain)


def run_without_waiting(coroutine: Coroutine[Any, Any, object]) -> object:
    """Run a coroutine that waits for nothing, and return its result.

    Raises:
        BaseException: The error of the coroutine.
    """
    try:
        coroutine.send(None)
    except StopIteration as done:
        return done.value
    coroutine.close()
    raise ConfigurationError("A handler that is not asynchronous returned a coroutine; declare it with 'async def'.")


def _is_generator(function: Callable[..., object]) -> bool:
    plain = _undecorated(function)
    return inspect.isgeneratorfunction(plain) or inspect.isasyncgenfunction(plain)


def _as_context_manager(function: Callable[..., object]) -> Callable[..., object]:
    """Return a generator function as a context manager, and any other function unchanged."""
    if inspect.isgeneratorfunction(function):
        return contextmanager(function)
    if inspect.isasyncgenfunction(function):
        return asynccontextmanager(function)
    return function


def _undecorated(function: Callable[..., object]) -> Callable[..., object]:
    while isinstance(function, partial):
        function = function.func
    plain: Callable[..., object] = inspect.unwrap(function)
    return plain if inspect.isroutine(plain) or inspect.isclass(plain) else type(plain).__call__
