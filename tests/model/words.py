"""What the model and the real broker are told and answer, in the same words."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from jmsjca.destinations import Queue, Subscription, Topic
from jmsjca.spi import Order

__all__ = ["PLAIN", "SELECTORS", "Letter", "Receipt", "Source", "View", "Way", "key"]


Source = Queue | Topic | Subscription


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
    count: int


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

    def allows(self, found: "View") -> bool:
        """Tell whether a real broker may look like that, if this is the model's view."""
        more = found.ready - self.ready, found.scheduled - self.scheduled
        return (
            found.waiting in (None, self.waiting)
            and found.held == self.held
            and min(more) >= 0 >= sum(more) - self.stale
        )


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
