"""Calls a handler with what its parameters ask for."""

import inspect
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, get_type_hints

from jmsjca.errors import ConfigurationError
from jmsjca.messages import Message
from jmsjca.outbound import Session

if TYPE_CHECKING:
    import asyncio

__all__ = ["Handler"]

_MESSAGE, _SESSION = "message", "session"


class Handler:
    """A user's function, called with the message and, if it asks for it, the session of the delivery.

    A parameter is recognised by its annotation (`Message` or a subclass, `Session`), else by its name ("session"),
    and the first other one gets the message. The function may be ``async``: it runs on an event loop of the
    endpoint's own thread.

    Args:
        function: The user's function.

    Raises:
        ConfigurationError: It needs a parameter that nothing is known for.
    """

    def __init__(self, function: Callable[..., object]) -> None:
        self._function = function
        self._roles = _roles(function)
        self._runner: asyncio.Runner | None = None

    def __call__(self, message: Message, session: Session) -> object:
        """Call the function; an awaitable that it returns is awaited."""
        given = {_MESSAGE: message, _SESSION: session}
        result = self._function(**{name: given[role] for name, role in self._roles.items()})
        return self._run(result) if inspect.iscoroutine(result) else result

    def close(self) -> None:
        """Close the event loop, if there was one."""
        if self._runner is not None:
            self._runner.close()
            self._runner = None

    def _run(self, coroutine: Any) -> object:
        if self._runner is None:
            import asyncio  # noqa: PLC0415  # only async handlers need it

            self._runner = asyncio.Runner()
        return self._runner.run(coroutine)


def _roles(function: Callable[..., object]) -> dict[str, str]:
    name = getattr(function, "__qualname__", repr(function))
    hints = _hints(function)
    roles: dict[str, str] = {}
    for parameter in inspect.signature(function).parameters.values():
        role = _role(parameter.name, hints.get(parameter.name), taken=_MESSAGE in roles.values())
        if role is not None and parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            roles[parameter.name] = role
        elif parameter.default is parameter.empty and parameter.kind not in (
            parameter.VAR_POSITIONAL,
            parameter.VAR_KEYWORD,
        ):
            raise ConfigurationError(
                f"The handler {name} needs {parameter.name!r}, but a handler is given the message and the session only."
            )
    return roles


def _role(name: str, hint: object, *, taken: bool) -> str | None:
    if name == _SESSION or (isinstance(hint, type) and issubclass(hint, Session)):
        return _SESSION
    if taken:
        return None
    return _MESSAGE


def _hints(function: Callable[..., object]) -> dict[str, object]:
    while isinstance(function, partial):  # has the parameters, but not their annotations
        function = function.func
    try:
        return get_type_hints(function if inspect.isroutine(function) else type(function).__call__)
    except (NameError, TypeError):  # names that only a type checker sees
        return {}
