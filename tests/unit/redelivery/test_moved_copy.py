"""The moved copy of a message and its failure properties."""

import pickle
from datetime import UTC, datetime, timedelta

import pytest

from jmsjca import (
    Byte,
    BytesMessage,
    Char,
    DeliveryMode,
    Double,
    Float,
    Int,
    Long,
    MapMessage,
    Message,
    ObjectMessage,
    Queue,
    Short,
    StreamMessage,
    TextMessage,
    Topic,
)
from jmsjca.messages import Properties, type_name
from jmsjca.redelivery import Failure, MoveFacts, moved_copy, raw_copy, redirected_copy

FACTS = MoveFacts(Queue("orders"), 5)
SENT = datetime(2026, 1, 2, 3, 4, 5, 678_000, tzinfo=UTC)
VALUES = [True, Byte(1), Short(2), Char("c"), Int(3), Long(4), Float(1.5), Double(2.5), "text", b"bytes", None]
MESSAGES = [
    Message(),
    TextMessage("a pear"),
    TextMessage(""),
    TextMessage(),
    BytesMessage(b"\0\xff"),
    BytesMessage(),
    MapMessage({f"entry {place}": value for place, value in enumerate(VALUES)}),
    StreamMessage(VALUES),
]


def told(copy):
    """What a copy tells, by the later names; each is there under the manual's name, too."""
    later = {name.removeprefix("_JMSJCA_"): value for name, value in copy.properties.items() if name[0] == "_"}
    manual = "JMS_Sun_JMSJCA_"
    assert later == {
        name.removeprefix(manual): value
        for name, value in copy.properties.items()
        if name.startswith(manual) and "." not in name
    }
    return later


def types(values):
    return [None if value is None else type_name(value) for value in values]


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: type(message).__name__)
def test_every_type_of_message_keeps_its_body(message):
    message._freeze()
    copy = moved_copy(message, FACTS)
    assert type(copy) is type(message)
    assert copy.body == message.body
    if isinstance(message, MapMessage):
        assert types(copy.body.values()) == types(message.body.values())
    if isinstance(message, StreamMessage):
        assert types(copy.body) == types(message.body)


@pytest.mark.parametrize("pickled", [b"cos\nsystem\n(S'false'\ntR.", b"no pickle at all", pickle.dumps({"a": 1}), None])
def test_pickles_are_passed_on_unseen(pickled):
    copy = moved_copy(ObjectMessage.from_pickled(pickled), FACTS)
    assert isinstance(copy, ObjectMessage)
    assert copy.pickled == pickled


def test_a_message_that_is_half_read_is_copied_whole():
    message = StreamMessage(["a", "b"])
    message._freeze()
    message.read_string()
    assert moved_copy(message, FACTS).body == ("a", "b")
    assert message.read_string() == "b"


def test_headers_are_those_of_the_message():
    message = TextMessage("x", correlation_id="c", reply_to=Topic("replies"), type="order")
    message.priority, message.delivery_mode = 9, DeliveryMode.NON_PERSISTENT
    copy = moved_copy(message, FACTS)
    assert (copy.correlation_id, copy.reply_to, copy.type) == ("c", Topic("replies"), "order")
    assert (copy.priority, copy.delivery_mode) == (9, DeliveryMode.NON_PERSISTENT)


@pytest.mark.parametrize(
    "make",
    [
        lambda message: moved_copy(message, FACTS),
        redirected_copy,
        lambda message: raw_copy(b"raw", message, FACTS),
        lambda message: moved_copy(moved_copy(message, FACTS), FACTS),
    ],
    ids=["moved", "redirected", "raw", "moved twice"],
)
def test_a_copy_never_expires_and_records_when_the_message_would_have(make):
    message = TextMessage("x")
    message.expiration = SENT
    copy = make(message)
    recorded = copy.properties["_JMSJCA_OriginalExpiration"]
    assert (copy.expiration, recorded, type_name(recorded)) == (None, 1_767_323_045_678, "long")
    assert message.expiration == SENT


def test_headers_of_the_sending_are_left_to_whoever_sends():
    message = TextMessage("x")
    message.message_id, message.destination, message.timestamp = "ID:1", Queue("orders"), SENT
    message.delivery_time, message.redelivered, message.delivery_count = SENT, True, 6
    copy = moved_copy(message, FACTS)
    assert (copy.message_id, copy.destination, copy.timestamp) == (None, None, None)
    assert (copy.delivery_time, copy.redelivered, copy.delivery_count) == (None, False, 0)


def test_properties_keep_their_types_and_can_be_added_to():
    values = dict(
        zip("abcdefgh", [True, Byte(1), Short(2), Int(3), Long(4), Float(1.5), Double(2.5), "s"], strict=True)
    )
    message = TextMessage()
    message.properties = Properties.received({**values, "n": None, "not-a-name": "from elsewhere"})
    copy = moved_copy(message, FACTS)
    assert {name: copy.properties[name] for name in values} == values
    assert types(copy.properties[name] for name in values) == types(values.values())
    assert copy.properties["n"] is None
    assert copy.properties["not-a-name"] == "from elsewhere"
    copy.properties["more"] = 1
    assert "more" not in message.properties


def test_what_controls_delivery_is_told_under_another_name():
    message = TextMessage()
    message.properties = Properties.received(
        {"JMSXGroupID": "g", "JMSXGroupSeq": Int(2), "JMSXUserID": "u", "JMSX_of_somebody": "s", "_AMQ_DUPL_ID": "d"}
    )
    message.delivery_count = 6
    copy = moved_copy(message, FACTS)
    assert {name: value for name, value in copy.properties.items() if "JMSX" in name or "AMQ" in name} == {
        "_JMSJCA_JMSXGroupID": "g",
        "_JMSJCA_JMSXGroupSeq": 2,
        "_JMSJCA_JMSXUserID": "u",
        "_JMSJCA_JMSX_of_somebody": "s",
        "_JMSJCA__AMQ_DUPL_ID": "d",
        "_JMSJCA_JMSXDeliveryCount": 6,
    }
    assert types([copy.properties["_JMSJCA_JMSXGroupSeq"], copy.properties["_JMSJCA_JMSXDeliveryCount"]]) == ["int"] * 2


def test_a_redirected_message_has_everything_that_was_sent_but_what_controls_delivery():
    sent = {"region": "EU", "JMSXGroupID": "g", "_AMQ_DUPL_ID": "d"}
    message = TextMessage("x", properties=sent, correlation_id="c", reply_to=Topic("replies"), type="order")
    message.message_id, message.timestamp, message.delivery_count = "ID:1", SENT, 6
    copy = redirected_copy(message)
    assert dict(copy.properties) == {
        "region": "EU",
        "_JMSJCA_JMSXGroupID": "g",
        "_JMSJCA__AMQ_DUPL_ID": "d",
        "_JMSJCA_JMSXDeliveryCount": 6,
    }
    assert (copy.body, copy.correlation_id, copy.reply_to, copy.type) == ("x", "c", Topic("replies"), "order")
    assert (copy.message_id, copy.timestamp) == (None, None)


def test_little_is_told_where_little_is_known():
    assert told(moved_copy(TextMessage(), FACTS)) == {
        "RedeliveryCount": 5,
        "OriginalDestinationName": "orders",
        "OriginalDestinationType": "javax.jms.Queue",
    }


@pytest.mark.parametrize("blank", ["", " "])
def test_a_blank_correlation_id_is_not_told(blank):
    assert "OriginalJMSCorrelationID" not in told(moved_copy(TextMessage(correlation_id=blank), FACTS))


def test_all_is_told_that_is_known():
    message = TextMessage(correlation_id=" c ")
    message.message_id, message.timestamp, message.expiration = "ID:1", SENT, SENT + timedelta(seconds=1)
    failure = Failure("ValueError", "went wrong", "somewhere")
    facts = MoveFacts(Topic("news"), 7, "mine", "client", "context", failure=failure)
    copy = moved_copy(message, facts)
    assert told(copy) == {
        "RedeliveryCount": 7,
        "OriginalDestinationName": "news",
        "OriginalDestinationType": "javax.jms.Topic",
        "OriginalTimestamp": 1_767_323_045_678,
        "OriginalExpiration": 1_767_323_046_678,
        "OriginalJMSMessageID": "ID:1",
        "OriginalJMSCorrelationID": " c ",
        "SubscriberName": "mine",
        "OriginalClientID": "client",
        "ContextName": "context",
        "ExceptionClass": "ValueError",
        "ExceptionMessage": "went wrong",
        "ExceptionStackTrace": "somewhere",
    }
    assert types(told(copy)[name] for name in ("RedeliveryCount", "OriginalTimestamp")) == ["int", "long"]


def test_rollback_data_is_told_with_and_without_the_dot():
    copy = moved_copy(TextMessage(), MoveFacts(Queue("orders"), 5, rollback_data={"1": "x", "ct": "0,1,2"}))
    assert told(copy) | {"UserRollbackData1": "x", "UserRollbackDatact": "0,1,2"} == told(copy)
    assert copy.get_string_property("JMS_Sun_JMSJCA_UserRollbackData.ct") == "0,1,2"


def test_what_an_earlier_move_told_is_overwritten():
    once = moved_copy(TextMessage(properties={"region": "EU"}), FACTS)
    twice = moved_copy(once, MoveFacts(Queue("orders.dead"), 2))
    assert told(twice) == {
        "RedeliveryCount": 2,
        "OriginalDestinationName": "orders.dead",
        "OriginalDestinationType": "javax.jms.Queue",
    }
    assert twice.properties["region"] == "EU"


def test_the_message_stays_as_it_is():
    message = TextMessage("x", properties={"JMSXGroupID": "g", "_AMQ_DUPL_ID": "d"})
    moved_copy(message, FACTS)
    assert dict(message.properties) == {"JMSXGroupID": "g", "_AMQ_DUPL_ID": "d"}
    assert message.body == "x"
