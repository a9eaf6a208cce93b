"""Open MQ's bridge: what is settled although it is refused, names that end it, and properties that it would refuse."""

import pytest

from jmsjca.destinations import Queue, destination
from jmsjca.errors import InvalidDestinationError, TransactionInDoubtError
from jmsjca.messages import TextMessage
from jmsjca.providers.stomp.brokers.registry import dialect_for
from jmsjca.providers.stomp.protocol.frames import Frame
from jmsjca.spi import Order
from tests.unit.stomp.letters import read

OPENMQ = "Eclipse OpenMQ(tm)"
QUEUE = Queue("q")
TEMPORARY = "temporary_destination://queue/127.0.0.1/34860/1"


def not_found(ack):
    """What the bridge says to an acknowledgement."""
    subscription, _, number = ack.partition("ID:")
    return f"ACK: [BSS4028]: ACK a message ID:{number} that is not found in subscriber {subscription}"


def received(line, order, count):
    consumer = line.connection.consumer(QUEUE, order=order)
    subscription = dict(read(bytes(line.channel.written))[-1][1])["id"]
    for number in range(count):
        ack = f"{subscription}ID:{number}-127.0.0.1(ab:cd)-1-2"
        line.channel.say("MESSAGE", b"", destination="/queue/q", message_id=ack[2:], subscription=subscription, ack=ack)
    deliveries = []
    while len(deliveries) < count:
        deliveries.extend(consumer.receive(count - len(deliveries), None))
    line.channel.silent.add("ACK")
    return deliveries


def unit_of(line, deliveries):
    unit = line.connection.unit(atomic=False)
    unit.take(deliveries)
    return unit


def answer_each(line, answer):
    line.channel.reactions["ACK"] = lambda headers: line.channel.say("ERROR", b"", message=answer(headers["id"]))


def test_what_is_acknowledged_alone_is_settled_although_the_bridge_refuses_it(line):
    line = line(OPENMQ)
    deliveries = received(line, Order.ANY, 3)
    answer_each(line, not_found)
    unit_of(line, deliveries[1:]).commit()
    assert not line.told


def test_a_release_that_confirms_it_is_understood_too(line):
    line = line(OPENMQ)
    deliveries = received(line, Order.ANY, 2)
    line.channel.silent.clear()
    unit_of(line, deliveries).commit()
    assert not line.told


@pytest.mark.parametrize(
    ("order", "answer"),
    [
        (Order.PREFIX, not_found),
        (Order.ANY, lambda _: "ACK: [C4000]: Packet acknowledge failed."),
        (Order.ANY, lambda ack: f"ACK: [BSS4021]: No session found for subscriber id {ack.partition('ID:')[0]}"),
    ],
)
def test_any_other_refusal_is_one(line, order, answer):
    line = line(OPENMQ)
    deliveries = received(line, order, 1)
    answer_each(line, answer)
    with pytest.raises(TransactionInDoubtError, match="refused something"):
        unit_of(line, deliveries).commit()
    assert line.lost.wait(30)


@pytest.mark.parametrize("answered", [0, 1])
def test_the_refusal_of_one_message_does_not_confirm_another(line, answered):
    """The commit goes on waiting for what it has not been told of."""
    line = line(OPENMQ)
    deliveries = received(line, Order.ANY, 2)
    refusal = not_found(deliveries[answered].frame.headers["ack"])
    line.channel.early["ACK"] = lambda _: line.channel.early.clear() or line.channel.say("ERROR", b"", message=refusal)
    with pytest.raises(TransactionInDoubtError, match="did not answer"):
        unit_of(line, deliveries).commit(timeout=0.1)


def test_other_brokers_mean_it(line):
    line = line("ActiveMQ-Artemis/2.56.0")
    deliveries = received(line, Order.ANY, 1)
    answer_each(line, not_found)
    with pytest.raises(TransactionInDoubtError):
        unit_of(line, deliveries).commit()


@pytest.mark.parametrize("name", ["a", "_a", "$a", "a.b", "a" * 200, "é.ü", "queue1"])
def test_names_that_it_takes(name):
    assert dialect_for(OPENMQ, "1.2").address(Queue(name)) == {"destination": f"/queue/{name}"}


@pytest.mark.parametrize(
    "name", ["1a", "a-b", "a b", "a/b", "a:b", "a*", "a>", ".a", "mq.sys.dmq", "a" * 201, "é" * 101]
)
def test_names_that_it_would_refuse_or_fall_over(name):
    with pytest.raises(InvalidDestinationError):
        dialect_for(OPENMQ, "1.2").address(Queue(name))


@pytest.mark.parametrize("name", ["JMSJCA.name", "é"])
def test_properties_that_it_would_refuse_the_message_for_travel_in_ours(name):
    dialect = dialect_for(OPENMQ, "1.2")
    [(_, headers, body)] = read(
        dialect.send_frame(dialect.encode(TextMessage("x", properties={"n": 2, name: 1}), QUEUE))
    )
    assert dict(headers)["n"] == "2"
    assert name not in dict(headers)
    got = dialect.decode(Frame("MESSAGE", {**dict(headers), "message-id": "ID:1"}, body, 1), QUEUE)
    assert dict(got.properties) == {"n": 2, name: 1}


def test_replies_go_where_the_request_says():
    dialect = dialect_for(OPENMQ, "1.2")
    asked = dialect.read_address(f"/temp-queue/{TEMPORARY}")
    assert asked == destination(TEMPORARY, "queue", temporary=True)
    assert dialect.address(asked) == {"destination": f"/temp-queue/{TEMPORARY}"}
