"""The operations and results that the model and a real broker share."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from jmsjca.config import DestinationSettings
from jmsjca.destinations import Destination, Queue, Subscription
from jmsjca.spi import Order

__all__ = ["PLAIN", "SELECTORS", "Letter", "Receipt", "Source", "View", "Way", "Words", "key"]


Source = Destination | Subscription


class Way(NamedTuple):
    """How a consumer consumes."""

    order: Order = Order.PREFIX
    selector: str | None = None
    no_local: bool = False


PLAIN = Way()


@dataclass(frozen=True)
class Letter:
    """What is sent; times in milliseconds, 0 for none."""

    body: str
    priority: int = 4
    delay: int = 0
    time_to_live: int = 0
    colour: str | None = None
    group: str | None = None
    duplicate: str | None = None


class Receipt(NamedTuple):
    """One received message: the number by which it is spoken of, its body, how often it was delivered."""

    number: int
    body: str
    deliveries: int


class View(NamedTuple):
    """A queue or named subscription from outside: what waits, in order, with its count; how many messages there are.

    What waits in a subscription cannot be browsed. Expired messages are shown to nobody, but may be counted until the
    broker comes across them: at most so many are `stale`.
    """

    waiting: list[tuple[str, int]] | None
    ready: int
    held: int
    scheduled: int
    stale: int = 0

    def allows(self, found: "View", *, ordered: bool) -> bool:
        """Tell whether a real broker may look like that, if this is the model's view."""
        same = found.waiting == self.waiting if ordered else sorted(found.waiting or ()) == sorted(self.waiting or ())
        more = found.ready - self.ready, found.scheduled - self.scheduled
        return (same or found.waiting is None) and found.held == self.held and min(more) >= 0 >= sum(more) - self.stale


class Words(Protocol):
    """What can be said to a broker. Names stand for connections, consumers and units, numbers for received messages."""

    def connect(self, connection: str) -> None: ...
    def close(self, connection: str) -> None: ...
    def temporary(self, connection: str, what: Queue) -> None: ...
    def consume(self, name: str, connection: str, source: Source, way: Way = PLAIN) -> None: ...
    def close_consumer(self, name: str) -> None: ...
    def receive(self, name: str, limit: int) -> list[Receipt]: ...
    def give_back(self, name: str, numbers: Iterable[int]) -> None: ...
    def begin(self, name: str, connection: str) -> None: ...
    def take(self, name: str, numbers: Iterable[int]) -> None: ...
    def note(self, name: str, letter: Letter, to: Destination) -> None: ...
    def commit(self, name: str) -> None: ...
    def rollback(self, name: str, delay: int = 0, unused: Iterable[int] = ()) -> None: ...
    def purge(self, connection: str, source: Source) -> object: ...
    def remove(self, connection: str, what: Source) -> None: ...
    def configure(self, connection: str, address: Destination, settings: DestinationSettings) -> None: ...
    def advance(self, milliseconds: int) -> None: ...
    def sweep(self) -> None: ...


# The selectors that consumers use, each beside its meaning.
SELECTORS: dict[str | None, Callable[[Letter], bool]] = {
    None: lambda _: True,
    "colour = 'red'": lambda letter: letter.colour == "red",
    "colour IS NULL OR JMSPriority > 4": lambda letter: letter.colour is None or letter.priority > 4,
}


def key(source: Source) -> str:
    """The name of a queue, or of a subscription: that does not tell the topic."""
    if isinstance(source, Subscription):
        return f"{'durable' if source.durable else 'shared'} {source.client_id} {source.name}"
    return str(source)
