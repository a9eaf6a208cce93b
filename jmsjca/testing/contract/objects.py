"""Object messages arrive as they were sent, and nobody unpickles them unasked (capability structured)."""

from __future__ import annotations

from decimal import Decimal
from itertools import chain
from pathlib import Path

import pytest

from jmsjca.errors import MessageFormatError, MessageNotWriteableError
from jmsjca.messages import Message, ObjectMessage
from jmsjca.testing.contract.harness import Contract, Harness
from jmsjca.testing.contract.round_trip import through

__all__ = ["TestObjects"]

_DECIMAL = frozenset({("decimal", "Decimal")})


class TestObjects(Contract):
    """A pickled object, as it was when it was given (JMS 3.1, section 3.11)."""

    @pytest.fixture(autouse=True)
    def structured(self, harness: Harness) -> None:
        """Only for brokers that take such messages."""
        harness.require("structured")

    def test_object_arrives_for_who_names_its_classes(self, harness: Harness) -> None:
        """Opt-in, by exact names (JMS 3.1, section 3.11)."""
        sent = {"price": Decimal("1.50"), "parts": [1, "two", (3.0, b"four", None)]}
        assert _received(harness, ObjectMessage(sent)).get_object(_DECIMAL) == sent

    def test_object_of_another_class_is_refused(self, harness: Harness) -> None:
        """A list of names allows what it names; the empty one nothing at all (JMS 3.1, section 3.11)."""
        message = _received(harness, ObjectMessage(Path("a")))
        for allowed in (_DECIMAL, frozenset({("pathlib", "*")})):
            with pytest.raises(MessageFormatError):
                message.get_object(allowed)
        with pytest.raises(MessageFormatError):
            _received(harness, ObjectMessage(["data"])).get_object(frozenset())

    def test_body_is_refused(self, harness: Harness) -> None:
        """Without names nothing is unpickled, not even harmless data (JMS 3.1, section 3.11)."""
        message = _received(harness, ObjectMessage(["data"]))
        for read in (lambda: message.body, lambda: message.get_body(object)):
            with pytest.raises(MessageFormatError, match="get_object"):
                read()
        assert not message.is_body_assignable_to(object)

    def test_hostile_pickle_passes_through_unharmed(self, harness: Harness, tmp_path: Path) -> None:
        """Received, shown, browsed, rolled back, sent on: nobody runs it (JMS 3.1, section 3.11)."""
        canary = tmp_path / "canary"
        hostile = f"cos\nmkdir\n(V{canary}\ntR.".encode("raw-unicode-escape")  # leaves a trace when it is loaded
        queue = harness.queue()
        harness.send_messages(queue, ObjectMessage.from_pickled(hostile))
        if harness.connection.capabilities.browse:
            shown = list(chain.from_iterable(harness.connection.browse(queue)))
            assert [_pickled(delivery.message) for delivery in shown] == [hostile]
        consumer = harness.connection.consumer(queue)
        harness.holding(harness.gather(consumer, 1)).rollback()
        [delivery] = harness.gather(consumer, 1)
        assert "ObjectMessage" in repr(delivery.message)
        assert _pickled(through(harness, delivery.message)) == hostile
        assert not canary.exists()

    def test_bytes_that_are_no_pickle_arrive_unchanged(self, harness: Harness) -> None:
        """They may be another language's objects (JMS 3.1, section 3.11.4)."""
        foreign = b"\xac\xed\x00\x05 as Java begins" + bytes(range(256))
        message = _received(harness, ObjectMessage.from_pickled(foreign))
        assert message.pickled == foreign
        with pytest.raises(MessageFormatError):
            message.get_object(_DECIMAL)

    def test_no_object_arrives_as_none(self, harness: Harness) -> None:
        """The default is null (JMS 3.1, section 3.11.1)."""
        message = _received(harness, ObjectMessage())
        assert (message.body, message.pickled, message.get_object(_DECIMAL)) == (None, None, None)

    def test_object_is_sent_as_it_was_when_it_was_given(self, harness: Harness) -> None:
        """A message holds a snapshot (JMS 3.1, sections 3.9 and 3.11)."""
        parts = [1]
        message = ObjectMessage(parts)
        parts.append(2)
        assert _received(harness, message).get_object(_DECIMAL) == [1]

    def test_received_object_is_read_only(self, harness: Harness) -> None:
        """Until the body is cleared (JMS 3.1, sections 3.11.1 and 3.11.2)."""
        message = _received(harness, ObjectMessage([1], properties={"p": 1}))
        with pytest.raises(MessageNotWriteableError):
            message.body = [2]
        message.clear_body()
        message.body = [3]
        got = _received(harness, message)
        assert (got.get_object(_DECIMAL), dict(got.properties)) == ([3], {"p": 1})

    def test_raw_body_is_the_pickle(self, harness: Harness) -> None:
        """For poison and for staging, whatever is in it."""
        queue = harness.queue()
        harness.send_messages(queue, ObjectMessage.from_pickled(b"cos\nsystem\n"))
        [delivery] = harness.gather(harness.connection.consumer(queue), 1)
        assert delivery.raw == b"cos\nsystem\n"


def _received(harness: Harness, message: ObjectMessage) -> ObjectMessage:
    received = through(harness, message)
    assert isinstance(received, ObjectMessage)
    return received


def _pickled(message: Message) -> bytes | None:
    assert isinstance(message, ObjectMessage)
    return message.pickled
