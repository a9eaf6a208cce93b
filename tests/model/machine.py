"""The state machine: random operations on the model and on a real broker, whose results must agree."""

import os
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, TypeVar
from uuid import uuid4

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from jmsjca import Queue, Topic
from jmsjca.config import DestinationSettings
from jmsjca.destinations import TemporaryQueue
from jmsjca.spi import Order
from tests.model.comparison import Pair
from tests.model.model import Model
from tests.model.operations import Letter, Source, Way
from tests.model.real import Real
from tests.model.state import Message
from tests.model.strategies import (
    DEAD,
    EXPIRED,
    QUEUES,
    SEEN,
    TEMPORARY,
    addresses,
    boxes,
    destinations,
    letters,
    numbers,
    settings,
    sources,
    subsets,
    ways,
)

__all__ = ["FileMachine", "Machine", "MemoryMachine", "Stage", "pick"]

T = TypeVar("T")

START = 1_800_000_000_000
CONNECTIONS = ["first", "second"]


class Stage(RuleBasedStateMachine):
    """Two connections; after each step one of them looks whether all is as the model says.

    Attributes:
        steps: How many were taken, in all examples.
        done: How often each word was said.
        ends: How connections can end.
    """

    steps: ClassVar[int] = 0
    done: ClassVar[Counter[str]] = Counter()
    ends: ClassVar[Sequence[str]] = ["close"]

    def begin_with(self, place: Path | str, *, groups: bool) -> None:
        """Begin; a broker that has seen a message of a group goes another way to all others, so some see none."""
        type(self).steps -= 1  # the first look is no step
        self._names = 0
        self.with_groups = groups
        self.temporaries: list[Queue] = []
        self.pair = Pair(Model(START), Real(START, place))
        for connection in CONNECTIONS:
            self.connect(connection)

    @property
    def model(self) -> Model:
        return self.pair.model

    @invariant()
    def same(self) -> None:
        type(self).steps += 1
        connection = pick(sorted(self.model.connections), self.steps)
        if self.model.places.must_expire(self.model.now):
            self.pair.do("sweep")
        for source in [*SEEN, *self.temporaries]:
            # In which order messages of several queues go to one place at one time is nobody's business.
            self.pair.compare(source, connection, ordered=source not in (DEAD, EXPIRED))

    def connect(self, connection: str) -> None:
        self.pair.do("connect", connection)
        for queue in QUEUES:
            self.pair.do("consume", self.new_name(), connection, queue)

    def fill_hands(self, connection: str) -> None:
        """Let a connection have a unit with messages, if there are any for it."""
        mine = [name for name, consumer in self.model.consumers.items() if consumer.connection == connection]
        self.pair.do("begin", unit := self.new_name(), connection)
        for name in mine[:2]:
            self.pair.do("take", unit, [receipt.number for receipt in self.pair.receive(name, 2)])

    def teardown(self) -> None:
        type(self).done += self.pair.done
        self.pair.real.end()

    def new_unit(self, n: int) -> str:
        unit = self.new_name()
        self.pair.do("begin", unit, self.some_connection(n))
        return unit

    def some_place(self, place: Source, n: int) -> Any:
        """The place itself, or one of the temporary ones, be it there still or not."""
        return pick(self.temporaries or QUEUES, n) if place == TEMPORARY else place

    def write_down(self, unit: str, letter: Letter, to: Queue | Topic) -> None:
        group = letter.group if self.with_groups else None
        self.pair.do("note", unit, replace(letter, body=self.new_name(), group=group), self.some_place(to, int(unit)))

    def some_connection(self, n: int) -> str:
        return pick(sorted(self.model.connections), n)

    def all_open(self) -> list[str]:
        return list(self.model.consumers)

    def fed(self) -> list[str]:
        """The consumers for which there is something."""
        return [name for name, consumer in self.model.consumers.items() if consumer.choose(self.model.now)]

    def hungry(self, n: int) -> str:
        """One of them, in most cases; the others get nothing."""
        return pick(self.all_open() if n % 4 == 3 else self.fed(), n)

    def busy(self) -> list[str]:
        return [name for name, consumer in self.model.consumers.items() if consumer.free()]

    def numbers_of(self, messages: Sequence[Message]) -> list[int]:
        return [m.receipt for m in messages]

    def chosen(self, messages: Sequence[Message], which: int) -> list[int]:
        """Those whose bits are set."""
        return self.numbers_of([m for n, m in enumerate(messages) if which >> n & 1])

    def new_name(self) -> str:
        self._names += 1
        return str(self._names)


def pick(things: Sequence[T], number: int) -> T:
    return things[number % len(things)]


MOST = 6  # consumers, and units, that are open at one time
SELDOM = 3  # times with one broker, for what would leave too little to do

# Where files live in memory, if there is such a place: what is on disk after a power cut is another check's business.
FAST = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # noqa: S108


class Machine(Stage):
    """Each rule is a step."""

    @rule(letter=letters, to=destinations, n=numbers)
    def send(self, letter: Letter, to: Queue | Topic, n: int) -> None:
        unit = self.new_unit(n)
        self.write_down(unit, letter, to)
        self.pair.do("commit", unit)

    @rule(letters=st.lists(letters, min_size=3, max_size=8), to=destinations, n=numbers)
    def send_batch(self, letters: list[Letter], to: Queue | Topic, n: int) -> None:
        unit = self.new_unit(n)
        for letter in letters:
            self.write_down(unit, letter, to)
        self.pair.do("commit", unit)

    @rule(n=numbers)
    @precondition(lambda self: len(self.model.units) < MOST)
    def begin(self, n: int) -> None:
        self.new_unit(n)

    @rule(letter=letters, to=destinations, n=numbers)
    @precondition(lambda self: self.model.units)
    def note(self, letter: Letter, to: Queue | Topic, n: int) -> None:
        self.write_down(pick(list(self.model.units), n), letter, to)

    @rule(source=sources, way=ways, n=numbers)
    @precondition(lambda self: len(self.model.consumers) < MOST)
    def consume(self, source: Source, way: Way, n: int) -> None:
        way = way._replace(no_local=way.no_local and isinstance(source, Topic))
        self.pair.do("consume", self.new_name(), self.some_connection(n), self.some_place(source, n), way)

    @rule(n=numbers)
    @precondition(lambda self: self.all_open())
    def close_consumer(self, n: int) -> None:
        self.pair.do("close_consumer", pick(self.all_open(), n))

    @rule(n=numbers, limit=st.integers(1, 4))
    @precondition(lambda self: self.fed())
    def receive(self, n: int, limit: int) -> None:
        self.pair.receive(self.hungry(n), limit)

    @rule(n=numbers, which=subsets)
    @precondition(lambda self: self.busy())
    def give_back(self, n: int, which: int) -> None:
        name = pick(self.busy(), n)
        self.pair.do("give_back", name, self.chosen(self.model.consumers[name].free(), which))

    @rule(unit=numbers, n=numbers, which=subsets)
    @precondition(lambda self: self.model.units and self.busy())
    def take(self, unit: int, n: int, which: int) -> None:
        """In the order of receipt, where that is how the consumer settles."""
        consumer = self.model.consumers[pick(self.busy(), n)]
        free = consumer.free()
        units = [name for name, u in self.model.units.items() if u.connection == consumer.connection]
        taken = self.chosen(free, which) if consumer.order is Order.ANY else self.numbers_of(free[: which % 4 + 1])
        if units:
            self.pair.do("take", pick(units, unit), taken)

    @rule(n=numbers)
    @precondition(lambda self: self.model.units)
    def commit(self, n: int) -> None:
        self.pair.do("commit", pick(list(self.model.units), n))

    @rule(n=numbers, delay=st.sampled_from([0, 0, 1000]), which=st.integers(0, 15))
    @precondition(lambda self: self.model.units)
    def rollback(self, n: int, delay: int, which: int) -> None:
        name = pick(list(self.model.units), n)
        self.pair.do("rollback", name, delay, self.chosen(self.model.units[name].taken, which))

    @rule(n=numbers)
    @precondition(lambda self: self.model.receipts and self.all_open())
    def use_twice(self, n: int) -> None:
        """What is settled, given back or in a unit is refused."""
        number = len(self.model.receipts) - 1 - n % len(self.model.receipts)
        message = self.model.receipts[number]
        if message.holder is None:
            self.pair.do("give_back", pick(self.all_open(), n), [number])

    @rule(n=numbers, limit=st.integers(1, 4), most=st.integers(1, 4), outcome=st.sampled_from(["commit", "rollback"]))
    @precondition(lambda self: self.fed())
    def work(self, n: int, limit: int, most: int, outcome: str) -> None:
        """Receive, and settle so many at once."""
        name = self.hungry(n)
        received = self.pair.receive(name, limit)
        self.pair.do("begin", unit := self.new_name(), self.model.consumers[name].connection)
        self.pair.do("take", unit, [receipt.number for receipt in received[:most]])
        self.pair.do(outcome, unit)

    @precondition(lambda self: self.pair.done["configure"] < SELDOM)
    @rule(n=numbers, address=addresses, settings=settings)
    def configure(self, n: int, address: Queue | Topic, settings: DestinationSettings) -> None:
        self.pair.do("sweep")  # what expired before is treated as it was before
        self.pair.do("configure", self.some_connection(n), address, settings)

    @rule(milliseconds=st.sampled_from([1, 499, 500, 1000]))
    @precondition(lambda self: self.model.places.is_timed(self.model.now))
    def advance(self, milliseconds: int) -> None:
        self.pair.do("advance", milliseconds)

    @precondition(lambda self: self.pair.done["purge"] + self.pair.done["remove"] < SELDOM)
    @rule(n=numbers, what=st.sampled_from(["purge", "remove"]), source=boxes)
    def empty(self, n: int, what: str, source: Source) -> None:
        self.pair.do(what, self.some_connection(n), self.some_place(source, n))

    @precondition(lambda self: len(self.temporaries) < SELDOM)
    @rule(n=numbers)
    def make_temporary(self, n: int) -> None:
        self.temporaries.append(TemporaryQueue(f"temporary {len(self.temporaries)}"))
        self.pair.do("temporary", self.some_connection(n), self.temporaries[-1])

    @precondition(lambda self: self.pair.done["connect"] < len(CONNECTIONS) + SELDOM)
    @rule(n=numbers)
    def end(self, n: int) -> None:
        """A connection ends, in one of the ways that there are, and another takes its place."""
        connection = self.some_connection(n)
        self.fill_hands(connection)
        self.pair.do(pick(self.ends, n), connection)
        self.connect(connection)

    @precondition(lambda self: self.pair.done["connect"] < len(CONNECTIONS) + SELDOM)
    @rule(n=numbers)
    def restart(self, n: int) -> None:
        """All connections end, and a new one finds what they left."""
        for connection in CONNECTIONS:
            self.fill_hands(connection)
        for connection in CONNECTIONS:
            self.pair.do(pick([end for end in self.ends if end != "outlaw"], n), connection)
        for connection in CONNECTIONS:
            self.connect(connection)


class MemoryMachine(Machine):
    """A broker in memory."""

    @initialize(groups=st.booleans())
    def start(self, groups: bool) -> None:
        self.begin_with(uuid4().hex, groups=groups)


class FileMachine(Machine):
    """A broker in a file, two processes, which are killed now and then."""

    ends: ClassVar[Sequence[str]] = ["crash", "outlaw", "close"]

    @initialize(groups=st.booleans())
    def start(self, groups: bool) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="jmsjca-model-", dir=FAST)
        self.begin_with(Path(self._folder.name) / "broker.db", groups=groups)

    def teardown(self) -> None:
        super().teardown()
        self._folder.cleanup()
