"""Units of Java's clients are branches of XA: prepared, committed, rolled back, and found by another process."""

import uuid

import pytest

from jmsjca import Queue, TextMessage
from jmsjca.config import ConnectionURL, Limits
from jmsjca.config.clock import SYSTEM_CLOCK
from jmsjca.errors import ConnectionLostError, TransactionRolledBackError
from jmsjca.providers.java.connection import JavaProvider
from jmsjca.spi import Order

PAIRS = ("artemis-java", "activemq-java")
SECONDS = 30


@pytest.fixture(scope="module", params=PAIRS)
def url(request, broker_url):
    return broker_url(request.param)


@pytest.fixture
def decider():
    return uuid.uuid4().bytes


@pytest.fixture
def connect(url, decider):
    """Return a function that connects with XA, with options for the URL."""
    made = []

    def new(**options):
        address = ConnectionURL.parse(url + "".join(f"&{name}={value}" for name, value in options.items()))
        told = {"client_id": None, "limits": Limits(), "clock": SYSTEM_CLOCK, "on_lost": lambda error: None}
        made.append(JavaProvider().connect_two_phase(address, None, decider=decider, **told))
        return made[-1]

    yield new
    for connection in made:
        connection.close()


@pytest.fixture
def queue():
    return Queue(f"xa.{uuid.uuid4().hex}")


@pytest.fixture
def target():
    return Queue(f"xa.{uuid.uuid4().hex}")


def send(connection, queue, *bodies):
    unit = connection.unit()
    for body in bodies:
        unit.send(TextMessage(body), queue)
    unit.commit()


def received(connection, consumer, target):
    """Return a unit that has taken a message and sends it on."""
    [delivery] = consumer.receive(1, SECONDS)
    unit = connection.unit()
    unit.take([delivery])
    unit.send(TextMessage(delivery.message.body), target)
    return unit


def bodies(connection, queue):
    return [delivery.message.body for chunk in connection.browse(queue) for delivery in chunk]


def ours(connection, decider):
    return [xid for xid in connection.prepared() if xid.qualifier.startswith(decider)]


@pytest.mark.parametrize("order", [Order.PREFIX, Order.ANY])
def test_prepared_unit_is_committed_or_rolled_back(connect, decider, queue, target, order):
    connection = connect()
    send(connection, queue, "a", "b")
    consumer = connection.consumer(queue, order=order)
    unit = received(connection, consumer, target)
    xid = unit.prepare()
    assert ours(connection, decider) == [xid]
    assert bodies(connection, target) == []
    unit.rollback()
    unit = received(connection, consumer, target)
    unit.prepare()
    unit.commit()
    assert ours(connection, decider) == []
    assert bodies(connection, target) == ["a"]
    received(connection, consumer, target).commit()
    assert bodies(connection, target) == ["a", "b"]


def test_units_end_in_any_order(connect, queue, target):
    connection = connect()
    send(connection, queue, "a", "b", "c")
    consumer = connection.consumer(queue, order=Order.ANY)
    units = [received(connection, consumer, target) for _ in "abc"]
    for unit in units:
        unit.prepare()
    units[2].commit()
    units[0].rollback()
    units[1].commit()
    received(connection, consumer, target).commit()
    assert bodies(connection, target) == ["c", "b", "a"]


def test_unit_that_only_sends(connect, target):
    connection = connect()
    first, second, empty = (connection.unit() for _ in range(3))
    first.send(TextMessage("a"), target)
    second.send(TextMessage("b"), target)
    assert first.prepare() != second.prepare()
    assert empty.prepare() is None
    for unit in (second, empty):
        unit.commit()
    first.rollback()
    assert bodies(connection, target) == ["b"]


@pytest.mark.parametrize("commits", [True, False])
def test_prepared_unit_of_a_lost_connection_is_ended_by_another(connect, decider, queue, target, commits, caplog):
    owner = connect()
    send(owner, queue, "a")
    unit = received(owner, owner.consumer(queue), target)
    xid = unit.prepare()
    owner.close(0)
    recoverer = connect()
    assert ours(recoverer, decider) == [xid]
    for _ in range(2):  # a second time has no effect
        recoverer.end_prepared(xid, commits=commits)
    assert ours(recoverer, decider) == []
    assert bodies(recoverer, target) == ["a"] * commits
    assert bodies(recoverer, queue) == ["a"] * (not commits)
    unit.commit()  # it was decided: no error, whatever the connection does
    assert "is committed later, by recovery" in caplog.text


def test_decision_that_was_carried_out_by_another(connect, queue, target):
    """The owner's commit and rollback of an unknown branch succeed: recovery was first."""
    owner, recoverer = connect(), connect()
    send(owner, queue, "a", "b")
    consumer = owner.consumer(queue)
    for commits in (False, True):
        unit = received(owner, consumer, target)
        recoverer.end_prepared(unit.prepare(), commits=commits)
        unit.commit() if commits else unit.rollback()
    assert bodies(owner, target) == ["a"]


def test_unit_of_a_lost_connection_is_not_prepared(connect, queue, target):
    connection = connect()
    send(connection, queue, "a")
    unit = received(connection, connection.consumer(queue), target)
    connection.close(0)
    with pytest.raises(ConnectionLostError):
        unit.prepare()
    [delivery] = connect().consumer(queue).receive(1, SECONDS)
    assert delivery.message.body == "a"


def test_xa_can_be_switched_off(connect, queue):
    connection = connect(xa="false")
    assert connection.qualifier is None
    send(connection, queue, "a")
    assert bodies(connection, queue) == ["a"]


def test_temporary_queue_and_check(connect):
    connection = connect()
    queue = connection.temporary("queue")
    connection.check(queue)
    consumer = connection.consumer(queue)
    send(connection, queue, "a")
    [delivery] = consumer.receive(1, SECONDS)
    assert delivery.message.body == "a"


def test_unit_of_two_receipts_is_refused(connect, queue, target):
    connection = connect()
    send(connection, queue, "a", "b")
    consumer = connection.consumer(queue, order=Order.ANY)
    unit = received(connection, consumer, target)
    unit.take(consumer.receive(1, SECONDS))
    with pytest.raises((TransactionRolledBackError, NotImplementedError)):
        unit.prepare()
    assert sorted(bodies(connection, queue)) == ["a", "b"]
