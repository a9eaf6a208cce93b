"""Property names: JMS identifiers, dotted names of the manual, and reserved names."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jmsjca import Int, Message
from jmsjca.errors import MessageFormatError
from jmsjca.messages import Properties, type_name
from jmsjca.messages.properties import is_identifier

GOOD = [
    *["a", "A1", "_x", "$x", "größe", "nothing", "Order", "notes", "€", "‿", "Ⅷ", "e\u0301", "x٣", "名前"],
    *["JMS_vendor", "JMS_Sun_JMSJCA_UserRollbackData.a.b", "JMSJCA.EndOfBatch", "jms", "Jms1", "_JMSJCA_x", "x" * 5000],
]
BAD = [
    *[
        "",
        "1a",
        "a b",
        "a-b",
        ".a",
        "a.",
        "a.b",
        "a..b",
        "a\n",
        "a\0",
        "²a",
        "a²",
        "½",
        "\u0301e",
        "a\x1b[0m",
        "a\u200b",
    ],
    *["NULL", "true", "False", "Not", "and", "OR", "between", "like", "in", "is", "ESCAPE"],
    *["JMSJCA.", "JMSJCA..x", "JMSJCA.a b", "JMSJCA.a.", "JMS_a.", "JMS_a-b"],
]
OF_JMS = [
    "JMS",
    "JMSPriority",
    "JMSDestination",
    "JMSanything",
    "JMSX",
    "JMSXother",
    "JMSXGroupId",
    "JMSXdeliveryCount",
]
OF_THE_PROVIDER = [
    *["JMSXUserID", "JMSXAppID", "JMSXDeliveryCount", "JMSXProducerTXID", "JMSXConsumerTXID", "JMSXRcvTimestamp"],
    "JMSXState",
]


@pytest.mark.parametrize("name", GOOD)
def test_good_names(name):
    assert Message(properties={name: 1}).properties[name] == 1


@pytest.mark.parametrize("name", BAD)
def test_bad_names(name):
    with pytest.raises(MessageFormatError, match="cannot name a property") as caught:
        Message().properties[name] = 1
    assert caught.value.args[0].isprintable()


@pytest.mark.parametrize("name", OF_JMS)
def test_names_that_jms_reserves(name):
    with pytest.raises(MessageFormatError, match="names that begin with JMS are reserved"):
        Message(properties={name: 1})


@pytest.mark.parametrize("name", OF_THE_PROVIDER)
def test_names_that_the_provider_sets(name):
    with pytest.raises(MessageFormatError, match="the provider does"):
        Message().set_string_property(name, "x")


@pytest.mark.parametrize("name", [None, 1, b"a", ("a",)])
def test_what_is_no_text_names_nothing(name):
    with pytest.raises(MessageFormatError, match="named by a text"):
        Message(properties={name: 1})


def test_a_long_name_is_cut_in_the_error():
    with pytest.raises(MessageFormatError) as caught:
        Message(properties={"-" * 100_000: 1})
    assert len(str(caught.value)) < 300


def test_a_refused_name_sets_nothing():
    message = Message(properties={"a": 1})
    with pytest.raises(MessageFormatError):
        message.set_int_property("a b", 2)
    assert dict(message.properties) == {"a": 1}


def test_names_differ_by_case():
    assert dict(Message(properties={"a": 1, "A": 2}).properties) == {"a": 1, "A": 2}


@given(st.text(st.characters(max_codepoint=0x7F), max_size=8))
def test_ascii_identifiers_are_those_of_python_and_the_dollar(text):
    keywords = {"null", "true", "false", "not", "and", "or", "between", "like", "in", "is", "escape"}
    assert is_identifier(text) == (text.replace("$", "_").isidentifier() and text.lower() not in keywords)


def test_group_id_is_a_text():
    message = Message()
    message.set_string_property("JMSXGroupID", "a")
    with pytest.raises(MessageFormatError):
        message.set_int_property("JMSXGroupID", 1)
    assert message.get_string_property("JMSXGroupID") == "a"


@pytest.mark.parametrize("value", [7, Int(7), "7"])
def test_group_sequence_is_an_int(value):
    message = Message(properties={"JMSXGroupSeq": value})
    assert type_name(message.properties["JMSXGroupSeq"]) == "int"
    assert message.get_int_property("JMSXGroupSeq") == 7


@pytest.mark.parametrize("value", [1 << 31, 1.5, "x"])
def test_group_sequence_of_another_type_is_refused(value):
    with pytest.raises(MessageFormatError):
        Message(properties={"JMSXGroupSeq": value})


def test_delivery_count_of_a_received_message_is_a_property():
    message = Message(properties={"a": 1})
    message.delivery_count = 3
    assert message.get_int_property("JMSXDeliveryCount") == 3
    assert type_name(message.get_object_property("JMSXDeliveryCount")) == "int"
    assert message.get_string_property("JMSXDeliveryCount") == "3"
    assert message.property_exists("JMSXDeliveryCount")
    assert message.get_property_names() == ["a", "JMSXDeliveryCount"]
    assert dict(message.properties) == {"a": 1}  # what the sender set, and nothing else


def test_delivery_count_is_no_property_before_delivery():
    message = Message()
    assert not message.property_exists("JMSXDeliveryCount")
    assert message.get_object_property("JMSXDeliveryCount") is None
    assert message.get_property_names() == []


def test_what_the_provider_set_is_read_but_not_taken_over():
    received = Properties.received({"JMSXUserID": "eve", "content-type": "x", "JMSXGroupID": "g"})
    assert received["JMSXUserID"] == "eve"
    copy = Message(properties=received).properties
    assert dict(copy) == {"content-type": "x", "JMSXGroupID": "g"}
    copy["a"] = 1
    assert "a" not in received
