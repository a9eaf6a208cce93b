"""JMSJCA's own properties and the attributes that they stand for on a delivered message."""

from operator import attrgetter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jmsjca import Message, TextMessage
from jmsjca.errors import (
    IllegalStateError,
    InvalidRedeliveryHandlingError,
    MessageFormatError,
    MessageNotWriteableError,
)
from jmsjca.messages import Int, Properties, rollback_key, vendor_names
from jmsjca.messages.delivery import bind_delivery, rollback_names
from jmsjca.redelivery import Failure
from tests.unit.messages.endpoint_context import ListenerDelivery, SessionDelivery, delivered, received

FAILURE = Failure("KeyError", "'x'", "Traceback …")
TELLING = {
    "JMSJCA.batchIndex": 4,
    "JMSJCA.batchSize": 10,
    "JMSJCA.setRollbackOnly": False,
    "JMSJCA.isRollbackOnly": False,
    "JMSJCA.stats": {"DA": 7},
    "JMSJCA.destination": "orders",
    **dict.fromkeys(vendor_names("RedeliveryCount"), 3),
    **dict.fromkeys(vendor_names("RedeliveryHandling"), "5:1000"),
    **dict.fromkeys(vendor_names("MBeanName"), "jmsjca:name=orders"),
    **{name: ["the bean"] for name in vendor_names("MBeanServer")},
    **dict.fromkeys(vendor_names("ExceptionClass"), "KeyError"),
    **dict.fromkeys(vendor_names("ExceptionMessage"), "'x'"),
    **dict.fromkeys(vendor_names("ExceptionStackTrace"), "Traceback …"),
    **dict.fromkeys(vendor_names("UserRollbackData.mode"), "permanent"),
    **dict.fromkeys(vendor_names("UserRollbackDatamode"), "permanent"),
}
ROLLBACK_ONLY = ["JMSJCA.setRollbackOnly", "JMSJCA.isRollbackOnly", "jmsjca.setrollBackonly"]
STOP = vendor_names("StopMessageDelivery")
HANDLING = vendor_names("RedeliveryHandling")
MODE = [*vendor_names("UserRollbackData.mode"), *vendor_names("UserRollbackDatamode")]
TRAVELLING = [n for n in TELLING if "Exception" in n or "UserRollbackData" in n]
ALL = [*TELLING, "JMSJCA.EndOfBatch", *STOP]
SETTABLE = {*ROLLBACK_ONLY, *STOP, *HANDLING, *MODE}
VALUES = st.none() | st.booleans() | st.text() | st.integers(-9, 9).map(Int)


def in_any_case(name: str) -> st.SearchStrategy[str]:
    return st.sampled_from([name, name.lower(), name.upper(), name.swapcase()])


@pytest.mark.parametrize("name", TELLING)
def test_property_tells_of_the_delivery(name):
    message, context = delivered()
    context.mbean, context.failure, context.remembered = ["the bean"], FAILURE, {"mode": "permanent"}
    assert message.get_object_property(name) == TELLING[name]
    if rollback_key(name) is None:
        assert message.get_object_property(name.upper()) == TELLING[name]


def test_name_of_user_data_keeps_its_case():
    message, _ = delivered()
    message.set_string_property("jms_sun_jmsjca_userrollbackdata.Mode", "permanent")
    assert dict(message.user_rollback_data) == {"Mode": "permanent"}
    assert message.get_string_property("JMS_Sun_JMSJCA_UserRollbackData.mode") is None


def test_getters_convert():
    message, _ = delivered()
    assert message.get_int_property("JMSJCA.batchIndex") == 4
    assert message.get_long_property("JMSJCA.batchSize") == 10
    assert message.get_string_property("JMS_Sun_JMSJCA_RedeliveryCount") == "3"
    assert message.get_boolean_property("JMSJCA.isRollbackOnly") is False
    assert message.get_boolean_property("JMSJCA.EndOfBatch") is False
    with pytest.raises(MessageFormatError):
        message.get_string_property("JMSJCA.stats")


@pytest.mark.parametrize("name", ["JMSJCA.EndOfBatch", *STOP, *vendor_names("ExceptionClass"), *MODE])
def test_what_there_is_not_reads_as_nothing(name):
    assert delivered()[0].get_object_property(name) is None


def test_outside_of_batches_a_message_is_one_of_one():
    message, context = delivered()
    context.batch_index = context.batch_size = None
    assert (message.get_int_property("JMSJCA.batchIndex"), message.get_int_property("JMSJCA.batchSize")) == (0, 1)


@pytest.mark.parametrize("name", ROLLBACK_ONLY)
@pytest.mark.parametrize("accessor", [Message.set_boolean_property, Message.set_object_property])
def test_rollback_only_is_set(accessor, name):
    message, context = delivered()
    accessor(message, name, True)
    assert context.rollback_only
    assert message.rollback_only
    assert message.get_boolean_property(name)


@pytest.mark.parametrize("name", ROLLBACK_ONLY)
@pytest.mark.parametrize("value", [False, None])
def test_rollback_only_is_not_taken_back(name, value):
    message, context = delivered()
    message.set_rollback_only()
    with pytest.raises(IllegalStateError, match="only be set to True"):
        message.set_object_property(name, value)
    assert context.rollback_only


@pytest.mark.parametrize("value", [1, 0.5, [True]])
def test_rollback_only_takes_no_other_type(value):
    message, context = delivered()
    with pytest.raises(MessageFormatError):
        message.set_object_property("JMSJCA.setRollbackOnly", value)
    assert not context.rollback_only


def test_what_the_delivery_refuses_is_refused():
    message, context = delivered()
    message.acknowledge()
    with pytest.raises(IllegalStateError, match="acknowledged"):
        message.set_boolean_property("JMSJCA.setRollbackOnly", True)
    with pytest.raises(InvalidRedeliveryHandlingError):
        message.set_string_property("_JMSJCA_RedeliveryHandling", "wrong")
    assert context.handling == "5:1000"


@pytest.mark.parametrize("name", STOP)
@pytest.mark.parametrize("reason", ["database is down", None])
def test_delivery_is_stopped(name, reason):
    message, context = delivered()
    message.set_string_property(name, reason)
    assert context.stopped == [reason]


@pytest.mark.parametrize("name", HANDLING)
def test_redelivery_handling_is_changed(name):
    message, context = delivered()
    message.set_string_property(name, "1:delete")
    assert context.handling == message.redelivery_handling == "1:delete"
    with pytest.raises(MessageFormatError):
        message.set_string_property(name, None)
    assert context.handling == "1:delete"


@pytest.mark.parametrize("name", MODE)
def test_user_data_is_remembered_and_forgotten(name):
    message, context = delivered()
    message.set_string_property(name, "permanent")
    assert context.remembered == {"mode": "permanent"}
    for _ in range(2):
        message.set_object_property(name, None)
        assert context.remembered == {}


@pytest.mark.parametrize("name", sorted({*ALL} - SETTABLE))
def test_the_rest_can_only_be_read(name):
    message, _ = delivered()
    message.clear_properties()
    with pytest.raises(MessageNotWriteableError):
        message.set_object_property(name, True)
    assert name not in message.properties


def test_attributes_control_the_delivery():
    message, context = delivered()
    message.redelivery_handling = "1:delete"
    message.user_rollback_data["mode"] = "permanent"
    message.stop_message_delivery("enough")
    message.stop_message_delivery()
    message.set_rollback_only()
    assert (context.handling, context.remembered, context.stopped, context.rollback_only) == (
        "1:delete",
        {"mode": "permanent"},
        ["enough", None],
        True,
    )


def test_attributes_tell_of_the_delivery():
    message, context = delivered()
    assert (message.batch_index, message.batch_size, message.end_of_batch) == (4, 10, False)
    assert (message.redelivery_count, message.redelivery_handling, message.rollback_only) == (3, "5:1000", False)
    assert message.delivery_id == "ID:delivery"
    context.batch_index = context.batch_size = None
    assert (message.batch_index, message.batch_size) == (0, 1)


@pytest.mark.parametrize("name", ALL)
def test_names_are_not_listed(name):
    message, _ = delivered()
    assert not message.property_exists(name)
    assert message.get_property_names() == ["JMSXDeliveryCount"]


@given(st.data(), st.sampled_from(ALL))
def test_what_was_sent_controls_nothing(data, name):
    sent = data.draw(in_any_case(name))
    value = data.draw(VALUES)
    message, context = delivered({sent: value, "region": "EU"})
    shows = value if sent == name in TRAVELLING else delivered()[0].get_object_property(name)
    assert message.get_object_property(name) == shows
    assert context == ListenerDelivery()
    assert message.properties[sent] == value
    assert message.get_string_property("region") == "EU"


@pytest.mark.parametrize("name", TRAVELLING)
def test_what_is_remembered_counts_rather_than_what_was_sent(name):
    message, context = delivered({name: "sent"})
    assert message.get_object_property(name) == message.get_string_property(name) == "sent"
    assert "mode" not in message.user_rollback_data
    context.failure, context.remembered = FAILURE, {"mode": "permanent"}
    assert message.get_object_property(name) == TELLING[name]


@given(st.dictionaries(st.text() | st.sampled_from(ALL).flatmap(in_any_case), VALUES))
def test_no_sent_property_stops_a_handler_that_reads_all(properties):
    message, context = delivered(properties)
    for name in message.get_property_names():
        message.get_object_property(name)
    assert context == ListenerDelivery()
    assert dict(message.properties) == properties


@pytest.mark.parametrize("name", ["JMSJCA.other", "_JMSJCA_JMSXGroupID", "JMS_Sun_JMSJCA_OriginalTimestamp", "x", ""])
def test_other_names_are_ordinary(name):
    message, _ = delivered({name: "sent"})
    assert message.get_string_property(name) == "sent"
    with pytest.raises(MessageNotWriteableError):
        message.set_string_property(name, "mine")


@pytest.mark.parametrize("name", sorted({*ALL} - {"_JMSJCA_UserRollbackData.mode"}))  # which is no property's name
def test_without_a_listener_a_name_is_ordinary(name):
    message = TextMessage("x")
    message.set_object_property(name, "mine")
    assert message.get_object_property(name) == message.properties[name] == "mine"
    message = received({name: "sent"})
    bind_delivery(message, SessionDelivery())
    assert message.get_string_property(name) == "sent"
    with pytest.raises(MessageNotWriteableError):
        message.set_boolean_property(name, True)


@pytest.mark.parametrize("context", [None, SessionDelivery()])
def test_without_a_listener_attributes_are_neutral(context):
    message = received(delivery_count=3)
    if context is not None:
        bind_delivery(message, context)
    neutral = attrgetter("batch_index", "batch_size", "end_of_batch", "redelivery_handling", "rollback_only")
    assert neutral(message) == (0, 1, False, "", False)
    assert message.redelivery_count == 2
    assert dict(message.user_rollback_data) == {}
    assert "mode" not in message.user_rollback_data


@pytest.mark.parametrize("context", [None, SessionDelivery()])
def test_without_a_listener_nothing_can_be_controlled(context):
    message = received()
    if context is not None:
        bind_delivery(message, context)
    with pytest.raises(IllegalStateError, match="No listener delivered"):
        message.redelivery_handling = "1:delete"
    with pytest.raises(IllegalStateError, match="No listener delivered"):
        message.stop_message_delivery("why")
    with pytest.raises(IllegalStateError, match="No listener delivered"):
        message.user_rollback_data["mode"] = "permanent"
    with pytest.raises(KeyError):
        del message.user_rollback_data["mode"]


def test_a_session_tells_that_it_will_roll_back():
    message = received()
    bind_delivery(message, SessionDelivery())
    message.set_rollback_only()
    assert message.rollback_only


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("JMS_Sun_JMSJCA_UserRollbackData.failuremode", "failuremode"),
        ("JMS_Sun_JMSJCA_UserRollbackDatafailuremode", "failuremode"),
        ("_JMSJCA_UserRollbackData1", "1"),
        ("_JMSJCA_UserRollbackData.1", "1"),
        ("JMS_Sun_JMSJCA_UserRollbackData.a.b", "a.b"),
        ("_jmsjca_USERROLLBACKDATA.Aa", "Aa"),
        ("JMS_Sun_JMSJCA_RedeliveryCount", None),
        ("JMSJCA.UserRollbackData.x", None),
        ("x_JMSJCA_UserRollbackDatax", None),
        ("", None),
    ],
)
def test_each_spelling_means_one_thing(name, key):
    assert rollback_key(name) == key


@pytest.mark.parametrize("key", ["a", "1", "a.b", "ä_ß", "null"])
def test_each_name_is_a_propertys_and_means_the_key(key):
    names = rollback_names(key)
    assert {rollback_key(name) for name in names} == {key}
    assert set(Properties(dict.fromkeys(names, "x"))) == set(names)


def test_data_travels_with_and_without_the_dot():
    assert rollback_names("x") == (
        "JMS_Sun_JMSJCA_UserRollbackData.x",
        "JMS_Sun_JMSJCA_UserRollbackDatax",
        "_JMSJCA_UserRollbackDatax",
    )
