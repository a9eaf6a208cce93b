"""The cost of a selective claim does not grow with the messages that the consumer skips."""

import sqlite3
from collections.abc import Callable

import pytest

from jmsjca import Limits, Queue, TextMessage
from jmsjca.config import SYSTEM_CLOCK
from jmsjca.errors import JMSError
from jmsjca.providers.embedded.connection import EmbeddedConnection
from jmsjca.providers.embedded.provider import CAPABILITIES
from jmsjca.providers.embedded.store.store import Store
from jmsjca.reconnection import ConnectionSettings, connect
from jmsjca.spi import Order
from jmsjca.testing.contract.harness import prepare

QUEUE = Queue("q")
MANY, SOME = 20_000, 2_000


def message(body, **properties):
    return prepare(TextMessage(body, properties=properties), QUEUE)


def put(connection, *messages):
    unit = connection.unit()
    for each in messages:
        unit.send(each, QUEUE)
    unit.commit()


def database_of(connection: EmbeddedConnection) -> sqlite3.Connection:
    with connection._store.read() as cursor:
        return cursor.connection


def steps(connection: EmbeddedConnection, work: Callable[[], object]) -> int:
    """How many steps SQLite takes for some work."""
    count = 0

    def step() -> None:
        nonlocal count
        count += 1

    database = database_of(connection)
    database.set_progress_handler(step, 1)
    work()
    database.set_progress_handler(None, 0)
    return count


def claimed(consumer, count=1):
    deliveries = consumer.receive(count, 0)
    assert len(deliveries) == count
    return deliveries


def cost_of_a_claim(connection, consumer, **properties):
    put(connection, message("a", **properties))
    return steps(connection, lambda: claimed(consumer))


def settle(connection, consumer, count):
    unit = connection.unit()
    unit.take(claimed(consumer, count))
    unit.commit()


@pytest.fixture
def two_processes(tmp_path):
    """Connections that share a file as those of two processes do: each has a store of its own."""
    stores = [Store(tmp_path / "broker.db", Limits(), SYSTEM_CLOCK) for _ in range(2)]
    connections = [EmbeddedConnection(store, Limits(), CAPABILITIES, None, str(id(store))) for store in stores]
    yield connections
    for connection in connections:
        connection.close()
    for store in stores:
        store.close()


@pytest.fixture
def selective(connected):
    """A connection, and a consumer that passes over most of what is sent."""
    connection = connected()
    return connection, connection.consumer(QUEUE, selector="n = 1", order=Order.ANY)


@pytest.fixture
def of_others(connected):
    """A connection, and a consumer beside one that has the group of most of what is sent."""
    connection = connected()
    first, second = (connection.consumer(QUEUE, order=Order.ANY) for _ in range(2))
    put(connection, message("a", JMSXGroupID="theirs"), message("b", JMSXGroupID="ours"))
    for consumer in (first, second):
        settle(connection, consumer, 1)
    return connection, second


def test_selecting_consumer_does_not_look_again_at_what_it_passed_over(selective):
    connection, consumer = selective
    empty = cost_of_a_claim(connection, consumer, n=1)
    put(connection, *(message("x", n=2) for _ in range(MANY)))
    first = steps(connection, lambda: consumer.receive(1, 0))
    full = [cost_of_a_claim(connection, consumer, n=1) for _ in range(3)]
    assert first > 10 * MANY  # it looked at each one
    assert max(full) < 2 * empty


def test_consumer_beside_a_group_does_not_look_again_at_what_it_passed_over(of_others):
    connection, consumer = of_others
    empty = cost_of_a_claim(connection, consumer, JMSXGroupID="ours")
    put(connection, *(message("x", JMSXGroupID="theirs") for _ in range(MANY)))
    first = steps(connection, lambda: consumer.receive(1, 0))
    full = [cost_of_a_claim(connection, consumer, JMSXGroupID="ours") for _ in range(3)]
    assert first > 10 * MANY
    assert max(full) < 2 * empty


def test_waiting_in_vain_costs_the_same_however_many_others_wait(selective):
    connection, consumer = selective
    idle = steps(connection, lambda: consumer.receive(1, 0))
    put(connection, *(message("x", n=2) for _ in range(SOME)))
    consumer.receive(1, 0)
    assert steps(connection, lambda: consumer.receive(1, 0)) < 10 * idle


def test_claims_of_many_that_match_do_not_look_at_all_of_them(selective):
    """As many as are asked for, and no more."""
    connection, consumer = selective
    put(connection, *(message("x", n=1) for _ in range(100)))
    few = steps(connection, lambda: claimed(consumer))
    put(connection, *(message("x", n=1) for _ in range(SOME)))
    many = [steps(connection, lambda: claimed(consumer)) for _ in range(3)]
    assert max(many) < 2 * few


def test_what_returned_makes_it_look_once_more_and_not_again(selective):
    connection, consumer = selective
    empty = cost_of_a_claim(connection, consumer, n=1)
    put(connection, *(message("x", n=2) for _ in range(SOME)), message("a", n=1))
    consumer.release(claimed(consumer))
    again = steps(connection, lambda: claimed(consumer))
    assert again > 10 * SOME
    assert cost_of_a_claim(connection, consumer, n=1) < 2 * empty


def test_what_others_settle_and_send_does_not_make_it_look_again(selective):
    """Only what comes back could have been passed over."""
    connection, consumer = selective
    empty = cost_of_a_claim(connection, consumer, n=1)
    put(connection, *(message("x", n=2) for _ in range(SOME)))
    consumer.receive(1, 0)
    other = connection.consumer(QUEUE, order=Order.ANY)
    settle(connection, other, 1000)
    put(connection, *(message("x", n=2) for _ in range(10)))
    consumer.receive(1, 0)
    assert cost_of_a_claim(connection, consumer, n=1) < 2 * empty


def test_what_is_left_for_its_size_comes_next(jms_broker_url):
    """A chunk ends when it has enough bytes; what was found behind that is found again."""
    connection = connect(ConnectionSettings(jms_broker_url, limits=Limits(prefetch_bytes=2)))
    put(connection, *(message(body, n=1) for body in "abcde"))
    consumer = connection.consumer(QUEUE, selector="n = 1", order=Order.ANY)
    assert ["".join(d.message.body for d in consumer.receive(9, 0)) for _ in range(4)] == ["ab", "cd", "e", ""]
    connection.close()


def test_what_could_not_be_claimed_is_found_again(selective):
    """An error in between hides nothing."""
    connection, consumer = selective
    put(connection, message("a", n=1))

    def fail(statement: str) -> None:
        if statement.startswith("BEGIN"):
            database_of(connection).interrupt()

    database_of(connection).set_trace_callback(fail)
    with pytest.raises(JMSError):
        consumer.receive(1, 0)
    database_of(connection).set_trace_callback(None)
    assert claimed(consumer)[0].message.body == "a"


@pytest.mark.parametrize(("selector", "transaction"), [("n = 1", 1), (None, 2)], ids=["selector", "groups"])
def test_consumer_looks_on_when_another_process_was_faster(two_processes, selector, transaction):
    """What is found is claimed a moment later; if it is gone by then, there may be more behind it."""
    ours, theirs = two_processes
    put(ours, *(message(body, n=1, JMSXGroupID=body) for body in "abc"))
    consumer, faster = (c.consumer(QUEUE, selector=selector, order=Order.ANY) for c in (ours, theirs))
    begun, stolen = [], []

    def steal(statement: str) -> None:
        if statement.startswith("BEGIN"):  # the first one without a selector is that which finds groups
            begun.append(statement)
            stolen.extend(faster.receive(2, 0) if len(begun) == transaction else [])

    database_of(ours).set_trace_callback(steal)
    found = consumer.receive(2, 0)
    database_of(ours).set_trace_callback(None)
    assert [[d.message.body for d in came] for came in (stolen, found)] == [["a", "b"], ["c"]]
