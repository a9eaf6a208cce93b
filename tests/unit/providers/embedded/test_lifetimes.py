"""State in the file that outlives its process, and state that ends with it; names of subscriptions."""

import os
import sqlite3
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from jmsjca import Queue, TextMessage, Topic
from jmsjca.config import DestinationSettings, Limits
from jmsjca.config.clock import SYSTEM_CLOCK
from jmsjca.destinations import Subscription, TemporaryQueue, TemporaryTopic
from jmsjca.errors import ConnectionLostError, InvalidDestinationError
from jmsjca.providers.embedded.store.store import Store, close_store, open_store
from jmsjca.reconnection import ConnectionSettings, connect
from jmsjca.spi import Order
from jmsjca.testing.contract.harness import prepare
from tests.unit.inbound.deliveries import until
from tests.unit.providers.embedded.processes import PATIENCE, heard, process, put

QUEUE, DEAD, TOPIC = Queue("q"), Queue("dead"), Topic("t")
SHARED = Subscription(TOPIC, "s", shared=True)

# Uses all that lives as long as something else.
_USE = """
from jmsjca import Topic
from jmsjca.destinations import Subscription
mine = connect(ConnectionSettings(url, client_id="c"))
t = Topic("t")
named = [Subscription(t, "d", "c"), Subscription(t, "s", shared=True), Subscription(t, "s", shared=True, volatile=True)]
consumers = [mine.consumer(source) for source in (Queue("q"), t, *named)]
queue, topic = mine.temporary("queue"), mine.temporary("topic")
consumers += [mine.consumer(queue), mine.consumer(topic)]
unit = mine.unit()
for to in (Queue("q"), t, queue, topic):
    message = TextMessage("a", properties={"JMSXGroupID": "g", "_AMQ_DUPL_ID": "1"})
    unit.send(message, to)
unit.commit()
held = mine.unit()
for consumer in consumers:
    received = consumer.receive(1, 0)
    held.take(received)
    consumer.hand_over(received)
tell(queue.name, topic.name)
sys.stdin.readline()
"""


def counts(path, *tables):
    database = sqlite3.connect(path)
    found = {table: database.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in tables}  # noqa: S608
    database.close()
    return found


@pytest.mark.parametrize("end", ["kill", "exit", "close"])
def test_what_a_process_leaves(broker_file, connected_file, end):
    """Messages of queues and of durable subscriptions, the queue's duplicate ids; no trace of anything else."""
    with process(broker_file, _USE + ("mine.close()\nsys.exit()" if end == "close" else "")) as child:
        queue, topic = heard(child).split()
        if end == "kill":
            child.kill()
        child.stdin.close()
        child.wait(PATIENCE)
    connection = connected_file()
    for gone in (TemporaryQueue(queue), TemporaryTopic(topic)):
        with pytest.raises(InvalidDestinationError):
            connection.check(gone)
    traces = counts(broker_file, "consumer", "message_group", "client", "temporary", "owner")
    assert traces == {"consumer": 0, "message_group": 0, "client": 0, "temporary": 0, "owner": 1}
    assert counts(broker_file, "queue", "message", "duplicate") == {"queue": 3, "message": 3, "duplicate": 2}
    for source in (QUEUE, SHARED, Subscription(TOPIC, "d", "c")):
        assert [(d.message.body, d.count) for d in connection.consumer(source).receive(9, 0)] == [("a", 2)]


def test_settings_outlive_everybody(broker_file, connected_file):
    settings = {
        QUEUE: DestinationSettings(max_deliveries=2, dead_letter=DEAD),
        TOPIC: DestinationSettings(expiry=Topic("expired"), exclusive=True),
        None: DestinationSettings(max_deliveries=9),
    }
    connection = connected_file()
    for address, wanted in settings.items():
        connection.admin().configure(address, wanted)
    connection.close()
    again = connected_file().admin()
    assert {address: again.settings(address) for address in settings} == settings


def test_a_maximum_of_deliveries_of_an_earlier_release_that_is_too_large_is_the_largest(broker_file, connected_file):
    connection = connected_file()
    put(connection, "a")
    connection.admin().configure(QUEUE, DestinationSettings(max_deliveries=7, dead_letter=DEAD))
    connection.close()
    with sqlite3.connect(broker_file) as database:
        for table in ("setting", "queue"):
            database.execute(f"UPDATE {table} SET settings = replace(settings, '7', '{10**20}')")  # noqa: S608
    database.close()
    again = connected_file()
    assert again.admin().settings(QUEUE) == DestinationSettings(max_deliveries=2**31 - 1, dead_letter=DEAD)
    unit, consumer = again.unit(), again.consumer(QUEUE)
    unit.take(consumer.receive(1, 0))
    unit.rollback()
    assert [(d.message.body, d.count) for d in consumer.receive(1, 0)] == [("a", 2)]


def test_counts_towards_the_limit_outlive_everybody(broker_file, connected_file):
    """One failure in each of three processes' lives, which are as good as three in one."""
    first = connected_file()
    first.admin().configure(QUEUE, DestinationSettings(max_deliveries=3, dead_letter=DEAD))
    put(first, "a")
    first.close()
    for _ in range(3):
        connection = connected_file()
        unit = connection.unit()
        unit.take(connection.consumer(QUEUE).receive(1, 0))
        unit.rollback()
        connection.close()
    assert [d.message.body for d in connected_file().consumer(DEAD).receive(9, 0)] == ["a"]


def test_subscription_keeps_selector_and_no_local(connected_file, broker_file):
    subscription = Subscription(TOPIC, "s", "c")
    first = connect(ConnectionSettings(f"embedded://{broker_file}", client_id="c"))
    first.consumer(subscription, selector="n = 1", no_local=True)
    first.close()
    other = connected_file()
    for n in (1, 2):
        publish(other, str(n), n=n)
    again = connect(ConnectionSettings(f"embedded://{broker_file}", client_id="c"))
    publish(again, "mine", n=1)
    consumer = again.consumer(subscription, selector="n = 1", no_local=True)
    assert [d.message.body for d in consumer.receive(9, 0)] == ["1"]
    again.close()


def test_groups_are_spread_anew(connected_file):
    """Which consumer had them ended with it; the messages and their order are kept."""
    old = connected_file()
    unit = old.unit()
    for body in ("a1", "b1", "a2", "b2"):
        unit.send(prepare(TextMessage(body, properties={"JMSXGroupID": body[0]}), QUEUE), QUEUE)
    unit.commit()
    old.consumer(QUEUE).receive(1, 0)
    old.close()
    again = connected_file()
    first, second = (again.consumer(QUEUE, order=Order.ANY) for _ in range(2))
    assert [d.message.body for d in first.receive(1, 0)] == ["a1"]
    assert [d.message.body for d in second.receive(9, 0)] == ["b1", "b2"]


@pytest.mark.parametrize("what", ["client id", "temporary", "consumer", "subscription"])
def test_process_that_was_taken_for_dead_begins_nothing_new(broker_file, connected_file, what):
    """Nobody would clear away after it. Who connects again is a new process to the others."""
    url = f"embedded://{broker_file}"
    begin = {
        "client id": lambda _: connect(ConnectionSettings(url, client_id="c")).close(),
        "temporary": lambda connection: connection.temporary("queue"),
        "consumer": lambda connection: connection.consumer(QUEUE),
        "subscription": lambda connection: connection.consumer(TOPIC),
    }[what]
    connection = connected_file()
    take_for_dead(broker_file, connection)
    with pytest.raises(ConnectionLostError, match="taken for dead"):
        begin(connection)
    begin(connected_file())


@pytest.mark.parametrize("source", [TOPIC, QUEUE])
@pytest.mark.parametrize("timeout", [0, None])
def test_process_that_was_taken_for_dead_receives_an_error_and_not_nothing(
    broker_file, connected_file, source, timeout
):
    """Its subscription is gone, and what is published now is for others."""
    connection = connected_file()
    consumer = connection.consumer(source)
    take_for_dead(broker_file, connection)
    with pytest.raises(ConnectionLostError, match="taken for dead"):
        consumer.receive(1, timeout)


def take_for_dead(broker_file, connection):
    """Let another process find this one's lock file gone."""
    (broker_file.parent / f"{broker_file.name}-owners" / f"{connection._store.owner}.lock").unlink()
    with process(broker_file, "connection.consumer(Queue('q')).receive(1, 0)\ntell('looked')") as child:
        assert heard(child) == "looked"


def publish(connection, body, **properties):
    unit = connection.unit()
    unit.send(prepare(TextMessage(body, properties=properties), TOPIC), TOPIC)
    unit.commit()


TOPIC_SUBSCRIPTIONS = Topic("news")


@pytest.fixture
def connection_subscriptions(jms_broker_url):
    connection_subscriptions = connect(ConnectionSettings(jms_broker_url))
    yield connection_subscriptions
    connection_subscriptions.close()


def test_dots_do_not_make_two_names_one(connection_subscriptions):
    consumers = [
        connection_subscriptions.consumer(Subscription(TOPIC_SUBSCRIPTIONS, *names))
        for names in (("s", "x.y"), ("y.s", "x"))
    ]
    unit = connection_subscriptions.unit()
    unit.send(TextMessage("a"), TOPIC_SUBSCRIPTIONS)
    unit.commit()
    assert [[d.message.body for d in consumer.receive(10, 0)] for consumer in consumers] == [["a"], ["a"]]


def test_no_client_is_taken_for_one_without_a_name(connection_subscriptions, jms_broker_url):
    """A subscription that is spared the messages of the client "None" hears connections that have no client id."""
    named = connect(ConnectionSettings(jms_broker_url, client_id="None"))
    consumer = named.consumer(Subscription(TOPIC_SUBSCRIPTIONS, "s", "None"), no_local=True)
    for sender, body in ((named, "mine"), (connection_subscriptions, "another's")):
        unit = sender.unit()
        unit.send(TextMessage(body), TOPIC_SUBSCRIPTIONS)
        unit.commit()
    assert [d.message.body for d in consumer.receive(10, 0)] == ["another's"]
    named.close()


def test_a_store_that_two_threads_close_closes_its_files_once(broker_file, monkeypatch):
    """At the exit of a program, while a handler that outlived the stop closes its connection."""
    store, closed, close = open_store(broker_file, Limits(), SYSTEM_CLOCK, "a user"), [], os.close
    monkeypatch.setattr(os, "close", lambda fd: (closed.append(fd), close(fd)))
    with store.lock, ThreadPoolExecutor(2) as threads:
        ends = [threads.submit(store.close) for _ in range(2)]
        until(lambda: len(_waiting_to_close()) == 2)
        store.lock.release()
        try:
            for each in ends:
                each.result(60)
        finally:
            store.lock.acquire()
    close_store("a user")
    assert len(closed) == len(set(closed))


def _waiting_to_close():
    """Return the threads in `Store.close`."""
    return [frame for frame in sys._current_frames().values() if frame.f_code is Store.close.__code__]


HALF = "half a pair: \ud800"


@pytest.mark.parametrize(
    "act",
    [
        lambda connection: connection.consumer(Queue(HALF)),
        lambda connection: connection.consumer(Topic(HALF)),
        lambda connection: connection.consumer(Subscription(TOPIC, HALF, shared=True)),
        lambda connection: list(connection.browse(Queue(HALF))),
        lambda connection: connection.admin().create(Queue(HALF)),
        lambda connection: connection.remove(Subscription(TOPIC, HALF, shared=True)),
    ],
)
def test_a_name_that_is_no_unicode_text_is_refused(connected, act):
    connection = connected()
    with pytest.raises(InvalidDestinationError, match=r"\\ud800.* holds half of a surrogate pair"):
        act(connection)
    connection.consumer(QUEUE).close()
