"""Properties that Qpid JMS has for fields of AMQP: the life in the header, and the group that replies belong to."""

import time

import pytest
from jms_java import describe
from raw_amqp import SECONDS, RawAMQP

from jmsjca.messages import TextMessage

HOUR = 3600
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
