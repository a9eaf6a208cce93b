"""What outlives one fail-over of a cluster, besides plain messages: each feature begins before it and ends after it."""

import threading
import time
from collections import Counter, defaultdict

import pytest
from brokers.clusters import TOPOLOGIES

from jmsjca import ConnectionFactory, JMSError, Queue, ResourceAdapter, Topic
from tests.torture.failovers import OPTIONS

IN_EVERY_RUN = "artemis-shared-store"
REPLACING = ["artemis-replication", "artemis-shared-store", "activemq-shared-store", "rabbitmq4-quorum"]
PATIENCE = 240
SHORT = 3.0  # seconds without a message
DELAY = 20.0
TIMEOUT = 120.0  # of a request
BODIES = [f"{number}" for number in range(20)]
pytestmark = pytest.mark.timeout(1200)


class Cluster:
    """A fail-over list, and a client of it."""

    def __init__(self, url):
        self.url = url
        self.adapter = ResourceAdapter(url, retry_timeout=PATIENCE)
        with self.connect() as connection:
            self.can = connection.capabilities

    def connect(self, client_id=None):
        return ConnectionFactory(self.url, client_id=client_id).create_connection()

    def listen(self, place, handler, **spec):
        """Start a listener on a queue; it goes on until the test ends."""
        adapter = ResourceAdapter(self.url)
        adapter.listener(place, **spec)(handler)
        adapter.start()
        return adapter

    def take(self, count, place):
        """Return the bodies of the messages in a queue: so many, and what else comes soon."""
        with self.connect() as connection, connection.create_session() as session:
            return received(session.create_consumer(Queue(place)), count)


def received(consumer, count):
    found = []
    while message := consumer.receive(PATIENCE if len(found) < count else SHORT):
        found.append(message.body)
    return found


def duplicates(cluster):
    """A message that is sent again with its duplicate id is there once."""
    if not cluster.can.duplicate_detection:
        return
    cluster.adapter.send("duplicates", "a", duplicate_id="1")
    yield
    cluster.adapter.send("duplicates", "a", duplicate_id="1")
    cluster.adapter.send("duplicates", "b", duplicate_id="2")
    assert cluster.take(2, "duplicates") == ["a", "b"]


def suspects(handling):
    """A listener whose consumers have prefetched messages moves none that its handler has not seen."""

    def feature(cluster):
        place, dead = f"suspects.{handling[0]}", f"dead.{handling[0]}"
        seen, began, go = Counter(), threading.Event(), threading.Event()

        def handle(message):
            seen[message.body] += 1
            began.set()
            go.wait(PATIENCE)

        cluster.adapter.send_many(place, BODIES)
        mode = {"concurrency_mode": "cc", "endpoint_pool_max_size": 3}
        adapter = cluster.listen(place, handle, redelivery_handling=handling.format(dead), **mode)
        assert began.wait(PATIENCE)
        yield
        go.set()
        cluster.adapter.send(place, "last")
        moved = []
        deadline = time.monotonic() + PATIENCE
        while {*seen, *moved} != {*BODIES, "last"} and time.monotonic() < deadline:
            moved += cluster.take(0, dead)
        adapter.stop()
        moved += cluster.take(0, dead)
        assert sorted({*seen, *moved}) == sorted([*BODIES, "last"])
        assert set(moved) <= set(seen)
        assert cluster.take(0, place) == []

    return feature


def delays(cluster):
    """A delayed message arrives once, and not before its time."""
    if not cluster.can.delivery_delay:
        return
    began = time.monotonic()
    cluster.adapter.send("delays", "late", delivery_delay=DELAY)
    yield
    cluster.adapter.send("delays", "soon")
    if time.monotonic() < began + DELAY / 2:
        assert cluster.take(1, "delays") == ["soon"]
    with cluster.connect() as connection, connection.create_session() as session:
        consumer, found = session.create_consumer(Queue("delays")), []
        while message := consumer.receive(PATIENCE if "late" not in found else SHORT):
            found.append(message.body)
            assert message.body != "late" or time.monotonic() >= began + DELAY
    assert found.count("late") == 1


def subscriptions(shared):
    """A durable subscription keeps what it has, and goes on."""

    def feature(cluster):
        if not cluster.can.durable or (shared and not cluster.can.shared):
            return
        topic, client_id = Topic(f"news.{shared}"), None if shared else "keeper"

        def subscribe(session):
            create = session.create_shared_durable_consumer if shared else session.create_durable_consumer
            return create(topic, f"keeps-{shared}")

        with cluster.connect(client_id) as connection, connection.create_session() as session:
            subscribe(session).close()
        cluster.adapter.send_many(topic, ["1", "2", "3"])
        yield
        cluster.adapter.send_many(topic, ["4", "5"])
        with cluster.connect(client_id) as connection, connection.create_session() as session:
            assert received(subscribe(session), 5) == ["1", "2", "3", "4", "5"]

    return feature


def requests(cluster):
    """An open request ends with its answer or with an error in its time."""
    if not cluster.can.temporary:
        return
    ended = []

    def ask():
        try:
            ended.append(cluster.adapter.request("requests", "?", timeout=TIMEOUT).body)
        except JMSError as error:
            ended.append(error)

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    with cluster.connect() as connection, connection.create_session() as session:
        request = session.create_consumer(Queue("requests")).receive(PATIENCE)
    yield
    try:
        cluster.adapter.send(request.reply_to, "!", correlation_id=request.correlation_id)
        answer = "sent"
    except JMSError as error:
        answer = repr(error)
    asking.join(TIMEOUT + PATIENCE)
    assert len(ended) == 1
    print(f"\nthe request: {ended[0]!r}; its answer: {answer}")
    assert ended[0] == "!" or isinstance(ended[0], JMSError)


def groups(cluster):
    """Messages of a group are handled one at a time, and in their order."""
    if not cluster.can.groups:
        return
    seen, busy, together = defaultdict(list), Counter(), []
    done, lock = threading.Event(), threading.Lock()

    def handle(message):
        group, _, number = message.body.partition(" ")
        with lock:
            busy[group] += 1
            together.extend([group] * (busy[group] > 1))
            seen[group].append(int(number))
        time.sleep(0.02)
        with lock:
            busy[group] -= 1
            if all(last in seen[each] for each in "abc"):
                done.set()

    def send(numbers):
        for number in numbers:
            for group in "abc":
                cluster.adapter.send("groups", f"{group} {number}", properties={"JMSXGroupID": group})

    last = 29
    send(range(20))
    adapter = cluster.listen("groups", handle, concurrency_mode="sync", endpoint_pool_max_size=3)
    yield
    send(range(20, last + 1))
    assert done.wait(PATIENCE)
    adapter.stop()
    assert {group: list(dict.fromkeys(numbers)) for group, numbers in seen.items()} == {
        group: list(range(last + 1)) for group in "abc"
    }
    assert together == []


SUSPECTS = [suspects("1:move(queue:{})"), suspects("3:move(queue:{})")]
SUBSCRIPTIONS = [subscriptions(shared=False), subscriptions(shared=True)]


@pytest.fixture(
    scope="module",
    params=[pytest.param(name, marks=[] if name == IN_EVERY_RUN else [pytest.mark.torture]) for name in REPLACING],
)
def after(request):
    """Return a function that ends a feature; all of them began before the leader was killed."""
    topology, begun = TOPOLOGIES[request.param](), {}
    try:
        cluster = Cluster(topology.start().url(options=OPTIONS))
        for feature in (duplicates, *SUSPECTS, *SUBSCRIPTIONS, groups, delays, requests):
            running = feature(cluster)
            if next(running, cluster) is None:
                begun[feature] = running
        topology.leader().kill()

        def end(feature):
            if feature not in begun:
                pytest.skip("the broker does not have it")
            next(begun[feature], None)

        yield end
        cluster.adapter.stop()
    finally:
        topology.close()


def test_an_open_request_ends_with_its_answer_or_an_error(after):
    after(requests)


def test_a_delayed_message_arrives_once_and_not_early(after):
    after(delays)


def test_a_message_that_is_sent_again_is_there_once(after):
    after(duplicates)


@pytest.mark.parametrize("number", [0, 1], ids=["one", "three"])
def test_prefetched_messages_are_not_moved_unseen(after, number):
    after(SUSPECTS[number])


@pytest.mark.parametrize("number", [0, 1], ids=["durable", "shared"])
def test_a_subscription_keeps_its_messages(after, number):
    after(SUBSCRIPTIONS[number])


def test_groups_stay_in_order_with_one_consumer_each(after):
    after(groups)
