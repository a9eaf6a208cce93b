"""Headers that the producer or the broker sets are told alike on both sides."""

import base64
import uuid

import pytest
from jms_java import JavaClient, describe

from jmsjca import DeliveryMode
from jmsjca.messages import TextMessage

HOUR = 3600
BYTES = b"\x00\xff correlation"


def as_received(told, **expected):
    return {**told, "delivery_count": 1, **expected}


@pytest.mark.parametrize("priority", range(10))
def test_priority_from_us(ours, theirs, queue, priority):
    ours.send(queue, TextMessage("a"), priority=priority)
    assert theirs.session().take(queue)[0]["priority"] == priority


@pytest.mark.parametrize("priority", range(10))
def test_priority_from_them(ours, theirs, queue, priority):
    theirs.session().send(queue, {**describe(TextMessage("a")), "priority": priority})
    assert ours.take(queue)[0].priority == priority


def test_message_that_need_not_last(ours, theirs, queue):
    ours.send(queue, TextMessage("a"), delivery_mode=DeliveryMode.NON_PERSISTENT)
    assert theirs.session().take(queue)[0]["persistent"] is False
    theirs.session().send(queue, {**describe(TextMessage("a")), "persistent": False})
    assert ours.take(queue)[0].delivery_mode is DeliveryMode.NON_PERSISTENT


def test_expiration(ours, theirs, queue):
    message = TextMessage("a")
    ours.send(queue, message, time_to_live=HOUR)
    assert theirs.session().take(queue) == [as_received(describe(message))]
    sent = theirs.session().send(queue, TextMessage("a"), life=HOUR * 1000)
    assert sent["expiration"] == sent["timestamp"] + HOUR * 1000
    assert describe(ours.take(queue)[0]) == as_received(sent)


def test_time_of_delivery(ours, theirs, queue):
    if not ours.connection.capabilities.delivery_delay:
        pytest.skip("The broker lacks the capability delivery_delay.")
    message = TextMessage("a")
    ours.send(queue, message, delivery_delay=0.1)
    assert theirs.session().take(queue) == [as_received(describe(message))]
    sent = theirs.session().send(queue, TextMessage("a"), delay=100)
    assert sent["delivery_time"] > sent["timestamp"]
    assert describe(ours.take(queue)[0]) == as_received(sent)


def test_no_id_and_no_timestamp(ours, theirs, queue):
    with ours.connection.create_session() as session:
        producer = session.create_producer(queue)
        producer.disable_message_id = producer.disable_timestamp = True
        producer.send(TextMessage("a"))
    [received] = theirs.session().take(queue)
    assert (received["message_id"], received["timestamp"]) == (None, 0)
    theirs.session().send(queue, TextMessage("a"), bare=True)
    [received] = ours.take(queue)
    assert (received.message_id, received.timestamp) == (None, None)


@pytest.mark.parametrize("kind", ["UUID", "UUID_STRING", "PREFIXED_UUID_STRING"])
def test_ids_of_every_kind_are_read_and_correlated(ours, theirs_with, queue, kind):
    """What is no text on the wire keeps its type: our answer is correlated as Java's own would be."""
    theirs = theirs_with(f"jms.messageIDPolicy.messageIDType={kind}")
    sent = theirs.session().send(queue, TextMessage("question"))
    [received] = ours.take(queue)
    assert received.message_id == sent["message_id"]
    ours.send(queue, TextMessage("answer", correlation_id=received.message_id))
    theirs.session().send(queue, TextMessage("answer", correlation_id=sent["message_id"]))
    answer, own_answer = theirs.session().take(queue, 2)
    assert answer["correlation_id"] == own_answer["correlation_id"]


def test_correlation_of_bytes(ours, theirs, queue):
    """JMS shows it as text; who passes the text on passes the bytes on."""
    told = {**describe(TextMessage("a")), "correlation_bytes": base64.b64encode(BYTES).decode()}
    sent = theirs.session().send(queue, told)
    [received] = ours.take(queue)
    assert received.correlation_id == sent["correlation_id"] == f"ID:AMQP_BINARY:{BYTES.hex().upper()}"
    ours.send(queue, TextMessage("b", correlation_id=received.correlation_id))
    assert theirs.session().take(queue)[0]["correlation_id"] == sent["correlation_id"]


@pytest.mark.parametrize("place", [7, -1, -(2**31)])
def test_groups(ours, theirs, queue, place):
    """On the wire the place has no sign, so what is below 0 is a large number there."""
    properties = {"JMSXGroupID": f"g-{uuid.uuid4().hex}", "JMSXGroupSeq": place}
    message = TextMessage("a", properties=properties)
    ours.send(queue, message)
    assert theirs.session().take(queue) == [as_received(describe(message))]
    sent = theirs.session().send(queue, TextMessage("a", properties=properties))
    assert describe(ours.take(queue)[0]) == as_received(sent)


def test_users_name(ours, java, broker_url, broker, queue):
    """Java tells who is logged in, if it is asked to."""
    url = broker_url("qpid-amqp-plain" if broker == "qpid" else f"{broker}-amqp")
    theirs = JavaClient(java, f"{url}?jms.populateJMSXUserID=true&jms.username=jmsjca&jms.password=jmsjca")
    theirs.session().send(queue, TextMessage("a"))
    [received] = ours.take(queue)
    assert received.get_string_property("JMSXUserID") == "jmsjca"
    ours.send(queue, received)  # which is not theirs any more
    assert "JMSXUserID" not in theirs.session().take(queue)[0]["properties"]
    theirs.close()


def test_names_that_are_none_in_java(ours, theirs, theirs_with, queue):
    """Java hides such properties if it is not asked to show them. We show what came, and pass it on."""
    showing = theirs_with("jms.validatePropertyNames=false").session()
    showing.send(queue, {**describe(TextMessage("a")), "properties": {"a-name": ["string", "x"]}})
    [received] = ours.take(queue)
    assert dict(received.properties) == {"a-name": "x"}
    for session, seen in ((showing, {"a-name": ["string", "x"]}), (theirs.session(), {})):
        ours.send(queue, received)
        assert session.take(queue)[0]["properties"] == seen
