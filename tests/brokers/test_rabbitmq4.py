"""RabbitMQ 4 over AMQP 1.0: its kinds of queues, what it refuses, and its administration."""

import json
import threading
import uuid

import pytest
from proton import Message as AMQPMessage
from proton import symbol

from jmsjca import AcknowledgeMode, ConnectionFactory, Queue, ResourceAdapter, TextMessage, Topic
from jmsjca.__main__ import run
from jmsjca.config import Limits
from jmsjca.errors import IllegalStateError, InvalidDestinationError, NotSupportedError, TransactionRolledBackError
from jmsjca.spi import RARELY_REACHED, Depth
from tests.brokers.test_gaps_rabbitmq4 import Management
from tests.unit.inbound.listeners import PATIENCE, Recorder

MANY = 200
STREAM = {"x-queue-type": "stream"}
FULL = {"x-queue-type": "quorum", "x-max-length": 1, "x-overflow": "reject-publish"}


@pytest.fixture(scope="module")
def url(broker_url):
    return broker_url("rabbitmq4-amqp")


@pytest.fixture
def connection(url):
    with ConnectionFactory(url).create_connection() as opened:
        yield opened


@pytest.fixture
def queue():
    return Queue(f"rabbit.{uuid.uuid4().hex}: ü/%?#")


def declare(amqp, name, **arguments):
    """Declare a queue as an operator does, with arguments of its own."""
    path = f"/queues/{name}"
    status, _ = Management(amqp("rabbitmq4")).ask("PUT", path, {"durable": True, "arguments": arguments})
    assert status == 201
    return Queue(name)


def send(connection, queue, *bodies, **options):
    with connection.create_session() as session:
        producer = session.create_producer(queue)
        for body in bodies:
            producer.send(TextMessage(body), **options)


def take(connection, queue, count):
    with connection.create_session() as session, session.create_consumer(queue) as consumer:
        return [consumer.receive(timeout=PATIENCE) for _ in range(count)]


@pytest.mark.parametrize("mode", ["serial", "sync", "cc"])
@pytest.mark.parametrize("kind", ["quorum", "classic"])
def test_a_listener_gets_all_that_is_sent(url, queue, mode, kind):
    bodies = [str(number) for number in range(MANY)]
    recorder = Recorder()
    adapter = ResourceAdapter(f"{url}?queue_type={kind}", hooks=[recorder])
    got = set()
    adapter.listener(queue.name, concurrency_mode=mode)(lambda message: got.add(message.body))
    with ConnectionFactory(f"{url}?queue_type={kind}").create_connection() as connection:
        send(connection, queue, *bodies)
        with adapter:
            for _ in bodies:
                recorder.outcomes.get(timeout=PATIENCE)
        assert got == set(bodies)


@pytest.mark.parametrize(("kind", "received"), [("classic", "95310"), ("quorum", "95310")])
def test_priorities_by_the_type_of_the_queue(url, queue, kind, received):
    """A quorum queue has two levels: 0 to 4, and the others; within one the order is that of sending."""
    with ConnectionFactory(f"{url}?queue_type={kind}").create_connection() as connection:
        for priority in (1, 9, 0, 5, 3) if kind == "classic" else (9, 5, 3, 1, 0):
            send(connection, queue, str(priority), priority=priority)
        assert "".join(message.body for message in take(connection, queue, 5)) == received


def test_a_stream_is_read_from_the_next_message_on_and_keeps_all(amqp, connection):
    stream = declare(amqp, f"stream.{uuid.uuid4().hex}", **STREAM)
    send(connection, stream, "before")
    with connection.create_session() as session:
        readers = [session.create_consumer(stream) for _ in range(2)]
        send(connection, stream, "a", "b")
        for reader in readers:
            assert [reader.receive(timeout=PATIENCE).body for _ in "ab"] == ["a", "b"]


def stream_of(amqp, connection):
    """Return a new stream with messages whose filter values are those of their bodies' first words."""
    stream = declare(amqp, f"stream.{uuid.uuid4().hex}", **STREAM)
    for body in ("eu 0", "us 1", "eu 2", "none 3"):
        region = body.split()[0]
        with connection.create_session() as session:
            message = TextMessage(body)
            if region != "none":
                message.properties["JMS_AMQP_STREAM_FILTER"] = region
            session.create_producer(stream).send(message)
    return stream


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("stream_offset=first", ["eu 0", "us 1", "eu 2", "none 3"]),
        ("stream_offset=2", ["eu 2", "none 3"]),
        ("stream_offset=1h", ["eu 0", "us 1", "eu 2", "none 3"]),
        ("stream_offset=2020-01-01T00:00:00Z", ["eu 0", "us 1", "eu 2", "none 3"]),
        ("stream_offset=first&stream_filter=eu", ["eu 0", "eu 2"]),
        ("stream_offset=first&stream_filter=eu,us", ["eu 0", "us 1", "eu 2"]),
        ("stream_offset=first&stream_filter=us&stream_match_unfiltered=true", ["us 1", "none 3"]),
    ],
)
def test_a_stream_is_read_from_an_offset_on_and_by_filter_values(amqp, url, connection, options, expected):
    stream = stream_of(amqp, connection)
    with ConnectionFactory(f"{url}?{options}").create_connection() as reader:
        got = take(reader, stream, len(expected))
        send(connection, stream, "eu at the end")
    assert [message.body for message in got] == expected
    for message in got:
        region, offset = message.body.split()
        assert message.properties["JMS_AMQP_STREAM_OFFSET"] == int(offset)
        assert message.properties.get("JMS_AMQP_STREAM_FILTER") == (None if region == "none" else region)


def test_no_message_of_another_filter_value_is_delivered_although_the_broker_sends_whole_chunks(amqp, url):
    """Messages that are written together are in one chunk, which the broker sends or skips."""
    stream, other = declare(amqp, f"stream.{uuid.uuid4().hex}", **STREAM), amqp("rabbitmq4")
    sender = other.connection.create_sender(f"/queues/{stream.name}")
    regions = ["eu", "us"] * MANY
    sent = [
        sender.link.send(AMQPMessage(region, durable=True, annotations={symbol("x-stream-filter-value"): region}))
        for region in regions
    ]
    other.connection.wait(lambda: all(delivery.settled for delivery in sent), msg="outcomes")
    with ConnectionFactory(f"{url}?stream_offset=first&stream_filter=us").create_connection() as reader:
        assert {message.body for message in take(reader, stream, MANY)} == {"us"}


def test_a_listener_of_a_stream_gets_the_selected_messages_and_a_failed_one_again(amqp, url, connection):
    stream, recorder, got = stream_of(amqp, connection), Recorder(), []
    adapter = ResourceAdapter(f"{url}?stream_offset=first&stream_filter=eu", hooks=[recorder])

    @adapter.listener(stream.name)
    def handle(message):
        got.append(message.body)
        if len(got) == 1:
            raise ValueError("refused once")

    with adapter:
        for _ in range(3):
            recorder.outcomes.get(timeout=PATIENCE)
    assert got == ["eu 0", "eu 0", "eu 2"]


def pool_of_two(mode):
    """Return the fields of a listener with two handlers where the mode has several."""
    return {"concurrency_mode": mode} | ({} if mode == "serial" else {"endpoint_pool_max_size": 2})


@pytest.mark.parametrize(("mode", "copies"), [("serial", 1), ("cc", 1), ("sync", 2)])
def test_each_receiver_of_the_mode_sync_gets_the_whole_stream(amqp, url, connection, mode, copies):
    stream, recorder, got = stream_of(amqp, connection), Recorder(), []
    adapter = ResourceAdapter(f"{url}?stream_offset=first", hooks=[recorder])
    adapter.listener(stream.name, **pool_of_two(mode))(lambda message: got.append(message.body))
    with adapter:
        for _ in range(copies * 4):
            recorder.outcomes.get(timeout=PATIENCE)
    assert sorted(got) == sorted(["eu 0", "us 1", "eu 2", "none 3"] * copies)


def test_options_of_streams_are_refused_for_other_queues_and_for_topics(url, queue):
    with ConnectionFactory(f"{url}?stream_filter=eu").create_connection() as reader, reader.create_session() as session:
        for other in (queue, Topic("prices")):
            with pytest.raises(NotSupportedError, match="is not a stream"):
                session.create_consumer(other)
        session.create_consumer(session.create_temporary_queue())  # for replies


def test_options_of_streams_are_refused_by_other_brokers(broker_url):
    with pytest.raises(NotSupportedError, match=r"stream_offset and stream_filter are for RabbitMQ 4; .* RabbitMQ 3"):
        ConnectionFactory(f"{broker_url('rabbitmq-amqp')}?stream_offset=first").create_connection()


def test_a_message_that_a_full_queue_refuses_is_told(amqp, connection):
    """The broker rejects it without a reason; what was sent before stays."""
    full = declare(amqp, f"full.{uuid.uuid4().hex}", **FULL)
    with pytest.raises(TransactionRolledBackError, match="did not accept"):
        send(connection, full, *map(str, range(20)))  # the limit is not exact
    assert take(connection, full, 1)[0].body == "0"


def test_what_is_rejected_lands_where_the_operator_wants_it(amqp, url, connection):
    """By the queue's own dead letter exchange, after its own limit of failures."""
    dead = declare(amqp, f"dead.{uuid.uuid4().hex}", **{"x-queue-type": "quorum"})
    limited = {"x-queue-type": "quorum", "x-delivery-limit": 1, "x-dead-letter-exchange": ""}
    queue = declare(amqp, f"limited.{uuid.uuid4().hex}", **limited, **{"x-dead-letter-routing-key": dead.name})
    send(connection, queue, "poison")
    seen = []
    adapter = ResourceAdapter(url)

    @adapter.listener(queue.name)
    def handle(message):
        seen.append(message.delivery_count)
        raise ValueError("refused")

    with adapter:
        [letter] = take(connection, dead, 1)
    assert (letter.body, seen) == ("poison", [1, 2])


def test_the_administration_counts_purges_and_removes(connection, queue):
    admin = connection.admin
    assert (admin.depth(queue), admin.purge(queue)) == (Depth(0, 0, 0), 0)
    send(connection, queue, "a", "b")
    assert admin.depth(queue) == Depth(2, 0, 0)
    assert (admin.purge(queue), admin.depth(queue)) == (2, Depth(0, 0, 0))
    with (
        connection.create_session() as session,
        session.create_consumer(queue),
        pytest.raises(IllegalStateError, match="consumers"),
    ):
        admin.remove(queue)
    admin.remove(queue)
    with pytest.raises(InvalidDestinationError, match="no queue"):
        admin.remove(queue)
    with pytest.raises(TransactionRolledBackError, match="does not exist"):
        send(connection, queue, "to one that is gone")
    send(connection, queue, "declared again")
    assert take(connection, queue, 1)[0].body == "declared again"


def test_the_administration_lists_nothing_and_sets_nothing(connection, queue):
    with pytest.raises(NotSupportedError, match="lists_destinations"):
        connection.admin.destinations()
    with pytest.raises(NotSupportedError, match="policies"):
        connection.admin.settings(queue)


LOW = 2  # returns of a message that the broker of these tests allows; without the argument 20


@pytest.fixture
def limited(amqp):
    """Return a function that declares a quorum queue as an operator does, with a delivery limit."""
    return lambda limit=LOW: declare(
        amqp,
        f"limited.{uuid.uuid4().hex}",
        **{"x-queue-type": "quorum"},
        **({} if limit is None else {"x-delivery-limit": limit}),
    )


@pytest.mark.parametrize("limit", [None, LOW])
def test_receiving_one_of_many_messages_and_closing_loses_none(url, limited, limit):
    queue, prefetching = limited(limit), Limits(prefetch_messages=50)
    bodies = [str(number) for number in range(8 if limit else 30)]
    with ConnectionFactory(url).create_connection() as connection:
        send(connection, queue, *bodies)
    got = []
    for _ in bodies:
        with ConnectionFactory(url, limits=prefetching).create_connection() as connection:
            got += [message and message.body for message in take(connection, queue, 1)]
    assert got == bodies


def test_a_message_that_stays_unacknowledged_takes_none_with_it(url, limited):
    queue = limited()
    with ConnectionFactory(url).create_connection() as connection:
        send(connection, queue, *"abcde")
        for _ in range(LOW + 1):
            with connection.create_session(acknowledge_mode=AcknowledgeMode.CLIENT) as session:
                assert session.create_consumer(queue).receive(timeout=PATIENCE).body == "a"
        assert [message.body for message in take(connection, queue, 4)] == list("bcde")


def test_a_message_that_fails_reaches_the_limit_of_the_operator_and_takes_none_with_it(url, limited):
    queue = limited()
    with ConnectionFactory(url).create_connection() as connection:
        send(connection, queue, *"abc")
        with connection.create_session(acknowledge_mode=AcknowledgeMode.CLIENT) as session:
            consumer, counts = session.create_consumer(queue), []
            for _ in range(LOW + 1):
                message = consumer.receive(timeout=PATIENCE)
                counts.append((message.body, message.delivery_count))
                session.recover()
            assert counts == [("a", 1), ("a", 2), ("a", 3)]
            assert [consumer.receive(timeout=PATIENCE).body for _ in "bc"] == ["b", "c"]


@pytest.mark.parametrize("mode", ["serial", "sync", "cc"])
def test_stopping_a_listener_again_and_again_loses_none(url, limited, mode):
    queue, got = limited(), set()
    bodies = [str(number) for number in range(40)]
    with ConnectionFactory(url).create_connection() as connection:
        send(connection, queue, *bodies)
    for _ in range(6 * LOW):
        called, ended = threading.Event(), threading.Event()

        def handle(message, called=called, ended=ended):
            got.add(message.body)
            called.set()
            ended.wait(PATIENCE)

        adapter = ResourceAdapter(url, limits=Limits(prefetch_messages=20))
        adapter.listener(queue.name, **pool_of_two(mode))(handle)
        with adapter:
            assert called.wait(PATIENCE) or len(got) == len(bodies)
            ended.set()
        if len(got) == len(bodies):
            return
    with ConnectionFactory(url).create_connection() as connection, connection.create_session() as session:
        consumer = session.create_consumer(queue)
        while (message := consumer.receive(timeout=2)) is not None:
            got.add(message.body)
    assert got == set(bodies)


@pytest.mark.parametrize("mode", ["serial", "sync", "cc"])
def test_a_listener_that_delivers_suspects_alone_prefetches_nothing_after_them_either(url, limited, mode):
    queue, got = limited(), set()
    bodies = [str(number) for number in range(40)]
    with ConnectionFactory(url).create_connection() as connection:
        send(connection, queue, *bodies)
    for _ in range(3 * LOW):
        second, may_end = threading.Event(), threading.Event()
        adapter, called = ResourceAdapter(url, limits=Limits(prefetch_messages=20)), []

        def handle(message, called=called, second=second, may_end=may_end):
            got.add(message.body)
            called.append(message)
            if len(called) > 1:
                second.set()
                assert may_end.wait(PATIENCE)

        adapter.listener(queue.name, redelivery_handling="50:move(queue:limited.dead)", **pool_of_two(mode))(handle)
        with adapter:
            assert second.wait(PATIENCE)
            may_end.set()
    with ConnectionFactory(url).create_connection() as connection, connection.create_session() as session:
        consumer = session.create_consumer(queue)
        while (message := consumer.receive(timeout=2)) is not None:
            got.add(message.body)
    assert got == set(bodies)


def test_the_queue_and_the_remedy_are_logged_once(url, limited, caplog):
    low, high = limited(), limited(RARELY_REACHED)
    with ConnectionFactory(url).create_connection() as connection, connection.create_session() as session:
        for queue in (low, high, low):
            session.create_consumer(queue).close()
    [warning] = [each for each in caplog.records if "drops a message" in each.message]
    assert (warning.levelname, low.name in warning.message) == ("WARNING", True)
    assert all(word in warning.message for word in ("x-delivery-limit", "dead-letter exchange"))


def test_the_doctor_names_the_queues_with_a_low_limit(url, limited, capsys):
    low, high = limited(), limited(RARELY_REACHED)

    def limits(*queues):
        run(["doctor", url, "--json", *(f"--queue={queue.name}" for queue in queues)])
        return next(each for each in json.loads(capsys.readouterr().out) if each["check"] == "delivery limits")

    assert limits(high)["result"] == "ok"
    found = limits(low, high)
    assert found["result"] == "missing"
    assert f"{low.name} ({LOW})" in found["detail"]
    assert high.name not in found["detail"]
    assert "--queue" in limits()["detail"]  # the broker does not list its queues over AMQP
