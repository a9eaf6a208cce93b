"""Open MQ in particular: what its bridge tells in a way of its own is settled for good, and replies find their way."""

import uuid
from contextlib import closing

import pytest
from raw_stomp import RawSTOMP

from jmsjca.destinations import Queue
from jmsjca.errors import TransactionRolledBackError
from jmsjca.links import ConnectionSettings, connect
from jmsjca.messages import TextMessage
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


@pytest.mark.parametrize(("order", "settled"), [(Order.PREFIX, [0, 1, 2]), (Order.ANY, [1, 2, 5])])
def test_what_was_settled_and_sent_outlives_a_kill_and_a_stop(own_broker, order, settled):
    broker = own_broker("openmq")
    url = broker.url("stomp")
    connection = connect(ConnectionSettings(url))
    send(connection, *"abcdef")
    deliveries = taken(connection.consumer(QUEUE, order=order), 6)
    unit = connection.unit(atomic=False)
    unit.take([deliveries[number] for number in settled])
    unit.commit()
    broker.kill()
    broker.restart()
    broker.restart()
    assert broker.url("stomp") == url
    with closing(connect(ConnectionSettings(url))) as again:
        send(again, "last")
        left = [text for number, text in enumerate("abcdef") if number not in settled]
        assert bodies(taken(again.consumer(QUEUE), 4)) == [*left, "last"]


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
