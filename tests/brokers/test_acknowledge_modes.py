"""Which messages come again over every pair of broker and protocol, by acknowledge mode (JMS 3.1, section 6.2.10)."""

import uuid

import pytest
from brokers import PAIRS

from jmsjca import AcknowledgeMode, ConnectionFactory, Outcome, Queue
from tests.unit.outbound.queues import PATIENCE, put, take

AUTO, CLIENT, DUPS_OK, INDIVIDUAL = (AcknowledgeMode[name] for name in ("AUTO", "CLIENT", "DUPS_OK", "INDIVIDUAL"))
ACKNOWLEDGED = {AUTO: (), CLIENT: (1,), DUPS_OK: (), INDIVIDUAL: (3, 1)}  # of a to d, by their places
UNACKNOWLEDGED = {AUTO: "", CLIENT: "e", INDIVIDUAL: "ace"}  # of a to e


@pytest.fixture(params=PAIRS)
def connection(request, broker_url):
    with ConnectionFactory(broker_url(request.param)).create_connection() as connection:
        yield connection


@pytest.fixture
def queue(connection):
    """A queue with the messages a to f."""
    queue = Queue(f"acknowledge.{uuid.uuid4().hex}")
    put(connection, *"abcdef", to=queue)
    return queue


@pytest.fixture
def looks(connection):
    """Tells how messages come: body, whether that is again, and how often as far as the broker counts."""
    counted = connection.capabilities.delivery_count
    return lambda messages: [(m.body, m.redelivered, m.delivery_count if counted else None) for m in messages]


@pytest.fixture
def expected(connection):
    """Tells how messages should come that are delivered for this time."""
    counted = connection.capabilities.delivery_count
    return lambda bodies, time: [(body, time > 1, time if counted else None) for body in bodies]


def receive_some(session, queue):
    """Receive a to e; acknowledge as the mode asks when d has come. Gives the consumer."""
    consumer = session.create_consumer(queue)
    messages = [consumer.receive(PATIENCE) for _ in "abcd"]
    for place in ACKNOWLEDGED[session.acknowledge_mode]:
        assert messages[place].acknowledge().outcome is Outcome.COMMITTED
    assert take(consumer, 1) == ["e"]
    return consumer


def all_that_comes(connection, consumer, queue):
    """The messages up to one that is sent now, and is the last."""
    put(connection, "last", to=queue)
    found = []
    while (message := consumer.receive(PATIENCE)) is not None and message.body != "last":
        found.append(message)
    assert message is not None, f"nothing comes behind {[each.body for each in found]}"
    return found


def all_that_is_left(connection, queue):
    """The same, for a session that comes later."""
    with connection.create_session() as session:
        return all_that_comes(connection, session.create_consumer(queue), queue)


@pytest.mark.parametrize("mode", UNACKNOWLEDGED)
def test_recovery_brings_what_was_not_acknowledged(connection, queue, looks, expected, mode):
    """In order, before what was only taken ahead; the others are gone, and so are these once they are acknowledged."""
    with connection.create_session(acknowledge_mode=mode) as session:
        consumer = receive_some(session, queue)
        session.recover()
        again = all_that_comes(connection, consumer, queue)
        session.acknowledge()
    assert looks(again) == expected(UNACKNOWLEDGED[mode], 2) + expected("f", 1)
    assert all_that_is_left(connection, queue) == []


@pytest.mark.parametrize("mode", UNACKNOWLEDGED)
def test_closing_brings_what_was_not_acknowledged(connection, queue, looks, expected, mode):
    """In order, for whoever comes next; marked where the broker counts."""
    with connection.create_session(acknowledge_mode=mode) as session:
        receive_some(session, queue)
    left = all_that_is_left(connection, queue)
    assert [message.body for message in left] == [*UNACKNOWLEDGED[mode], "f"]
    if connection.capabilities.delivery_count:
        assert looks(left) == expected(UNACKNOWLEDGED[mode], 2) + expected("f", 1)


def test_lazy_session_recovers_the_latest_messages(connection, queue, looks, expected):
    """How many depends on how they came; at least the one that was handed over last."""
    with connection.create_session(acknowledge_mode=DUPS_OK) as session:
        consumer = receive_some(session, queue)
        session.recover()
        *again, last = all_that_comes(connection, consumer, queue)
    assert looks(again) == expected("abcde"[-len(again) :], 2)
    assert looks([last]) == expected("f", 1)
    assert all_that_is_left(connection, queue) == []


def test_lazy_session_acknowledges_at_its_end(connection, queue):
    with connection.create_session(acknowledge_mode=DUPS_OK) as session:
        receive_some(session, queue)
    assert [message.body for message in all_that_is_left(connection, queue)] == ["f"]


def test_many_single_messages_recovered_again_and_again(connection, queue, looks, expected):
    """More than are taken ahead at one time, of which every other one is acknowledged, the latest first."""
    put(connection, *"ghijklmnopqrstuvwxyz", to=queue)
    with connection.create_session(acknowledge_mode=INDIVIDUAL) as session:
        consumer = session.create_consumer(queue)
        messages = [consumer.receive(PATIENCE) for _ in "abcdefghijkl"]
        for message in messages[::-2]:
            message.acknowledge()
        for time in (2, 3):
            session.recover()
            assert looks(consumer.receive(PATIENCE) for _ in "acegik") == expected("acegik", time)
        assert looks(all_that_comes(connection, consumer, queue)) == expected("mnopqrstuvwxyz", 1)
        session.acknowledge()
    assert all_that_is_left(connection, queue) == []
