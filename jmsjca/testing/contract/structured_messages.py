"""Cases for map and stream messages: they arrive as they were sent (capability structured)."""

from __future__ import annotations

import math
from collections.abc import Mapping

import pytest

from jmsjca.errors import MessageEOFError, MessageFormatError, MessageNotReadableError, MessageNotWriteableError
from jmsjca.messages import (
    Byte,
    Char,
    Double,
    Float,
    Int,
    Long,
    MapMessage,
    Short,
    StreamMessage,
    TextMessage,
    type_name,
)
from jmsjca.testing.contract.harness import Contract, Harness, prepare

__all__ = ["TestMaps", "TestStreams"]


class TestMaps(Contract):
    """Names and typed values (JMS 3.1, section 3.11)."""

    needs = ("structured",)

    def test_every_type_arrives(self, harness: Harness) -> None:
        """Ten types, each kept apart from the others (JMS 3.1, section 3.11.3)."""
        values = (True, Byte(1), Short(1), Char("1"), Int(1), Long(1), Float(1), Double(1), "1", b"1")
        sent: dict[str, object] = {type_name(value): value for value in values}
        body = _map_round_trip(harness, sent).body
        assert body == sent
        assert {name: type_name(value) for name, value in body.items()} == {name: name for name in sent}

    def test_bounds_of_numbers_arrive(self, harness: Harness) -> None:
        """The least and the greatest of each type."""
        sent: dict[str, object] = {}
        for mark, bits in ((Byte, 8), (Short, 16), (Int, 32), (Long, 64)):
            sent |= {f"{mark.__name__} from": mark(-(1 << bits - 1)), f"{mark.__name__} to": mark((1 << bits - 1) - 1)}
        sent |= {"float": Float(1e-45), "Float": Float(3.4e38), "double": 5e-324, "Double": 1.7e308, "zero": -0.0}
        body = _map_round_trip(harness, sent).body
        assert {name: repr(value) for name, value in body.items()} == {name: repr(v) for name, v in sent.items()}

    def test_infinite_numbers_arrive(self, harness: Harness) -> None:
        """Infinity and not-a-number are values of both precisions."""
        sent: dict[str, object] = {
            f"{mark.__name__} {value}": mark(value)
            for mark in (Float, Double)
            for value in (math.inf, -math.inf, math.nan)
        }
        body = _map_round_trip(harness, sent).body
        assert {name: (type_name(value), repr(value)) for name, value in body.items()} == {
            name: (type_name(value), repr(value)) for name, value in sent.items()
        }

    def test_texts_and_bytes_arrive_whole(self, harness: Harness) -> None:
        """Empty ones, large ones, and every sign."""
        sent: dict[str, object] = {
            "empty": "",
            "signs": "ünïcödé \U0001f600 \x00 \r\n \" ' \\ \u2028",
            "large": "x" * 100_000,
            "no bytes": b"",
            "all bytes": bytes(range(256)),
            "many bytes": bytes(100_000),
            "first char": Char("\0"),
            "last char": Char("\uffff"),
        }
        assert _map_round_trip(harness, sent).body == sent

    def test_any_text_names_an_entry(self, harness: Harness) -> None:
        """Names of entries are no identifiers (JMS 3.1, section 3.11)."""
        names = ["1", " ", "a.b", "a b", "NULL", "JMSX", "größe", "\U0001f600", '"', "\n", "\0", "x" * 10_000]
        sent: dict[str, object] = {name: number for number, name in enumerate(names)}
        assert _map_round_trip(harness, sent).body == sent

    def test_null_exists(self, harness: Harness) -> None:
        """An entry without a value reads as one that is not set, but is there (JMS 3.1, section 3.11.3)."""
        message = _map_round_trip(harness, {"null": None})
        assert (message.item_exists("null"), message.item_exists("missing")) == (True, False)
        for name in ("null", "missing"):
            assert (message.get_object(name), message.get_string(name), message.get_bytes(name)) == (None, None, None)
            assert message.get_boolean(name) is False
            for read in (message.get_int, message.get_double, message.get_char):
                with pytest.raises(MessageFormatError):
                    read(name)

    def test_received_values_convert_by_their_type(self, harness: Harness) -> None:
        """The table holds for what arrives as for what is set (JMS 3.1, section 3.11.3)."""
        message = _map_round_trip(harness, {"s": Short(7), "c": Char("c"), "t": "7.5", "b": b"7"})
        assert (message.get_int("s"), message.get_string("s"), message.get_string("c")) == (7, "7", "c")
        assert message.get_double("t") == 7.5
        for name, read in (("s", message.get_byte), ("c", message.get_int), ("t", message.get_char)):
            with pytest.raises(MessageFormatError):
                read(name)
        with pytest.raises(MessageFormatError):
            message.get_string("b")

    def test_empty_map_arrives(self, harness: Harness) -> None:
        """A map without entries is still a map message (JMS 3.1, section 3.11.4)."""
        message = _map_round_trip(harness, {})
        assert (message.body, message.get_map_names()) == ({}, [])

    def test_received_map_is_read_only(self, harness: Harness) -> None:
        """By method and by mapping, until the body is cleared (JMS 3.1, section 3.11.2)."""
        message = _map_round_trip(harness, {"a": 1})
        with pytest.raises(MessageNotWriteableError):
            message.set_int("a", 2)
        with pytest.raises(MessageNotWriteableError):
            message.body["a"] = 2
        with pytest.raises(MessageNotWriteableError):
            del message.body["a"]
        with pytest.raises(MessageNotWriteableError):
            message.body = {"a": 2}
        assert message.body == {"a": 1}

    def test_cleared_map_is_empty_and_can_be_sent(self, harness: Harness) -> None:
        """Properties and headers stay (JMS 3.1, section 3.11.1)."""
        message = _map_round_trip(harness, {"a": 1}, correlation_id="c", properties={"p": 1})
        message.clear_body()
        assert message.body == {}
        message.set_int("b", 2)
        got = harness.round_trip(message)
        assert (got.body, got.correlation_id, dict(got.properties)) == ({"b": 2}, "c", {"p": 1})

    def test_map_changed_after_send_is_sent_as_it_was(self, harness: Harness) -> None:
        """The sender keeps its message, to change it and to send it again (JMS 3.1, section 3.9)."""
        queue = harness.queue()
        message = MapMessage({"a": 1})
        unit = harness.unit()
        unit.send(prepare(message, queue), queue)
        message.body["a"] = 2
        unit.send(prepare(message, queue), queue)
        message.body.clear()
        unit.commit()
        deliveries = harness.gather(harness.connection.consumer(queue), 2)
        assert [delivery.message.body for delivery in deliveries] == [{"a": 1}, {"a": 2}]

    def test_received_map_can_be_sent_on(self, harness: Harness) -> None:
        """Forwarding needs no copy, and changes no type."""
        sent: dict[str, object] = {"s": Short(1), "c": Char("c"), "b": b"b", "n": None}
        body = harness.round_trip(_map_round_trip(harness, sent)).body
        assert [(value, type(value)) for value in body.values()] == [(value, type(value)) for value in sent.values()]

    def test_map_is_given_as_a_dictionary(self, harness: Harness) -> None:
        """Changing what `get_body` gave changes nothing in the message (JMS 3.1, sections 3.11 and 3.12)."""
        message = _map_round_trip(harness, {"a": 1})
        message.get_body(dict)["a"] = 2
        assert message.get_body(dict) == {"a": 1}

    def test_map_that_no_broker_can_carry_is_refused(self, harness: Harness) -> None:
        """A lone surrogate is no Unicode text, as name, as text and as char; the unit stays usable."""
        queue = harness.queue()
        unit = harness.unit()
        for body in ({"\ud800": 1}, {"a": "\ud800"}, {"a": Char("\ud800")}):
            with pytest.raises(MessageFormatError):
                unit.send(prepare(MapMessage(body), queue), queue)
        unit.send(prepare(TextMessage("good"), queue), queue)
        unit.commit()
        harness.expect(queue, "good")


def _map_round_trip(
    harness: Harness,
    body: Mapping[str, object],
    *,
    correlation_id: str | None = None,
    properties: Mapping[str, object] | None = None,
) -> MapMessage:
    message = harness.round_trip(MapMessage(body, correlation_id=correlation_id, properties=properties))
    assert isinstance(message, MapMessage)
    return message


class TestStreams(Contract):
    """Typed values in a row (JMS 3.1, section 3.11)."""

    needs = ("structured",)

    def test_every_type_arrives_in_its_place(self, harness: Harness) -> None:
        """Ten types and null, each kept apart from the others (JMS 3.1, section 3.11.3)."""
        sent = (True, Byte(1), None, Short(1), Char("1"), Int(1), Long(1), Float(1), Double(1), "1", b"1", False)
        body = _stream_round_trip(harness, *sent).body
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
        message = _stream_round_trip(harness, 1)
        message.read_int()
        for ended in (message, _stream_round_trip(harness)):
            with pytest.raises(MessageEOFError):
                ended.read_object()

    def test_reset_begins_again(self, harness: Harness) -> None:
        """After a reset the values can be read once more (JMS 3.1, section 3.11)."""
        message = _stream_round_trip(harness, 1, 2)
        assert (message.read_int(), message.read_int()) == (1, 2)
        message.reset()
        assert message.read_int() == 1

    def test_a_failed_read_takes_nothing(self, harness: Harness) -> None:
        """The value can be read as another type (JMS 3.1, section 3.11.3)."""
        message = _stream_round_trip(harness, "x", None, 7)
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
        message = _stream_round_trip(harness, Short(7), Char("c"), "7", Float(0.5), None)
        with pytest.raises(MessageFormatError):
            message.read_byte()
        assert (message.read_long(), message.read_string(), message.read_short()) == (7, "c", 7)
        assert (message.read_double(), message.read_boolean()) == (0.5, False)

    def test_bytes_are_read_in_pieces(self, harness: Harness) -> None:
        """Nothing else is read before the last piece (JMS 3.1, section 3.11)."""
        message = _stream_round_trip(harness, b"abcde", b"", None, b"fg", "next")
        assert (message.read_bytes(3), message.read_bytes(3)) == (b"abc", b"de")
        assert (message.read_bytes(3), message.read_bytes(3)) == (b"", None)
        assert message.read_bytes(2) == b"fg"
        with pytest.raises(MessageFormatError):
            message.read_string()
        assert message.read_bytes(2) is None
        assert message.read_string() == "next"

    def test_neighbouring_bytes_stay_apart(self, harness: Harness) -> None:
        """Each is a value of its own (JMS 3.1, section 3.11)."""
        assert _stream_round_trip(harness, b"a", b"b", b"").body == (b"a", b"b", b"")

    def test_received_stream_is_read_only(self, harness: Harness) -> None:
        """Until its body is cleared (JMS 3.1, section 3.11.2)."""
        message = _stream_round_trip(harness, 1)
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
        got = harness.round_trip(message)
        assert (got.body, dict(got.properties)) == (("new",), {"p": 1})

    def test_half_read_stream_is_sent_on_whole(self, harness: Harness) -> None:
        """Reading is no change."""
        message = _stream_round_trip(harness, 1, b"bytes", Short(3))
        message.read_int()
        message.read_bytes(2)
        got = harness.round_trip(message)
        assert (got.body, type_name(got.body[2])) == ((1, b"bytes", 3), "short")

    def test_stream_that_comes_again_begins_again(self, harness: Harness) -> None:
        """Also where it had been read before the rollback (JMS 3.1, section 3.10)."""
        first, second = harness.redelivered(StreamMessage([1, 2]))
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
        assert _stream_round_trip(harness, *range(10_000)).get_body(list) == list(range(10_000))

    def test_stream_that_no_broker_can_carry_is_refused(self, harness: Harness) -> None:
        """A lone surrogate is no Unicode text; the unit stays usable."""
        queue = harness.queue()
        unit = harness.unit()
        with pytest.raises(MessageFormatError):
            unit.send(prepare(StreamMessage(["\ud800"]), queue), queue)
        unit.send(prepare(TextMessage("good"), queue), queue)
        unit.commit()
        harness.expect(queue, "good")


def _stream_round_trip(harness: Harness, *values: object) -> StreamMessage:
    return _received(harness, StreamMessage(values))


def _received(harness: Harness, message: StreamMessage) -> StreamMessage:
    received = harness.round_trip(message)
    assert isinstance(received, StreamMessage)
    return received
