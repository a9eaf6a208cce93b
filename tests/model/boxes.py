"""The parts of the model: messages, the boxes that they lie in, the consumers and units that hold them."""

from dataclasses import dataclass, field

from jmsjca.config import DestinationSettings
from jmsjca.destinations import Destination, Subscription
from jmsjca.spi import Order
from tests.model.words import SELECTORS, Letter, View

__all__ = ["Box", "Consumer", "Message", "Unit"]


@dataclass(eq=False)
class Message:
    """One copy of a letter, in one box."""

    letter: Letter
    box: "Box"
    age: int
    due: int
    expires: int | None
    count: int = 0
    receipt: int = -1  # the number of the latest
    holder: "Consumer | None" = None
    unit: "Unit | None" = None

    def hold(self, consumer: "Consumer", receipt: int) -> None:
        self.count += 1
        self.holder, self.receipt = consumer, receipt
        consumer.held.append(self)
        if self.letter.group:
            self.box.groups[self.letter.group] = consumer

    def let_go(self) -> None:
        assert self.holder is not None
        self.holder.held.remove(self)
        self.holder = self.unit = None

    def is_stale(self, now: int) -> bool:
        return self.expires is not None and self.expires <= now

    def is_for(self, consumer: "Consumer") -> bool:
        group = self.box.groups.get(self.letter.group, consumer)
        return group is consumer and SELECTORS[consumer.selector](self.letter)

    def place(self) -> tuple[int, int]:
        """Urgent ones first, then in the order of their commit, however often they came back."""
        return (-self.letter.priority, self.age)


@dataclass(eq=False)
class Box:
    """A queue, or one subscription of a topic. What is held when it is removed may be settled, but never comes back."""

    address: Destination
    subscription: Subscription | None = None
    selector: str | None = None
    spared: str | None = None  # the connection whose messages it does not get
    settings: DestinationSettings = field(default_factory=DestinationSettings)
    messages: list[Message] = field(default_factory=list)
    consumers: list["Consumer"] = field(default_factory=list)
    groups: dict[str | None, "Consumer"] = field(default_factory=dict)

    def wants(self, letter: Letter, sender: str | None) -> bool:
        return SELECTORS[self.selector](letter) and (self.spared is None or self.spared != sender)

    def is_like(self, other: "Box") -> bool:
        mine = (self.subscription, self.selector, self.spared)
        return mine == (other.subscription, other.selector, other.spared)

    def refuses(self, wanted: "Box") -> bool:
        """One in use cannot be changed, and only a shared one takes a second consumer."""
        shared = wanted.subscription is not None and wanted.subscription.shared
        if self.subscription is not None and self.subscription.shared != shared:
            return True
        return bool(self.consumers) and not (shared and self.is_like(wanted))

    def ends(self) -> bool:
        """Only queues and durable subscriptions outlive their consumers."""
        return not (self.consumers or self.subscription is None or self.subscription.durable)

    def waiting(self) -> list[Message]:
        return [m for m in self.messages if m.holder is None]

    def ready(self, now: int) -> list[Message]:
        return sorted((m for m in self.waiting() if m.due <= now and not m.is_stale(now)), key=Message.place)

    def failed(self, message: Message) -> bool:
        return self.settings.max_deliveries is not None and message.count >= self.settings.max_deliveries

    def view(self, now: int) -> View:
        waiting = [(m.letter.body, m.count + 1) for m in self.ready(now)]  # as it would be received now
        stale = sum(m.is_stale(now) for m in self.waiting())
        held = len(self.messages) - len(self.waiting())
        return View(waiting, len(waiting), held, len(self.waiting()) - len(waiting) - stale, stale)


@dataclass(eq=False)
class Consumer:
    """Holds messages, in the order of receipt, until they are settled or given back."""

    connection: str
    box: Box
    order: Order
    selector: str | None = None
    held: list[Message] = field(default_factory=list)

    def free(self) -> list[Message]:
        """What no unit took."""
        return [m for m in self.held if m.unit is None]

    def choose(self, now: int) -> list[Message]:
        """What it may take, in order; of an exclusive queue only the consumer that was first may."""
        if self.box.settings.exclusive and self.box.consumers[0] is not self:
            return []
        return [m for m in self.box.ready(now) if m.is_for(self)]

    def chunk(self, now: int, limit: int) -> tuple[list[Message], list[Message]]:
        """The next messages, and those that failed too often: found only now, if less was allowed after they failed."""
        waiting, chosen, failed = self.choose(now), list[Message](), list[Message]()
        while waiting and not chosen:
            chosen = [m for m in waiting[:limit] if not self.box.failed(m)]
            failed += filter(self.box.failed, waiting[:limit])
            waiting = waiting[limit:]
        return chosen, failed

    def leave(self) -> None:
        self.box.consumers.remove(self)
        self.box.groups = {group: c for group, c in self.box.groups.items() if c is not self}


@dataclass(eq=False)
class Unit:
    """What is taken, and what is to be sent, with the moment of its sending."""

    connection: str
    taken: list[Message] = field(default_factory=list)
    notes: list[tuple[Letter, Destination, int]] = field(default_factory=list)
