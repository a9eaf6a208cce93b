"""The public functions, methods and properties whose behaviour planted faults must prove."""

import inspect
from collections.abc import Iterable, Iterator
from importlib import import_module
from types import FunctionType

__all__ = ["ROOMS", "public_members"]

ROOMS = ("jmsjca.messages", "jmsjca.outbound")


def public_members(rooms: Iterable[str] = ROOMS) -> list[frozenset[str]]:
    """Return the names of each public function, and of each public method or property of a public class, in modules.

    An inherited member has a name for each public class that has it. Special methods are left out, and so are members
    of protocols, and those that a class inherits from outside of jmsjca.
    """
    names: dict[object, set[str]] = {}
    for room in map(import_module, rooms):
        for public in (getattr(room, name) for name in room.__all__):
            for name, member in _members_of(public):
                names.setdefault(member, set()).add(name)
    return [frozenset(spelt) for spelt in names.values()]


def _members_of(public: object) -> Iterator[tuple[str, object]]:
    """Yield a function with its name, or the members of a class as it has them: no overridden ones."""
    if isinstance(public, FunctionType):
        yield public.__name__, public
    elif inspect.isclass(public) and not getattr(public, "_is_protocol", False):
        members = {name: member for base in reversed(public.__mro__) for name, member in vars(base).items()}
        for name, member in members.items():
            if not name.startswith("_") and _module_of(member).startswith("jmsjca."):
                yield f"{public.__name__}.{name}", member


def _module_of(member: object) -> str:
    """Return the module that defines a method or a property; an empty text for another member."""
    match member:
        case property():
            function = member.fget
        case classmethod() | staticmethod():
            function = member.__func__
        case _:
            function = member
    return function.__module__ if isinstance(function, FunctionType) else ""
