"""Everything that may bring a waiting consumer a message wakes it, not only sends: no consumer here polls."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import pytest

from jmsjca import Queue, TextMessage, Topic
from jmsjca.config import DestinationSettings
from jmsjca.destinations import Subscription
from jmsjca.providers.embedded import consumer as consumer_module
from jmsjca.reconnection import ConnectionSettings, connect
from jmsjca.spi import Order
from jmsjca.testing.contract.harness import prepare
from tests.unit.clocks import HandClock
from tests.unit.processes import PATIENCE
from tests.unit.test_embedded_processes import tell_when_waiting

QUEUE, OTHER = Queue("q"), Queue("other")
SHARED = Subscription(Topic("t"), "s", shared=True, volatile=True)


@pytest.fixture
def clock():
    return HandClock()


@pytest.fixture
def connection(jms_broker_url, clock, monkeypatch):
    monkeypatch.setattr(consumer_module, "_SAFETY_POLL", 3600)
    connection = connect(ConnectionSettings(jms_broker_url, clock=clock))
    yield connection
    connection.close()


@pytest.fixture
def woken(connection, monkeypatch):
    """Tells what a waiting consumer receives once something is done."""

    def woken(consumer, act):
        waiting = tell_when_waiting(connection, monkeypatch)
        with ThreadPoolExecutor() as threads:
            received = threads.submit(consumer.receive, 1, PATIENCE)
            assert waiting.wait(PATIENCE)
            act()
            return [d.message.body for d in received.result(PATIENCE)]

    return woken


def put(connection, *bodies, to=QUEUE, expiration=None, **properties):
    unit = connection.unit()
    for body in bodies:
        unit.send(prepare(TextMessage(body, properties=properties), to, expiration=expiration), to)
    unit.commit()


def pair(connection, source=QUEUE, **options):
    return [connection.consumer(source, order=Order.ANY, **options) for _ in range(2)]


def taken(connection, consumer):
    unit = connection.unit()
    unit.take(consumer.receive(1, 0))
    return unit


def test_closing_of_the_exclusive_consumer(connection, woken):
    connection.admin().configure(QUEUE, DestinationSettings(exclusive=True))
    first, second = pair(connection)
    put(connection, "a")
    assert woken(second, first.close) == ["a"]


def test_end_of_exclusivity(connection, woken):
    connection.admin().configure(QUEUE, DestinationSettings(exclusive=True))
    _first, second = pair(connection)
    put(connection, "a")
    assert woken(second, lambda: connection.admin().configure(QUEUE, DestinationSettings())) == ["a"]


def test_closing_of_the_consumer_of_a_group(connection, woken):
    first, second = pair(connection)
    put(connection, "a", "b", JMSXGroupID="g")
    taken(connection, first).commit()
    assert woken(second, first.close) == ["b"]


def test_closing_of_a_fellow_of_a_shared_subscription(connection, woken):
    first, second = pair(connection, SHARED)
    put(connection, "a", to=SHARED.topic)
    first.receive(1, 0)
    assert woken(second, first.close) == ["a"]


def test_closing_of_a_connection_over_its_open_unit(connected, connection, woken):
    dying = connected()
    put(connection, "a")
    unit = taken(dying, dying.consumer(QUEUE))
    assert woken(connection.consumer(QUEUE), dying.close) == ["a"]
    del unit


@pytest.mark.parametrize("selector", [None, "n = 1"])
def test_rollback(connection, woken, selector):
    first, second = pair(connection, selector=selector)
    put(connection, "a", n=1)
    assert woken(second, taken(connection, first).rollback) == ["a"]


def test_giving_back(connection, woken):
    first, second = pair(connection, selector="n = 1")
    put(connection, "a", n=1)
    held = first.receive(1, 0)
    assert woken(second, lambda: first.release(held)) == ["a"]


def test_failure_whose_message_goes_elsewhere(connection, woken):
    connection.admin().configure(QUEUE, DestinationSettings(max_deliveries=1, dead_letter=OTHER))
    put(connection, "a")
    unit = taken(connection, connection.consumer(QUEUE))
    assert woken(connection.consumer(OTHER), unit.rollback) == ["a"]


@pytest.mark.parametrize("selector", [None, "n = 1"])
def test_expiry_whose_message_goes_elsewhere(connection, clock, woken, selector):
    """It is found by whoever looks next, wherever that is."""
    connection.admin().configure(QUEUE, DestinationSettings(expiry=OTHER))
    put(connection, "a", expiration=datetime.fromtimestamp(clock.time + 10, UTC))
    somewhere = connection.consumer(Queue("third"), selector=selector)

    def expire():
        clock.time += 10
        somewhere.receive(1, 0)

    assert woken(connection.consumer(OTHER), expire) == ["a"]


def test_limit_that_earlier_failures_exceed(connection, woken):
    """What was there becomes a dead letter when somebody looks."""
    put(connection, "a")
    consumer = connection.consumer(QUEUE)
    for _ in range(2):
        taken(connection, consumer).rollback()
    connection.admin().configure(QUEUE, DestinationSettings(max_deliveries=1, dead_letter=OTHER))
    assert woken(connection.consumer(OTHER), lambda: consumer.receive(1, 0)) == ["a"]
