"""Stream messages arrive as they were sent (capability structured)."""

from __future__ import annotations

import pytest

from jmsjca.errors import (
    MessageEOFError,
    MessageFormatError,
    MessageNotReadableError,
    MessageNotWriteableError,
)
from jmsjca.messages import Byte, Char, Double, Float, Int, Long, Short, StreamMessage, TextMessage, type_name
from jmsjca.testing.contract.harness import Contract, Harness, prepare
from jmsjca.testing.contract.round_trip import again, through

__all__ = ["TestStreams"]


class TestStreams(Contract):
    """Typed values in a row (JMS 3.1, section 3.11)."""

    @pytest.fixture(autouse=True)
    def structured(self, harness: Harness) -> None:
        """Only for brokers that take such messages."""
        harness.require("structured")

    def test_every_type_arrives_in_its_place(self, harness: Harness) -> None:
        """Ten types and null, each kept apart from the others (JMS 3.1, section 3.11.3)."""
        sent = (True, Byte(1), None, Short(1), Char("1"), Int(1), Long(1), Float(1), Double(1), "1", b"1", False)
        body = _through(harness, *sent).body
        assert body == sent
        assert [type(value) for value in body] == [type(value) for value in sent]

    def test_written_values_are_read_in_their_order(self, harness: Harness) -> None:
        """Each method of writing has its method of reading (JMS 3.1, section 3.11)."""
        message = StreamMessage()
        message.write_int(1)
        message.write_string("two")
        message.write_bytes(b"three")
        message.write_double(4.5)
        got = _received(harness, message)
        assert (got.read_int(), got.read_string(), got.read_bytes(), got.read_double()) == (1, "two", b"three", 4.5)

    def test_there_is_an_end(self, harness: Harness) -> None:
        """`MessageEOFError` behind the last value, also of a stream without any (JMS 3.1, section 3.11)."""
        message = _through(harness, 1)
        message.read_int()
        for ended in (message, _through(harness)):
            with pytest.raises(MessageEOFError):
                ended.read_object()

    def test_reset_begins_again(self, harness: Harness) -> None:
        """What was read can be read once more (JMS 3.1, section 3.11)."""
        message = _through(harness, 1, 2)
        assert (message.read_int(), message.read_int()) == (1, 2)
        message.reset()
        assert message.read_int() == 1

    def test_a_failed_read_takes_nothing(self, harness: Harness) -> None:
        """The value can be read as another type (JMS 3.1, section 3.11.3)."""
        message = _through(harness, "x", None, 7)
        for read in (message.read_int, message.read_double, message.read_char):
            with pytest.raises(MessageFormatError):
                read()
        assert message.read_string() == "x"
        with pytest.raises(MessageFormatError):
            message.read_long()
        assert message.read_object() is None
        assert message.read_int() == 7

    def test_received_values_convert_by_their_type(self, harness: Harness) -> None:
        """The table holds for what arrives as for what is written (JMS 3.1, section 3.11.3)."""
        message = _through(harness, Short(7), Char("c"), "7", Float(0.5), None)
        with pytest.raises(MessageFormatError):
            message.read_byte()
        assert (message.read_long(), message.read_string(), message.read_short()) == (7, "c", 7)
        assert (message.read_double(), message.read_boolean()) == (0.5, False)

    def test_bytes_are_read_in_pieces(self, harness: Harness) -> None:
        """Nothing else is read before the last piece (JMS 3.1, section 3.11)."""
        message = _through(harness, b"abcde", b"", None, b"fg", "next")
        assert (message.read_bytes(3), message.read_bytes(3)) == (b"abc", b"de")
        assert (message.read_bytes(3), message.read_bytes(3)) == (b"", None)
        assert message.read_bytes(2) == b"fg"
        with pytest.raises(MessageFormatError):
            message.read_string()
        assert message.read_bytes(2) is None
        assert message.read_string() == "next"

    def test_neighbouring_bytes_stay_apart(self, harness: Harness) -> None:
        """Each is a value of its own (JMS 3.1, section 3.11)."""
        assert _through(harness, b"a", b"b", b"").body == (b"a", b"b", b"")

    def test_received_stream_is_read_only(self, harness: Harness) -> None:
        """Until its body is cleared (JMS 3.1, section 3.11.2)."""
        message = _through(harness, 1)
        with pytest.raises(MessageNotWriteableError):
            message.write_int(2)
        with pytest.raises(MessageNotWriteableError):
            message.body = [2]
        assert message.body == (1,)

    def test_cleared_stream_is_written(self, harness: Harness) -> None:
        """It is empty and cannot be read before `reset`; properties stay (JMS 3.1, section 3.11.1)."""
        message = _received(harness, StreamMessage([1], properties={"p": 1}))
        message.clear_body()
        with pytest.raises(MessageNotReadableError):
            message.read_int()
        message.write_string("new")
        got = through(harness, message)
        assert (got.body, dict(got.properties)) == (("new",), {"p": 1})

    def test_half_read_stream_is_sent_on_whole(self, harness: Harness) -> None:
        """Reading is no change."""
        message = _through(harness, 1, b"bytes", Short(3))
        message.read_int()
        message.read_bytes(2)
        got = through(harness, message)
        assert (got.body, type_name(got.body[2])) == ((1, b"bytes", 3), "short")

    def test_stream_that_comes_again_begins_again(self, harness: Harness) -> None:
        """Also where it had been read before the rollback (JMS 3.1, section 3.10)."""
        first, second = again(harness, StreamMessage([1, 2]))
        for message in (first, second.message):
            assert isinstance(message, StreamMessage)
            assert message.read_int() == 1

    def test_stream_written_after_send_is_sent_as_it_was(self, harness: Harness) -> None:
        """The sender may write on, and send it again (JMS 3.1, section 3.9)."""
        queue = harness.queue()
        message = StreamMessage([1])
        unit = harness.unit()
        unit.send(prepare(message, queue), queue)
        message.write_int(2)
        unit.send(prepare(message, queue), queue)
        unit.commit()
        deliveries = harness.gather(harness.connection.consumer(queue), 2)
        assert [delivery.message.body for delivery in deliveries] == [(1,), (1, 2)]

    def test_long_stream_arrives(self, harness: Harness) -> None:
        """There is no bound but that of the message."""
        assert _through(harness, *range(10_000)).get_body(list) == list(range(10_000))

    def test_stream_that_no_broker_can_carry_is_refused(self, harness: Harness) -> None:
        """A lone surrogate is no Unicode text; the unit stays usable."""
        queue = harness.queue()
        unit = harness.unit()
        with pytest.raises(MessageFormatError):
            unit.send(prepare(StreamMessage(["\ud800"]), queue), queue)
        unit.send(prepare(TextMessage("good"), queue), queue)
        unit.commit()
        harness.expect(queue, "good")


def _through(harness: Harness, *values: object) -> StreamMessage:
    return _received(harness, StreamMessage(values))


def _received(harness: Harness, message: StreamMessage) -> StreamMessage:
    received = through(harness, message)
    assert isinstance(received, StreamMessage)
    return received
