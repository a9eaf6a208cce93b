"""Destinations: queues, topics and subscriptions of topics, and the settings of destinations."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from jmsjca.arguments import FLAG, MAX_INT, is_number, plain_text, wrong_argument
from jmsjca.errors import ConfigurationError, IllegalStateError, InvalidDestinationError

__all__ = [
    "BLANK_NAME",
    "JAVA_TYPES",
    "Destination",
    "DestinationKind",
    "DestinationSettings",
    "Queue",
    "Subscription",
    "TemporaryQueue",
    "TemporaryTopic",
    "Topic",
    "check_destination",
    "destination",
    "named_destination",
]

DestinationKind = Literal["queue", "topic"]

BLANK_NAME = "it is blank; name a queue or a topic"
"""The error for a name of blanks alone, after the name."""

JAVA_TYPES: dict[DestinationKind, str] = {"queue": "javax.jms.Queue", "topic": "javax.jms.Topic"}
"""The Java interface of each kind of destination."""


@dataclass(frozen=True, slots=True)
class Destination:
    """A named queue or topic. Use `Queue` or `Topic`.

    Args:
        name: The name at the broker. It is literal, except that the topic of a consumer may have the wildcards of its
            broker.

    Raises:
        InvalidDestinationError: The name is not a text, or is empty or blank.
    """

    name: str
    kind: ClassVar[DestinationKind]
    temporary: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not self.name or not isinstance(self.name, str):  # pyright: ignore[reportUnnecessaryIsInstance]  # a check
            raise _wrong_name(type(self).__name__, self.name)
        if self.name.isspace() and not self.temporary:  # the broker names temporary ones
            raise _wrong_name(type(self).__name__, self.name)
        if type(self.name) is not str:
            object.__setattr__(self, "name", plain_text(self.name))

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"


@dataclass(frozen=True, slots=True)
class Queue(Destination):
    """A queue: each message goes to one consumer (JMS 3.1, section 4.1)."""

    kind: ClassVar[DestinationKind] = "queue"
    __str__ = Destination.__str__


@dataclass(frozen=True, slots=True)
class Topic(Destination):
    """A topic: each message goes to every subscription (JMS 3.1, section 4.2)."""

    kind: ClassVar[DestinationKind] = "topic"
    __str__ = Destination.__str__


class _Deletable(Destination):
    """The deletion of a temporary destination by its creator. Copies, and destinations in messages, are only names."""

    __slots__ = ()
    temporary: ClassVar[bool] = True
    _remove: Callable[[Destination], None] | None

    def delete(self) -> None:
        """Delete the destination and its messages (JMS 3.1, section 6.2.2). Closing the connection also deletes it.

        Raises:
            IllegalStateError: The destination has consumers, or ``create_temporary_…()`` did not return this object.
            InvalidDestinationError: The destination is already deleted.
        """
        if self._remove is None:
            raise IllegalStateError(f"{self} was received or copied: only what its session made can delete it.")
        self._remove(self)

    def __reduce__(self) -> tuple[type, tuple[str]]:
        return type(self), (self.name,)


@dataclass(frozen=True, slots=True)
class TemporaryQueue(Queue, _Deletable):
    """A queue that lives as long as its connection; only that connection can consume from it (section 4.1.5)."""

    _remove: Callable[[Destination], None] | None = field(default=None, repr=False, compare=False)
    __str__ = Destination.__str__


@dataclass(frozen=True, slots=True)
class TemporaryTopic(Topic, _Deletable):
    """A topic that lives as long as its connection; only that connection can consume from it (section 4.2.7)."""

    _remove: Callable[[Destination], None] | None = field(default=None, repr=False, compare=False)
    __str__ = Destination.__str__


@dataclass(frozen=True, slots=True)
class Subscription:
    """A subscription of a topic, as the source of a consumer (JMS 3.1, section 8.3).

    Args:
        topic: The topic.
        name: The subscription's name; None for a subscription that lives only as long as its consumer.
        client_id: The client id that a durable subscription belongs to; optional for a shared one.
        shared: True if several consumers compete for its messages.
        volatile: True for a named subscription that ends with its last consumer.
    """

    topic: Topic
    name: str | None = None
    client_id: str | None = None
    shared: bool = False
    volatile: bool = False

    def __post_init__(self) -> None:
        for field_name, text in (("name", self.name), ("client_id", self.client_id)):
            if isinstance(text, str):
                object.__setattr__(self, field_name, plain_text(text))

    @property
    def durable(self) -> bool:
        """True if the broker keeps messages for it while it has no consumer."""
        return self.name is not None and not self.volatile


def destination(name: str, kind: str, *, temporary: bool = False) -> Destination:
    """Return a destination as brokers and peers name it. Unlike the name of a `Queue`, its name may be blank.

    Args:
        name: The destination's name.
        kind: "queue" or "topic".
        temporary: True for a temporary destination.

    Raises:
        InvalidDestinationError: The kind is unknown, or the name is empty.
    """
    made = _KINDS.get((kind, temporary))
    if made is None:
        raise InvalidDestinationError(f"A destination is a 'queue' or a 'topic', not {kind!r} (for {name!r}).")
    if temporary or not str(name).isspace():
        return made(name)
    blank = made.__new__(made)  # without the check of the name
    object.__setattr__(blank, "name", name)
    return blank


def named_destination(text: str) -> Queue | Topic:
    """Return the destination of ``name``, ``queue:name`` or ``topic:name``; without a prefix it is a queue.

    One prefix is removed: ``queue:topic:news`` is the queue ``topic:news``.

    Raises:
        InvalidDestinationError: The name is empty or blank.
    """
    kind, colon, name = text.partition(":")
    if colon and kind in {"queue", "topic"}:
        return Topic(name) if kind == "topic" else Queue(name)
    return Queue(text)


_KINDS: dict[tuple[str, bool], type[Destination]] = {
    (kind.kind, kind.temporary): kind for kind in (Queue, Topic, TemporaryQueue, TemporaryTopic)
}


def _wrong_name(kind: str, name: object) -> InvalidDestinationError:
    if name == "":
        return InvalidDestinationError(f"A {kind} needs a name, but it is empty.")
    if isinstance(name, str):
        return InvalidDestinationError(f"The name of a {kind} is {name!r:.100}: {BLANK_NAME}.")
    return InvalidDestinationError(
        f"A {kind} is named by a str, as in {kind}('orders'), not by {name!r:.100} ({type(name).__name__})."
    )


def check_destination(value: object) -> None:
    """Raise an error for a value that is not a `Destination`, such as a plain name.

    Raises:
        InvalidDestinationError: The value is not a `Destination`.
    """
    if not isinstance(value, Destination):
        remedy = "; await it first" if hasattr(type(value), "__await__") else ""
        raise InvalidDestinationError(f"{value!r:.200} is no destination; name a Queue(…) or a Topic(…){remedy}.")


@dataclass(frozen=True, slots=True)
class DestinationSettings:
    """The settings of a destination, for `Admin.configure`. The broker stores them; they apply to all its clients.

    Args:
        max_deliveries: The number of deliveries before a message is dead-lettered, at most 2147483647; None means no
            maximum.
        dead_letter: The dead-letter destination; None deletes the message.
        expiry: The destination of expired messages; None deletes them.
        exclusive: True to deliver only to the oldest consumer; when it closes, the next oldest takes over.

    Raises:
        ConfigurationError: ``max_deliveries`` is below 1 or too large, there is a dead-letter destination without it,
            or a destination is temporary.
        InvalidDestinationError: A destination is not a `Destination`.
    """

    max_deliveries: int | None = None
    dead_letter: Destination | None = None
    expiry: Destination | None = None
    exclusive: bool = False

    def __post_init__(self) -> None:
        FLAG("exclusive", self.exclusive)
        if self.max_deliveries is not None and (not is_number(self.max_deliveries) or self.max_deliveries % 1):
            raise wrong_argument("max_deliveries", self.max_deliveries, "a whole number or None", ConfigurationError)
        if self.max_deliveries is not None and self.max_deliveries < 1:
            raise ConfigurationError(
                f"max_deliveries is {self.max_deliveries}, but a message is delivered once or more."
            )
        if self.max_deliveries is not None and self.max_deliveries > MAX_INT:
            wanted = f"from 1 to {MAX_INT}, or None for no maximum"
            raise wrong_argument("max_deliveries", self.max_deliveries, wanted, ConfigurationError)
        if self.dead_letter is not None and self.max_deliveries is None:
            raise ConfigurationError(f"The dead-letter destination {self.dead_letter} needs max_deliveries as well.")
        for place in (each for each in (self.dead_letter, self.expiry) if each is not None):
            check_destination(place)
            if place.temporary:
                raise ConfigurationError(f"{place} is temporary: it would be gone when a message is to go there.")
