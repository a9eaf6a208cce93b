"""Received messages decode their headers at the first access."""

import copy
import pickle
from functools import partial

import pytest

from jmsjca import BytesMessage, DeliveryMode, MapMessage, Message, ObjectMessage, Queue, StreamMessage, TextMessage
from jmsjca.errors import MessageNotWriteableError
from jmsjca.messages import Properties

HEADERS = {
    "properties": Properties.received({"a": 1}),
    "message_id": "ID:1",
    "destination": Queue("q"),
    "correlation_id": None,
    "reply_to": Queue("replies"),
    "type": None,
    "delivery_mode": DeliveryMode.NON_PERSISTENT,
    "priority": 7,
    "timestamp": None,
    "expiration": None,
    "delivery_time": None,
    "delivery_count": 3,
    "redelivered": True,
}
KINDS = [
    (TextMessage, "a"),
    (BytesMessage, b"a"),
    (MapMessage, {"a": 1}),
    (StreamMessage, [1]),
    (ObjectMessage, b"\x80"),
    (Message, None),
]


@pytest.fixture
def message():
    return TextMessage.received("hello", partial(dict, HEADERS))


@pytest.mark.parametrize("name", HEADERS)
def test_each_header_is_there(message, name):
    assert getattr(message, name) == HEADERS[name]


def test_headers_are_decoded_once_and_not_before_one_is_asked_for():
    calls = []

    def headers():
        calls.append("decoded")
        return HEADERS

    message = TextMessage.received("hello", headers)
    assert message.body == "hello"
    assert calls == []
    assert (message.priority, message.message_id, message.redelivery_count) == (7, "ID:1", 2)
    assert calls == ["decoded"]


def test_what_was_set_before_stays(message):
    """A message that is sent on gets new headers before the old ones are looked at."""
    message.message_id, message.reply_to, message.priority = "ID:2", None, 1
    assert message.correlation_id is None
    assert (message.message_id, message.reply_to, message.priority) == ("ID:2", None, 1)
    assert message.destination == Queue("q")


def test_properties_that_were_cleared_stay_so(message):
    message.clear_properties()
    message.properties["b"] = 2
    assert message.priority == 7
    assert dict(message.properties) == {"b": 2}


@pytest.mark.parametrize(("kind", "body"), KINDS)
def test_every_kind_is_read_only_until_it_is_cleared(kind, body):
    message = kind.received(body, partial(dict, HEADERS))
    with pytest.raises(MessageNotWriteableError):
        message.body = None
    message.clear_body()
    message.body = None
    assert message.priority == 7


def test_copies_are_whole(message):
    for twin in (copy.copy(message), pickle.loads(pickle.dumps(message))):  # noqa: S301
        assert (twin.body, twin.priority, twin.reply_to) == ("hello", 7, Queue("replies"))


def test_unknown_attributes_are_refused_as_ever(message):
    with pytest.raises(AttributeError, match="'TextMessage' object has no attribute 'priorty'"):
        _ = message.priorty
    assert not hasattr(Message(), "nothing")
