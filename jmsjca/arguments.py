"""Checks of the arguments and attributes of the public API. Each error has the type, the value and the remedy.

A check runs where a value is given, so that a mistake shows in the line that makes it, not later in a client library.
"""

import difflib
import inspect
import sys
import threading
from collections.abc import Mapping
from enum import Enum
from functools import cache, partial
from typing import TYPE_CHECKING, TypeVar

from jmsjca.errors import ArgumentTypeError, InvalidArgumentError, InvalidAttributeError, JMSError

__all__ = [
    "MAX_INT",
    "MAX_TIMEOUT",
    "GuardedAttributes",
    "check_callable",
    "check_class",
    "check_flag",
    "check_instance",
    "check_runs",
    "check_seconds",
    "check_text_or_none",
    "check_timeout",
    "did_you_mean",
    "enum_member",
    "is_deferred",
    "is_number",
    "plain_text",
    "wrong_argument",
]

MAX_INT = 2**31 - 1
"""Java's largest int: the largest number of handlers, messages and open units of a listener, and of deliveries."""

E = TypeVar("E", bound=Enum)

MAX_TIMEOUT = threading.TIMEOUT_MAX
"""The longest timeout in seconds that a lock can wait for; about 292 years."""

_DEFERRED = inspect.CO_COROUTINE | inspect.CO_GENERATOR | inspect.CO_ASYNC_GENERATOR | inspect.CO_ITERABLE_COROUTINE
_MAX_COMPARED = 100


def did_you_mean(name: str, known: Mapping[str, str]) -> str:
    """Return the known name nearest to an unknown one, or else all known names, as a remark in parentheses.

    Args:
        name: The unknown name, in lower case.
        known: The known names as the remark shows them, keyed by their lower case form.
    """
    near = difflib.get_close_matches(name[:_MAX_COMPARED], known, 1)
    return f"(did you mean {known[near[0]]}?)" if near else f"(there are {', '.join(known.values())})"


def wrong_argument(
    name: str, value: object, wanted: str, error: type[JMSError] = ArgumentTypeError, *, secret: bool = False
) -> JMSError:
    """Return the error for an argument of a wrong type or value.

    Args:
        name: The name of the argument.
        value: The value that was given.
        wanted: The accepted values, and how to get one: the remedy.
        error: The class of the error.
        secret: True to show only the type of the value.
    """
    kind = type(value)
    shown = kind.__name__ if secret else f"{_shown(value)} ({kind.__name__})"
    remedy = " Await it first." if hasattr(kind, "__await__") else ""
    return error(f"{name} must be {wanted}, not {shown}.{remedy}")


def check_instance(
    name: str,
    value: object,
    kind: type | tuple[type, ...],
    wanted: str,
    error: type[JMSError] = ArgumentTypeError,
    *,
    secret: bool = False,
) -> None:
    """Raise an error for a value of another type.

    Args:
        name: The name of the argument.
        value: The value that was given.
        kind: The accepted types.
        wanted: The accepted values in words, with the remedy.
        error: The class of the error.
        secret: True to show only the type of the value.

    Raises:
        JMSError: The value is no instance of ``kind``.
    """
    if not isinstance(value, kind):
        raise wrong_argument(name, value, wanted, error, secret=secret)


def check_callable(name: str, value: object) -> None:
    """Raise an error for a value that cannot be called.

    Args:
        name: The name of the argument.
        value: The value that was given.

    Raises:
        ArgumentTypeError: The value is no function and has no ``__call__``.
    """
    if not callable(value):
        raise wrong_argument(name, value, "a function")


def is_deferred(value: object) -> bool:
    """Return True for a function that a call does not run: one with ``async def`` or ``yield``.

    Args:
        value: A function, an object with ``__call__``, a `functools.partial` of one of them, or any other value.
    """
    while isinstance(value, partial):
        value = value.func
    called = value if hasattr(value, "__code__") else getattr(type(value), "__call__", None)  # noqa: B004  # itself
    # One look at the flags, as each send with a completion listener comes here.
    is_flagged = bool(getattr(getattr(called, "__code__", None), "co_flags", 0) & _DEFERRED)
    return is_flagged or inspect.iscoroutinefunction(called)


def check_runs(name: str, value: object, error: type[JMSError] = ArgumentTypeError) -> None:
    """Raise an error for a function that a call does not run: the call would make a coroutine, and nothing else.

    Args:
        name: The name of the function, for the error message.
        value: The function.
        error: The class of the error.

    Raises:
        JMSError: The function is declared with ``async def``, or has a ``yield``.
    """
    if is_deferred(value):
        raise error(
            f"{name} must be a plain function, not {_shown(value)}: it is declared with 'async def' or has a 'yield', "
            "so that a call would not run it. Declare it with 'def', without 'yield'."
        )


def check_class(name: str, value: object) -> None:
    """Raise an error for a value that `isinstance` does not take as a class.

    Args:
        name: The name of the argument.
        value: The value that was given.

    Raises:
        ArgumentTypeError: The value is no class, for example the name of one, or ``dict[str, int]``.
    """
    try:
        isinstance(None, value)  # type: ignore[arg-type]  # any other value is refused
    except TypeError:
        raise wrong_argument(name, value, "a class such as str, bytes, dict or list") from None


def check_text_or_none(name: str, value: object, *, secret: bool = False) -> None:
    """Raise an error for a value that is neither text nor None.

    Args:
        name: The name of the argument.
        value: The value that was given.
        secret: True to show only the type of the value.

    Raises:
        ArgumentTypeError: The value has another type.
    """
    if value is not None and not isinstance(value, str):
        raise wrong_argument(name, value, "a str or None", secret=secret)


def plain_text(value: str) -> str:
    """Return the text of a subclass of `str`, such as an ``Enum`` of texts, whose format is not its text."""
    return value if type(value) is str else str.__str__(value)


def check_flag(name: str, value: object, remedy: str = "") -> None:
    """Raise an error for a value that is neither True nor False: other values would count as True.

    Args:
        name: The name of the argument.
        value: The value that was given.
        remedy: Added to the error.

    Raises:
        ArgumentTypeError: The value is no `bool`.
    """
    if not isinstance(value, bool):
        raise wrong_argument(name, value, f"True or False{remedy}")


def check_timeout(name: str, value: object) -> None:
    """Raise an error for a value that is no timeout: seconds, or None to wait forever.

    Args:
        name: The name of the argument.
        value: The value that was given.

    Raises:
        ArgumentTypeError: The value is no number, for example a text or a `timedelta`.
        InvalidArgumentError: The number is negative, infinite, or no number of seconds that a lock can wait for.
    """
    if value is None:
        return
    wanted = "seconds from 0 (does not wait) on, as a number, or None to wait forever"
    if not is_number(value):
        raise wrong_argument(name, value, wanted)
    if not 0 <= value <= MAX_TIMEOUT:  # type: ignore[operator]  # a number, nor NaN
        raise wrong_argument(name, value, wanted, InvalidArgumentError)


def check_seconds(name: str, value: object) -> None:
    """Raise an error for a value that is no number of seconds. None is refused, too.

    Args:
        name: The name of the argument.
        value: The value that was given.

    Raises:
        ArgumentTypeError: As `check_timeout`.
        InvalidArgumentError: As `check_timeout`, or the value is None.
    """
    check_timeout(name, value)
    if value is None:
        raise InvalidArgumentError(f"{name}=None: give seconds, as a number.")


def is_number(value: object) -> bool:
    """Return True for an `int` or a `float`; a `bool` is not."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def enum_member(name: str, value: object, kind: type[E], error: type[JMSError] = InvalidArgumentError) -> E:
    """Return the member of an enum, given as itself or by its name in upper or lower case.

    Args:
        name: The name of the argument.
        value: The value that was given.
        kind: The enum.
        error: The class of the error.

    Raises:
        JMSError: The value is neither a member nor the name of one.
    """
    if isinstance(value, kind):
        return value
    names = {each.lower(): each for each in kind.__members__}
    if isinstance(value, str):
        if found := names.get(value.lower()):
            return kind[found]
        hint = did_you_mean(value.lower(), names)
        raise error(f"{name} must be a member of {kind.__name__} or its name, not {value!r:.100} {hint}.")
    raise wrong_argument(name, value, f"a member of {kind.__name__}, or its name ({', '.join(names.values())})", error)


class GuardedAttributes:
    """Refuses to set public attributes that do not exist or cannot be set. A typo would otherwise pass in silence.

    A subclass declares its attributes: as properties, or with annotations in its class body.
    """

    __slots__ = ()

    if not TYPE_CHECKING:  # otherwise type checkers accept every misspelt attribute

        def __setattr__(self, name: str, value: object) -> None:
            if not name.startswith("_"):
                _check_attribute(type(self), name)
            super().__setattr__(name, value)


def _check_attribute(kind: type, name: str) -> None:
    """Raise an error for an attribute that cannot be set.

    Raises:
        InvalidAttributeError: The class has no such attribute, or it is read-only.
    """
    found = getattr(kind, name, None)
    if isinstance(found, property) and found.fset is None:
        raise InvalidAttributeError(
            f"{name} of a {kind.__name__} cannot be set; it is given when the object is created."
        )
    if found is None and not any(name in _annotated(base) for base in kind.__mro__):
        raise InvalidAttributeError(
            f"A {kind.__name__} has no attribute {name!r:.100} {_known_attributes(kind, name)}."
        )


@cache
def _annotated(kind: type) -> frozenset[str]:
    """Return the names that the body of a class annotates. Python 3.14 has no dictionary of them in the class."""
    if sys.version_info >= (3, 14):
        from annotationlib import Format, get_annotations  # of Python 3.14

        return frozenset(get_annotations(kind, format=Format.FORWARDREF))
    return frozenset(vars(kind).get("__annotations__", ()))


def _known_attributes(kind: type, name: str) -> str:
    public = {each: getattr(kind, each) for each in dir(kind) if not each.startswith("_")}
    known = {each.lower(): each for each, value in public.items() if not callable(value)}
    return did_you_mean(name.lower(), known) if known else "that can be set; give it when the object is created"


def _shown(value: object) -> str:
    try:
        return f"{value!r:.100}"
    except Exception:  # noqa: BLE001  # the class of a wrong value may raise anything
        return "a value"
