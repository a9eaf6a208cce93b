"""Open MQ's bridge: the evidence of its gaps, and its settlement of refused messages."""

import uuid
from contextlib import closing, suppress

import psutil
import pytest
from raw_stomp import RawSTOMP

from jmsjca.destinations import Queue
from jmsjca.errors import TransactionRolledBackError
from jmsjca.messages import TextMessage
from jmsjca.reconnection import ConnectionSettings, connect
from jmsjca.spi import Order
from jmsjca.testing.contract.harness import bodies, prepare

MANY = 1_500  # more than a consumer's limit of flow


def told(client, command, **headers):
    """What the bridge says to a frame."""
    client.raw.write(command, receipt="told", **headers)
    return str(client.raw.read())


def held(client, bodies, ack):
    """What was sent and came, not settled."""
    for body in bodies:
        client.send(body)
    client.subscribe(ack=ack)
    return [client.read()[1]["ack"] for _ in bodies]


def left(client):
    client.subscribe()
    body, headers = client.read()
    return body, headers["redelivered"], headers["JMSXDeliveryCount"]


def test_acknowledgement_is_no_part_of_a_transaction(client):
    one = client("openmq")
    [ack] = held(one, "a", "client")
    assert one.raw.confirm("BEGIN", transaction="t") == "RECEIPT"
    assert "BSS4031" in told(one, "ACK", id=ack, transaction="t")


def test_subscription_of_a_transaction_sends_in_transactions_only_and_settles_all_before(client):
    one, other = client("openmq"), client("openmq")
    assert one.raw.confirm("BEGIN", transaction="t") == "RECEIPT"
    assert one.joins(transaction="t") == "RECEIPT"
    for body in "ab":
        other.send(body)
    (_, _), (_, second) = [one.read() for _ in "ab"]
    assert one.raw.confirm("ACK", id=second["ack"], transaction="t") == "RECEIPT"
    assert one.raw.confirm("COMMIT", transaction="t") == "RECEIPT"
    other.send("c")
    assert [one.send("d") for _ in range(5)] == ["RECEIPT"] * 5  # and nothing comes between
    one.raw.write("BEGIN", transaction="t")
    assert one.bodies(1) == ["c"]


def test_what_is_acknowledged_alone_is_settled_and_refused(client):
    one = client("openmq")
    _, second = held(one, "ab", "client-individual")
    assert "BSS4028" in told(one, "ACK", id=second)
    assert "BSS4028" in told(one, "ACK", id=second)  # which it says of what it really does not find, too
    one.leave_at_once()
    other = client("openmq")
    assert left(other)[0] == "a"
    client("openmq").send("c")
    assert other.bodies(1) == ["c"]


@pytest.mark.parametrize(("ack", "lost"), [("client", ("a", "true", "2")), ("client-individual", ("a", "false", "1"))])
def test_what_a_lost_connection_held_may_come_again_as_new(client, ack, lost):
    """It does if the last message that came was acknowledged alone."""
    one = client("openmq")
    held(one, "a", ack)
    if ack == "client-individual":
        client("openmq").send("b")
        assert "BSS4028" in told(one, "ACK", id=one.read()[1]["ack"])
    one.leave_at_once()
    assert left(client("openmq")) == lost


def test_refusal_of_a_message_ends_the_connection(client):
    one = client("openmq")
    [ack] = held(one, "a", "client-individual")
    assert "BSS4038" in told(one, "NACK", id=ack)
    with pytest.raises((AssertionError, OSError)):
        one.raw.read()


def test_nothing_bounds_what_is_sent(client):
    one = client("openmq")
    for number in range(MANY):
        one.raw.write("SEND", str(number), destination=one.destination)
    one.send("last")
    one.subscribe()
    assert one.bodies(MANY + 1)[-1] == "last"


def test_text_is_no_number(client):
    one = client("openmq")
    one.send("a", n="2")
    one.send("b", t="x")
    one.subscribe(selector="n = 2 OR t = 'x'")
    assert one.bodies(1) == ["b"]


def test_second_consumer_of_a_durable_subscription_is_refused(listener):
    one, name = listener("openmq", client_id=uuid.uuid4().hex), {"durable_subscriber_name": "s"}
    assert one.joins(**name) == "RECEIPT"
    assert "B4095" in told(one, "SUBSCRIBE", id="2", ack="client", destination=one.destination, **name)


def test_temporary_queue_is_known_only_where_a_message_came_that_names_it(client):
    one, other = client("openmq"), client("openmq")
    one.send("a", reply_to="/temp-queue/x")
    other.subscribe()
    name = other.read()[1]["reply-to"]
    assert other.raw.confirm("SEND", destination=name) == "RECEIPT"
    assert "TemporaryQueue not found" in told(client("openmq"), "SEND", destination=name)


def test_group_is_spread(client):
    one, others = client("openmq"), [client("openmq") for _ in range(2)]
    for other in others:
        assert other.joins() == "RECEIPT"
    assert all(is_sent_some(other, one) for other in others)


def is_sent_some(consumer, sender):
    """Tell whether a consumer gets messages of the group; the first one may be kept back until more come."""
    for _ in range(3):
        for number in range(20):
            sender.send(str(number), JMSXGroupID="g")
        with suppress(TimeoutError):
            return bool(consumer.read())
    return False


def test_a_name_that_no_folder_can_have_ends_the_broker(own_broker):
    """So the provider refuses it."""
    broker = own_broker("openmq")
    connection = RawSTOMP(broker.url("stomp"))
    with suppress(AssertionError, OSError):
        connection.write("SEND", "x", destination=f"/queue/{'a' * 300}")
        while True:
            connection.read()
    connection._socket.close()
    with suppress(psutil.TimeoutExpired):  # its end may hang, as it did in one of 200 runs
        broker.process.wait(30)
    assert "[B1047]: Shutting down broker" in broker.log.read_text()
    with pytest.raises((AssertionError, OSError)):  # ended or not, it serves nobody
        RawSTOMP(broker.url("stomp"))


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


def received_and_given_back(url, queue, attempts=3):
    """Receive a message without an acknowledgement; return its headers.

    Open MQ, seldom, sends nothing to a subscription that begins while the last connection ends: then to a next one.
    """
    with RawSTOMP(url) as connection:
        connection.write("SUBSCRIBE", id="1", destination=queue, ack="client")
        try:
            headers = connection.read()[1]
        except TimeoutError:
            if attempts == 1:
                raise
        else:
            assert connection.confirm("UNSUBSCRIBE", id="1") == "RECEIPT"
            return headers
    return received_and_given_back(url, queue, attempts - 1)


def test_what_fails_comes_again_and_again(broker_url):
    """No message is given up by itself: dead letters are the endpoints' business."""
    url, queue = broker_url("openmq-stomp"), f"/queue/again.{uuid.uuid4().hex}"
    with RawSTOMP(url) as sender:
        sender.confirm("SEND", "body", destination=queue)
    for count in range(1, 21):
        assert received_and_given_back(url, queue)["JMSXDeliveryCount"] == str(count)


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
