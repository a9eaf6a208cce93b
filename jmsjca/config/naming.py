"""The naming context: administered objects by name, as in JNDI, and names of destinations that refer to them."""

import threading
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Self
from urllib.parse import parse_qsl

from jmsjca.arguments import did_you_mean
from jmsjca.destinations import Destination, DestinationKind, Queue, Topic
from jmsjca.errors import ConfigurationError, InvalidDestinationError, NameNotFoundError, excerpt

__all__ = ["LOOKUP", "NamingContext", "is_reference", "resolve_destination"]

LOOKUP = "lookup://"
"""The prefix of a name to be looked up."""

_ADMINISTERED = "jndi://"
_WITH_OPTIONS = "jmsjca://"
_REFERENCES = (LOOKUP, _ADMINISTERED, _WITH_OPTIONS)
_GROUP = "jmsjca.names"
_MOST_REFERENCES = 8
_MOST_CACHED = 1000
_CLASSES: Mapping[DestinationKind, type[Destination]] = {"queue": Queue, "topic": Topic}


class NamingContext:
    """A thread-safe directory of objects by name: queues, topics and connection factories.

    Args:
        parent: The context to search for names that are not bound here; None for no parent.
    """

    def __init__(self, parent: "NamingContext | None" = None) -> None:
        self._parent = parent
        self._objects: dict[str, object] = {}
        self._changes = 0
        self._destinations: dict[tuple[str, DestinationKind], tuple[int, Destination]] = {}
        self._lock = threading.Lock()

    @classmethod
    def default(cls) -> "NamingContext":
        """Return the context of this process, the parent of each adapter's context.

        It holds the objects of the entry-point group ``jmsjca.names``. They are loaded at their first lookup.
        """
        return _default()

    @classmethod
    def of(cls, objects: Mapping[str, object], parent: "NamingContext | None" = None) -> Self:
        """Return a context with some objects bound.

        Args:
            objects: The objects by name.
            parent: As for the class.

        Raises:
            ConfigurationError: A name is empty.
        """
        context = cls(parent)
        for name, value in objects.items():
            context.bind(name, value)
        return context

    def bind(self, name: str, value: object) -> None:
        """Bind an object to a name.

        Args:
            name: The name, for example ``jms/orders``. The prefix ``lookup://`` is removed.
            value: The object.

        Raises:
            ConfigurationError: The name is empty or already bound. Use `rebind` to replace its object.
        """
        name = _key(name)
        with self._lock:
            if name in self._objects:
                raise ConfigurationError(f"The name {excerpt(name)!r} is bound already; rebind() replaces its object.")
            self._objects[name] = value
            self._changes += 1

    def rebind(self, name: str, value: object) -> None:
        """Bind an object to a name. Replaces the object if the name is bound.

        Raises:
            ConfigurationError: The name is empty.
        """
        name = _key(name)
        with self._lock:
            self._objects[name] = value
            self._changes += 1

    def unbind(self, name: str) -> None:
        """Remove a name from this context. No effect if it is not bound (``javax.naming.Context.unbind``).

        Raises:
            ConfigurationError: The name is empty.
        """
        name = _key(name)
        with self._lock:
            self._objects.pop(name, None)
            self._changes += 1

    def lookup(self, name: str) -> object:
        """Return the object of a name: from this context, from a context that is bound here, or from the parent.

        Args:
            name: The name, with or without ``lookup://``. ``remote/q`` is also ``q`` of the context that is bound to
                ``remote``.

        Raises:
            NameNotFoundError: The name is not bound.
            ConfigurationError: The name is empty, or its entry point cannot be loaded.
        """
        name = _key(name)
        with self._lock:
            found = name in self._objects
            value = self._objects.get(name)
        if found:
            return _loaded(name, value)
        if bound := self._bound_context(name):
            context, rest = bound
            return context.lookup(rest)
        if self._parent is None:
            raise NameNotFoundError(f"Nothing is bound to the name {excerpt(name)!r}.")
        try:
            return self._parent.lookup(name)
        except NameNotFoundError:
            known = {bound.lower(): bound for bound in self}
            hint = did_you_mean(name.lower(), known) if known else "(nothing is bound)"
            raise NameNotFoundError(f"Nothing is bound to the name {excerpt(name)!r} {hint}.") from None

    def _bound_context(self, name: str) -> "tuple[NamingContext, str] | None":
        """Return the context that is bound to the longest prefix of a name, and the rest of the name."""
        parts = name.split("/")
        for end in range(len(parts) - 1, 0, -1):
            beginning = "/".join(parts[:end])
            if isinstance(found := self._objects.get(beginning), NamingContext):
                return found, "/".join(parts[end:])
        return None

    def destination(self, name: str, kind: DestinationKind) -> Destination:
        """Return the destination of a name, as `resolve_destination` does.

        The result is cached until a name is bound, rebound or unbound here or in a parent (JMSJCA manual,
        "Administrative objects").

        Args:
            name: The name, such as ``lookup://jms/orders``.
            kind: The kind that the destination must have.

        Raises:
            JMSError: As `resolve_destination`.
        """
        changes = self._count_changes()
        known, found = self._destinations.get((name, kind), (-1, None))
        if found is None or known != changes:
            found = resolve_destination(name, kind, self)
            if len(self._destinations) >= _MOST_CACHED:
                self._destinations.clear()
            self._destinations[name, kind] = changes, found
        return found

    def _count_changes(self) -> int:
        """Return how many times names were bound or unbound, here and in the parents."""
        return self._changes + (0 if self._parent is None else self._parent._count_changes())  # noqa: SLF001  # own class

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names, sorted, including the names of the parent."""
        with self._lock:
            own = set(self._objects)
        return iter(sorted(own.union(self._parent or ())))

    def __contains__(self, name: object) -> bool:
        return name in set(self)

    def __repr__(self) -> str:
        return f"<NamingContext with {len(list(self))} names>"


def is_reference(name: str) -> bool:
    """Return True if a destination's name refers to another object, and False if it is the name at the broker."""
    return name.startswith(_REFERENCES)


def resolve_destination(name: str, kind: DestinationKind, naming: NamingContext) -> Destination:
    """Return the destination of a name (JMSJCA manual, "Administrative objects").

    Args:
        name: ``lookup://name`` or ``jndi://name`` for the object bound to a name, ``jmsjca://?name=X`` for X; any other
            name is the name at the broker. The name of the destination found may refer to another one.
        kind: The kind that the destination must have.
        naming: The context in which names are looked up.

    Raises:
        InvalidDestinationError: The name is empty; the object is not a destination, or is of the other kind; or more
            than eight names refer to each other.
        NameNotFoundError: A name is not bound.
    """
    for _ in range(_MOST_REFERENCES):
        if not is_reference(name):
            return _CLASSES[kind](name)
        name = _one_step(name, kind, naming)
    raise InvalidDestinationError(
        f"{excerpt(name)!r} is not resolved after {_MOST_REFERENCES} look-ups: do the names refer to each other?"
    )


def _one_step(name: str, kind: DestinationKind, naming: NamingContext) -> str:
    if name.startswith(_WITH_OPTIONS):
        return _name_of_url(name)
    found = naming.lookup(name.removeprefix(LOOKUP).removeprefix(_ADMINISTERED))
    if not isinstance(found, Destination):
        raise InvalidDestinationError(f"{excerpt(name)!r} is a {type(found).__name__}: a Queue or Topic is needed.")
    if found.kind != kind:
        raise InvalidDestinationError(f"{excerpt(name)!r} is the {found}, but a {kind} is needed.")
    return found.name


def _name_of_url(url: str) -> str:
    query = dict(parse_qsl(url.removeprefix(_WITH_OPTIONS).lstrip("/?"), keep_blank_values=True))
    name = query.pop("name", "")
    if not name:
        raise InvalidDestinationError(f"{excerpt(url)!r} has no name: write jmsjca://?name=orders.")
    if query:
        raise InvalidDestinationError(
            f"{excerpt(url)!r}: a destination has no option {excerpt(next(iter(query)))!r} here; leave it out."
        )
    return name


def _key(name: str) -> str:
    key = name.removeprefix(LOOKUP)
    if not key:
        raise ConfigurationError("The name of an object is empty; write a name such as jms/orders.")
    return key


def _loaded(name: str, value: object) -> object:
    from importlib.metadata import EntryPoint  # slow to import, and rarely needed

    if not isinstance(value, EntryPoint):
        return value
    try:
        return value.load()
    except Exception as error:
        raise ConfigurationError(
            f"The entry point {value.value} of the name {excerpt(name)!r} cannot be loaded: {error}"
        ) from error


@cache
def _default() -> NamingContext:
    from importlib.metadata import entry_points  # slow to import, and rarely needed

    return NamingContext.of({found.name: found for found in entry_points(group=_GROUP)})
