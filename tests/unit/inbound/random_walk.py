"""A random walk over the deliveries of one endpoint, beside the simplest model of all: a message is in one place.

The handler forwards each message in the unit that received it, and does with the unit whatever comes: returns, fails,
rolls back, acknowledges now, later or never. Meanwhile deliveries are stopped, begun again, lose their connections, and
commits fail, also in doubt.
At the end each message was forwarded once, or moved once; none is left, and nobody holds anything.

``python -m tests.unit.inbound.random_walk --walks 50``
"""

import argparse
import itertools
import logging
import random
import sys
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace

from jmsjca import Hooks, Message, Outcome, Queue, Session, spi
from jmsjca.errors import ConnectionLostError, JMSError, TransactionInDoubtError, TransactionRolledBackError
from jmsjca.messages import BytesMessage, TextMessage
from jmsjca.providers.embedded.store.store import drop_memory_store
from jmsjca.reconnection import ConnectionSettings, connect
from jmsjca.redelivery import RedeliveryPolicy
from tests.unit.inbound.deliveries import Performance, depth, endpoint_of, terms, until

__all__ = ["WALKS", "WAYS", "Way", "walk"]

WALKS = 50

_LADDER = RedeliveryPolicy.parse("1:1; 2:0; 3:3; 6:move(queue:dlq)")
_STEPS, _SENT = 25, 10
_numbers = itertools.count()


@dataclass(frozen=True)
class Way:
    """How messages are delivered."""

    mode: str
    batch: int = 0
    hold: bool = False
    alone: bool = False
    heap: bool = False  # delays are held here, not by the broker

    def __str__(self) -> str:
        flags = [name for name in ("hold", "alone", "heap") if getattr(self, name)]
        return "-".join([self.mode, *([f"batch{self.batch}"] if self.batch else []), *flags])


WAYS = [Way("serial")] + [
    Way(mode, batch, hold, alone=batch > 0 and hold, heap=heap)
    for mode in ("sync", "cc")
    for batch in (0, 4)
    for hold in (False, True)
    for heap in (False, True)
]


class Outcomes(Hooks):
    """Counts how units ended."""

    def __init__(self) -> None:
        self.counts: Counter[Outcome] = Counter()

    def settled(self, endpoint: str, outcome: Outcome, messages: int) -> None:
        self.counts[outcome] += 1


class Fickle:
    """A unit whose commit may fail: it did not happen, or nobody knows."""

    def __init__(self, unit: spi.Unit, error: JMSError | None, *, happens: bool) -> None:
        self._unit, self._error, self._happens = unit, error, happens

    def __getattr__(self, name: str) -> object:
        return getattr(self._unit, name)

    def commit(self, **options: object) -> None:
        if self._error is None:
            self._unit.commit()
            return
        (self._unit.commit if self._happens else self._unit.rollback)()
        raise self._error


class _Walk:
    def __init__(self, way: Way, seed: int) -> None:
        self.way = way
        self.chance = random.Random(seed)
        self.name = f"walk-{next(_numbers)}"
        self.home = self.connect()
        self.calm = False
        self.lock = threading.Lock()
        self.held: list[Message] = []
        self.progress = threading.Semaphore(0)
        self.sent: list[str] = []
        self.outcomes = Outcomes()
        settings = {
            "batch_size": way.batch,
            "hold_until_ack": way.hold,
            "split_failed_batches": way.alone,
            "redelivery": _LADDER,
        }
        self.endpoint = endpoint_of(self.handle, terms(way.mode, **settings, max_outstanding=8), self.outcomes)
        self.link = self.fickle()
        self.performance = Performance(self.endpoint, self.link)

    def fickle(self) -> spi.Connection:
        """A connection of which some commits fail."""
        link = self.connect()
        open_unit = link.unit

        def unit(**options: bool) -> Fickle:
            with self.lock:
                fate = 9 if self.calm else self.chance.randrange(30)
            error = {0: TransactionRolledBackError, 1: TransactionInDoubtError, 2: TransactionInDoubtError}.get(fate)
            return Fickle(open_unit(**options), error and error("it comes so"), happens=fate == 1)

        link.unit = unit
        return link

    def connect(self) -> spi.Connection:
        link = connect(ConnectionSettings(f"embedded://{self.name}"))
        if self.way.heap:
            link.capabilities = replace(link.capabilities, redelivery_delay=False)
        return link

    def handle(self, message: Message, session: Session) -> None:
        """Do with it what comes."""
        with self.lock:
            what = 9 if self.calm else self.chance.randrange(12)
        self.progress.release()
        if not message.end_of_batch:
            session.create_producer(Queue("out")).send(TextMessage(message.body))
        if what == 0:
            raise ValueError("it comes so")
        if what == 1:
            raise SystemExit
        if what == 2:
            message.set_rollback_only()
        if self.way.hold and what < 8:
            with self.lock:
                if not self.calm:
                    self.held.append(message)
                    return
        message.acknowledge()

    def step(self) -> None:
        """Let something happen."""
        for _ in range(self.chance.randrange(6)):
            self.progress.acquire(timeout=0.01)
        if self.performance.ended:
            self.begin()
        self.chance.choice([self.send, self.send, self.acknowledge, self.acknowledge, self.stop, self.lose])()

    def send(self) -> None:
        bodies = [f"{len(self.sent) + n}" for n in range(self.chance.randrange(1, _SENT))]
        self.sent += bodies
        unit = self.home.unit()
        for body in bodies:
            message = TextMessage(body)
            message.message_id = f"ID:{body}"
            unit.send(message, Queue("q"))
        unit.commit()

    def acknowledge(self) -> None:
        """In any order, from this thread; some roll back."""
        with self.lock:
            self.chance.shuffle(self.held)
            some = [self.held.pop() for _ in range(min(len(self.held), self.chance.randrange(5)))]
        for message in some:
            if self.chance.random() < 0.2:
                self.try_to(message.set_rollback_only)
            self.try_to(message.acknowledge)

    def stop(self) -> None:
        self.performance.dispatcher.stop()
        self.performance.ends()
        self.begin()

    def lose(self) -> None:
        """As an activation does that hears of it: end, whatever the handlers do, and close."""
        lost = ConnectionLostError("it comes so")
        self.performance.dispatcher.stop(lost)
        assert self.performance.ends() is not None
        self.begin()

    def begin(self) -> None:
        self.link.close()
        self.link = self.fickle()
        self.performance = Performance(self.endpoint, self.link)

    def try_to(self, act: Callable[[], object]) -> None:
        with suppress(JMSError):  # it is settled already
            act()

    def finish(self) -> list[str]:
        """Let everything come to an end, and tell what is wrong."""
        with self.lock:
            self.calm = True
            held, self.held = self.held, []
        for message in held:
            self.try_to(message.acknowledge)
        try:
            until(self.is_empty)
        except AssertionError:
            return [f"stuck: {depth(self.home)}, {self.performance.error!r}, {self.endpoint.__dict__}"]
        self.performance.dispatcher.stop()
        self.performance.ends()
        self.link.close()
        return [*self.misplaced(), *self.left_behind()]

    def is_empty(self) -> bool:
        if self.performance.ended:
            self.begin()
        return depth(self.home).total == 0

    def misplaced(self) -> list[str]:
        places = Counter(body for queue in ("out", "dlq") for body in self.bodies(queue))
        expected = Counter(self.sent)
        doubled, lost = places - expected, expected - places
        return [f"{what} {list(bodies)}" for what, bodies in (("doubled", doubled), ("lost", lost)) if bodies]

    def bodies(self, queue: str) -> list[str]:
        messages = [delivery.message for chunk in self.home.browse(Queue(queue)) for delivery in chunk]
        # A move whose commit was rolled back twice sends the message as bytes.
        return [each.body.decode() if isinstance(each, BytesMessage) else each.body for each in messages]

    def left_behind(self) -> list[str]:
        stats, endpoint = self.endpoint.statistics, self.endpoint
        until(lambda: not stats.n_active_endpoints and not stats.n_total_endpoints)
        until(lambda: not endpoint.abandoned_handlers)
        figures = {
            "running": len(endpoint._still_running),
            "known as held": len(endpoint.held._held),
        }
        return [f"{count} {name}" for name, count in figures.items() if count]


def walk(way: Way, seed: int) -> tuple[list[str], Counter[Outcome]]:
    """Walk once; give what is wrong, and how units ended."""
    performed = _Walk(way, seed)
    for _ in range(_STEPS):
        performed.step()
    problems = performed.finish()
    performed.home.close()
    drop_memory_store(performed.name)
    return problems, performed.outcomes.counts


def main() -> int:
    """Walk in every way, so many times."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--walks", type=int, default=WALKS)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 16))
    options = parser.parse_args()
    logging.disable()
    for way in WAYS:
        counts: Counter[Outcome] = Counter()
        for seed in range(options.seed, options.seed + options.walks):
            problems, outcomes = walk(way, seed)
            counts += outcomes
            if problems:
                print(f"{way} seed {seed}: {problems}")
                return 1
        print(f"{way}: {options.walks} walks, {', '.join(f'{n} {o.value}' for o, n in counts.items())}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
