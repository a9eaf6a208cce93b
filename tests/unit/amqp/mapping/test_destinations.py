"""Destinations in messages: as the broker names them, and as we do."""

import pytest
from proton import byte

from jmsjca import Message, Queue, TemporaryQueue, TemporaryTopic, Topic
from jmsjca.errors import MessageFormatError
from jmsjca.providers.amqp.codec.addresses import ReceiveContext, address_of
from jmsjca.providers.amqp.codec.decoder import decode
from jmsjca.providers.amqp.codec.encoder import encode
from tests.unit.amqp.mapping.proton_sections import PROPERTIES, annotated, listed, read
from tests.unit.amqp.mapping.through import NOW, QUEUE

NAMINGS = ["capability", "exchange", "path", "scheme"]


def replies(raw, naming, source=QUEUE):
    return decode(raw, ReceiveContext(source, naming), NOW).reply_to


@pytest.mark.parametrize("naming", NAMINGS)
@pytest.mark.parametrize("place", [Queue("a"), Topic("a"), Queue("queue://"), Queue("/queue/"), Topic("amq.topic/")])
def test_an_address_of_the_broker_is_the_destination_that_we_would_name_so(naming, place):
    """What a program without JMS writes, and what Java's clients write: an answer to it arrives."""
    annotation = annotated(x_opt_jms_reply_to=byte(place.kind == "topic"))
    address = listed(PROPERTIES, reply_to=address_of(place, naming).name)
    assert replies(annotation + address, naming) == place
    if naming in {"path", "scheme"}:
        assert replies(address, naming) == place


@pytest.mark.parametrize("naming", NAMINGS)
def test_a_name_without_anything_before_it_is_one(naming):
    assert replies(listed(PROPERTIES, reply_to="a.b"), naming, Topic("t")) == Topic("a.b")


@pytest.mark.parametrize(("number", "kind"), [*enumerate([Queue, Topic, TemporaryQueue, TemporaryTopic])])
def test_every_kind_comes_back(number, kind):
    place = kind("temp-queue://ID:1")
    raw = encode(Message(reply_to=place), kind("to"), NOW)
    assert read(raw)[0x72]["x-opt-jms-dest"] == read(raw)[0x72]["x-opt-jms-reply-to"] == byte(number)
    got = decode(raw, ReceiveContext(QUEUE, "scheme"), NOW)
    assert (got.reply_to, got.destination) == (place, kind("to"))


def test_an_address_that_is_no_text_is_refused():
    with pytest.raises(MessageFormatError):
        replies(listed(PROPERTIES, reply_to=7), "path")
