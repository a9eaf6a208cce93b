"""Where messages go to and come from: queues, topics and subscriptions of topics."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from jmsjca.errors import InvalidDestinationError

__all__ = ["Destination", "DestinationKind", "Queue", "Subscription", "Topic", "destination"]

DestinationKind = Literal["queue", "topic"]


@dataclass(frozen=True, slots=True)
class Destination:
    """A named queue or topic. Use `Queue` or `Topic`.

    Args:
        name: The name as the broker knows it. It is taken literally: no wildcards, no lists.

    Raises:
        InvalidDestinationError: The name is empty.
    """

    name: str
    kind: ClassVar[DestinationKind]

    def __post_init__(self) -> None:
        if not self.name:
            raise InvalidDestinationError(f"A {type(self).__name__} needs a name, but it is empty.")

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


@dataclass(frozen=True, slots=True)
class Subscription:
    """A subscription of a topic, as a consumer's source.

    Args:
        topic: What is subscribed to.
        name: The subscription's name; None for one that lives only as long as its consumer.
        client_id: The client id that a durable subscription belongs to.
    """

    topic: Topic
    name: str | None = None
    client_id: str | None = None

    @property
    def durable(self) -> bool:
        """True if messages are kept for it while nobody consumes."""
        return self.name is not None


def destination(name: str, kind: str) -> Destination:
    """Make the destination of a kind given as text.

    Args:
        name: The destination's name.
        kind: "queue" or "topic".

    Raises:
        InvalidDestinationError: The kind is neither, or the name is empty.
    """
    if kind == "queue":
        return Queue(name)
    if kind == "topic":
        return Topic(name)
    raise InvalidDestinationError(f"A destination is a 'queue' or a 'topic', not {kind!r} (for {name!r}).")
