"""The counters of a queue: messages that came, and messages that consumers settled."""

import pytest

from jmsjca import Queue, TextMessage, Topic
from jmsjca.config import DestinationSettings
from jmsjca.destinations import Subscription
from jmsjca.providers.embedded.store import store
from jmsjca.spi import Activity
from jmsjca.testing.contract.harness import moment, prepare
from tests.unit.providers.embedded.processes import heard, process, put

QUEUE, OTHER = Queue("q"), Queue("other")


class Traffic:
    """What came and was settled since the last look."""

    def __init__(self, connection):
        self._connection = connection
        self._last = {}

    def since(self, source=QUEUE):
        before = self._last.get(source, Activity(0, 0, 0))
        now = self._last[source] = self._connection.admin().activity(source)
        return now.added - before.added, now.settled - before.settled


@pytest.fixture(params=["memory", "file"])
def connection(request, connected, connected_file):
    return connected() if request.param == "memory" else connected_file()


@pytest.fixture
def traffic(connection):
    return Traffic(connection)


def held(connection, count, source=QUEUE):
    unit = connection.unit()
    unit.take(connection.consumer(source).receive(count, 0))
    return unit


def test_sends_and_settlements_are_counted(connection, traffic):
    put(connection, "a", "b", "c")
    put(connection, "d", name="other")
    assert (traffic.since(), traffic.since(OTHER)) == ((3, 0), (1, 0))
    unit = held(connection, 2)
    assert traffic.since() == (0, 0)
    unit.commit()
    assert (traffic.since(), traffic.since(OTHER)) == ((0, 2), (0, 0))


def test_counters_of_many_queues_are_kept_in_bounded_memory(connected, monkeypatch):
    monkeypatch.setattr(store, "_ADDED_IN_MEMORY", 3)
    connection = connected()
    for number in range(5):
        put(connection, "a", "b", name=f"q{number}")
    assert [connection.admin().activity(Queue(f"q{number}")).added for number in range(5)] == [2] * 5
    assert len(connection._store.added) <= 3


def test_what_is_rolled_back_is_not_counted(connection, traffic):
    put(connection, "a")
    traffic.since()
    unit = held(connection, 1)
    unit.send(TextMessage("b"), QUEUE)
    unit.rollback()
    assert traffic.since() == (0, 0)
    unit = held(connection, 1)
    unit.rollback(delay=3600)
    assert traffic.since() == (0, 0)


def test_a_purged_message_is_not_settled(connection, traffic):
    put(connection, "a", "b")
    held(connection, 1)
    assert connection.admin().purge(QUEUE) == 1
    assert traffic.since() == (2, 0)


def test_an_expired_message_is_not_settled(connection, traffic):
    connection.admin().configure(QUEUE, DestinationSettings(expiry=OTHER))
    for to in (QUEUE, Queue("without")):
        unit = connection.unit()
        unit.send(prepare(TextMessage("a"), to, expiration=moment(-1)), to)
        unit.commit()
    assert connection.consumer(QUEUE).receive(1, 0) == []
    assert traffic.since() == traffic.since(Queue("without")) == (1, 0)
    assert traffic.since(OTHER) == (1, 0)


@pytest.mark.parametrize("dead", [OTHER, None])
def test_a_dead_letter_is_not_settled(connection, traffic, dead):
    connection.admin().configure(QUEUE, DestinationSettings(max_deliveries=1, dead_letter=dead))
    put(connection, "a")
    held(connection, 1).rollback()
    assert traffic.since() == (1, 0)
    assert traffic.since(OTHER) == (int(dead is not None), 0)


def test_a_dropped_duplicate_does_not_come(connection, traffic):
    for _ in range(2):
        unit = connection.unit()
        unit.send(prepare(TextMessage("a", properties={"_AMQ_DUPL_ID": "1"}), QUEUE), QUEUE)
        unit.commit()
    assert traffic.since() == (1, 0)


def test_each_subscription_counts_its_copies(connection, traffic):
    topic = Topic("t")
    first, second = (Subscription(topic, name, "c") for name in ("first", "second"))
    connection.consumer(first).close()
    connection.consumer(second, selector="shop = 'Bern'").close()
    unit = connection.unit()
    unit.send(prepare(TextMessage("a"), topic), topic)
    unit.commit()
    assert (traffic.since(first), traffic.since(second)) == ((1, 0), (0, 0))


def test_an_unknown_queue_has_no_traffic(connection):
    assert connection.admin().activity(QUEUE) == Activity(0, 0, 0)


def test_what_other_processes_do_is_counted(broker_file, connected_file):
    """Also that a killed one has released: its messages are not settled."""
    connection = connected_file()
    traffic = Traffic(connection)
    script = """
for text in "abc":
    send("q", text)
consumer = connection.consumer(Queue("q"))
unit = connection.unit()
unit.take(consumer.receive(1, 0))
unit.commit()
later = consumer.receive(1, 0)
tell("held", len(later))
sys.stdin.read()
"""
    with process(broker_file, script) as child:
        assert heard(child) == "held 1"
        assert traffic.since() == (3, 1)
        child.kill()
    assert traffic.since() == (0, 0)
