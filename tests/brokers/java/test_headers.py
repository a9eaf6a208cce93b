"""Headers and vendor properties have the same values on both sides."""

import base64
import time
import uuid

import pytest
from jms_java import JavaClient, describe
from raw_amqp import SECONDS, RawAMQP

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


LIFE = 2 * HOUR
ENDED = {"by the header": (0.001, HOUR, {"artemis", "activemq"}), "by the expiration": (LIFE, 0.001, {"qpid"})}
REPLY_GROUP = {"JMS_AMQP_REPLY_TO_GROUP_ID": "answers"}


@pytest.fixture
def wire(broker, broker_url):
    """What is neither ours nor Java's, and shows the fields."""
    with RawAMQP(broker_url(f"{broker}-amqp"), "queue" if broker == "artemis" else None) as raw:
        yield raw


def living(seconds, body="a"):
    return TextMessage(body, properties={"JMS_AMQP_TTL": round(seconds * 1000)})


def from_now(milliseconds):
    """How many seconds are left until then, about."""
    return pytest.approx(milliseconds / 1000 - time.time(), abs=60)


def test_group_of_replies(ours, theirs, queue):
    message = TextMessage("a", properties=REPLY_GROUP)
    ours.send(queue, message)
    assert theirs.session().take(queue) == [{**describe(message), "delivery_count": 1}]
    sent = theirs.session().send(queue, TextMessage("a", properties=REPLY_GROUP))
    [received] = ours.take(queue)
    assert describe(received) == {**sent, "delivery_count": 1}
    assert dict(received.properties) == REPLY_GROUP


def test_our_life_in_the_header_is_an_expiration_to_them(ours, theirs, queue):
    message = living(LIFE)
    ours.send(queue, message)
    [received] = theirs.session().take(queue)
    assert (message.expiration, received["properties"]) == (None, {})
    assert from_now(received["expiration"]) == LIFE


def test_their_life_in_the_header_is_an_expiration_to_us(ours, theirs, queue):
    sent = theirs.session().send(queue, living(LIFE))
    [received] = ours.take(queue)
    assert (sent["expiration"], dict(received.properties)) == (0, {})
    assert from_now(received.expiration.timestamp() * 1000) == LIFE


@pytest.mark.parametrize("life", [0, HOUR // 2, LIFE])
def test_beside_an_expiration_it_is_for_the_header_alone(ours, theirs, queue, wire, life):
    """0 is none there. Java and we write the same."""
    ours.send(queue, living(life), time_to_live=HOUR)
    theirs.session().send(queue, living(life), life=HOUR * 1000)
    receiver = wire.receiver(queue.name, 2)
    for _ in ("ours", "theirs"):
        message = receiver.receive(timeout=SECONDS)
        assert message.ttl == pytest.approx(life, abs=60)  # Broker-J tells what is left
        assert message.expiry_time == pytest.approx(message.creation_time + HOUR)
        assert not message.properties


def test_beside_it_each_reads_the_expiration(ours, theirs, queue):
    message = living(LIFE)
    ours.send(queue, message, time_to_live=HOUR)
    assert theirs.session().take(queue)[0]["expiration"] == describe(message)["expiration"]
    sent = theirs.session().send(queue, living(LIFE), life=HOUR * 1000)
    assert describe(ours.take(queue)[0])["expiration"] == sent["expiration"] == sent["timestamp"] + HOUR * 1000


def test_nobody_gets_what_has_had_its_life(ours, theirs, queue):
    session = theirs.session()
    ours.send(queue, living(0.001, "ours"))
    session.send(queue, living(0.001, "theirs"))
    ours.send(queue, living(LIFE, "lives"))
    session.send(queue, living(LIFE, "lives, too"))
    assert ours.take(queue)[0].body == "lives"
    assert session.take(queue)[0]["body"][1] == "lives, too"


@pytest.mark.parametrize("ended", ENDED)
def test_what_ends_it_where_both_are_told(ours, theirs, broker, queue, ended):
    """Broker-J goes by the header, the others by the expiration."""
    life, expires_in, keepers = ENDED[ended]
    ours.send(queue, living(life, "ours"), time_to_live=expires_in)
    theirs.session().send(queue, living(life, "theirs"), life=round(expires_in * 1000))
    ours.send(queue, TextMessage("last"))
    expected = ["ours", "theirs", "last"] if broker in keepers else ["last"]
    assert [message.body for message in ours.take(queue, len(expected))] == expected


def test_java_hands_over_nothing_that_has_expired(ours, theirs, queue):
    """Not even what the broker let live; ours leaves that to the program."""
    session = theirs.session()
    ours.send(queue, living(LIFE, "ours"), time_to_live=0.001)
    session.send(queue, living(LIFE, "theirs"), life=1)
    ours.send(queue, TextMessage("last"))
    assert session.take(queue)[0]["body"][1] == "last"
