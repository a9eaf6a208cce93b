"""Expiry and delivery delay, wherever the message is."""

from datetime import UTC, datetime

import pytest

from jmsjca import Queue, TextMessage, Topic
from jmsjca.config import DestinationSettings
from jmsjca.destinations import Subscription
from jmsjca.reconnection import ConnectionSettings, connect
from jmsjca.spi import Depth, Order
from jmsjca.testing.contract.harness import prepare
from tests.unit.clocks import HandClock

QUEUE, EXPIRED, DEAD = Queue("q"), Queue("expired"), Queue("dead")


@pytest.fixture
def clock():
    return HandClock()


@pytest.fixture
def connection(jms_broker_url, clock):
    connection = connect(ConnectionSettings(jms_broker_url, clock=clock))
    yield connection
    connection.close()


@pytest.fixture
def put(connection, clock):
    """Sends a text that lives and waits for so many seconds."""

    def put(body, *, to=QUEUE, lives=None, waits=None, **properties):
        message = prepare(TextMessage(body, properties=properties), to)
        message.expiration, message.delivery_time = (
            None if seconds is None else datetime.fromtimestamp(clock.time + seconds, UTC) for seconds in (lives, waits)
        )
        unit = connection.unit()
        unit.send(message, to)
        unit.commit()

    return put


def taken(connection, source=QUEUE, count=1, **options):
    """A unit with so many deliveries of a new consumer."""
    unit = connection.unit()
    unit.take(connection.consumer(source, **options).receive(count, 0))
    return unit


def came(connection, source, **options):
    consumer = connection.consumer(source, order=Order.ANY, **options)
    bodies = [d.message.body for d in consumer.receive(100, 0)]
    consumer.close()
    return bodies


def test_message_expires_at_its_very_time(connection, clock, put):
    put("a", lives=10)
    clock.time += 9.999
    assert came(connection, QUEUE) == ["a"]
    clock.time += 0.001
    assert came(connection, QUEUE) == []


def test_held_message_does_not_expire(connection, clock, put):
    """Whoever has it may settle it, however late (JMS 3.1, 3.4.9: an undelivered message is destroyed)."""
    connection.admin().configure(QUEUE, DestinationSettings(expiry=EXPIRED))
    put("a", lives=10)
    unit = taken(connection)
    clock.time += 20
    put("b", lives=-1)
    assert came(connection, QUEUE) == []  # which takes away what has expired
    unit.commit()
    assert (came(connection, QUEUE), came(connection, EXPIRED)) == ([], ["b"])


@pytest.mark.parametrize("settings", [DestinationSettings(), DestinationSettings(expiry=EXPIRED)])
def test_message_that_comes_back_too_late_expires(connection, clock, put, settings):
    connection.admin().configure(QUEUE, settings)
    put("a", lives=10)
    unit = taken(connection)
    clock.time += 20
    unit.rollback()
    assert connection.admin().depth(QUEUE).total == 0
    assert came(connection, QUEUE) == []
    assert came(connection, EXPIRED) == (["a"] if settings.expiry else [])


def test_message_that_fails_for_the_last_time_when_it_has_expired_is_a_dead_letter(connection, clock, put):
    """The failure is what is known first; each message goes to one place."""
    connection.admin().configure(QUEUE, DestinationSettings(max_deliveries=1, dead_letter=DEAD, expiry=EXPIRED))
    put("a", lives=10)
    unit = taken(connection)
    clock.time += 20
    unit.rollback()
    assert (came(connection, QUEUE), came(connection, EXPIRED), came(connection, DEAD)) == ([], [], ["a"])


def test_rolled_back_message_expires_during_its_delay(connection, clock, put):
    put("a", lives=10)
    taken(connection).rollback(delay=60)
    clock.time += 60
    assert connection.admin().depth(QUEUE) == Depth(0, 0, 0)
    assert came(connection, QUEUE) == []


def test_depth_follows_the_time(connection, clock, put):
    put("for ever")
    put("expires", lives=10)
    put("is due", waits=20)
    put("expires undelivered", lives=10, waits=20)
    depths = []
    for _ in range(3):
        depths.append(connection.admin().depth(QUEUE))
        clock.time += 10
    assert depths == [Depth(2, 0, 2), Depth(1, 0, 1), Depth(2, 0, 0)]


def test_browser_follows_the_time(connection, clock, put):
    put("expires", lives=10)
    put("is due", waits=20)
    shown = []
    for _ in range(3):
        shown.append([d.message.body for chunk in connection.browse(QUEUE) for d in chunk])
        clock.time += 10
    assert shown == [["expires"], [], ["is due"]]


def test_expired_messages_of_a_subscription_that_nobody_consumes(connection, clock, put):
    """They go to the topic's expiry destination as soon as somebody looks there."""
    subscription = Subscription(Topic("t"), "s", "c")
    connection.admin().configure(subscription.topic, DestinationSettings(expiry=EXPIRED))
    connection.consumer(subscription).close()
    put("a", to=subscription.topic, lives=10)
    assert came(connection, EXPIRED) == []
    clock.time += 10
    assert came(connection, EXPIRED) == ["a"]
    assert connection.admin().depth(subscription).total == 0


@pytest.mark.parametrize("selector", [None, "n = 1"])
def test_waiter_at_the_expiry_destination_finds_what_expired_elsewhere(connection, clock, put, selector):
    """Whether it looks at all messages there or selects some."""
    connection.admin().configure(QUEUE, DestinationSettings(expiry=EXPIRED))
    consumer = connection.consumer(EXPIRED, selector=selector)
    put("a", lives=10, n=1)
    assert consumer.receive(1, 0) == []
    clock.time += 10
    assert [d.message.body for d in consumer.receive(1, 0)] == ["a"]


def test_message_that_becomes_due_takes_its_place(connection, clock, put):
    """Also for a consumer that had looked at all that is behind that place."""
    put("a", waits=10, n=1)
    put("b", n=1)
    put("c", n=1)
    consumer = connection.consumer(QUEUE, selector="n = 1")
    assert [d.message.body for d in consumer.receive(1, 0)] == ["b"]
    clock.time += 10
    assert [d.message.body for d in consumer.receive(9, 0)] == ["a", "c"]


def test_delayed_message_of_a_group_comes_to_its_consumer(connection, clock, put):
    put("a1", JMSXGroupID="a")
    put("a2", waits=10, JMSXGroupID="a")
    first, second = (connection.consumer(QUEUE, order=Order.ANY) for _ in range(2))
    assert [d.message.body for d in first.receive(9, 0)] == ["a1"]
    clock.time += 10
    assert second.receive(9, 0) == []
    assert [d.message.body for d in first.receive(9, 0)] == ["a2"]


def test_delayed_rollback_of_a_group_lets_its_followers_pass(connection, clock, put):
    """A delay holds one message, not its group; both come to the same consumer."""
    for body in ("a1", "a2"):
        put(body, JMSXGroupID="a")
    first, second = (connection.consumer(QUEUE, order=Order.ANY) for _ in range(2))
    unit = connection.unit()
    unit.take(first.receive(1, 0))
    unit.rollback(delay=10)
    assert [d.message.body for d in first.receive(9, 0)] == ["a2"]
    clock.time += 10
    assert second.receive(9, 0) == []
    assert [(d.message.body, d.count) for d in first.receive(9, 0)] == [("a1", 2)]


def test_delayed_message_of_a_shared_subscription(connection, clock, put):
    subscription = Subscription(Topic("t"), "s", shared=True, volatile=True)
    first, second = (connection.consumer(subscription) for _ in range(2))
    put("a", to=subscription.topic, waits=10)
    assert (first.receive(1, 0), second.receive(1, 0)) == ([], [])
    clock.time += 10
    assert [len(consumer.receive(9, 0)) for consumer in (first, second)] == [1, 0]
