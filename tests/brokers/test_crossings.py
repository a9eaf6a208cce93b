"""Messages that cross protocols: the recorded crossings, and what is kept or refused between our ends."""

import random
import uuid

import pytest
from brokers import BrokerMissing
from brokers.registry import url_of
from matrix_sample import SEED, count

from jmsjca.destinations import Queue
from jmsjca.errors import MessageFormatError
from jmsjca.messages import Double, Float, Int, Long, MapMessage, TextMessage
from jmsjca.testing.contract.harness import Harness
from tests.interop.crossing_clients import protocol_of
from tests.interop.crossings import CASES, measure, recorded
from tests.support.crossings_page import PAGE, page

SAMPLE = 12
CELLS = sorted((key, case) for key in recorded() for case in CASES)
DRAWN = random.Random(f"{SEED} crossings").sample(CELLS, SAMPLE)
PROPERTIES = {"b": True, "d": Double(1.5), "f": Float(0.5), "i": Int(7), "l": Long(2**40), "s": "x", "none": None}
OURS = [("artemis", "amqp", "stomp"), ("artemis", "stomp", "amqp"), ("activemq", "stomp", "amqp")]
OURS += [("rabbitmq4", "amqp", "stomp"), ("rabbitmq4", "stomp", "amqp")]


def test_the_page_has_what_is_recorded():
    count("crossings", SAMPLE, len(CELLS))
    assert PAGE.read_text() == page(), "Run python -m tests.support.crossings_page."


@pytest.mark.parametrize(
    ("key", "case"),
    [pytest.param(*cell, marks=() if cell in DRAWN else pytest.mark.torture) for cell in CELLS],
)
def test_a_crossing_is_as_it_is_recorded(key, case):
    broker, _, pair = key.partition(": ")
    sender, _, receiver = pair.partition(" > ")
    try:
        for name in (sender, receiver):
            url_of(f"{broker}-{protocol_of(name)}")
        found, wanted = measure(broker, sender, receiver, [case])[case], recorded()[key][case]
        if (broker, case, protocol_of(receiver)) == ("artemis", "cut", "amqp"):  # the count is 0 or 1, as it happens
            assert {*found} == {*wanted}
        else:
            assert found == wanted
    except BrokerMissing as problem:
        pytest.skip(str(problem))


@pytest.fixture
def exchange(broker_url):
    """Return a function that sends a message over one protocol and receives it over another one."""
    opened = []

    def exchanged(broker, one, other, message, **headers):
        sender, receiver = (Harness(broker_url(f"{broker}-{protocol}")) for protocol in (one, other))
        opened.extend((sender, receiver))
        queue = Queue(f"crossing.{uuid.uuid4().hex}")
        ours = sender if one == "amqp" else receiver
        ours.connection.consumer(queue).close()  # declared over AMQP: on RabbitMQ 4 a quorum queue
        sender.send_messages(queue, message, **headers)
        [delivery] = receiver.gather(receiver.connection.consumer(queue), 1)
        return delivery

    yield exchanged
    for harness in opened:
        harness.close()


@pytest.mark.parametrize(("broker", "one", "other"), OURS)
def test_nothing_is_lost_between_two_ends_of_ours(exchange, broker, one, other):
    sent = TextMessage("tëxt", properties={**PROPERTIES, "JMSXGroupID": "g"})
    headers = {"correlation_id": "c", "type": "order", "reply_to": Queue("answers"), "priority": 6}
    received = exchange(broker, one, other, sent, **headers).message
    assert {name: getattr(received, name) for name in headers} == headers
    assert received.body == "tëxt"
    if (broker, one, other) != ("activemq", "stomp", "amqp"):  # whose management knows the message by its own id
        assert received.message_id == sent.message_id
    values = dict(received.properties)
    assert values == dict(sent.properties)
    assert {name: type(value) for name, value in values.items()} == {
        name: type(value) for name, value in sent.properties.items()
    }


@pytest.mark.parametrize(("broker", "one", "other"), OURS)
def test_a_map_arrives_or_is_refused(exchange, broker, one, other):
    delivery = exchange(broker, one, other, MapMessage({"n": Int(1)}))
    if (broker, other) == ("artemis", "stomp"):
        with pytest.raises(MessageFormatError, match="without its body"):
            _ = delivery.message
    else:
        assert dict(delivery.message.body) == {"n": 1}


def test_what_rabbitmq_3_drops_is_told_once_for_each_queue(exchange, caplog):
    sent = TextMessage("tëxt", properties=PROPERTIES)
    received = exchange("rabbitmq", "stomp", "amqp", sent, type="order").message
    assert (received.body, received.type, dict(received.properties)) == ("tëxt", None, {})
    assert received.message_id == sent.message_id
    [told] = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert told.startswith(f"{received.destination} holds messages that were sent over STOMP")
    caplog.clear()
    same = exchange("rabbitmq", "amqp", "amqp", TextMessage("x", properties={"n": 3}), type="order").message
    assert (same.type, same.properties["n"]) == ("order", 3)
    assert not caplog.records
