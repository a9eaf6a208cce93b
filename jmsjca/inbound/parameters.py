"""What the parameters of a handler ask for, found out once, when the handler is registered."""

import inspect
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, get_type_hints

from jmsjca.errors import ConfigurationError
from jmsjca.inbound.bodies import body_as
from jmsjca.messages import Message
from jmsjca.outbound import Session

__all__ = ["Given", "Supplier", "suppliers_of"]

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
_UNTYPED = (inspect.Parameter.empty, object, Any)


class Given(NamedTuple):
    """What there is to give to a handler: a message, or the messages of a batch, and the session."""

    content: Message | Sequence[Message]
    open_session: Callable[[], Session]  #: made when asked for, as most handlers never do

    @property
    def message(self) -> Message:
        """The message; of a batch the first one."""
        return self.content if isinstance(self.content, Message) else self.content[0]


Supplier = Callable[[Given], object]


def suppliers_of(function: Callable[..., object]) -> dict[str, Supplier]:
    """Tell for each parameter that is filled what fills it.

    Raises:
        ConfigurationError: One without a default asks for something that is not known.
    """
    hints = _hints(function)
    suppliers: dict[str, Supplier] = {}
    has_content = False
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        hint, needed = hints.get(parameter.name, parameter.empty), parameter.default is parameter.empty
        supplier = _named(parameter.name, hint)
        if supplier is None and (needed or _is_message(parameter.name, hint)):
            supplier = _content(parameter.name, hint, first=not has_content)
            has_content = True
        if supplier is not None and parameter.kind is not parameter.POSITIONAL_ONLY:
            suppliers[parameter.name] = supplier
        elif needed:
            raise _unknown(function, parameter.name)
    return suppliers


def _named(name: str, hint: Any) -> Supplier | None:
    """What a parameter gets that asks for the session or for headers."""
    if name == "session" or _is(hint, Session):
        return _session
    if name == "headers":
        return _headers
    return partial(_header, name) if name in _HEADERS else None


def _content(name: str, hint: Any, *, first: bool) -> Supplier | None:
    """What any other parameter gets: the message, or its body as the type that it names."""
    if _is_message(name, hint):
        return _message
    if hint not in _UNTYPED:
        convert = body_as(hint, name)
        return lambda given: convert(given.message)
    if name == "body":
        return lambda given: given.message.body
    return _message if first else None


def _message(given: Given) -> object:
    return given.message


def _session(given: Given) -> object:
    return given.open_session()


def _headers(given: Given) -> dict[str, object]:
    return {name: getattr(given.message, name) for name in _HEADERS}


def _header(name: str, given: Given) -> object:
    return getattr(given.message, name)


def _is_message(name: str, hint: Any) -> bool:
    return name == "message" or _is(hint, Message)


def _is(hint: Any, kind: type) -> bool:
    return isinstance(hint, type) and issubclass(hint, kind)


def _hints(function: Callable[..., object]) -> dict[str, Any]:
    while isinstance(function, partial):  # has the parameters, but not their annotations
        function = function.func
    try:
        return get_type_hints(function if inspect.isroutine(function) else type(function).__call__)
    except (NameError, TypeError):  # names that only a type checker sees
        return {}


def _unknown(function: Callable[..., object], name: str) -> ConfigurationError:
    handler = getattr(function, "__qualname__", repr(function))
    return ConfigurationError(
        f"The handler {handler} needs {name!r}, which is not known. A parameter gets the message, its body (by the "
        "name 'body', or as the type that it is annotated with), the session, 'headers', or a header by its name "
        f"({', '.join(_HEADERS)}); it must not be positional-only."
    )
