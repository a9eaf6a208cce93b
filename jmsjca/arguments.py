"""Constraints of arguments as data, and their one check. Each error has the type, the value and the remedy.

A check runs where a value is given, so that a mistake shows in the line that makes it, not later in a client library.
"""

import difflib
import inspect
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass
from datetime import timedelta
from enum import Enum
from functools import cache, partial
from types import NoneType
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from jmsjca.errors import ArgumentTypeError, InvalidArgumentError, InvalidAttributeError, JMSError

__all__ = [
    "CALLABLE",
    "CLASS",
    "FLAG",
    "MAX_INT",
    "MAX_TIMEOUT",
    "PLAIN_FUNCTION",
    "SECONDS",
    "SECRET_OR_NONE",
    "TEXT",
    "TEXT_OR_NONE",
    "TIMEOUT",
    "Constraint",
    "GuardedAttributes",
    "check",
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
T_co = TypeVar("T_co", covariant=True)

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
    name: str,
    value: object,
    wanted: str,
    error: type[JMSError] = ArgumentTypeError,
    *,
    secret: bool = False,
    remedy: str = "",
) -> JMSError:
    """Return the error for an argument of a wrong type or value.

    Args:
        name: The name of the argument.
        value: The value that was given.
        wanted: The accepted values, and how to get one: the remedy.
        error: The class of the error.
        secret: True to show only the type of the value.
        remedy: Added after the value.
    """
    kind = type(value)
    shown = kind.__name__ if secret else f"{_shown(value)} ({kind.__name__})"
    awaited = " Await it first." if hasattr(kind, "__await__") else ""
    return error(f"{name} must be {wanted}, not {shown}{remedy}.{awaited}")


@dataclass(frozen=True)
class Constraint(Generic[T_co]):
    """The accepted values of an argument. A call checks one value; `check` checks several arguments by a table.

    The error is ``{name} must be {wanted}, not {value}{remedy}.``

    Args:
        wanted: The accepted values in words, and how to get one.
        kinds: The accepted types. A `bool` is not accepted as a number, unless the type `bool` is listed.
        within: The least and the greatest number; None without limits. NaN is outside of all limits.
        fits: Returns True for an accepted value of an accepted type; None accepts all values of these types. It is not
            called with None, unless all types are accepted.
        error: The class of the error for a wrong type.
        misfit: The class of the error for a wrong value of an accepted type; None for `InvalidArgumentError` where
            ``error`` is `ArgumentTypeError`, and for ``error`` otherwise.
        secret: True to show only the type of the value.
        seconds: True if a `datetime.timedelta` is also accepted; the call returns its seconds.
        remedy: Added to the error after the value.
    """

    wanted: str
    kinds: type | tuple[type, ...] = object
    _: KW_ONLY
    within: tuple[float, float] | None = None
    fits: Callable[[Any], bool] | None = None
    error: type[JMSError] = ArgumentTypeError
    misfit: type[JMSError] | None = None
    secret: bool = False
    seconds: bool = False
    remedy: str = ""

    def __call__(self, name: str, value: object) -> T_co:
        """Return the value if it is accepted; a `timedelta` as seconds.

        Args:
            name: The name of the argument.
            value: The value that was given.

        Raises:
            JMSError: The type or the value is not accepted.
        """
        error = None
        given: Any = value
        if not isinstance(value, self.kinds) or (isinstance(value, bool) and self._are_numbers()):
            if self.seconds and isinstance(value, timedelta):
                return self(name, value.total_seconds())
            error = self.error
        elif (value is not None or self.kinds is object) and (
            (self.within is not None and not self.within[0] <= given <= self.within[1])
            or (self.fits is not None and not self.fits(given))
        ):
            error = InvalidArgumentError if self.error is ArgumentTypeError else self.error
            error = error if self.misfit is None else self.misfit
        if error is not None:
            raise wrong_argument(name, value, self.wanted, error, secret=self.secret, remedy=self.remedy)
        return cast("T_co", value)

    def _are_numbers(self) -> bool:
        kinds = self.kinds if isinstance(self.kinds, tuple) else (self.kinds,)
        return (int in kinds or float in kinds) and bool not in kinds


def check(constraints: Mapping[str, Constraint[Any]], /, **values: object) -> None:
    """Check the arguments of a call by a table.

    Args:
        constraints: The constraint of each argument, by its name.
        values: The arguments that were given.

    Raises:
        JMSError: An argument is not accepted.
    """
    for name, value in values.items():
        constraints[name](name, value)


def is_deferred(value: object) -> bool:
    """Return True for a function that a call does not run: one with ``async def`` or ``yield``.

    Args:
        value: A function, an object with ``__call__``, a `functools.partial` of one of them, or any other value.
    """
    while isinstance(value, partial):
        value = value.func
    called = value if hasattr(value, "__code__") else type(value).__call__  # else `type`'s method
    # One look at the flags, as each send with a completion listener comes here.
    is_flagged = bool(getattr(getattr(called, "__code__", None), "co_flags", 0) & _DEFERRED)
    return is_flagged or inspect.iscoroutinefunction(called)


def _is_class(value: Any) -> bool:
    try:
        isinstance(None, value)
    except TypeError:
        return False
    return True


CALLABLE = Constraint[Any]("a function", fits=callable, misfit=ArgumentTypeError)
CLASS = Constraint[type]("a class such as str, bytes, dict or list", fits=_is_class, misfit=ArgumentTypeError)
FLAG = Constraint[bool]("True or False", bool)  # other values would count as True
PLAIN_FUNCTION = Constraint[Any](
    "a plain function",
    fits=lambda function: not is_deferred(function),  # a call would make a coroutine, and nothing else
    misfit=ArgumentTypeError,
    remedy=": it is declared with 'async def' or has a 'yield', so that a call would not run it. Declare it with 'def',"
    " without 'yield'",
)
SECONDS = Constraint[float]("seconds from 0 on, as a number", (int, float), within=(0, MAX_TIMEOUT), seconds=True)
SECRET_OR_NONE = Constraint[str | None]("a str or None", (str, NoneType), secret=True)
TEXT = Constraint[str]("a str", str)
TEXT_OR_NONE = Constraint[str | None]("a str or None", (str, NoneType))
TIMEOUT = Constraint[float | None](
    "seconds from 0 (does not wait) on, as a number, or None to wait forever",
    (int, float, NoneType),
    within=(0, MAX_TIMEOUT),
    seconds=True,
)


def plain_text(value: str) -> str:
    """Return the text of a subclass of `str`. The format of an ``Enum`` of texts is the member's name instead."""
    return value if type(value) is str else str.__str__(value)


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
    """Refuses to set public attributes that do not exist or cannot be set. Otherwise a typo would have no effect.

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
    with suppress(Exception):  # the class of a wrong value may raise anything
        return f"{value!r:.100}"
    return "a value"
