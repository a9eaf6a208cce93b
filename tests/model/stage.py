"""What the rules of the state machine are written with: the model beside a broker, and names to choose from."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from hypothesis.stateful import RuleBasedStateMachine, invariant

from jmsjca import Queue, Topic
from tests.model.boxes import Message
from tests.model.chances import DEAD, EXPIRED, QUEUES, SEEN, TEMPORARY
from tests.model.model import Model
from tests.model.pair import Pair
from tests.model.real import Real
from tests.model.words import Letter, Source

__all__ = ["Stage", "pick"]

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
