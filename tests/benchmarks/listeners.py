"""What the benchmark of listeners times of ours: the listener, and the bare loop over the provider below it."""

import threading
from queue import SimpleQueue
from typing import Any, Protocol
from uuid import uuid4

from jmsjca import ActivationSpec, Limits, Message, Queue, ResourceAdapter, TextMessage
from jmsjca.reconnection import ConnectionSettings, connect
from tests.benchmarks.tally import TEXT, Tally

__all__ = ["Bare", "Contender", "Filled", "Listener"]

_PER_FILLING = 1000


class Contender(Protocol):
    """Messages wait for it, and it hands each to a `Tally`.

    Attributes:
        tally: What it hands them to.
    """

    tally: Tally

    def fill(self, count: int) -> None:
        """Let so many messages wait."""

    def work(self) -> None:
        """Work off what waits. Returns when the tally has all of it."""

    def close(self) -> None: ...


class Filled:
    """Sends units of messages to a queue of its own, over a connection of its own."""

    def __init__(self, url: str) -> None:
        self.tally = Tally()
        self._queue = Queue(f"bench.{uuid4().hex}")
        self._link = connect(ConnectionSettings(url))
        self._atomic = self._link.capabilities.atomic

    def fill(self, count: int) -> None:
        for begin in range(0, count, _PER_FILLING):
            unit = self._link.unit(atomic=self._atomic)
            for _ in range(begin, min(begin + _PER_FILLING, count)):
                unit.send(TextMessage(TEXT), self._queue)
            unit.commit()

    def close(self) -> None:
        self._link.close()


class Bare(Filled):
    """Receives, takes and commits: what every listener must do at least. One thread.

    Args:
        url: The broker.
        ahead: How many messages it takes ahead.
        batch: How many are one unit.
    """

    def __init__(self, url: str, *, ahead: int, batch: int) -> None:
        super().__init__(url)
        self._ahead, self._batch = ahead, batch

    def work(self) -> None:
        consumer = self._link.consumer(self._queue)
        while deliveries := consumer.receive(self._ahead, 0):
            for begin in range(0, len(deliveries), self._batch):
                unit = self._link.unit(atomic=self._atomic)
                for delivery in deliveries[begin : begin + self._batch]:
                    unit.take([delivery])
                    self.tally(delivery.message.body)
                unit.commit()
        consumer.close()


class Listener(Filled):
    """A listener with a function as its handler.

    Args:
        url: The broker.
        limits: How many messages it takes ahead, and more.
        **spec: How it listens. If acknowledgements are held, a thread of its own acknowledges.
    """

    def __init__(self, url: str, limits: Limits | None = None, **spec: Any) -> None:
        super().__init__(url)
        adapter = ResourceAdapter(url, limits=limits)
        handle = self._hold if spec.get("hold_until_ack") else self._handle
        self._held: SimpleQueue[Message | None] = SimpleQueue()
        self._activation = adapter.activate(ActivationSpec(destination=self._queue, **spec), handle)

    def work(self) -> None:
        acknowledging = threading.Thread(target=self._acknowledge)
        acknowledging.start()
        self._activation.start()
        self.tally.wait()
        self._activation.stop()
        self._held.put(None)
        acknowledging.join()

    def _handle(self, message: Message) -> None:
        if not message.end_of_batch:
            self.tally(message.body)

    def _hold(self, message: Message) -> None:
        self._handle(message)
        self._held.put(message)

    def _acknowledge(self) -> None:
        while message := self._held.get():
            message.acknowledge()
