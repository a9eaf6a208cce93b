"""Open MQ in particular: what its bridge tells in a way of its own is settled for good, and replies find their way."""

import uuid
from contextlib import closing

import pytest
from raw_stomp import RawSTOMP

from jmsjca.destinations import Queue
from jmsjca.errors import TransactionRolledBackError
from jmsjca.messages import TextMessage
from jmsjca.reconnection import ConnectionSettings, connect
from jmsjca.spi import Order
from jmsjca.testing.contract.harness import bodies, prepare

PATIENCE = 30
QUEUE = Queue("kept")


def send(connection, *texts):
    unit = connection.unit(atomic=False)
    for text in texts:
        unit.send(prepare(TextMessage(text), QUEUE), QUEUE)
    unit.commit()


def taken(consumer, count):
    deliveries = []
    while len(deliveries) < count:
        chunk = consumer.receive(count - len(deliveries), PATIENCE)
        assert chunk, f"Only {len(deliveries)} of {count} came."
        deliveries.extend(chunk)
    return deliveries


def test_what_was_settled_alone_is_gone_and_all_else_outlives_a_stop_and_a_kill(own_broker):
    broker = own_broker("openmq")
    connection = connect(ConnectionSettings(broker.url("stomp")))
    send(connection, *"abcdef")
    deliveries = taken(connection.consumer(QUEUE, order=Order.ANY), 6)
    unit = connection.unit(atomic=False)
    unit.take([deliveries[number] for number in (1, 2, 5)])
    unit.commit()
    broker.restart()
    assert found(broker, 3) == ["a", "d", "e"]
    broker.kill()
    broker.restart()
    assert found(broker, 3) == ["a", "d", "e"]


def test_a_kill_just_after_a_commit_loses_nothing(own_broker):
    """What was settled may come again: the broker takes it from its store after it has confirmed that."""
    broker = own_broker("openmq")
    connection = connect(ConnectionSettings(broker.url("stomp")))
    send(connection, *"abcdef")
    unit = connection.unit(atomic=False)
    unit.take(taken(connection.consumer(QUEUE), 3))
    send(connection, "g")
    unit.commit()
    broker.kill()
    broker.restart()
    assert set("defg") <= set(found(broker, 4))


def found(broker, at_least):
    """What is in the queue, and stays."""
    with closing(connect(ConnectionSettings(broker.url("stomp")))) as connection:
        consumer = connection.consumer(QUEUE, order=Order.ANY)
        deliveries = taken(consumer, at_least)
        send(connection, "last")
        while deliveries[-1].message.body != "last":
            deliveries += taken(consumer, 1)
        unit = connection.unit(atomic=False)
        unit.take(deliveries[-1:])
        unit.commit()
        return bodies(deliveries[:-1])


def test_what_the_bridge_would_strip_arrives(broker_url):
    queue, texts = Queue(f"stripped.{uuid.uuid4().hex}"), {"a": "\x01x", "b": "x\x1f", "c": " x ", "d": "\t"}
    with closing(connect(ConnectionSettings(broker_url("openmq-stomp")))) as connection:
        unit = connection.unit(atomic=False)
        unit.send(prepare(TextMessage("x", properties=texts, correlation_id="\x02y"), queue), queue)
        unit.commit()
        [got] = taken(connection.consumer(queue), 1)
        assert (dict(got.message.properties), got.message.correlation_id) == (texts, "\x02y")


def test_what_fails_comes_again_and_again(broker_url):
    """No message is given up by itself: dead letters are the endpoints' business."""
    url, queue = broker_url("openmq-stomp"), f"/queue/again.{uuid.uuid4().hex}"
    with RawSTOMP(url) as sender:
        sender.confirm("SEND", "body", destination=queue)
    for count in range(1, 21):
        with RawSTOMP(url) as connection:
            connection.write("SUBSCRIBE", id="1", destination=queue, ack="client")
            assert connection.read()[1]["JMSXDeliveryCount"] == str(count)
            assert connection.confirm("UNSUBSCRIBE", id="1") == "RECEIPT"


def test_reply_to_a_temporary_queue_goes_where_the_request_came(broker_url):
    """Over another connection it is refused."""
    url, queue = broker_url("openmq-stomp"), Queue(f"asks.{uuid.uuid4().hex}")
    with RawSTOMP(url) as asker, closing(connect(ConnectionSettings(url))) as ours:
        asker.confirm("SUBSCRIBE", id="1", destination="/temp-queue/mine")
        asker.confirm("SEND", "request", destination=f"/queue/{queue.name}", reply_to="/temp-queue/mine")
        [request] = taken(ours.consumer(queue), 1)
        to = request.message.reply_to
        reply(ours, to)
        assert asker.read()[2] == "reply"
        another = connect(ConnectionSettings(url))
        with pytest.raises(TransactionRolledBackError, match="TemporaryQueue not found"):
            reply(another, to)


def reply(connection, to):
    unit = connection.unit(atomic=False)
    unit.send(prepare(TextMessage("reply"), to), to)
    unit.commit()
