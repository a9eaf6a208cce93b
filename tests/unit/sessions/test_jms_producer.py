"""The producer of the simplified API (JMS 3.1, sections 7.2 to 7.10)."""

import pytest

from jmsjca import BytesMessage, DeliveryMode, MapMessage, Message, Queue, Short, TextMessage
from jmsjca.errors import InvalidDestinationError, MessageFormatError, MessageNotWriteableError
from tests.unit.outbound import QUEUE


@pytest.mark.parametrize(
    ("sent", "kind", "received"),
    [
        ("text", TextMessage, "text"),
        ("", TextMessage, ""),
        (b"\x00\xff", BytesMessage, b"\x00\xff"),
        (bytearray(b"ab"), BytesMessage, b"ab"),
        ({"a": 1, "b": "x"}, MapMessage, {"a": 1, "b": "x"}),
        (None, Message, None),
    ],
    ids=repr,
)
def test_producer_makes_the_message_of_its_body(context, sent, kind, received):
    """A message of the appropriate type is created (7.2)."""
    context.create_producer().send(QUEUE, sent)
    message = context.create_consumer(QUEUE).receive(0)
    assert (type(message), message.body) == (kind, received)


def test_producer_sends_a_message(context):
    context.create_producer().send(QUEUE, context.create_text_message("a", properties={"p": 1}))
    message = context.create_consumer(QUEUE).receive(0)
    assert (message.body, message.get_int_property("p")) == ("a", 1)


@pytest.mark.parametrize("unfit", [7, 1.5, object(), ["a"], {1: 2}], ids=repr)
def test_no_message_is_made_of_that(context, unfit):
    with pytest.raises(MessageFormatError):
        context.create_producer().send(QUEUE, unfit)


def test_producer_needs_a_destination(context):
    """The destination must be specified on every send operation (7.1)."""
    with pytest.raises(InvalidDestinationError, match="'text' is no destination"):
        context.create_producer().send("text", QUEUE)


def test_sends_can_be_chained(context):
    """A fluid programming style (7.10)."""
    context.create_producer().send(QUEUE, "a").set(priority=9).send(QUEUE, "b").set(priority=4).send(QUEUE, "c")
    assert [message.body for message in context.create_browser(QUEUE)] == ["b", "a", "c"]


def test_producer_sets_options_headers_and_properties(context):
    """7.4 to 7.6."""
    reply_to = Queue("replies")
    producer = context.create_producer(
        priority=7,
        time_to_live=60,
        delivery_mode=DeliveryMode.NON_PERSISTENT,
        properties={"size": Short(3)},
        correlation_id="c",
        reply_to=reply_to,
        type="order",
    )
    producer.properties["region"] = "EU"
    producer.send(QUEUE, "a")
    message = context.create_consumer(QUEUE).receive(0)
    assert (message.priority, message.delivery_mode) == (7, DeliveryMode.NON_PERSISTENT)
    assert (message.expiration - message.timestamp).total_seconds() == 60
    assert (message.correlation_id, message.reply_to, message.type) == ("c", reply_to, "order")
    assert dict(message.properties) == {"size": 3, "region": "EU"}
    assert type(message.properties["size"]) is Short


def test_producer_overrides_the_message(context):
    """What is set on the producer overrides what is set on the message; the rest stays (7.5 and 7.6)."""
    mine = {"correlation_id": "producer's", "type": "producer's", "reply_to": Queue("producer's")}
    headers = {"correlation_id": "message's", "type": "message's", "reply_to": Queue("message's")}
    consumer = context.create_consumer(QUEUE)
    for name, value in mine.items():
        message = TextMessage("a", **headers, properties={"p": 1, "q": 1})
        context.create_producer(**{name: value}, properties={"p": 2}).send(QUEUE, message)
        got = consumer.receive(0)
        assert {header: getattr(got, header) for header in headers} == {**headers, name: value}
        assert dict(got.properties) == {"p": 2, "q": 1}


def test_received_message_is_sent_on(context):
    """Its properties are read-only, so the producer cannot add to them."""
    context.create_producer(properties={"p": 1}).send(QUEUE, "a")
    message = context.create_consumer(QUEUE).receive(0)
    context.create_producer(priority=9).send(QUEUE, message)
    with pytest.raises(MessageNotWriteableError):
        context.create_producer(properties={"q": 1}).send(QUEUE, message)
    again = context.create_consumer(QUEUE).receive(0)
    assert (again.body, again.priority, dict(again.properties)) == ("a", 9, {"p": 1})


@pytest.mark.parametrize("wrong", [{"priority": 10}, {"time_to_live": -1}, {"properties": {"a b": 1}}], ids=repr)
def test_options_are_checked_when_they_are_set(context, wrong):
    with pytest.raises(MessageFormatError):
        context.create_producer(**wrong)


def test_misspelt_option_is_found(context):
    with pytest.raises(TypeError, match=r"prioritty.*priority"):
        context.create_producer(prioritty=7)
