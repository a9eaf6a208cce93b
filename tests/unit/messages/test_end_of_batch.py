"""The EndOfBatch message."""

from operator import methodcaller

import pytest

from jmsjca import DeliveryMode, Message
from jmsjca.errors import IllegalStateError, MessageNotWriteableError
from jmsjca.messages import end_of_batch_message
from jmsjca.messages.delivery import bind_delivery
from tests.unit.messages.endpoint_context import ListenerDelivery


def bound() -> tuple[Message, ListenerDelivery]:
    message, context = end_of_batch_message(), ListenerDelivery(batch_index=3, redelivery_count=0)
    bind_delivery(message, context)
    return message, context


@pytest.mark.parametrize("message", [bound()[0], end_of_batch_message()], ids=["delivered", "of a test"])
def test_it_says_what_it_is(message):
    assert message.end_of_batch
    assert message.get_object_property("JMSJCA.EndOfBatch") is True
    assert message.get_boolean_property("jmsjca.endofbatch") is True


def test_headers_are_those_of_nothing():
    message = end_of_batch_message()
    headers = (message.message_id, message.correlation_id, message.destination, message.reply_to, message.type)
    assert headers == (None,) * 5
    assert (message.timestamp, message.expiration, message.delivery_time, message.body) == (None,) * 4
    assert (message.delivery_mode, message.priority) == (DeliveryMode.NON_PERSISTENT, 4)
    assert (message.redelivered, message.delivery_count, message.redelivery_count) == (False, 0, 0)


@pytest.mark.parametrize("message", [bound()[0], end_of_batch_message()], ids=["delivered", "of a test"])
@pytest.mark.parametrize(
    "read",
    [
        methodcaller("get_object_property", "region"),
        methodcaller("get_string_property", "region"),
        methodcaller("get_int_property", "JMSXDeliveryCount"),
        methodcaller("get_property_names"),
    ],
)
def test_other_properties_are_refused(message, read):
    with pytest.raises(IllegalStateError, match="end of a batch"):
        read(message)


@pytest.mark.parametrize("message", [bound()[0], end_of_batch_message()], ids=["delivered", "of a test"])
def test_no_property_is_there_or_can_be_set(message):
    message.clear_properties()
    message.clear_body()
    for name in ("region", "JMSJCA.EndOfBatch", "JMSXDeliveryCount"):
        assert not message.property_exists(name)
        with pytest.raises(MessageNotWriteableError):
            message.set_object_property(name, "EU")
    with pytest.raises(MessageNotWriteableError, match="end of a batch"):
        message.set_string_property("region", "EU")
    assert dict(message.properties) == {}


def test_it_belongs_to_the_batch():
    message, context = bound()
    assert message.get_int_property("JMSJCA.batchIndex") == message.batch_index == 3
    assert message.get_int_property("JMSJCA.batchSize") == message.batch_size == 10
    message.set_boolean_property("JMSJCA.setRollbackOnly", True)
    message.acknowledge()
    assert context.rollback_only
    assert context.acknowledged


def test_undelivered_it_has_no_unit():
    with pytest.raises(IllegalStateError):
        end_of_batch_message().acknowledge()
