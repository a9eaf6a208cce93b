"""What an embedded broker should do, said as simply as possible: a list of messages per queue and subscription."""

from collections.abc import Iterable, Sequence

from jmsjca.config import DestinationSettings
from jmsjca.destinations import Destination, Queue, Subscription, Topic
from jmsjca.errors import IllegalStateError, InvalidDestinationError, TransactionRolledBackError
from jmsjca.spi import Order
from tests.model.operations import PLAIN, Letter, Receipt, Source, Way
from tests.model.state import Consumer, Message, Places, Unit

__all__ = ["Model"]


class Model:
    """A broker and all who use it.

    Names stand for connections, consumers and units, numbers for received messages. `tests.model.real.Real` has the
    same methods, and does the same with a real broker.

    Args:
        now: Milliseconds since the epoch.
    """

    def __init__(self, now: int) -> None:
        self.now = now
        self.places = Places()
        self.connections: set[str] = set()
        self.consumers: dict[str, Consumer] = {}
        self.units: dict[str, Unit] = {}
        self.receipts: list[Message] = []
        self._duplicates: set[tuple[Destination, str]] = set()

    def advance(self, milliseconds: int) -> None:
        self.now += milliseconds

    def connect(self, connection: str) -> None:
        self.connections.add(connection)

    def close(self, connection: str) -> None:
        for name in [name for name, c in self.consumers.items() if c.connection == connection]:
            self.close_consumer(name)
        for name in [name for name, u in self.units.items() if u.connection == connection]:
            self.rollback(name)
        self._end(connection)

    def crash(self, connection: str, *, recorded: bool = True) -> None:
        """End without a word: what it held comes again or failed too often, counted if it was in a unit.

        Without the record of that, all of it is counted.
        """
        found = [m for m in self.receipts if m.holder and m.holder.connection == connection]
        held = list(dict.fromkeys(found))
        unseen = [m for m in held if recorded and m.unit is None]
        self._release(unseen, uncount=1)
        self._release([m for m in held if m not in unseen])
        for name in [name for name, c in self.consumers.items() if c.connection == connection]:
            self._leave(name)
        self.units = {name: u for name, u in self.units.items() if u.connection != connection}
        self._end(connection)

    def outlaw(self, connection: str) -> list[str]:
        """Be taken for dead, commit all the same, and die; tell which units are refused: those that took something."""
        mine = {name: u for name, u in self.units.items() if u.connection == connection}
        self.crash(connection, recorded=False)
        refused = sorted(name for name, unit in mine.items() if unit.taken or not self._can_send(unit))
        for name in sorted(mine.keys() - refused):
            self.units[name] = mine[name]
            self.commit(name)
        return refused

    def temporary(self, connection: str, what: Queue) -> None:
        self.places.make_temporary(what, connection)

    def consume(self, name: str, connection: str, source: Source, way: Way = PLAIN) -> None:
        """A topic's messages that are not wanted do not even reach the subscription."""
        self.places.check_owned(source, connection)
        selector = way.selector
        if isinstance(source, Topic):
            source = Subscription(source, name, volatile=True)
        if isinstance(source, Subscription):
            box, selector = self.places.subscribe(source, selector, connection if way.no_local else None), None
        else:
            box = self.places.queue(source)
        self.consumers[name] = Consumer(connection, box, way.order, selector)
        box.consumers.append(self.consumers[name])

    def close_consumer(self, name: str) -> None:
        self._release(self.consumers[name].free(), uncount=1)
        self._leave(name)

    def chunk_sizes(self, name: str, limit: int) -> range:
        """How many messages may come. A chunk may be short, not empty, when the broker came across expired ones."""
        consumer = self.consumers[name]
        most = len(consumer.chunk(self.now, limit)[0])
        stale = any(m.is_stale(self.now) for m in consumer.box.waiting())
        return range(min(most, 1) if stale else most, most + 1)

    def receive(self, name: str, limit: int, came: int | None = None) -> list[Receipt]:
        consumer = self.consumers[name]
        chosen, failed = consumer.chunk(self.now, limit)
        chosen = chosen[:came]
        for message in chosen:
            message.hold(consumer, len(self.receipts))
            self.receipts.append(message)
        for message in failed:
            self.places.move(message, consumer.box.settings.dead_letter)
        return [Receipt(m.receipt, m.letter.body, m.count) for m in chosen]

    def give_back(self, name: str, numbers: Iterable[int]) -> None:
        self._release([self._held(n) for n in numbers], uncount=1)

    def begin(self, name: str, connection: str) -> None:
        self.units[name] = Unit(connection)

    def take(self, name: str, numbers: Iterable[int]) -> None:
        for message in [self._held(n) for n in numbers]:
            message.unit = self.units[name]
            message.unit.taken.append(message)

    def note(self, name: str, letter: Letter, to: Destination) -> None:
        if not self.places.exists(to):
            raise InvalidDestinationError
        self.units[name].notes.append((letter, to, self.now))

    def commit(self, name: str) -> None:
        """All or nothing: that a temporary destination is gone undoes it."""
        if not self._can_send(self.units[name]):
            self.rollback(name)
            raise TransactionRolledBackError
        unit = self.units.pop(name)
        for message in unit.taken:
            message.let_go()
            message.box.messages.remove(message)
        for letter, to, sent in unit.notes:
            if letter.duplicate is None or (to, letter.duplicate) not in self._duplicates:
                expires = sent + letter.time_to_live if letter.time_to_live else None
                self.places.put(letter, to, due=sent + letter.delay, expires=expires, sender=unit.connection)
            if letter.duplicate is not None:
                self._duplicates.add((to, letter.duplicate))

    def rollback(self, name: str, delay: int = 0, unused: Iterable[int] = ()) -> None:
        unit = self.units.pop(name)
        self._release(self._later(unit), uncount=1)
        spared = [self.receipts[n] for n in unused]
        for message in unit.taken:
            message.due = self.now + delay if delay else message.due
        self._release([m for m in unit.taken if m not in spared])
        self._release(spared, uncount=1)

    def purge(self, connection: str, source: Source) -> range:
        return self.places.purge(source, self.now)

    def remove(self, connection: str, what: Source) -> None:
        self.places.check_owned(what, connection)
        self.places.remove(what)
        self._duplicates = {known for known in self._duplicates if known[0] != what}

    def configure(self, connection: str, address: Destination, settings: DestinationSettings) -> None:
        self.places.configure(address, settings)

    def sweep(self) -> None:
        """Let what expired go where it must."""
        self.places.expire(self.now)

    def _later(self, unit: Unit) -> list[Message]:
        """What no unit took and came later than what this one took: it must not overtake what comes again."""
        later: list[Message] = []
        for consumer in dict.fromkeys(m.holder for m in unit.taken if m.holder):
            if consumer.order is not Order.ANY:
                first = min(consumer.held.index(m) for m in unit.taken if m.holder is consumer)
                later += [m for m in consumer.held[first:] if m.unit is None]
        return later

    def _release(self, messages: Sequence[Message], uncount: int = 0) -> None:
        """Give back; what failed too often is moved away."""
        for message in messages:
            message.let_go()
            message.count -= uncount
            if message.box.failed(message):
                self.places.move(message, message.box.settings.dead_letter)

    def _held(self, number: int) -> Message:
        message = self.receipts[number]
        if message.holder is None or message.unit is not None or message.receipt != number:
            raise IllegalStateError
        return message

    def _can_send(self, unit: Unit) -> bool:
        return all(self.places.exists(to) for _, to, _ in unit.notes)

    def _end(self, connection: str) -> None:
        self.places.drop_temporaries(connection)
        self.connections.remove(connection)

    def _leave(self, name: str) -> None:
        consumer = self.consumers.pop(name)
        consumer.leave()
        if consumer.box.ends():
            self.places.end(consumer.box)
