"""What can be found out about a user's function."""

import inspect
from collections.abc import Callable, Mapping
from functools import partial
from types import SimpleNamespace
from typing import Any, get_type_hints

from jmsjca.errors import ConfigurationError

__all__ = ["UNRESOLVED", "by_place", "hints_of", "name_of", "parameters_of", "takes_any_number"]

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
