"""The arguments of a handler, taken from the message according to its signature, and from dependencies."""

import difflib
import inspect
from collections.abc import Awaitable, Callable, Coroutine, Generator, Mapping, Sequence
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    AsyncExitStack,
    asynccontextmanager,
    contextmanager,
)
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from itertools import takewhile
from operator import attrgetter
from threading import Lock
from types import NoneType, SimpleNamespace, TracebackType, UnionType
from typing import Annotated, Any, Literal, NamedTuple, Union, cast, get_args, get_origin, get_type_hints

from jmsjca.arguments import did_you_mean
from jmsjca.errors import ConfigurationError, MessageFormatError
from jmsjca.messages.converters import Converters
from jmsjca.messages.delivery import Settlement
from jmsjca.messages.json_text import without_metadata
from jmsjca.messages.message import Message
from jmsjca.outbound.session import Session

__all__ = [
    "ArgumentResolver",
    "CallScope",
    "DependencyResolver",
    "Depends",
    "Invocation",
    "body_type",
    "callable_name",
    "is_async",
    "override_dependency",
    "run_without_waiting",
]

_HEADERS = (
    "message_id",
    "correlation_id",
    "destination",
    "reply_to",
    "type",
    "delivery_mode",
    "priority",
    "timestamp",
    "expiration",
    "delivery_time",
    "redelivered",
    "delivery_count",
    "properties",
)
_HEADER_TYPES = (str, int, float, bool, dict, datetime)
_SIMILAR = 0.75  # below, "priority_level" would count as a misspelt "priority"
_EMPTY = inspect.Parameter.empty
_UNTYPED = (_EMPTY, object, Any)
_UNIONS = (Union, UnionType)


_NOTHING_PROVIDED: Mapping[str, object] = {}


def _ignore(_: object) -> None: ...


@dataclass(frozen=True)
class Depends:
    """Marks a parameter that gets the result of a function. For handlers, and for dependencies themselves.

    ::

        def on_order(order: Order, database: Annotated[Database, Depends(connect)]) -> None: ...

    The function is called once for each call of the handler. It can have the parameters of a handler, and further
    dependencies. A value that it yields, as a generator or a context manager, is closed after the handler has returned
    and before the unit commits. An error of the handler is raised at its ``yield``.

    Args:
        dependency: A function, a class, a generator function, or a context manager of `contextlib`. Asynchronous ones
            need an asynchronous handler.
        use_cache: True to call the function only once if several parameters of one call depend on it.
    """

    dependency: Callable[..., object]
    use_cache: bool = True


class Invocation:
    """The values for one call of a handler.

    Args:
        content: A message, or the messages of a batch.
        open_session: Returns the session. It is created on demand, because most handlers need none.
        on_task_started: Called with the task that a coroutine runs in.
        transaction: The manager of the container-managed transaction; None without such a transaction.
        provided: The values of the parameters with dependencies.

    Attributes:
        message: The message; the first message of a batch.
    """

    __slots__ = ("content", "message", "on_task_started", "open_session", "provided", "transaction")

    def __init__(
        self,
        content: Message | Sequence[Message],
        open_session: Callable[[], Session],
        on_task_started: Callable[[object], None] = _ignore,
        transaction: object = None,
        provided: Mapping[str, object] = _NOTHING_PROVIDED,
    ) -> None:
        self.content = content
        self.message = content if isinstance(content, Message) else content[0]
        self.open_session = open_session
        self.on_task_started = on_task_started
        self.transaction = transaction
        self.provided = provided

    @property
    def messages(self) -> Sequence[Message]:
        """All messages."""
        return [self.content] if isinstance(self.content, Message) else self.content


class _ArgumentSource(NamedTuple):
    """The function that returns the value of a parameter, and the kind of the value."""

    resolve: Callable[[Invocation], object]
    part_of: Literal["delivery", "message", "content", "batch"]


_TRANSACTION_MODULES = ("transaction.", "jmsjca.transactions.")
_TRANSACTION = _ArgumentSource(attrgetter("transaction"), "delivery")


class ArgumentResolver:
    """Determines the arguments of a handler.

    | parameter | argument |
    | --- | --- |
    | annotated with `Message` or `Session`, or with that name | the message, the session |
    | annotated with a kind of message, such as `TextMessage` | the message; other kinds are refused |
    | "headers"; the name of a header | a dict of all headers; the header's value |
    | annotated with a sequence of messages, or named "messages" | the whole batch |
    | annotated with any other sequence | the bodies of the batch as that type |
    | any other annotation | the body as that type |
    | "body" | the body as it is |
    | the first remaining one, also ``*args`` | the message |
    | "transaction", unless annotated with another class | the manager of a container-managed transaction |
    | ``Annotated[T, Depends(function)]`` | the result of that function |

    Args:
        function: The handler.
        converters: Converts bodies to the types of the parameters; None for `Converters.default`.
        joined: True if deliveries belong to container-managed transactions.
        may_yield: True for a dependency, which may be a generator function.

    Attributes:
        whole_batches: True if a parameter takes all messages of a batch.
        takes_end_of_batch: True if a parameter accepts the end-of-batch message.
        dependencies: The dependencies, by the names of their parameters.

    Raises:
        ConfigurationError: A required parameter has no value; or one parameter needs a whole batch and another a single
            message.
    """

    def __init__(
        self,
        function: Callable[..., object],
        converters: Converters | None = None,
        *,
        joined: bool = False,
        may_yield: bool = False,
    ) -> None:
        if not may_yield:
            _refuse_class_or_method(function)
            _refuse_generator(function)
        self.dependencies = _dependencies_of(function)
        sources = _sources_of(function, converters or Converters.default(), self.dependencies, joined=joined)
        parts = {source.part_of for source in sources.values()}
        self.whole_batches = "batch" in parts
        among_others = _accepts_varargs(function) and parts <= {"delivery"}  # no other parameter takes the message
        self.takes_end_of_batch = "message" in parts or among_others
        places = _positional_names(function, also_named=among_others)
        self._positional = [sources[name].resolve for name in takewhile(sources.__contains__, places)]
        self._positional += [attrgetter("message")] if among_others else []
        self._keyword = {name: it.resolve for name, it in sources.items() if name not in places}
        if self.whole_batches and parts - {"batch", "delivery"}:
            raise _mixed_parameters(
                function, [name for name, it in sources.items() if it.part_of in ("message", "content")]
            )

    def resolve(self, invocation: Invocation) -> tuple[Sequence[object], dict[str, object]]:
        """Return the positional and the keyword arguments of one call.

        Raises:
            MessageFormatError: A body cannot be converted to the type of its parameter, or the message is not of the
                kind of its parameter.
        """
        keyword = {name: supply(invocation) for name, supply in self._keyword.items()}
        return [supply(invocation) for supply in self._positional] if self._positional else (), keyword


def body_type(function: Callable[..., object]) -> Any:
    """Return the type to which a handler converts bodies, or the elements of a batch; None if it converts none.

    The type has the metadata of ``Annotated``.
    """
    hints, dependencies = _resolve_type_hints(function), _dependencies_of(function)
    annotated = _resolve_type_hints(function, include_extras=True)
    for parameter in _bindable_parameters(function):
        name, hint = parameter.name, hints.get(parameter.name, _EMPTY)
        needed = parameter.default is _EMPTY and name not in dependencies and not _is_transaction(name, hint)
        element = _element(hint)
        typed = hint if element is _EMPTY else element
        if needed and _named(name, hint) is None and typed not in _UNTYPED:
            return annotated[name] if element is _EMPTY else _element(without_metadata(annotated[name]))
    return None


def _sources_of(
    function: Callable[..., object], converters: Converters, dependencies: Mapping[str, Depends], *, joined: bool
) -> dict[str, _ArgumentSource]:
    hints, annotated = _resolve_type_hints(function), _resolve_type_hints(function, include_extras=True)
    sources = {name: _ArgumentSource(partial(_provided, name), "delivery") for name in dependencies}
    first, bodies = True, list[str]()
    for parameter in (each for each in _bindable_parameters(function) if each.name not in dependencies):
        name, hint = parameter.name, hints.get(parameter.name, _EMPTY)
        source = _TRANSACTION if joined and _is_transaction(name, hint) else _named(name, hint)
        if source is None and parameter.default is _EMPTY:
            source = _content(name, hint, annotated.get(name), converters, first=first)
            first = False
            bodies += [name] if all(it in _HEADER_TYPES for it in _alternatives(hint)) else []
        elif source is not None and source.part_of in ("message", "batch"):
            first = False
        if source is not None:
            sources[name] = source
        elif parameter.default is _EMPTY:
            raise _unknown_parameter(function, name)
    takes_more = len([each for each in sources.values() if each.part_of in ("message", "content")]) > 1
    for name in bodies if takes_more else ():
        if difflib.get_close_matches(name, _HEADERS, 1, _SIMILAR):
            raise _misspelt_header(function, name)
    return sources


def _dependencies_of(function: Callable[..., object]) -> dict[str, Depends]:
    """Return the dependencies in annotations: ``Annotated[T, Depends(function)]``."""
    hints = _resolve_type_hints(function, include_extras=True)
    marks = {name: get_args(hint)[1:] for name, hint in hints.items() if get_origin(hint) is Annotated}
    found = {name: [mark for mark in extras if isinstance(mark, Depends)] for name, extras in marks.items()}
    return {name: depends[-1] for name, depends in found.items() if depends and name != "return"}


def _provided(name: str, invocation: Invocation) -> object:
    return invocation.provided[name]


def _named(name: str, hint: Any) -> _ArgumentSource | None:
    """Return the source of a parameter for the session, headers, the message or a whole batch; None for other names."""
    if name == "session" or _is(hint, Session):
        return _ArgumentSource(_session, "delivery")
    if name == "headers":
        return _ArgumentSource(_headers, "content")
    if name in _HEADERS:
        return _ArgumentSource(partial(_header, name), "content")
    return _message_source(name, hint)


def _is_transaction(name: str, hint: Any) -> bool:
    """Return True for the parameter of the transaction manager, and False for a body with that name."""
    module = getattr(hint, "__module__", "")
    return name == "transaction" and (hint in (*_UNTYPED, _UNRESOLVED) or module.startswith(_TRANSACTION_MODULES))


def _message_source(name: str, hint: Any) -> _ArgumentSource | None:
    """Return the source of a parameter for messages, of all kinds or of those it names; None for other parameters."""
    element = _element(hint)
    if _is(element, Message) or (name == "messages" and hint in _UNTYPED):
        kinds = _kinds_of_message(element)
        return _ArgumentSource(partial(_messages_of, kinds, name) if kinds else attrgetter("messages"), "batch")
    if name == "message" or _is(hint, Message):
        kinds = _kinds_of_message(hint)
        return _ArgumentSource(partial(_message_of, kinds, name) if kinds else attrgetter("message"), "message")
    return None


def _kinds_of_message(hint: Any) -> tuple[type[Message], ...]:
    """Return the kinds of message that a parameter accepts; empty if it accepts every message, or none."""
    kinds = _alternatives(hint)
    return () if not _is(hint, Message) or Message in kinds else kinds


def _message_of(kinds: tuple[type[Message], ...], name: str, invocation: Invocation) -> Message:
    return _checked_kind(invocation.message, kinds, name)


def _messages_of(kinds: tuple[type[Message], ...], name: str, invocation: Invocation) -> list[Message]:
    return [_checked_kind(message, kinds, name) for message in invocation.messages]


def _checked_kind(message: Message, kinds: tuple[type[Message], ...], name: str) -> Message:
    """Return a message that is of one of the kinds. The end of a batch has no kind, and is always returned.

    Raises:
        MessageFormatError: The message is of another kind.
    """
    if isinstance(message, kinds) or message.end_of_batch:
        return message
    wanted = " or ".join(kind.__name__ for kind in kinds)
    raise MessageFormatError(
        f"{message} is a {type(message).__name__}, but the parameter {name!r} of the handler takes a {wanted}. "
        "Annotate it with Message to take every kind."
    )


def _content(name: str, hint: Any, annotated: Any, converters: Converters, *, first: bool) -> _ArgumentSource | None:
    """Return the source of any other parameter: the bodies of a batch, the body, or the message; None if none fits.

    Args:
        name: The parameter.
        hint: Its annotation without the metadata of ``Annotated``.
        annotated: Its annotation with that metadata, for the validation of bodies.
        converters: Converts the bodies.
        first: True for the first parameter without another match.
    """
    if hint is _UNRESOLVED:
        return None
    if _element(hint) is not _EMPTY:
        element = _element(without_metadata(annotated))
        return _ArgumentSource(partial(_bodies, converters.reader(element, name)), "batch")
    if hint not in _UNTYPED:
        return _ArgumentSource(partial(_body, converters.reader(annotated, name)), "content")
    if name == "body":
        return _ArgumentSource(attrgetter("message.body"), "content")
    return _ArgumentSource(attrgetter("message"), "message") if first else None


def _bodies(convert: Callable[[Message], object], invocation: Invocation) -> object:
    return [convert(message) for message in invocation.messages]


def _body(convert: Callable[[Message], object], invocation: Invocation) -> object:
    return None if invocation.message.end_of_batch else convert(invocation.message)


def _session(invocation: Invocation) -> Session:
    return invocation.open_session()


def _headers(invocation: Invocation) -> dict[str, object]:
    return {name: getattr(invocation.message, name) for name in _HEADERS}


def _header(name: str, invocation: Invocation) -> object:
    return getattr(invocation.message, name)


def _element(hint: Any) -> Any:
    """Return the element type of a parameter for a whole batch. A list may be a body, unless it has messages."""
    origin, arguments = get_origin(hint), get_args(hint)
    if Sequence in (hint, origin):
        return arguments[0] if arguments and arguments[0] not in _UNTYPED else Message
    return arguments[0] if origin is list and _is(arguments[0], Message) else _EMPTY


def _is(hint: Any, kind: type) -> bool:
    return all(isinstance(it, type) and issubclass(it, kind) for it in _alternatives(hint))


def _alternatives(hint: Any) -> tuple[Any, ...]:
    """Return the alternatives of an annotation, without None."""
    return tuple(it for it in get_args(hint) if it is not NoneType) if get_origin(hint) in _UNIONS else (hint,)


def _unknown_parameter(function: Callable[..., object], name: str) -> ConfigurationError:
    return ConfigurationError(
        f"The handler {callable_name(function)} needs {name!r}, which is not known. A parameter gets the message, its "
        "body (by the name 'body', or as the type that it is annotated with), all messages of a batch or their bodies "
        f"(as Sequence[Message] or another), the session, 'headers', or a header by its name ({', '.join(_HEADERS)}). "
        "It must not be annotated with a name that is not imported when the program runs."
    )


def _misspelt_header(function: Callable[..., object], name: str) -> ConfigurationError:
    return ConfigurationError(
        f"The handler {callable_name(function)} has {name!r} beside another parameter for the message, and "
        f"no header has this name {did_you_mean(name, {each: each for each in _HEADERS})}. Rename the parameter."
    )


def _mixed_parameters(function: Callable[..., object], names: Sequence[str]) -> ConfigurationError:
    return ConfigurationError(
        f"The handler {callable_name(function)} takes whole batches, but {', '.join(map(repr, names))} belong to one "
        "message. Use a parameter annotated with Sequence[Message] and read them from its messages."
    )


_UNRESOLVED = object()
"""Stands for an annotation that only a type checker understands."""


def _bindable_parameters(function: Callable[..., object]) -> list[inspect.Parameter]:
    """Return the parameters that can be filled: without ``*args``, ``**kwargs`` and those that a `partial` has bound.

    Raises:
        ConfigurationError: ``function`` is not callable.
    """
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        raise ConfigurationError(
            f"A handler is a function or has a __call__ method; {function!r:.200} is not."
        ) from None
    bound = _bound(function)
    open_ended = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [found for found in parameters.values() if found.kind not in open_ended and found.name not in bound]


def _refuse_class_or_method(function: Callable[..., object]) -> None:
    """Check that a handler is neither a class, nor a method without its object: ``self`` would be the message.

    Raises:
        ConfigurationError: The handler is one of these.
    """
    if inspect.isclass(function):
        raise ConfigurationError(
            f"The handler {callable_name(function)} is a class, so calling it would only make an object. Give a "
            "function, a method of an object, or an object whose class has a __call__ method."
        )
    if getattr(Message, callable_name(function).rpartition(".")[2], None) is function:
        return  # as Message.set_rollback_only, whose self is the message
    in_class = inspect.isfunction(function) and function.__qualname__.rpartition(".")[0].split(".")[-1]
    if in_class and in_class != "<locals>" and next(iter(inspect.signature(function).parameters), None) == "self":
        raise ConfigurationError(
            f"The handler {function.__qualname__} is a method without an object for its 'self'. Declare it where there "
            f"is one, with adapter.listener('orders')(it.{function.__name__}), or make it a function."
        )


def _refuse_generator(function: Callable[..., object]) -> None:
    """Check that a handler has no ``yield``, because calling a generator function does nothing.

    Raises:
        ConfigurationError: The handler has a ``yield``.
    """
    called = function if _is_routine(function) else type(function).__call__
    if inspect.isgeneratorfunction(called) or inspect.isasyncgenfunction(called):
        raise ConfigurationError(
            f"The handler {callable_name(function)} has a yield, so calling it would only make a generator. Remove the "
            "yield, and send the values with its session instead."
        )


def _positional_names(function: Callable[..., object], *, also_named: bool) -> list[str]:
    """Return the names of the positional-only parameters, for example of builtins such as ``list.append``.

    Args:
        function: The handler.
        also_named: True to include the parameters that can also be passed by name.
    """
    only, named = inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD
    kinds = (only, named) if also_named else (only,)
    return [found.name for found in _bindable_parameters(function) if found.kind in kinds]


def _accepts_varargs(function: Callable[..., object]) -> bool:
    """Return True if the function accepts ``*args``, as wrappers and mocks do."""
    return any(found.kind is found.VAR_POSITIONAL for found in inspect.signature(function).parameters.values())


def _resolve_type_hints(function: Callable[..., object], *, include_extras: bool = False) -> dict[str, Any]:
    """Return the annotations; `_UNRESOLVED` for those with a name that does not exist at run time."""
    while isinstance(function, partial):  # a partial has the parameters, but not the annotations
        function = function.func
    if isinstance(function, type):
        function = function.__init__  # type: ignore[misc]  # the method of this very class
    annotated = function if inspect.isroutine(function) else type(function).__call__
    try:
        return get_type_hints(annotated, include_extras=include_extras)
    except (NameError, AttributeError):
        names = getattr(inspect.unwrap(annotated), "__globals__", {})
        hints = inspect.get_annotations(annotated)
        return {name: _resolved(hint, names, include_extras=include_extras) for name, hint in hints.items()}
    except TypeError:  # a builtin has no annotations
        return {}


def callable_name(function: Callable[..., object]) -> str:
    """Return the name of a function for error messages and log records."""
    return getattr(function, "__qualname__", None) or f"{function!r:.200}"


def _resolved(hint: object, names: dict[str, Any], *, include_extras: bool) -> Any:
    """Resolve one annotation, independently of the others."""
    try:
        return get_type_hints(SimpleNamespace(__annotations__={"it": hint}), names, include_extras=include_extras)["it"]
    except (NameError, AttributeError):
        return _UNRESOLVED


def _is_routine(function: Callable[..., object]) -> bool:
    return inspect.isroutine(function) or isinstance(function, partial)


def _bound(function: Callable[..., object]) -> Mapping[str, Any]:
    bound: dict[str, Any] = {}
    while isinstance(function, partial):
        bound |= function.keywords
        function = function.func
    return bound


_overrides: dict[Callable[..., object], Callable[..., object]] = {}


@contextmanager
def override_dependency(dependency: Callable[..., object], replacement: Callable[..., object]) -> Generator[None]:
    """Replace a dependency in all handlers of this process for the duration of a block, for tests.

    The replacement may be a function, a generator function or a context manager, and may have dependencies.

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
        joined: True if deliveries belong to container-managed transactions.

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
        """Call the handler, and exit the context managers of its dependencies, with the handler's error if it fails."""
        async with AsyncExitStack() as stack:
            positional, keyword = await CallScope(self, invocation, stack).arguments_of(self.arguments)
            result = self.function(*positional, **keyword)
            if inspect.isawaitable(result) and not isinstance(result, Settlement):  # a settlement would await itself
                return await result
            return result

    def check_synchronous(self, function: Callable[..., object]) -> None:
        """Refuse an asynchronous dependency of a synchronous handler.

        Raises:
            ConfigurationError: The function is asynchronous and the handler is not.
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
        resolver: Knows the arguments of each dependency.
        invocation: The call.
        stack: Exits the context managers of the dependencies, the last one first.
    """

    def __init__(self, resolver: DependencyResolver, invocation: Invocation, stack: AsyncExitStack) -> None:
        self._resolver = resolver
        self._invocation = invocation
        self._stack = stack
        self._values: dict[Callable[..., object], object] = {}

    async def arguments_of(self, arguments: ArgumentResolver) -> tuple[Sequence[object], dict[str, object]]:
        """Return the positional and the keyword arguments of the handler, or of a dependency."""
        provided = {name: await self._value_of(each) for name, each in arguments.dependencies.items()}
        call = self._invocation
        return arguments.resolve(
            Invocation(call.content, call.open_session, call.on_task_started, call.transaction, provided)
        )

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
    """The context manager of a generator. If it does not yield exactly once, the error names the dependency.

    Args:
        explain: Raises an error that names handler and dependency, given an error of contextlib and a text.
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
        explain: As for `_Yield`.
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
    """Raise an error with this text if contextlib raised the given error. No effect if the dependency's code did.

    Raises:
        ConfigurationError: contextlib raised the given error.
    """
    trace = error.__traceback__
    if trace is not None and trace.tb_next is not None and trace.tb_next.tb_next is None:
        names = f"The dependency {callable_name(dependency)} of the handler {callable_name(handler)}"
        raise ConfigurationError(f"{names} {text}") from None


def is_async(function: Callable[..., object]) -> bool:
    """Return True for a coroutine function or an asynchronous generator function, also if decorated as such."""
    plain = _undecorated(function)
    return inspect.iscoroutinefunction(plain) or inspect.isasyncgenfunction(plain)


def run_without_waiting(coroutine: Coroutine[Any, Any, object]) -> object:
    """Run a coroutine that never waits, and return its result.

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
