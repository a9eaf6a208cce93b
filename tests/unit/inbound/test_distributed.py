"""Distributed durable subscriptions: one node forwards to a queue, all nodes consume, another node takes over."""

import logging
import queue
import threading
from datetime import UTC, datetime, timedelta

import pytest

from jmsjca import (
    ActivationSpec,
    BytesMessage,
    DeliveryMode,
    Hooks,
    MapMessage,
    Message,
    ObjectMessage,
    Outcome,
    Queue,
    ResourceAdapter,
    StreamMessage,
    TextMessage,
    Topic,
)
from jmsjca.reconnection import ConnectionSettings, connect
from tests.unit.inbound.distributed_progress import Watch
from tests.unit.inbound.failover_processes import END, kill_one_of_two
from tests.unit.inbound.listeners import PATIENCE, Inbox, waiting

TOPIC = Topic("t")
LOAD = "LOADBALQ_t_s"


class FailingSends(Hooks):
    """Lets some of the sends of handlers fail, which are counted from 1 on."""

    def __init__(self, *failing):
        self.failing = failing
        self.count = 0

    def around_send(self, message, destination, call_next):
        self.count += 1
        if self.count in self.failing:
            raise OSError("no room")
        call_next()


class BlockedSend(Hooks):
    """Lets one send of handlers wait, which are counted from 1 on."""

    def __init__(self, number):
        self.left = number
        self.reached, self.go_on = threading.Event(), threading.Event()

    def around_send(self, message, destination, call_next):
        self.left -= 1
        if self.left == 0:
            self.reached.set()
            assert self.go_on.wait(PATIENCE)
        call_next()


class Told(logging.Handler):
    """Knows when something is told in the log."""

    def __init__(self, words):
        super().__init__()
        self.words, self.event = words, threading.Event()

    def emit(self, record):
        if self.words in record.getMessage():
            self.event.set()


@pytest.fixture
def refused():
    """Is set when a node has been told that another one consumes."""
    handler = Told("another node")
    logging.getLogger("jmsjca").addHandler(handler)
    yield handler.event
    logging.getLogger("jmsjca").removeHandler(handler)


def spec(handled="jmsjca://?distribution=1&subscribername=s", **fields):
    return ActivationSpec(destination=TOPIC, subscription_durability="Durable", subscription_name=handled, **fields)


def publish(url, *messages):
    """As a provider gets them: with the headers that they have."""
    connection = connect(ConnectionSettings(url))
    unit = connection.unit()
    for number, message in enumerate(messages):
        message.message_id = f"ID:{number}"
        unit.send(message, TOPIC)
    unit.commit()
    connection.close()


@pytest.fixture
def node(jms_broker_url):
    """Makes nodes of a cluster: a started activation, and the watch over it."""
    adapters = []

    def make(made, handler, *hooks):
        watch = Watch()
        adapter = ResourceAdapter(jms_broker_url, hooks=[watch, *hooks])
        adapters.append(adapter)
        activation = adapter.activate(made, handler)
        assert adapter.activations == (activation,)
        adapter.start()
        watch.until(activation, "Up")
        return activation, watch

    yield make
    for adapter in adapters:
        adapter.stop()


@pytest.fixture
def subscribed(node):
    """Makes a node, and waits for its subscription."""

    def make(made, handler, *hooks):
        activation, watch = node(made, handler, *hooks)
        watch.until(activation.topic_side, "Up")
        return activation, watch

    return make


@pytest.mark.parametrize(
    ("name", "consumed"),
    [
        ("jmsjca://?distribution=1&subscribername=s", LOAD),
        ("jmsjca://distributed=1&subscribername=s", LOAD),
        ("jmsjca://?distribution=1&subscribername=s&queue=mine", "mine"),
    ],
)
def test_messages_of_the_topic_come_by_way_of_the_queue(subscribed, jms_broker_url, name, consumed):
    destinations = queue.Queue()
    activation, _ = subscribed(spec(name), lambda message: destinations.put(message.destination))
    publish(jms_broker_url, *(TextMessage() for _ in range(25)))
    assert {destinations.get(timeout=PATIENCE) for _ in range(25)} == {Queue(consumed)}
    assert activation.stats.n_messages == 25  # the ends of the topic's batches are no messages


@pytest.mark.parametrize(
    "message",
    [
        Message(),
        TextMessage("text"),
        BytesMessage(b"bytes"),
        MapMessage({"name": 1.5}),
        StreamMessage([1, "two"]),
        ObjectMessage(("an", "object")),
    ],
    ids=lambda message: type(message).__name__,
)
def test_what_is_forwarded_is_what_was_sent(subscribed, jms_broker_url, message):
    got = queue.Queue()
    subscribed(spec(), got.put)
    message.properties.update({"region": "EU", "JMSXGroupID": "g", "_AMQ_DUPL_ID": "once"})
    message.correlation_id, message.reply_to, message.type = "c", Queue("answers"), "order"
    message.priority, message.delivery_mode = 7, DeliveryMode.NON_PERSISTENT
    publish(jms_broker_url, message)
    same = got.get(timeout=PATIENCE)
    assert type(same) is type(message)
    assert raw(same) == raw(message)
    assert dict(same.properties) == {"region": "EU", "JMSXGroupID": "g", "_AMQ_DUPL_ID": "once"}
    for header in ("correlation_id", "reply_to", "type", "priority", "delivery_mode"):
        assert getattr(same, header) == getattr(message, header), header
    assert same.expiration is None


def raw(message):
    return message.pickled if isinstance(message, ObjectMessage) else message.body


def test_it_lives_no_longer_than_the_original(subscribed, jms_broker_url):
    got = queue.Queue()
    subscribed(spec(), got.put)
    now = datetime.now(UTC)
    message = TextMessage("a")
    message.timestamp, message.expiration = now - timedelta(hours=5), now + timedelta(hours=1)
    publish(jms_broker_url, message)
    assert abs(got.get(timeout=PATIENCE).expiration - message.expiration) < timedelta(minutes=1)


def test_an_expiration_beyond_those_of_sends_is_forwarded(subscribed, jms_broker_url):
    got = queue.Queue()
    subscribed(spec(), got.put)
    message = TextMessage("a")
    message.timestamp, message.expiration = datetime.now(UTC), datetime(9000, 1, 1, tzinfo=UTC)
    publish(jms_broker_url, message)
    assert got.get(timeout=PATIENCE).expiration.year > 2300


def test_it_is_a_message_of_its_own(subscribed, jms_broker_url):
    got = queue.Queue()
    subscribed(spec(), got.put)
    message = TextMessage("a")
    message.timestamp = datetime.now(UTC) - timedelta(hours=5)
    publish(jms_broker_url, message)
    copy = got.get(timeout=PATIENCE)
    assert copy.message_id != message.message_id
    assert copy.timestamp > message.timestamp + timedelta(hours=4)


def test_only_the_topic_side_selects(subscribed, jms_broker_url, adapter):
    inbox = Inbox()
    subscribed(spec(selector="sub = '${subscribername}'"), inbox)
    publish(jms_broker_url, TextMessage("other", properties={"sub": "x"}), TextMessage("a", properties={"sub": "s"}))
    assert [body for body, _ in inbox.take(1)] == ["a"]
    with adapter.connection_factory().create_connection() as connection, connection.create_session() as session:
        session.create_producer(Queue(LOAD)).send(TextMessage("put there"))
    assert [body for body, _ in inbox.take(1)] == ["put there"]
    assert inbox.got.empty()


def test_the_consumer_of_the_queue_is_as_the_spec_says(subscribed, jms_broker_url):
    held = queue.Queue()
    made = spec(concurrency_mode="cc", endpoint_pool_max_size=3, hold_until_ack=True, client_id="me")
    activation, _ = subscribed(made, held.put)
    assert activation.stats.n_configured_endpoints == 3
    assert activation.spec.effective_client_id is None
    publish(jms_broker_url, TextMessage("a"))
    message = held.get(timeout=PATIENCE)
    assert activation.settle(message.message_id, "JBXCommit").wait(PATIENCE) is Outcome.COMMITTED


@pytest.mark.parametrize("mode", ["serial", "cc"])
def test_an_option_for_the_mode_concerns_the_queue_alone(jms_broker_url, mode):
    adapter = ResourceAdapter(f"{jms_broker_url}?JMSJCA.concurrencymode={mode}")
    inbox = Inbox()
    with adapter:
        activation = adapter.activate(spec(concurrency_mode="sync"), inbox)
        activation.topic_side.start()
        activation.start()
        assert (activation.spec.concurrency_mode, activation.topic_side.spec.concurrency_mode) == (mode, "sync")


@pytest.mark.parametrize("transaction", ["local", "none"])
def test_a_batch_that_cannot_be_forwarded_comes_again(subscribed, jms_broker_url, transaction):
    inbox = Inbox()
    activation, watch = subscribed(spec(transaction=transaction), inbox, FailingSends(3))
    publish(jms_broker_url, *map(TextMessage, "abcde"))
    watch.until(activation.topic_side, Outcome.ROLLED_BACK)
    assert sorted(inbox.take(5)) == [(body, 1) for body in "abcde"]
    activation.stop()
    assert inbox.got.empty()


@pytest.mark.parametrize(("wanted", "sizes"), [("", [10, 10, 5]), ("&batchsize=20", [20, 5])])
def test_batches_of_the_topic_side(subscribed, jms_broker_url, wanted, sizes):
    activation, watch = subscribed(spec(f"jmsjca://?distribution=1&subscribername=s{wanted}"), Inbox())
    activation.stop()
    publish(jms_broker_url, *(TextMessage() for _ in range(25)))
    activation.topic_side.start()
    assert [watch.sizes.get(timeout=PATIENCE) for _ in sizes] == sizes


def test_the_topic_side_has_the_redelivery_handling_too(subscribed, jms_broker_url, adapter):
    moved = queue.Queue()
    made = spec("jmsjca://?distribution=1&subscribername=s&batchsize=1", redelivery_handling="2:move(queue:dlq.$)")
    subscribed(made, Inbox(), FailingSends(1, 2))
    adapter.listener("dlq.t")(moved.put)
    adapter.start()
    publish(jms_broker_url, TextMessage("a"))
    properties = moved.get(timeout=PATIENCE).properties
    assert properties["JMS_Sun_JMSJCA_OriginalDestinationType"] == "javax.jms.Topic"
    assert properties["JMS_Sun_JMSJCA_SubscriberName"] == "s"


def test_messages_that_are_published_while_all_nodes_are_down_wait(subscribed, jms_broker_url):
    inbox = Inbox()
    activation, _ = subscribed(spec(), inbox)
    activation.stop()
    assert (activation.status, activation.topic_side.status) == ("Down", "Down")
    publish(jms_broker_url, TextMessage("a"))
    assert inbox.got.empty()
    activation.start()
    assert [body for body, _ in inbox.take(1)] == ["a"]


@pytest.mark.parametrize("client_id", [None, "me"])
def test_another_node_consumes_and_takes_over(node, refused, jms_broker_url, client_id, caplog):
    caplog.set_level("INFO", "jmsjca")
    first, second = Inbox(), Inbox()
    made = spec(client_id=client_id, redelivery_handling="3:move(queue:dlq.$)")
    one, watch = node(made, first)
    watch.until(one.topic_side, "Up")
    two, watch = node(made, second)  # its queue side is up
    assert refused.wait(PATIENCE)
    assert two.topic_side.status == "Connecting"
    one.stop()
    watch.until(two.topic_side, "Up")
    publish(jms_broker_url, TextMessage("a"))
    assert [body for body, _ in second.take(1)] == ["a"]
    told = [(record.levelname, "another node" in record.getMessage()) for record in caplog.records]
    assert told.count(("INFO", True)) == 1
    assert all(level == "INFO" for level, _ in told)


def test_a_handler_that_stops_delivery_stops_both_sides(subscribed, jms_broker_url):
    def handle(message):
        message.set_string_property("JMS_Sun_JMSJCA_StopMessageDelivery", "enough")

    activation, watch = subscribed(spec(), handle)
    publish(jms_broker_url, TextMessage("a"))
    watch.until(activation, "Down")
    watch.until(activation.topic_side, "Down")


@pytest.mark.parametrize("blocked", [1, 2])
def test_a_deadline_counts_for_both_sides(subscribed, jms_broker_url, blocked):
    """The one of them is at work, or the other: the first send is that of the topic side."""
    sends = BlockedSend(blocked)

    def handle(message, session):
        session.create_producer(Queue("done")).send(TextMessage())

    activation, _ = subscribed(spec(), handle, sends)
    publish(jms_broker_url, TextMessage("a"))
    assert sends.reached.wait(PATIENCE)
    assert activation.stop(timeout=0) is False
    assert (activation.status, activation.topic_side.status) == ("Down", "Down")
    sends.go_on.set()


def test_restart_concerns_both_sides(subscribed, jms_broker_url):
    inbox = Inbox()
    activation, watch = subscribed(spec(), inbox)
    activation.restart()
    watch.until(activation.topic_side, "Down")
    publish(jms_broker_url, TextMessage("a"))
    assert [body for body, _ in inbox.take(1)] == ["a"]


def test_while_one_node_is_busy_another_gets_the_next_message(node, jms_broker_url):
    entered, met = queue.Queue(), threading.Barrier(2, timeout=PATIENCE)

    def handle(message):
        entered.put(message)
        met.wait()

    one, watch = node(spec(), handle)
    watch.until(one.topic_side, "Up")
    two, watching = node(spec(), handle)
    publish(jms_broker_url, TextMessage("a"))
    entered.get(timeout=PATIENCE)
    publish(jms_broker_url, TextMessage("b"))
    watch.until(one, Outcome.COMMITTED)
    watching.until(two, Outcome.COMMITTED)


@pytest.mark.parametrize(
    ("name", "fields", "beans"),
    [
        ("", {}, (None, None)),
        ("", {"mbean_name": "m"}, ("m", "m-LOADBALQ")),
        ("&mbeanname=n", {"mbean_name": "m"}, ("m", "n")),
    ],
)
def test_each_side_has_a_bean_of_its_own(adapter, name, fields, beans):
    activation = adapter.activate(spec(f"jmsjca://?distribution=1&subscribername=s{name}", **fields), Inbox())
    assert (activation.spec.mbean_name, activation.topic_side.spec.mbean_name) == beans


def test_the_transaction_is_that_of_the_queue_side(adapter):
    activation = adapter.activate(spec(transaction="required"), Inbox())
    assert (activation.spec.transaction, activation.topic_side.spec.transaction) == ("required", "local")


def test_switched_off_it_is_a_usual_subscription(adapter, jms_broker_url, recorder):
    inbox = Inbox()
    adapter.activate(spec("jmsjca://?distribution=0&subscribername=s"), inbox)
    adapter.start()
    recorder.await_status("Connecting", "Up")
    publish(jms_broker_url, TextMessage("a"))
    assert [body for body, _ in inbox.take(1)] == ["a"]
    assert waiting(adapter, LOAD) == []


def test_nothing_is_lost_or_doubled_when_the_process_with_the_subscription_is_killed(connected_file, broker_file):
    done, more = kill_one_of_two(f"embedded://{broker_file}", connected_file(), "x")
    assert sorted(done) == list(range(200))
    assert more == [END, END]
