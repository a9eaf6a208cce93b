"""The arguments of a handler: resolved from its signature once, and from each message when it is called."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import takewhile
from operator import attrgetter
from types import NoneType, SimpleNamespace, UnionType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

from jmsjca.errors import ConfigurationError, MessageFormatError
from jmsjca.messages import BytesMessage, Message, TextMessage
from jmsjca.outbound import Session

if TYPE_CHECKING:
    from pydantic import TypeAdapter, ValidationError

__all__ = [
    "UNRESOLVED",
    "Given",
    "Parameters",
    "body_as",
    "by_place",
    "hints_of",
    "name_of",
    "parameters_of",
    "takes_any_number",
]

_SHOWN = 5

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


def _ignore(_: object) -> None: ...


class Given(NamedTuple):
    """What there is to give to a handler: a message, or the messages of a batch, and the session."""

    content: Message | Sequence[Message]
    open_session: Callable[[], Session]  #: made when asked for, as most handlers never do
    began: Callable[[object], None] = _ignore  #: told the task that a coroutine runs in

    @property
    def message(self) -> Message:
        """The message; of a batch the first one."""
        return self.content if isinstance(self.content, Message) else self.content[0]

    @property
    def messages(self) -> Sequence[Message]:
        """All messages."""
        return [self.content] if isinstance(self.content, Message) else self.content


class Supplier(NamedTuple):
    """What fills a parameter, and what that is part of."""

    supply: Callable[[Given], object]
    part_of: Literal["delivery", "message", "content", "batch"]


class Parameters:
    """What a handler is called with.

    A parameter that is annotated with `Message` or `Session`, or named so, gets that; "headers" gets all headers by
    name, and the name of a header its value. One that is annotated with a sequence of messages, or named "messages",
    gets the whole batch, and with any other sequence the bodies of the batch as that type. Any other one that is
    annotated gets the body as that type, "body" the body as it is, and the first that is left, also of ``*args``, the
    message.

    Args:
        function: The handler.

    Raises:
        ConfigurationError: A parameter without a default asks for something that is not known, or one asks for a whole
            batch and another for a single message.
    """

    def __init__(self, function: Callable[..., object]) -> None:
        suppliers = _suppliers_of(function)
        parts = {supplier.part_of for supplier in suppliers.values()}
        self.whole_batches = "batch" in parts
        among_others = takes_any_number(function) and parts <= {"delivery"}  # the message has no place of its own
        self.takes_end_of_batch = "message" in parts or among_others
        places = by_place(function, also_named=among_others)
        self._by_place = [suppliers[name].supply for name in takewhile(suppliers.__contains__, places)]
        self._by_place += [attrgetter("message")] if among_others else []
        self._by_name = {name: it.supply for name, it in suppliers.items() if name not in places}
        if self.whole_batches and parts - {"batch", "delivery"}:
            raise _mixed(function, [name for name, it in suppliers.items() if it.part_of in ("message", "content")])

    def filled(self, given: Given) -> tuple[list[object], dict[str, object]]:
        """Give the arguments: those by place, and those by name.

        Raises:
            MessageFormatError: A body does not fit.
        """
        by_name = {name: supply(given) for name, supply in self._by_name.items()}
        return [supply(given) for supply in self._by_place], by_name


def _suppliers_of(function: Callable[..., object]) -> dict[str, Supplier]:
    hints = hints_of(function)
    suppliers: dict[str, Supplier] = {}
    first = True
    for parameter in parameters_of(function):
        name, hint = parameter.name, hints.get(parameter.name, _EMPTY)
        supplier = _named(name, hint)
        if supplier is None and parameter.default is _EMPTY:
            supplier = _content(name, hint, first=first)
            first = False
        elif supplier is not None and supplier.part_of in ("message", "batch"):
            first = False
        if supplier is not None:
            suppliers[name] = supplier
        elif parameter.default is _EMPTY:
            raise _unknown(function, name)
    return suppliers


def _named(name: str, hint: Any) -> Supplier | None:
    """What a parameter gets that asks for the session, for headers, for the message or for all of a batch."""
    if name == "session" or _is(hint, Session):
        return Supplier(_session, "delivery")
    if name == "headers":
        return Supplier(_headers, "content")
    if name in _HEADERS:
        return Supplier(partial(_header, name), "content")
    if _is(_element(hint), Message) or (name == "messages" and hint in _UNTYPED):
        return Supplier(attrgetter("messages"), "batch")
    if name == "message" or _is(hint, Message):
        return Supplier(attrgetter("message"), "message")
    return None


def _content(name: str, hint: Any, *, first: bool) -> Supplier | None:
    """What any other parameter gets: the bodies of a batch, the body, or the message."""
    element = _element(hint)
    if hint is UNRESOLVED:
        return None
    if element is not _EMPTY:
        return Supplier(partial(_bodies, body_as(element, name)), "batch")
    if hint not in _UNTYPED:
        return Supplier(partial(_body, body_as(hint, name)), "content")
    if name == "body":
        return Supplier(attrgetter("message.body"), "content")
    return Supplier(attrgetter("message"), "message") if first else None


def _bodies(convert: Callable[[Message], object], given: Given) -> object:
    return [convert(message) for message in given.messages]


def _body(convert: Callable[[Message], object], given: Given) -> object:
    return None if given.message.end_of_batch else convert(given.message)


def _session(given: Given) -> Session:
    return given.open_session()


def _headers(given: Given) -> dict[str, object]:
    return {name: getattr(given.message, name) for name in _HEADERS}


def _header(name: str, given: Given) -> object:
    return getattr(given.message, name)


def _element(hint: Any) -> Any:
    """Of what a parameter wants all of a batch; a list may be a body, too, unless it is one of messages."""
    origin, arguments = get_origin(hint), get_args(hint)
    if Sequence in (hint, origin):
        return arguments[0] if arguments and arguments[0] not in _UNTYPED else Message
    return arguments[0] if origin is list and _is(arguments[0], Message) else _EMPTY


def _is(hint: Any, kind: type) -> bool:
    kinds = [it for it in get_args(hint) if it is not NoneType] if get_origin(hint) in (Union, UnionType) else [hint]
    return all(isinstance(it, type) and issubclass(it, kind) for it in kinds)


def _unknown(function: Callable[..., object], name: str) -> ConfigurationError:
    return ConfigurationError(
        f"The handler {name_of(function)} needs {name!r}, which is not known. A parameter gets the message, its body "
        "(by the name 'body', or as the type that it is annotated with), all messages of a batch or their bodies (as "
        f"Sequence[Message] or another), the session, 'headers', or a header by its name ({', '.join(_HEADERS)}); it "
        "must not be annotated with a name that is not imported when the program runs."
    )


def _mixed(function: Callable[..., object], names: Sequence[str]) -> ConfigurationError:
    return ConfigurationError(
        f"The handler {name_of(function)} takes whole batches, but {', '.join(map(repr, names))} would be of one "
        "message. Ask for the messages with a parameter that is annotated with Sequence[Message], and look there."
    )


UNRESOLVED = object()
"""Stands for an annotation that only a type checker understands."""


def parameters_of(function: Callable[..., object]) -> list[inspect.Parameter]:
    """Give the parameters that may be filled: not those that take any number, nor those that a `partial` has bound.

    Raises:
        ConfigurationError: It cannot be called, or has a ``yield``, so that calling it would do nothing.
    """
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        raise ConfigurationError(
            f"A handler is a function or has a __call__ method; {function!r:.200} is not."
        ) from None
    called = function if _is_routine(function) else type(function).__call__
    if inspect.isgeneratorfunction(called) or inspect.isasyncgenfunction(called):
        raise ConfigurationError(
            f"The handler {name_of(function)} has a yield, so calling it would only make a generator. Let it return, "
            "and send with its session what it would yield."
        )
    bound = _bound(function)
    open_ended = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [found for found in parameters.values() if found.kind not in open_ended and found.name not in bound]


def by_place(function: Callable[..., object], *, also_named: bool) -> list[str]:
    """Name the parameters of a builtin, such as ``list.append``, and of who writes a ``/``; or all that have a place.

    Args:
        function: Whose.
        also_named: True for all of them.
    """
    only, named = inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD
    kinds = (only, named) if also_named else (only,)
    return [found.name for found in parameters_of(function) if found.kind in kinds]


def takes_any_number(function: Callable[..., object]) -> bool:
    """Tell whether it takes any number of arguments by place, as wrappers and mocks do."""
    return any(found.kind is found.VAR_POSITIONAL for found in inspect.signature(function).parameters.values())


def hints_of(function: Callable[..., object]) -> dict[str, Any]:
    """Give the annotations; `UNRESOLVED` for one with a name that is not there at run time."""
    while isinstance(function, partial):  # has the parameters, but not their annotations
        function = function.func
    annotated = function if inspect.isroutine(function) else type(function).__call__
    try:
        return get_type_hints(annotated)
    except (NameError, AttributeError):
        names = getattr(inspect.unwrap(annotated), "__globals__", {})
        return {name: _resolved(hint, names) for name, hint in inspect.get_annotations(annotated).items()}
    except TypeError:  # a builtin has none
        return {}


def name_of(function: Callable[..., object]) -> str:
    """Name it, for errors."""
    return getattr(function, "__qualname__", None) or f"{function!r:.200}"


def _resolved(hint: object, names: dict[str, Any]) -> Any:
    """Read one annotation by itself: the others do not depend on it."""
    try:
        return get_type_hints(SimpleNamespace(__annotations__={"it": hint}), names)["it"]
    except (NameError, AttributeError):
        return UNRESOLVED


def _is_routine(function: Callable[..., object]) -> bool:
    return inspect.isroutine(function) or isinstance(function, partial)


def _bound(function: Callable[..., object]) -> Mapping[str, Any]:
    bound: dict[str, Any] = {}
    while isinstance(function, partial):
        bound |= function.keywords
        function = function.func
    return bound


def body_as(hint: Any, parameter: str) -> Callable[[Message], object]:
    """Make what converts the body of a message.

    Args:
        hint: `str` or `bytes`, or one of them ``| None``, for a body of that type; anything else that pydantic
            validates (a model, a dataclass, ``dict[str, int]``) for a text or bytes message that holds JSON, a map or a
            stream message.
        parameter: Who asks, for errors.

    Raises:
        ConfigurationError: Nothing can be converted to such a type.
    """
    for kind in (str, bytes):
        if hint in (kind, kind | None):
            return partial(_plain, kind, hint is not kind)
    from pydantic import TypeAdapter, ValidationError  # noqa: PLC0415  # loaded for those who ask for it
    from pydantic.errors import PydanticSchemaGenerationError, PydanticUserError  # noqa: PLC0415

    try:
        adapter: TypeAdapter[Any] = TypeAdapter(hint)
    except (PydanticSchemaGenerationError, PydanticUserError) as error:
        raise ConfigurationError(
            f"The parameter {parameter!r} of a handler asks for {hint!r:.200}, and no body can be converted to that."
        ) from error

    def convert(message: Message) -> object:
        """Convert a body; what does not fit is a failure of the handler."""
        try:
            return _validated(adapter, message)
        except ValidationError as error:
            raise MessageFormatError(f"The body of {message} does not fit {parameter!r}: {_problems(error)}.") from None

    return convert


def _plain(kind: type[str] | type[bytes], optional: bool, message: Message) -> object:
    return None if optional and message.body is None else message.get_body(kind)


def _validated(adapter: "TypeAdapter[Any]", message: Message) -> object:
    if isinstance(message, TextMessage):
        return adapter.validate_json(message.get_body(str))
    if isinstance(message, BytesMessage):
        return adapter.validate_json(message.get_body(bytes))
    return adapter.validate_python(message.get_body(object))


def _problems(error: "ValidationError") -> str:
    """What is wrong and where, without the values, which may be secret."""
    problems = error.errors(include_input=False, include_url=False, include_context=False)
    told = [f"{'.'.join(str(part) for part in p['loc']) or 'it'}: {p['msg']}"[:200] for p in problems[:_SHOWN]]
    return "; ".join(told) + ("; …" if len(problems) > _SHOWN else "")
