"""Messages: bodies, properties, read-only state, text form."""

import pytest

from jmsjca import BytesMessage, Message, Queue, TextMessage, Topic
from jmsjca.destinations import Destination, Subscription, destination
from jmsjca.errors import IllegalStateError, InvalidDestinationError, MessageFormatError, MessageNotWriteableError
from jmsjca.messages import Properties

GOOD_NAMES = ["a", "A1", "_x", "$x", "größe", "JMSXGroupID", "JMS_vendor", "JMSJCA.EndOfBatch", "nothing", "Order"]
BAD_NAMES = ["", "1a", "a b", "a-b", ".a", "a.", "a..b", "a\n", "NULL", "true", "Not", "and", "in", "ESCAPE", "is"]


@pytest.mark.parametrize("name", GOOD_NAMES)
def test_property_names_that_are_identifiers(name):
    assert Message(properties={name: "1"}).properties[name] == "1"


@pytest.mark.parametrize("name", BAD_NAMES)
def test_property_names_that_are_refused(name):
    with pytest.raises(MessageFormatError, match="cannot name a property"):
        Message().properties[name] = 1


def test_properties_are_a_mapping():
    properties = Properties({"a": 1, "b": "x"})
    assert (len(properties), list(properties), properties.get("c")) == (2, ["a", "b"], None)
    del properties["a"]
    assert dict(properties) == {"b": "x"}
    with pytest.raises(KeyError):
        _ = properties["a"]


def test_received_properties_cannot_be_changed():
    properties = Properties.received({"a": 1})
    with pytest.raises(MessageNotWriteableError):
        properties["a"] = 2
    with pytest.raises(MessageNotWriteableError):
        del properties["a"]
    with pytest.raises(MessageNotWriteableError):
        properties.update(b=1)
    assert dict(properties) == {"a": 1}


def frozen() -> TextMessage:
    message = TextMessage("body")
    message.properties = Properties.received({"a": 1})
    message.freeze()
    return message


def test_received_message_is_read_only_part_by_part():
    message = frozen()
    with pytest.raises(MessageNotWriteableError):
        message.body = "new"
    with pytest.raises(MessageNotWriteableError):
        message.set_int_property("a", 2)
    message.clear_body()
    assert message.body is None
    message.body = "new"
    with pytest.raises(MessageNotWriteableError):
        message.set_int_property("a", 2)
    message.clear_properties()
    message.set_int_property("a", 2)
    assert (message.body, dict(message.properties)) == ("new", {"a": 2})


@pytest.mark.parametrize(
    ("kind", "body"), [(TextMessage, b"x"), (TextMessage, 1), (BytesMessage, "x"), (BytesMessage, [1]), (Message, "x")]
)
def test_body_of_another_type_is_refused(kind, body):
    with pytest.raises(MessageFormatError):
        kind(body)
    message = kind()
    with pytest.raises(MessageFormatError):
        message.body = body


def test_get_body():
    assert TextMessage("a").get_body(str) == "a"
    assert BytesMessage(bytearray(b"a")).get_body(bytes) == b"a"
    with pytest.raises(MessageFormatError, match="not a bytes"):
        TextMessage("a").get_body(bytes)
    with pytest.raises(MessageFormatError):
        TextMessage().get_body(str)


@pytest.mark.parametrize(("delivered", "redelivered"), [(0, 0), (1, 0), (2, 1), (5, 4)])
def test_redelivery_count_is_one_less_than_the_delivery_count(delivered, redelivered):
    message = Message()
    message.delivery_count = delivered
    assert message.redelivery_count == redelivered


@pytest.mark.parametrize("call", [Message.acknowledge, Message.set_rollback_only])
def test_message_that_was_not_delivered_has_no_unit(call):
    with pytest.raises(IllegalStateError, match="not delivered"):
        call(Message())


def test_text_form_is_bounded_and_shows_no_content():
    message = TextMessage("secret body" * 100_000, properties={"p": "secret value", "q" * 10_000: 1})
    message.message_id = "ID:" + "1" * 100_000
    assert len(repr(message)) <= 300
    assert len(repr(message.properties)) <= 220
    assert "secret" not in repr(message) + repr(message.properties)


def test_unknown_attribute_is_refused():
    with pytest.raises(AttributeError):
        Message().prioritty = 4  # type: ignore[attr-defined]


def test_destinations_are_values():
    assert Queue("a") == Queue("a") != Queue("b")
    assert Queue("a") != Topic("a")
    assert {Queue("a"), Queue("a"), Topic("a")} == {Topic("a"), Queue("a")}
    assert (str(Queue("a")), str(Topic("a"))) == ("queue:a", "topic:a")
    assert Subscription(Topic("a"), "s").durable
    assert not Subscription(Topic("a")).durable


def test_destination_of_a_kind():
    assert (destination("a", "queue"), destination("a", "topic")) == (Queue("a"), Topic("a"))
    with pytest.raises(InvalidDestinationError, match="'table'"):
        destination("a", "table")


@pytest.mark.parametrize("kind", [Queue, Topic, Destination])
def test_destination_needs_a_name(kind):
    with pytest.raises(InvalidDestinationError, match="needs a name"):
        kind("")
