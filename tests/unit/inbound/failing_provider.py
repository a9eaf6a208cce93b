"""A provider that fails on request, with back-off that takes no time."""

import threading
from collections.abc import Callable, Iterator

from jmsjca import spi
from jmsjca.errors import ConnectionLostError, JMSError
from jmsjca.providers import find_provider
from tests.unit.clocks import HandClock


class Shaky:
    """The embedded provider, whose connections can be refused and lost.

    Each connection takes the next of the failures: an error refuses it, None lets it be.
    """

    def __init__(self, *failures: JMSError | None) -> None:
        self.failures: Iterator[JMSError | None] = iter(failures)
        self.connections: list[spi.Connection] = []
        self.lost: list[Callable[[JMSError], None]] = []
        self.subscribing: Callable[[], None] = lambda: None

    def connect(self, *args, on_lost, **kwargs):
        failure = next(self.failures, None)
        if failure is not None:
            raise failure
        connection = find_provider("embedded").connect(*args, on_lost=on_lost, **kwargs)
        make_consumer = connection.consumer

        def consumer(*args, **kwargs):
            self.subscribing()
            return make_consumer(*args, **kwargs)

        connection.consumer = consumer
        self.connections.append(connection)
        self.lost.append(on_lost)
        return connection

    def lose(self, number: int = -1) -> None:
        """Let a connection break, as an input/output thread would tell it."""
        self.lost[number](ConnectionLostError("pulled out"))


class Waits:
    """Waits that end at once, on a clock that they move; one of those listed lasts until the event is set."""

    def __init__(self, clock: HandClock) -> None:
        self.clock = clock
        self.seconds: list[float] = []
        self.lasting: int | None = None
        self.begun = threading.Event()

    def __call__(self, event: threading.Event, seconds: float) -> bool:
        self.seconds.append(seconds)
        if len(self.seconds) == self.lasting:
            self.begun.set()
            return event.wait(60)
        if not event.is_set():
            self.clock.time += seconds
        return event.is_set()
