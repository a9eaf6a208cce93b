"""What the parameters of a handler ask for, found out once, when the handler is registered."""

import inspect
from collections.abc import Callable, Sequence
from functools import partial
from itertools import takewhile
from operator import attrgetter
from types import NoneType, UnionType
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin

from jmsjca.errors import ConfigurationError
from jmsjca.inbound.bodies import body_as
from jmsjca.inbound.functions import UNRESOLVED, by_place, hints_of, name_of, parameters_of, takes_any_number
from jmsjca.messages import Message
from jmsjca.outbound import Session

__all__ = ["Given", "Parameters"]

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
