"""Helpers for the tests of listeners: send messages, and wait for an endpoint."""

import queue
import threading
from collections.abc import Callable
from typing import Any

from jmsjca import Hooks, Message, Outcome, Queue, ResourceAdapter, TextMessage

PATIENCE = 60


class Recorder(Hooks):
    """Hooks that note what they hear."""

    def __init__(self) -> None:
        self.statuses: queue.Queue[str] = queue.Queue()
        self.outcomes: queue.Queue[tuple[Outcome, int]] = queue.Queue()

    def status_changed(self, endpoint: str, status: str) -> None:
        self.statuses.put(status)

    def settled(self, endpoint: str, outcome: Outcome, messages: int) -> None:
        self.outcomes.put((outcome, messages))

    def await_status(self, *expected: str) -> None:
        """Wait for these statuses, one after the other; fail at the first other one."""
        for status in expected:
            assert self.statuses.get(timeout=PATIENCE) == status

    def await_outcome(self, expected: Outcome) -> None:
        assert self.outcomes.get(timeout=PATIENCE) == (expected, 1)


class Inbox:
    """A handler that keeps what it got, as a tuple of body and delivery count, and may fail at first."""

    def __init__(self, *failures: BaseException) -> None:
        self.got: queue.Queue[tuple[Any, int]] = queue.Queue()
        self.failures = list(failures)

    def __call__(self, message: Message) -> None:
        self.got.put((message.body, message.delivery_count))
        if self.failures:
            raise self.failures.pop(0)

    def take(self, count: int) -> list[tuple[Any, int]]:
        return [self.got.get(timeout=PATIENCE) for _ in range(count)]


def send(adapter: ResourceAdapter, *bodies: str, to: str = "q") -> None:
    with adapter.connection_factory().create_connection() as connection, connection.create_session() as session:
        producer = session.create_producer(Queue(to))
        for body in bodies:
            producer.send(TextMessage(body))


def waiting(adapter: ResourceAdapter, name: str = "q") -> list[tuple[str, int]]:
    """The messages that wait in a queue: body and deliveries so far."""
    with adapter.connection_factory().create_connection() as connection, connection.create_session() as session:
        return [(message.body, message.delivery_count - 1) for message in session.create_browser(Queue(name))]


def in_thread(function: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=function, daemon=True)
    thread.start()
    return thread
