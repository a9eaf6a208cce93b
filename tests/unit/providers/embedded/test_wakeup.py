"""Waiting consumers are woken by every event that may bring them a message."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import pytest

from jmsjca import Queue, TextMessage, Topic
from jmsjca.config import DestinationSettings
from jmsjca.destinations import Subscription
from jmsjca.providers.embedded import consumer as consumer_module
from jmsjca.providers.embedded.consumer import EmbeddedConsumer
from jmsjca.providers.embedded.delivery import EmbeddedDelivery
from jmsjca.providers.embedded.store import shared_file as wakeup_module
from jmsjca.providers.embedded.store.shared_file import WakeupCounter, WakeupSocket
from jmsjca.reconnection import ConnectionSettings, connect
from jmsjca.spi import Connection, Order
from jmsjca.testing.contract.harness import moment, prepare
from tests.unit.clocks import HandClock
from tests.unit.providers.embedded.processes import PATIENCE
from tests.unit.providers.embedded.test_processes import tell_when_waiting

WAIT_PATIENCE = 30


def send(connection: Connection, name: str, delay: float | None = None) -> None:
    message = TextMessage("x")
    message.delivery_time = None if delay is None else moment(delay)
    unit = connection.unit()
    unit.send(message, Queue(name))
    unit.commit()


def record_waits(consumer: EmbeddedConsumer, monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Let the first wait end the receive; give the list that its timeout goes to."""
    waits: list[float] = []

    def wait(seen: int, timeout: float) -> None:
        waits.append(timeout)
        consumer.wake()

    monkeypatch.setattr(consumer._store.wakeups, "wait", wait)
    return waits


def test_waiter_is_not_hurried_by_the_overdue_messages_of_another_queue(connected, monkeypatch):
    connection = connected()
    send(connection, "other", delay=-1)
    consumer = connection.consumer(Queue("mine"))
    waits = record_waits(consumer, monkeypatch)
    assert consumer.receive(1, None) == []
    assert waits == [consumer_module._SAFETY_POLL]


def test_waiter_looks_again_when_its_next_message_is_due(connected, monkeypatch):
    connection = connected()
    monkeypatch.setattr(consumer_module, "_SAFETY_POLL", 3600)
    send(connection, "mine", delay=600)
    consumer = connection.consumer(Queue("mine"))
    waits = record_waits(consumer, monkeypatch)
    assert consumer.receive(1, None) == []
    assert waits[0] <= 600


def test_waiter_never_waits_longer_than_it_was_told(connected, monkeypatch):
    consumer = connected().consumer(Queue("mine"))
    waits = record_waits(consumer, monkeypatch)
    assert consumer.receive(1, 0.1) == []
    assert waits[0] <= 0.1


def test_ring_between_looking_and_waiting_is_not_missed(connected, monkeypatch):
    """Only a wakeup can end this wait: the safety poll is an hour away."""
    monkeypatch.setattr(consumer_module, "_SAFETY_POLL", 3600)
    connection = connected()
    consumer = connection.consumer(Queue("mine"))
    look = consumer._claimer.claim

    def look_then_send(limit: int) -> object:
        found = look(limit)
        if not found:
            send(connection, "mine")
        return found

    monkeypatch.setattr(consumer._claimer, "claim", look_then_send)
    assert len(in_thread(lambda: consumer.receive(1, None))) == 1


def give_back(connection, consumer, delivery):
    consumer.release([delivery])


def roll_back(connection, consumer, delivery):
    unit = connection.unit()
    unit.take([delivery])
    unit.rollback()


def close_consumer(connection, consumer, delivery):
    consumer.close()


def close_connection(connection, consumer, delivery):
    connection.unit().take([delivery])
    connection.close()


@pytest.mark.parametrize("give_up", [give_back, roll_back, close_consumer, close_connection])
def test_whatever_gives_a_message_back_wakes_a_waiter(connected, monkeypatch, give_up):
    monkeypatch.setattr(consumer_module, "_SAFETY_POLL", 3600)
    holding, connection = connected(), connected()
    send(holding, "mine")
    holder, waiter = holding.consumer(Queue("mine")), connection.consumer(Queue("mine"))
    [delivery] = holder.receive(1, 0)
    look = waiter._claimer.claim

    def look_then_give_up(limit: int) -> object:
        """The message goes back after the waiter has looked and before it waits."""
        found = look(limit)
        if not found:
            give_up(holding, holder, delivery)
        return found

    monkeypatch.setattr(waiter._claimer, "claim", look_then_give_up)
    assert len(in_thread(lambda: waiter.receive(1, None))) == 1


def test_wake_between_checking_and_looking_is_not_missed(connected, monkeypatch):
    monkeypatch.setattr(consumer_module, "_SAFETY_POLL", 3600)
    consumer = connected().consumer(Queue("mine"))
    check = consumer._consume_wake
    checks: list[bool] = []

    def check_then_wake() -> bool:
        woken = check()
        checks.append(woken)
        if len(checks) == 1:
            consumer.wake()
        return woken

    monkeypatch.setattr(consumer, "_consume_wake", check_then_wake)
    assert in_thread(lambda: consumer.receive(1, None)) == []


def test_closing_during_a_claim_leaves_nothing_held(connected, monkeypatch):
    """What a receive claims while its connection is closed must come again, not stay held by nobody."""
    connection = connected()
    send(connection, "mine")
    consumer = connection.consumer(Queue("mine"))
    closer = threading.Thread(target=connection.close)

    class Slow(EmbeddedDelivery):
        def __init__(self, *args: object) -> None:
            super().__init__(*args)  # type: ignore[arg-type]
            closer.start()
            closer.join(timeout=0.2)  # either it has closed by now, or it waits for the claim to be noted

    monkeypatch.setattr(consumer_module, "EmbeddedDelivery", Slow)
    consumer.receive(1, 0)
    closer.join(WAIT_PATIENCE)
    depth = connected().admin().depth(Queue("mine"))
    assert (depth.ready, depth.held) == (1, 0)


def test_closing_between_two_looks_ends_the_receive(connected_file, monkeypatch):
    """The file is closed with its last connection; a receive that was just about to look is not told of SQLite."""
    connection = connected_file()
    consumer = connection.consumer(Queue("mine"))
    look = consumer._claimer.claim

    def close_then_look(limit: int) -> object:
        connection.close()
        return look(limit)

    monkeypatch.setattr(consumer._claimer, "claim", close_then_look)
    assert consumer.receive(1, None) == []


def test_wakeup_socket_can_be_stopped_while_it_starts(monkeypatch):
    """A receive begins to listen at the moment when another thread closes the broker."""
    wakeup_socket = WakeupSocket(WakeupCounter())
    errors: list[BaseException] = []

    def stop() -> None:
        try:
            wakeup_socket.stop()
        except RuntimeError as error:
            errors.append(error)

    closer = threading.Thread(target=stop)

    class LateThread(threading.Thread):
        def start(self) -> None:
            if self is not closer:
                closer.start()
                closer.join(timeout=0.2)  # either it has failed by now, or it waits until we have started
            super().start()

    monkeypatch.setattr(wakeup_module.threading, "Thread", LateThread)
    wakeup_socket.listen()
    closer.join(WAIT_PATIENCE)
    assert errors == []
    assert wakeup_socket._thread is not None
    assert not wakeup_socket._thread.is_alive()
    wakeup_socket.close()


def in_thread(function: Callable[[], object]) -> object:
    """Call on a thread that cannot keep the tests from ending; fail if it does not return."""
    results: list[object] = []
    thread = threading.Thread(target=lambda: results.append(function()), daemon=True)
    thread.start()
    thread.join(WAIT_PATIENCE)
    assert results, "The call did not return."
    return results[0]


QUEUE, OTHER = Queue("q"), Queue("other")
SHARED = Subscription(Topic("t"), "s", shared=True, volatile=True)


@pytest.fixture
def clock():
    return HandClock()


@pytest.fixture
def connection_with_clock(jms_broker_url, clock, monkeypatch):
    monkeypatch.setattr(consumer_module, "_SAFETY_POLL", 3600)
    connection_with_clock = connect(ConnectionSettings(jms_broker_url, clock=clock))
    yield connection_with_clock
    connection_with_clock.close()


@pytest.fixture
def woken(connection_with_clock, monkeypatch):
    """Tells what a waiting consumer receives once something is done."""

    def woken(consumer, act):
        waiting = tell_when_waiting(connection_with_clock, monkeypatch)
        with ThreadPoolExecutor() as threads:
            received = threads.submit(consumer.receive, 1, PATIENCE)
            assert waiting.wait(PATIENCE)
            act()
            return [d.message.body for d in received.result(PATIENCE)]

    return woken


def put(connection_with_clock, *bodies, to=QUEUE, expiration=None, **properties):
    unit = connection_with_clock.unit()
    for body in bodies:
        unit.send(prepare(TextMessage(body, properties=properties), to, expiration=expiration), to)
    unit.commit()


def pair(connection_with_clock, source=QUEUE, **options):
    return [connection_with_clock.consumer(source, order=Order.ANY, **options) for _ in range(2)]


def taken(connection_with_clock, consumer):
    unit = connection_with_clock.unit()
    unit.take(consumer.receive(1, 0))
    return unit


def test_closing_of_the_exclusive_consumer(connection_with_clock, woken):
    connection_with_clock.admin().configure(QUEUE, DestinationSettings(exclusive=True))
    first, second = pair(connection_with_clock)
    put(connection_with_clock, "a")
    assert woken(second, first.close) == ["a"]


def test_end_of_exclusivity(connection_with_clock, woken):
    connection_with_clock.admin().configure(QUEUE, DestinationSettings(exclusive=True))
    _first, second = pair(connection_with_clock)
    put(connection_with_clock, "a")
    assert woken(second, lambda: connection_with_clock.admin().configure(QUEUE, DestinationSettings())) == ["a"]


def test_closing_of_the_consumer_of_a_group(connection_with_clock, woken):
    first, second = pair(connection_with_clock)
    put(connection_with_clock, "a", "b", JMSXGroupID="g")
    taken(connection_with_clock, first).commit()
    assert woken(second, first.close) == ["b"]


def test_closing_of_a_fellow_of_a_shared_subscription(connection_with_clock, woken):
    first, second = pair(connection_with_clock, SHARED)
    put(connection_with_clock, "a", to=SHARED.topic)
    first.receive(1, 0)
    assert woken(second, first.close) == ["a"]


def test_closing_of_a_connection_over_its_open_unit(connected, connection_with_clock, woken):
    dying = connected()
    put(connection_with_clock, "a")
    unit = taken(dying, dying.consumer(QUEUE))
    assert woken(connection_with_clock.consumer(QUEUE), dying.close) == ["a"]
    del unit


@pytest.mark.parametrize("selector", [None, "n = 1"])
def test_rollback(connection_with_clock, woken, selector):
    first, second = pair(connection_with_clock, selector=selector)
    put(connection_with_clock, "a", n=1)
    assert woken(second, taken(connection_with_clock, first).rollback) == ["a"]


def test_giving_back(connection_with_clock, woken):
    first, second = pair(connection_with_clock, selector="n = 1")
    put(connection_with_clock, "a", n=1)
    held = first.receive(1, 0)
    assert woken(second, lambda: first.release(held)) == ["a"]


def test_failure_whose_message_goes_elsewhere(connection_with_clock, woken):
    connection_with_clock.admin().configure(QUEUE, DestinationSettings(max_deliveries=1, dead_letter=OTHER))
    put(connection_with_clock, "a")
    unit = taken(connection_with_clock, connection_with_clock.consumer(QUEUE))
    assert woken(connection_with_clock.consumer(OTHER), unit.rollback) == ["a"]


@pytest.mark.parametrize("selector", [None, "n = 1"])
def test_expiry_whose_message_goes_elsewhere(connection_with_clock, clock, woken, selector):
    """It is found by whoever looks next, wherever that is."""
    connection_with_clock.admin().configure(QUEUE, DestinationSettings(expiry=OTHER))
    put(connection_with_clock, "a", expiration=datetime.fromtimestamp(clock.time + 10, UTC))
    somewhere = connection_with_clock.consumer(Queue("third"), selector=selector)

    def expire():
        clock.time += 10
        somewhere.receive(1, 0)

    assert woken(connection_with_clock.consumer(OTHER), expire) == ["a"]


def test_limit_that_earlier_failures_exceed(connection_with_clock, woken):
    """What was there becomes a dead letter when somebody looks."""
    put(connection_with_clock, "a")
    consumer = connection_with_clock.consumer(QUEUE)
    for _ in range(2):
        taken(connection_with_clock, consumer).rollback()
    connection_with_clock.admin().configure(QUEUE, DestinationSettings(max_deliveries=1, dead_letter=OTHER))
    assert woken(connection_with_clock.consumer(OTHER), lambda: consumer.receive(1, 0)) == ["a"]
