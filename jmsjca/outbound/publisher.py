"""Publishers: declared sends of one type of body to one destination, which documents and type checkers know."""

from abc import ABC
from collections.abc import Iterable, Sequence
from typing import Generic, TypeVar, Unpack, cast

from jmsjca.arguments import check_text_or_none
from jmsjca.destinations import Destination, Queue, check_destination
from jmsjca.messages.message import Message
from jmsjca.outbound.sender import SendOptions, SendsMessages

__all__ = ["DeclaresPublishers", "Publisher"]

T = TypeVar("T")


class Publisher(Generic[T]):
    """Sends bodies of one type to one destination. Thread-safe. ``adapter.publisher(…)`` creates it.

    Args:
        sends: The adapter that sends.
        destination: The queue or topic.
        body_type: The type of the bodies.
        description: The text in the AsyncAPI document; None for none.

    Attributes:
        destination: The queue or topic.
        body_type: The type of the bodies.
        description: The text in the AsyncAPI document.
    """

    def __init__(
        self, sends: SendsMessages, destination: Destination, body_type: type[T], description: str | None
    ) -> None:
        self._sends = sends
        self.destination = destination
        self.body_type = body_type
        self.description = description

    def send(self, body: T, *, duplicate_id: str | None = None, **options: Unpack[SendOptions]) -> Message:
        """Send a message, and wait until the broker has it: see `Sender.send`."""
        return self._sends.send(self.destination, body, duplicate_id=duplicate_id, **options)

    def send_many(
        self, bodies: Iterable[T], *, duplicate_id: str | None = None, **options: Unpack[SendOptions]
    ) -> list[Message]:
        """Send messages as one unit: see `Sender.send_many`."""
        return self._sends.send_many(self.destination, bodies, duplicate_id=duplicate_id, **options)

    async def send_async(self, body: T, *, duplicate_id: str | None = None, **options: Unpack[SendOptions]) -> Message:
        """Send a message from a coroutine: see `Sender.send_async`."""
        return await self._sends.send_async(self.destination, body, duplicate_id=duplicate_id, **options)

    def request(self, body: T, *, timeout: float = 5.0, **options: Unpack[SendOptions]) -> Message:
        """Send a request, and return the reply to it: see `Sender.request`."""
        return self._sends.request(self.destination, body, timeout=timeout, **options)

    def __repr__(self) -> str:
        return f"<Publisher of {getattr(self.body_type, '__name__', self.body_type)} to {self.destination}>"


class DeclaresPublishers(SendsMessages, ABC):
    """The declaration of publishers, for the adapter."""

    @property
    def publishers(self) -> Sequence[Publisher[object]]:
        """The publishers of this adapter, in order of their declaration."""
        return tuple(self._publishers())

    def publisher(
        self, destination: str | Destination, body_type: type[T], description: str | None = None
    ) -> Publisher[T]:
        """Declare that the application sends bodies of a type to a destination, and return the object that sends them.

        The AsyncAPI document of the adapter has the destination and the schema of the bodies.

        Args:
            destination: The name of a queue, or a `Queue` or a `Topic`.
            body_type: `str`, `bytes`, a dataclass, a pydantic model or another type that a sender accepts.
            description: The text in the AsyncAPI document; None for none.

        Raises:
            InvalidDestinationError: The destination is no `Destination`, or its name is empty.
            ArgumentTypeError: The description is no text.
        """
        check_text_or_none("description", description)
        if isinstance(destination, str):
            destination = Queue(destination)
        check_destination(destination)
        publisher = Publisher(self, destination, body_type, description)
        self._publishers().append(cast("Publisher[object]", publisher))
        return publisher

    def _publishers(self) -> list[Publisher[object]]:
        return self.__dict__.setdefault("_declared_publishers", [])  # type: ignore[no-any-return]
