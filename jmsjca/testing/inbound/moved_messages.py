"""Messages that are moved because they fail again and again: what the copy tells, wherever that is configured."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from jmsjca import BytesMessage, MapMessage, Message, ObjectMessage, StreamMessage, TextMessage, Topic
from jmsjca.messages import Int, Long
from jmsjca.testing.inbound.hearing import Failed
from jmsjca.testing.inbound.stage import Inbound, Stage

__all__ = ["TestMovedMessages"]

_MESSAGES: dict[str, Callable[[], Message]] = {
    "text": lambda: TextMessage("body"),
    "bytes": lambda: BytesMessage(b"body"),
    "map": lambda: MapMessage({"key": "value"}),
    "stream": lambda: StreamMessage(["one", Int(2)]),
    "object": lambda: ObjectMessage(["anything"]),
}
_PROPERTIES: dict[str, str | int] = {"s1": "S1", "int1": Int(2), "long1": Long(3)}
kinds = pytest.mark.parametrize("kind", _MESSAGES)


class Remembering:
    """A handler that notes on each message what it saw, has it moved to a topic, and fails.

    Args:
        error: What it raises; None to roll back without.
    """

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.original = Message()

    def __call__(self, message: Message) -> None:
        """Note, change the redelivery handling, and fail."""
        self.original = message
        message.set_string_property("_JMSJCA_UserRollbackData1", "x")
        message.set_string_property("_JMSJCA_UserRollbackData2", "y")
        seen, count = (
            message.get_object_property(f"_JMSJCA_{name}") for name in ("UserRollbackDatact", "RedeliveryCount")
        )
        message.set_string_property("_JMSJCA_UserRollbackDatact", f"{seen},{count}" if seen else str(count))
        handling = message.get_string_property("_JMSJCA_RedeliveryHandling") or ""
        message.set_string_property("_JMSJCA_RedeliveryHandling", handling.replace("queue", "topic"))
        if self.error is not None:
            raise self.error
        message.set_rollback_only()


@kinds
class TestMovedMessages(Inbound):
    """A copy says what the message said, where it was, and why it is moved (JMSJCA manual, redelivery handling)."""

    def test_serial_and_configured_in_the_url(self, stage: Stage, kind: str) -> None:
        """JMSJCA: testDlqMoveSerialXA."""
        topic, handler = stage.harness.topic(), Remembering()
        url = stage.url_with(f"JMSJCA.redeliveryhandling=4:1;5:move(topic:{topic.name})")
        copy = self._moved(stage, topic, kind, handler, connection_url=url)
        self._check(stage, copy, handler.original)
        assert not [name for name in copy.get_property_names() if "Exception" in name]

    def test_concurrent_and_configured_in_the_spec(self, stage: Stage, kind: str) -> None:
        """JMSJCA: testDlqMoveCCXA."""
        topic, handler = stage.harness.topic(), Remembering()
        handling = f"4:1;5:move(topic:{topic.name})"
        copy = self._moved(stage, topic, kind, handler, concurrency_mode="cc", redelivery_handling=handling)
        self._check(stage, copy, handler.original)
        assert not [name for name in copy.get_property_names() if "Exception" in name]

    def test_serial_with_an_exception_and_no_transaction(self, stage: Stage, kind: str) -> None:
        """JMSJCA: testDlqMoveSerialBMT."""
        topic, handler = stage.harness.topic(), Remembering(Failed("too bad"))
        url = stage.url_with(f"JMSJCA.redeliveryhandling=4:1;5:move(queue:{topic.name})")
        copy = self._moved(stage, topic, kind, handler, connection_url=url, transaction="none")
        self._check(stage, copy, handler.original)
        self._check_exception(copy)

    def test_concurrent_with_an_exception_and_no_transaction(self, stage: Stage, kind: str) -> None:
        """JMSJCA: testDlqMoveCCBMT."""
        topic, handler = stage.harness.topic(), Remembering(Failed("too bad"))
        spec = {"redelivery_handling": f"4:1;5:move(queue:{topic.name})", "transaction": "none"}
        copy = self._moved(stage, topic, kind, handler, concurrency_mode="cc", **spec)
        self._check(stage, copy, handler.original)
        self._check_exception(copy)

    def _moved(self, stage: Stage, topic: Topic, kind: str, handler: Remembering, **spec: Any) -> Message:
        if kind in ("map", "stream", "object"):
            stage.harness.require("structured")
        subscriber = stage.harness.connection.consumer(topic)
        message = _MESSAGES[kind]()
        message.properties.update(_PROPERTIES)
        stage.harness.send_messages(stage.source, message, correlation_id="corr")
        stage.listen(handler, context_name="the context", **spec)
        [delivery] = stage.harness.gather(subscriber, 1)
        stage.adapter.stop()
        stage.expect_rest(stage.source)
        return delivery.message

    def _check(self, stage: Stage, copy: Message, original: Message) -> None:
        assert type(copy) is type(original)
        assert _content(copy) == _content(original)
        assert original.timestamp is not None
        told = {
            "RedeliveryCount": 5,
            "OriginalDestinationName": stage.source.name,
            "OriginalDestinationType": "javax.jms.Queue",
            "OriginalTimestamp": round(original.timestamp.timestamp() * 1000),
            "OriginalJMSMessageID": original.message_id,
            "OriginalJMSCorrelationID": "corr",
            "ContextName": "the context",
            "UserRollbackData1": "x",
            "UserRollbackData2": "y",
            "UserRollbackDatact": "0,1,2,3,4",
        }
        for prefix in ("_JMSJCA_", "JMS_Sun_JMSJCA_"):
            assert {name: copy.properties.get(prefix + name) for name in told} == told
        assert {name: copy.properties.get(name) for name in _PROPERTIES} == _PROPERTIES

    def _check_exception(self, copy: Message) -> None:
        for prefix in ("_JMSJCA_Exception", "JMS_Sun_JMSJCA_Exception"):
            assert str(copy.properties[prefix + "Class"]).endswith("Failed")
            assert copy.properties[prefix + "Message"] == "too bad"
            assert "raise self.error" in str(copy.properties[prefix + "StackTrace"])


def _content(message: Message) -> object:
    return message.pickled if isinstance(message, ObjectMessage) else message.body
