"""A browser shows the messages that can still be received, in order."""

import pytest
from amqp_peer import Broker
from amqp_peer.encoding import Described, ULong, encode
from amqp_peer.service import Service
from proton import Message

from jmsjca.destinations import Queue
from tests.unit.providers.amqp.wire.cut_account import encoded

LONG_AGO, FAR_AWAY = 1.0, 4e9  # seconds since 1970
_PROPERTIES = 0x73
UNREADABLE = encode(Described(ULong(_PROPERTIES), [None] * 8 + ["no time"]))


def expiring(body, expires):
    return Message(body=body, expiry_time=expires).encode()


def shown(stage, *messages, **options):
    broker = Broker()
    for message in messages:
        broker.store.put("q", message)
    return [found for chunk in stage(broker).connect().browse(Queue("q"), **options) for found in chunk]


def test_what_has_expired_is_not_shown(stage):
    """Brokers keep it until they come across it."""
    messages = [expiring("a", LONG_AGO), encoded("b"), expiring("c", FAR_AWAY), expiring("d", LONG_AGO), encoded("e")]
    assert [found.message.body for found in shown(stage, *messages)] == ["b", "c", "e"]


def test_what_has_expired_in_another_queue_is_shown(stage):
    """ActiveMQ moves it to its dead-letter queue as it is, and consumers get it there."""
    messages = [Message(body=to, address=to, expiry_time=LONG_AGO).encode() for to in ("p", "q")]
    assert [(found.message.body, found.message.destination) for found in shown(stage, *messages)] == [("p", Queue("p"))]


def test_a_chunk_that_has_expired_is_not_the_end(stage):
    messages = [expiring("a", LONG_AGO)] * 150 + [encoded("b")]
    assert [found.message.body for found in shown(stage, *messages)] == ["b"]


def test_what_cannot_be_read_is_shown(stage):
    """Nobody knows when it expires; whoever looks at it is told what is wrong with it."""
    assert len(shown(stage, encoded("a"), UNREADABLE + encoded("b"), encoded("c"))) == 3


@pytest.mark.parametrize("limit", [0, 1, 120])
def test_no_more_than_the_limit_is_shown(stage, limit):
    assert len(shown(stage, *[encoded("a")] * 250, limit=limit)) == limit


def test_answers_that_come_too_early_are_not_the_end(stage, monkeypatch):
    """A busy Artemis answered drains without a message while messages waited."""
    deliver, answered = Service.deliver, []

    def deliver_late(service):
        for link in service.links.values():
            if link.credit > 0 and link.attach.source and link.attach.source.address == "q":
                answered.append(link.given)
                if len(answered) == 1:
                    link.credit = 1
                elif len(answered) <= 8:  # until two answers in turn come without a message
                    return
        deliver(service)

    monkeypatch.setattr(Service, "deliver", deliver_late)
    assert [found.message.body for found in shown(stage, *map(encoded, "abc"))] == ["a", "b", "c"]
    assert len(answered) > 8
