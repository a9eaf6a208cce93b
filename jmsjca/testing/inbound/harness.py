"""The harness of the listener cases: destinations, handlers that fail now and then, and recording hooks."""

from __future__ import annotations

import queue
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from threading import Event, Lock
from typing import Any

import pytest

from jmsjca import Activation, Message, Outcome, Session
from jmsjca.adapter import ResourceAdapter
from jmsjca.config import ActivationSpec
from jmsjca.destinations import Destination
from jmsjca.hooks import Hooks
from jmsjca.testing.contract.harness import PATIENCE, Contract, Harness

__all__ = [
    "HandlerFailed",
    "HookRecorder",
    "ListenerContract",
    "ListenerHarness",
    "SeededChance",
    "forward",
    "jms_message_count",
]


class ListenerHarness:
    """Unique queues, listeners to them, and the remaining messages after these are stopped.

    Args:
        harness: The harness of the broker under test.
        many: Number of messages in cases that need many.

    Attributes:
        source: A queue to listen to.
        out: A queue to forward to.
        ends: A queue for reports on batches.
        never: A queue that must stay empty.
        heard: Recorder of the hooks of all listeners.
    """

    def __init__(self, harness: Harness, many: int) -> None:
        self.harness = harness
        self.many = many
        self.source, self.out, self.ends, self.never = (harness.queue() for _ in range(4))
        self.heard = HookRecorder()
        self.adapter = ResourceAdapter(harness.url, hooks=[self.heard])
        self.connection = self.adapter.connection_factory().create_connection()

    def listen(self, handler: Callable[..., object], **spec: Any) -> Activation:
        """Start a listener: to `source` unless the spec says another destination."""
        fields: dict[str, Any] = {"destination": self.source, **spec}
        activation = self.adapter.activate(ActivationSpec(**fields), handler)
        activation.start()
        return activation

    def url_with(self, option: str) -> str:
        """Return the URL of the broker with an option in its query."""
        return f"{self.harness.url}{'&' if '?' in self.harness.url else '?'}{option}"

    def send(self, *bodies: str, **headers: Any) -> None:
        """Send text messages to `source`, in one unit if the broker supports it."""
        self.harness.send(self.source, *bodies, **headers)

    def send_many(self) -> list[str]:
        """Send as many messages to `source` as the case needs, and return their bodies."""
        bodies = [f"{number:04}" for number in range(self.many)]
        for begin in range(0, self.many, 100):
            self.send(*bodies[begin : begin + 100])
        return bodies

    def arrive(self, place: Destination, count: int) -> list[Any]:
        """Consume this many messages as they arrive, and return their bodies."""
        connection, bodies = self.harness.connect(), list[Any]()
        consumer = connection.consumer(place)
        while len(bodies) < count:
            chunk = consumer.receive(count - len(bodies), PATIENCE)
            assert chunk, f"Only {len(bodies)} of {count} messages came."
            bodies.extend(delivery.message.body for delivery in chunk)
            self.harness.settle(chunk, connection)
        connection.close()
        return bodies

    def forward_many(self, *, ordered: bool = False, own_transactions: bool = False) -> None:
        """Send many messages to `source`: each comes to `out` once, and nothing is left when the listeners stop.

        Args:
            ordered: True if they come in the order of their sends.
            own_transactions: True if the sends of the handlers do not commit with the receipts, so that the last
                receipts have to be waited for.
        """
        bodies = self.send_many()
        came = self.arrive(self.out, self.many)
        if own_transactions:
            self.heard.await_outcome(Outcome.COMMITTED, self.many)
        self.adapter.stop()
        assert (came if ordered else sorted(came)) == bodies
        self.expect_remaining(self.source)
        self.expect_remaining(self.out)

    def expect_remaining(self, place: Destination, *bodies: Any) -> None:
        """Consume what is left of a place: these bodies, in whatever order, and nothing else.

        They are waited for: some brokers have not taken everything back yet when a connection has been closed.
        """
        left = self.arrive(place, len(bodies)) if bodies else []
        assert sorted([*left, *self.remaining(place)]) == sorted(bodies)

    def expect_count(self, place: Destination, count: int) -> None:
        """Check how many messages are left in a queue, including messages that are not due.

        Without an admin, or if the broker does not count messages that it is still taking back, they are consumed.
        """
        admin = self.harness.connection.admin() if self.harness.connection.capabilities.counts_held else None
        left = admin.depth(place).total if admin else len(self.arrive(place, count)) + len(self.remaining(place))
        assert left == count

    def remaining(self, place: Destination) -> Sequence[Any]:
        """Consume the rest of a place, and return the bodies."""
        return self.harness.remaining(place)

    def close(self) -> None:
        """Stop the listeners."""
        self.adapter.stop()
        self.connection.close()


def forward(message: Message, session: Session, to: Destination) -> None:
    """Send a text message with the same body; at the end of a batch one without."""
    session.create_producer(to).send(session.create_text_message(message.body or ""))


@pytest.fixture
def jms_message_count() -> int:
    """Return the number of messages in cases that need many; override it for slow brokers."""
    return 1000


class ListenerContract(Contract):
    """The base of the classes of inbound cases: gives each case its stage, beside the harness."""

    @pytest.fixture
    def stage(self, harness: Harness, jms_message_count: int) -> Iterator[ListenerHarness]:
        """Provide the listener harness of a case.

        Args:
            harness: The harness of the broker under test.
            jms_message_count: Number of messages in cases that need many.

        Yields:
            The listener harness; its listeners are stopped after the case.
        """
        stage = ListenerHarness(harness, jms_message_count)
        yield stage
        stage.close()


class HandlerFailed(Exception):  # noqa: N818  # what a handler raises on purpose
    """A handler fails, as the case wants it."""


class HookRecorder(Hooks):
    """Hooks that record their calls.

    Attributes:
        stopping: Set once an activation stops.
    """

    def __init__(self) -> None:
        self.stopping = Event()
        self._statuses: queue.Queue[str] = queue.Queue()
        self._outcomes: queue.Queue[tuple[Outcome, int]] = queue.Queue()

    def status_changed(self, endpoint: str, status: str) -> None:
        """Record a status."""
        del endpoint
        self._statuses.put(status)
        if status == "Disconnecting":
            self.stopping.set()

    def settled(self, endpoint: str, outcome: Outcome, messages: int) -> None:
        """Record the outcome of a unit."""
        del endpoint
        self._outcomes.put((outcome, messages))

    def await_status(self, expected: str) -> None:
        """Wait until an activation has this status."""
        while self._statuses.get(timeout=PATIENCE) != expected:
            pass

    @property
    def settled_messages(self) -> int:
        """The number of messages of settled units that no case has waited for."""
        return sum(count for _, count in list(self._outcomes.queue))

    def next_outcome(self) -> Outcome:
        """Wait until a unit is settled, and return its outcome."""
        return self._outcomes.get(timeout=PATIENCE)[0]

    def await_retry(self, mode: str) -> None:
        """Wait until a unit is rolled back and the redelivery of its message is committed.

        Args:
            mode: The concurrency mode. Except for ``serial``, the thread that commits may report it first.

        Raises:
            AssertionError: The next two units ended otherwise.
        """
        outcomes = [self.next_outcome() for _ in range(2)]
        expected = [Outcome.ROLLED_BACK, Outcome.COMMITTED]
        assert outcomes == expected or (mode != "serial" and outcomes == expected[::-1]), outcomes

    def await_outcome(self, expected: Outcome, messages: int = 1) -> None:
        """Wait until units with so many messages in all have ended so.

        Other outcomes are passed over, but they do not extend the time limit.

        Raises:
            queue.Empty: If no unit with the expected outcome is settled in time.
        """
        deadline = time.monotonic() + PATIENCE
        while messages > 0:
            outcome, count = self._outcomes.get(timeout=max(0.0, deadline - time.monotonic()))
            if outcome is expected:
                messages -= count
                deadline = time.monotonic() + PATIENCE


class SeededChance:
    """Says yes now and then, in every run to the same attempts, whatever the threads do.

    Args:
        share: How often, from 0 to 1.
        seed: Which attempts.
    """

    def __init__(self, share: float, seed: int = 1) -> None:
        self._share = share
        self._seed = seed
        self._lock = Lock()
        self._attempts: Counter[object] = Counter()

    def __call__(self, what: object) -> bool:
        """Return True if the next attempt of an item shall happen."""
        with self._lock:
            self._attempts[what] += 1
            attempt = self._attempts[what]
        return random.Random(f"{self._seed} {what} {attempt}").random() < self._share  # noqa: S311  # no secret
