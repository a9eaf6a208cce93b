"""The arguments of a handler: resolved once from its signature, and filled in from each message."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import takewhile
from operator import attrgetter
from types import NoneType, SimpleNamespace, UnionType
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

from jmsjca.errors import ConfigurationError, MessageFormatError
from jmsjca.messages.converters import Converters
from jmsjca.messages.json_text import without_metadata
from jmsjca.messages.message import Message
from jmsjca.outbound.session import Session

__all__ = [
    "ArgumentResolver",
    "Depends",
    "Invocation",
    "body_type",
    "callable_name",
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
_EMPTY = inspect.Parameter.empty
_UNTYPED = (_EMPTY, object, Any)
_UNIONS = (Union, UnionType)


_NOTHING_PROVIDED: Mapping[str, object] = {}


def _ignore(_: object) -> None: ...


@dataclass(frozen=True)
class Depends:
    """Marks a parameter of a handler, or of a dependency, that gets the result of a function.

    ::

        def on_order(order: Order, database: Annotated[Database, Depends(connect)]) -> None: ...

    The function is called for each call of the handler. It can have the parameters of a handler, and dependencies of
    its own. A value that it yields, as a generator or a context manager, is closed after the handler has returned, and
    before the unit commits; an error of the handler is raised at its ``yield``.

    Args:
        dependency: A function, a class, a generator function, or a context manager of `contextlib`; asynchronous ones
            for asynchronous handlers.
        use_cache: True to call the function once if several parameters of one call depend on it.
    """

    dependency: Callable[..., object]
    use_cache: bool = True


class Invocation(NamedTuple):
    """The values for one call of a handler: a message, or the messages of a batch, and the session."""

    content: Message | Sequence[Message]
    open_session: Callable[[], Session]  # created on demand, as most handlers need no session
    on_task_started: Callable[[object], None] = _ignore  #: called with the task that a coroutine runs in
    transaction: object = None  #: the manager of the container-managed transaction
    provided: Mapping[str, object] = _NOTHING_PROVIDED  #: the values of parameters with dependencies

    @property
    def message(self) -> Message:
        """The message; the first one of a batch."""
        return self.content if isinstance(self.content, Message) else self.content[0]

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
    """Determines the arguments that a handler is called with.

    A parameter annotated with `Message` or `Session`, or of that name, gets the message or the session; one annotated
    with a kind of message, such as `TextMessage`, only a message of that kind. "headers" gets a dict of all headers,
    and the name of a header its value. A parameter annotated with a sequence of messages, or named "messages", gets the
    whole batch, and one annotated with any other sequence the bodies of the batch as that type. Any other annotated
    parameter gets the body as that type, "body" the body as it is, and the first remaining one, also ``*args``, the
    message. In a container-managed transaction "transaction" gets the transaction manager, unless it is annotated with
    another class. A parameter annotated with ``Annotated[T, Depends(function)]`` gets a result of that function.

    Args:
        function: The handler.
        converters: Converts bodies to the types of the parameters; None for `Converters.default`.
        joined: True if the deliveries are parts of container-managed transactions.
        may_yield: True for a dependency, which may be a generator function.

    Attributes:
        whole_batches: True if a parameter takes all messages of a batch.
        takes_end_of_batch: True if a parameter can take the end-of-batch message.
        dependencies: The dependencies, by the names of their parameters.

    Raises:
        ConfigurationError: A required parameter has no value, or one parameter needs a whole batch and another a single
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

    def resolve(self, invocation: Invocation) -> tuple[list[object], dict[str, object]]:
        """Return the positional and the keyword arguments of one call.

        Raises:
            MessageFormatError: A body cannot be converted to the type of its parameter, or the message is of another
                kind than its parameter.
        """
        keyword = {name: supply(invocation) for name, supply in self._keyword.items()}
        return [supply(invocation) for supply in self._positional], keyword


def body_type(function: Callable[..., object]) -> Any:
    """Return the type that a handler converts bodies to, or the type of the elements of a batch; None without one.

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
    first = True
    for parameter in (each for each in _bindable_parameters(function) if each.name not in dependencies):
        name, hint = parameter.name, hints.get(parameter.name, _EMPTY)
        source = _TRANSACTION if joined and _is_transaction(name, hint) else _named(name, hint)
        if source is None and parameter.default is _EMPTY:
            source = _content(name, hint, annotated.get(name), converters, first=first)
            first = False
        elif source is not None and source.part_of in ("message", "batch"):
            first = False
        if source is not None:
            sources[name] = source
        elif parameter.default is _EMPTY:
            raise _unknown_parameter(function, name)
    return sources


def _dependencies_of(function: Callable[..., object]) -> dict[str, Depends]:
    """Return the dependencies that annotations name: ``Annotated[T, Depends(function)]``."""
    hints = _resolve_type_hints(function, include_extras=True)
    marks = {name: get_args(hint)[1:] for name, hint in hints.items() if get_origin(hint) is Annotated}
    found = {name: [mark for mark in extras if isinstance(mark, Depends)] for name, extras in marks.items()}
    return {name: depends[-1] for name, depends in found.items() if depends and name != "return"}


def _provided(name: str, invocation: Invocation) -> object:
    return invocation.provided[name]


def _named(name: str, hint: Any) -> _ArgumentSource | None:
    """Return the source of a parameter for the session, headers, the message or a whole batch; None for any other."""
    if name == "session" or _is(hint, Session):
        return _ArgumentSource(_session, "delivery")
    if name == "headers":
        return _ArgumentSource(_headers, "content")
    if name in _HEADERS:
        return _ArgumentSource(partial(_header, name), "content")
    return _message_source(name, hint)


def _is_transaction(name: str, hint: Any) -> bool:
    """Return True for the parameter of the transaction manager, not for a body of that name."""
    module = getattr(hint, "__module__", "")
    return name == "transaction" and (hint in (*_UNTYPED, _UNRESOLVED) or module.startswith(_TRANSACTION_MODULES))


def _message_source(name: str, hint: Any) -> _ArgumentSource | None:
    """Return the source of a parameter for messages, of all kinds or of those that it names; None for any other."""
    element = _element(hint)
    if _is(element, Message) or (name == "messages" and hint in _UNTYPED):
        kinds = _kinds_of_message(element)
        return _ArgumentSource(partial(_messages_of, kinds, name) if kinds else attrgetter("messages"), "batch")
    if name == "message" or _is(hint, Message):
        kinds = _kinds_of_message(hint)
        return _ArgumentSource(partial(_message_of, kinds, name) if kinds else attrgetter("message"), "message")
    return None


def _kinds_of_message(hint: Any) -> tuple[type[Message], ...]:
    """Return the kinds of message that a parameter takes; empty if it takes every message, or none."""
    kinds = _alternatives(hint)
    return () if not _is(hint, Message) or Message in kinds else kinds


def _message_of(kinds: tuple[type[Message], ...], name: str, invocation: Invocation) -> Message:
    return _checked_kind(invocation.message, kinds, name)


def _messages_of(kinds: tuple[type[Message], ...], name: str, invocation: Invocation) -> list[Message]:
    return [_checked_kind(message, kinds, name) for message in invocation.messages]


def _checked_kind(message: Message, kinds: tuple[type[Message], ...], name: str) -> Message:
    """Return a message of one of the kinds, or the end of a batch, which is of no kind.

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
    """Return the source of any other parameter: the bodies of a batch, the body, or the message; else None.

    Args:
        name: The parameter.
        hint: Its annotation without the metadata of ``Annotated``.
        annotated: Its annotation with it, by which bodies are validated.
        converters: Converts the bodies.
        first: True for the first parameter that nothing else matches.
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
    """Return the element type of a parameter for a whole batch. A list may be a body, unless it is one of messages."""
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


def _mixed_parameters(function: Callable[..., object], names: Sequence[str]) -> ConfigurationError:
    return ConfigurationError(
        f"The handler {callable_name(function)} takes whole batches, but {', '.join(map(repr, names))} belong to one "
        "message. Use a parameter annotated with Sequence[Message] and read them from its messages."
    )


_UNRESOLVED = object()
"""Stands for an annotation that only a type checker understands."""


def _bindable_parameters(function: Callable[..., object]) -> list[inspect.Parameter]:
    """Return the parameters that can be filled: no ``*args`` or ``**kwargs``, and none that a `partial` has bound.

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


def _refuse_generator(function: Callable[..., object]) -> None:
    """Check that a handler has no ``yield``, so that a call would do nothing.

    Raises:
        ConfigurationError: It has a ``yield``.
    """
    called = function if _is_routine(function) else type(function).__call__
    if inspect.isgeneratorfunction(called) or inspect.isasyncgenfunction(called):
        raise ConfigurationError(
            f"The handler {callable_name(function)} has a yield, so calling it would only make a generator. Let it "
            "return, and send the values with its session instead."
        )


def _positional_names(function: Callable[..., object], *, also_named: bool) -> list[str]:
    """Return the names of the positional-only parameters, as of builtins such as ``list.append``.

    Args:
        function: The handler.
        also_named: True to include the parameters that can also be passed by name.
    """
    only, named = inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD
    kinds = (only, named) if also_named else (only,)
    return [found.name for found in _bindable_parameters(function) if found.kind in kinds]


def _accepts_varargs(function: Callable[..., object]) -> bool:
    """Return True if the function takes ``*args``, as wrappers and mocks do."""
    return any(found.kind is found.VAR_POSITIONAL for found in inspect.signature(function).parameters.values())


def _resolve_type_hints(function: Callable[..., object], *, include_extras: bool = False) -> dict[str, Any]:
    """Return the annotations; `_UNRESOLVED` for one with a name that does not exist at run time."""
    while isinstance(function, partial):  # a partial has the parameters, but not their annotations
        function = function.func
    if isinstance(function, type):
        function = function.__init__  # type: ignore[misc]  # of this very class
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
    """Resolve one annotation by itself, independently of the others."""
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
