"""A real embedded broker behind the words of the model."""

from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from jmsjca.config import ConnectionURL, DestinationSettings, Limits
from jmsjca.destinations import Destination, Queue, Subscription
from jmsjca.errors import TransactionRolledBackError
from jmsjca.messages import TextMessage
from jmsjca.providers import find_provider
from jmsjca.providers.embedded.store import store as store_module
from jmsjca.spi import Admin, Connection, Consumer, Delivery, Unit
from tests.model.clock import Time
from tests.model.messages import browsed, receipt, written
from tests.model.operations import PLAIN, Letter, Receipt, Source, View, Way

__all__ = ["Real"]

SWEPT = Queue("swept")


class _Begun(NamedTuple):
    """An open unit."""

    connection: str
    unit: Unit


class Real:
    """Drives a broker through the SPI.

    Args:
        now: Milliseconds since the epoch.
        place: The broker's file, of which each connection has its own view, as if it were another process; or the
            name of a broker in memory.
    """

    def __init__(self, now: int, place: Path | str) -> None:
        self.time = Time(now)
        self.place = place
        self._connections: dict[str, Connection] = {}
        self._consumers: dict[str, Consumer] = {}
        self._units: dict[str, _Begun] = {}
        self._deliveries: list[Delivery] = []
        self._temporaries: dict[Any, Any] = {}
        self._crashed: list[Any] = []
        self._processes: dict[str, dict[Path | str, Any]] = {}

    def advance(self, milliseconds: int) -> None:
        self.time.milliseconds += milliseconds

    def connect(self, connection: str) -> None:
        self._enter_process(connection)
        url = ConnectionURL.parse(f"embedded://{self.place}")
        provider = find_provider("embedded")
        self._connections[connection] = provider.connect(
            url, None, client_id=None, limits=Limits(), clock=self.time, on_lost=partial(print, "lost")
        )

    def is_connected(self, connection: str) -> bool:
        return connection in self._connections

    def close(self, connection: str) -> None:
        self._enter_process(connection)
        self._forget(connection).close()

    def crash(self, connection: str) -> None:
        """Leave the file as SIGKILL leaves it: with the rows that the process held, and its lock free."""
        self._processes.pop(connection)
        connected: Any = self._forget(connection)
        store = connected._store
        store.abandon_after_fork()
        self._crashed.append(store)

    def outlaw(self, connection: str) -> list[str]:
        """Be taken for dead, as one's lock is gone, commit all the same, and die; tell which units are refused."""
        connected: Any = self._connections[connection]
        Path(f"{self.place}-owners", f"{connected._store.owner}.lock").unlink()
        other = next(c for name, c in self._connections.items() if name != connection)
        _admin(other).depth(SWEPT)
        refused = [name for name in self._units_of(connection) if not _commits(self._units[name].unit)]
        self.crash(connection)
        return refused

    def temporary(self, connection: str, what: Queue) -> None:
        """The broker gives it a name of its own."""
        self._temporaries[what] = self._connections[connection].temporary("queue")

    def consume(self, name: str, connection: str, source: Source, way: Way = PLAIN) -> None:
        self._consumers[name] = self._connections[connection].consumer(self._place(source), **way._asdict())

    def close_consumer(self, name: str) -> None:
        self._consumers[name].close()

    def receive(self, name: str, limit: int) -> list[Receipt]:
        deliveries = self._consumers[name].receive(limit, 0)
        first = len(self._deliveries)
        self._deliveries += deliveries
        return [receipt(n, delivery) for n, delivery in enumerate(deliveries, first)]

    def give_back(self, name: str, numbers: Iterable[int]) -> None:
        self._consumers[name].release(self._received(numbers))

    def begin(self, name: str, connection: str) -> None:
        self._units[name] = _Begun(connection, self._connections[connection].unit())

    def take(self, name: str, numbers: Iterable[int]) -> None:
        """Hand them over as well, as a listener does."""
        deliveries: Sequence[Any] = self._received(numbers)
        self._units[name].unit.take(deliveries)
        for consumer in self._consumers.values():  # each passes over those of others
            consumer.hand_over(deliveries)

    def note(self, name: str, letter: Letter, to: Destination) -> None:
        self._units[name].unit.send(written(letter, self.time.milliseconds), self._place(to))

    def commit(self, name: str) -> None:
        self._units.pop(name).unit.commit()

    def rollback(self, name: str, delay: int = 0, unused: Iterable[int] = ()) -> None:
        self._units.pop(name).unit.rollback(delay=delay / 1000, unused=self._received(unused))

    def purge(self, connection: str, source: Source) -> int:
        return _admin(self._connections[connection]).purge(self._place(source))

    def remove(self, connection: str, what: Source) -> None:
        self._connections[connection].remove(self._place(what))

    def configure(self, connection: str, address: Destination | None, settings: DestinationSettings) -> None:
        _admin(self._connections[connection]).configure(address, settings)

    def sweep(self) -> None:
        """Make the broker come across what expired: a claim does."""
        connection = next(iter(self._connections.values()))
        unit = connection.unit()
        unit.send(TextMessage(), SWEPT)
        unit.commit()
        consumer, unit = connection.consumer(SWEPT), connection.unit()
        unit.take(consumer.receive(1, 0))
        unit.commit()
        consumer.close()

    def view(self, connection: str, source: Source) -> View:
        """What one connection sees of a queue or a named subscription."""
        seen = self._connections[connection]
        place = self._place(source)
        waiting = None if isinstance(place, Subscription) else browsed(seen, place)
        depth = _admin(seen).depth(place)
        return View(waiting, depth.ready, depth.held, depth.scheduled)

    def end(self) -> None:
        """Leave nothing behind."""
        for connection in list(self._connections):
            self.close(connection)
        for store in self._crashed:
            store.database.close()
        if isinstance(self.place, str):
            store_module.drop_memory_store(self.place)

    def _place(self, place: Any) -> Any:
        return self._temporaries.get(place, place)

    def _units_of(self, connection: str) -> list[str]:
        return sorted(name for name, begun in self._units.items() if begun.connection == connection)

    def _forget(self, connection: str) -> Connection:
        for name in self._units_of(connection):
            del self._units[name]
        return self._connections.pop(connection)

    def _enter_process(self, connection: str) -> None:
        if isinstance(self.place, Path):
            store_module._open.by_place = self._processes.setdefault(connection, {})

    def _received(self, numbers: Iterable[int]) -> Sequence[Delivery]:
        return [self._deliveries[n] for n in numbers]


def _commits(unit: Unit) -> bool:
    try:
        unit.commit()
    except TransactionRolledBackError:
        return False
    return True


def _admin(connection: Connection) -> Admin:
    admin = connection.admin()
    assert admin is not None
    return admin
