"""The state of the model: messages, queues, subscriptions, consumers and units."""

from dataclasses import dataclass, field
from itertools import count

from jmsjca.config import DestinationSettings
from jmsjca.destinations import Destination, Queue, Subscription
from jmsjca.errors import IllegalStateError, InvalidDestinationError
from jmsjca.spi import Order
from tests.model.operations import SELECTORS, Letter, Source, View, key

__all__ = ["Box", "Consumer", "Message", "Places", "Unit"]


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


class Places:
    """All boxes, by their names."""

    def __init__(self) -> None:
        self.boxes: dict[str, Box] = {}
        self._temporaries: dict[Destination, str] = {}
        self._settings: dict[Destination, DestinationSettings] = {}
        self._ages = count()

    def make_temporary(self, what: Destination, connection: str) -> None:
        self._temporaries[what] = connection

    def exists(self, to: Destination) -> bool:
        return not to.temporary or to in self._temporaries

    def check_owned(self, what: Source, connection: str) -> None:
        """A temporary destination is consumed and removed only by the connection that made it."""
        if isinstance(what, Destination) and what.temporary and self._temporaries.get(what) != connection:
            raise InvalidDestinationError

    def drop_temporaries(self, connection: str) -> None:
        for what in [what for what, owner in self._temporaries.items() if owner == connection]:
            del self._temporaries[what]
            self.boxes.pop(key(what), None)

    def queue(self, queue: Destination) -> Box:
        return self.boxes.setdefault(key(queue), Box(queue, settings=self._of(queue)))

    def subscribe(self, wanted: Subscription, selector: str | None, spared: str | None) -> Box:
        """Find a subscription; one that is changed is made anew, without messages."""
        made = Box(wanted.topic, wanted, selector, spared, self._of(wanted.topic))
        box = self.boxes.get(key(wanted), made)
        if box.refuses(made):
            raise IllegalStateError
        self.boxes[key(wanted)] = box if box.is_like(made) else made
        return self.boxes[key(wanted)]

    def put(
        self, letter: Letter, to: Destination, *, due: int = 0, expires: int | None = None, sender: str | None = None
    ) -> None:
        """Lay a letter into a queue, or a copy into each subscription that wants it."""
        boxes = [self.queue(to)] if isinstance(to, Queue) else [b for b in self.boxes.values() if b.address == to]
        for box in boxes:
            if box.wants(letter, sender):
                box.messages.append(Message(letter, box, next(self._ages), due, expires))

    def move(self, message: Message, to: Destination | None) -> None:
        """Take a message away, to a dead-letter or expiry destination if there is one."""
        message.box.messages.remove(message)
        if to is not None and message.box in self.boxes.values():
            self.put(message.letter, to)

    def end(self, box: Box) -> None:
        self.boxes = {name: other for name, other in self.boxes.items() if other is not box}

    def purge(self, source: Source, now: int) -> range:
        """Remove what waits, and tell how many messages that may be."""
        if key(source) not in self.boxes:
            return range(1)
        box = self.boxes[key(source)]
        before = box.view(now)
        box.messages = [m for m in box.messages if m.holder]
        return range(before.ready + before.scheduled, before.ready + before.scheduled + before.stale + 1)

    def remove(self, what: Source) -> None:
        box = self.boxes.get(key(what))
        if box is None and what not in self._temporaries:
            raise InvalidDestinationError
        if box and box.consumers:
            raise IllegalStateError
        self.boxes.pop(key(what), None)
        if isinstance(what, Destination):
            self._temporaries.pop(what, None)

    def configure(self, address: Destination, settings: DestinationSettings) -> None:
        self._settings[address] = settings
        for box in self.boxes.values():
            box.settings = self._of(box.address)

    def is_timed(self, now: int) -> bool:
        """Tell whether time makes a difference."""
        messages = [m for box in self.boxes.values() for m in box.messages]
        return any(m.due > now or (m.expires is not None and m.expires > now) for m in messages)

    def must_expire(self, now: int) -> bool:
        """Tell whether something expired that does not just vanish, or that is mixed with what failed too often."""
        boxes = [box for box in self.boxes.values() if any(m.is_stale(now) for m in box.waiting())]
        return any(box.settings.expiry or any(map(box.failed, box.waiting())) for box in boxes)

    def expire(self, now: int) -> None:
        expired = [m for box in self.boxes.values() for m in box.waiting() if m.is_stale(now)]
        for message in sorted(expired, key=lambda m: (m.expires, m.age)):
            self.move(message, message.box.settings.expiry)

    def _of(self, address: Destination) -> DestinationSettings:
        return self._settings.get(address, DestinationSettings())
