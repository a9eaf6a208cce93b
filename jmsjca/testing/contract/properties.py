"""Properties arrive as they were sent."""

from __future__ import annotations

import math
from typing import Any

import pytest

from jmsjca.errors import MessageFormatError, MessageNotWriteableError
from jmsjca.messages import Byte, Double, Float, Int, Long, Message, Short, TextMessage, type_name
from jmsjca.testing.contract.harness import Contract, Harness
from jmsjca.testing.contract.round_trip import through

__all__ = ["TestProperties"]

_VALUES = [
    pytest.param(value, id=f"{type(value).__name__}={value!r:.20}")
    for value in (
        *(True, False, None, "", "text", "ünïcödé \U0001f600", 'quotes " and \\ and \n lines', "x" * 70_000),
        *(Byte(-128), Byte(127), Short(-(1 << 15)), Short((1 << 15) - 1), Int(-(1 << 31)), Int((1 << 31) - 1)),
        *(Long(-(1 << 63)), Long((1 << 63) - 1), Long(5), 5, 1 << 40),
        *(Float(1.5), Float(3.4e38), Float(1e-45), Double(5), Double(1.7e308), Double(5e-324), -0.0, 0.1),
        *(Float(math.inf), Double(-math.inf)),
    )
]


class TestProperties(Contract):
    """Properties keep their values and their types (JMS 3.1, section 3.5)."""

    @pytest.mark.parametrize("value", _VALUES)
    def test_value_and_type_arrive(self, harness: Harness, value: Any) -> None:
        """Every type with its bounds; a null property is one that exists without a value."""
        got = through(harness, Message(properties={"p": value})).properties
        assert dict(got) == {"p": value}
        assert value is None or type_name(got["p"]) == type_name(value)
        assert repr(got["p"]) == repr(value)  # tells -0.0 from 0.0

    def test_not_a_number_arrives(self, harness: Harness) -> None:
        """NaN is a value too, of either precision."""
        got = through(harness, Message(properties={"f": Float(math.nan), "d": math.nan})).properties
        assert {name: (type_name(v), math.isnan(float(v or 0))) for name, v in got.items()} == {
            "f": ("float", True),
            "d": ("double", True),
        }

    def test_names_of_every_kind_arrive(self, harness: Harness) -> None:
        """Identifiers with the signs that the selector syntax allows, vendor and JMSX names, dots."""
        names = ["a", "_a", "$a", "a1", "größe", "JMSXGroupID", "JMS_vendor_x", "JMSJCA.name"]
        sent: dict[str, object] = dict.fromkeys(names, "1")
        assert dict(through(harness, Message(properties=sent)).properties) == sent

    def test_received_properties_are_read_only(self, harness: Harness) -> None:
        """Setting one needs `clear_properties` first (JMS 3.1, section 3.10)."""
        message = through(harness, TextMessage("body", properties={"a": 1}))
        with pytest.raises(MessageNotWriteableError):
            message.properties["a"] = 2
        message.clear_properties()
        message.properties["a"] = 2
        assert (dict(message.properties), message.body) == ({"a": 2}, "body")

    def test_names_differ_by_case(self, harness: Harness) -> None:
        """Identifiers are case-sensitive (JMS 3.1, section 3.8.1.1)."""
        assert dict(through(harness, Message(properties={"a": 1, "A": 2})).properties) == {"a": 1, "A": 2}

    def test_many_properties_arrive(self, harness: Harness) -> None:
        """JMS sets no bound to their number (JMS 3.1, section 3.5)."""
        sent: dict[str, object] = {f"p{number}": number for number in range(300)}
        assert dict(through(harness, Message(properties=sent)).properties) == sent

    def test_received_values_convert_by_their_type(self, harness: Harness) -> None:
        """What was set as a short can be read as a wider type, not as a narrower (JMS 3.1, section 3.5.4)."""
        message = through(harness, Message(properties={"s": Short(7), "t": "7", "b": True}))
        assert (message.get_long_property("s"), message.get_string_property("s")) == (7, "7")
        assert (message.get_byte_property("t"), message.get_string_property("b")) == (7, "true")
        for read in (message.get_byte_property, message.get_double_property, message.get_boolean_property):
            with pytest.raises(MessageFormatError):
                read("s")

    def test_null_reads_as_what_is_not_set(self, harness: Harness) -> None:
        """Both convert alike, but only one of them exists (JMS 3.1, sections 3.5.4 and 3.5.8)."""
        message = through(harness, Message(properties={"empty": None}))
        assert (message.property_exists("empty"), message.property_exists("missing")) == (True, False)
        for name in ("empty", "missing"):
            assert message.get_object_property(name) is None
            assert message.get_string_property(name) is None
            assert message.get_boolean_property(name) is False
            with pytest.raises(MessageFormatError):
                message.get_int_property(name)

    def test_cleared_properties_are_back_when_the_message_comes_again(self, harness: Harness) -> None:
        """What a consumer changes is its own copy (JMS 3.1, section 3.10)."""
        queue = harness.queue()
        harness.send_messages(queue, Message(properties={"a": 1}))
        consumer = harness.connection.consumer(queue)
        [delivery] = harness.gather(consumer, 1)
        delivery.message.clear_properties()
        delivery.message.properties["b"] = 2
        harness.holding([delivery]).rollback()
        [delivery] = harness.gather(consumer, 1)
        assert dict(delivery.message.properties) == {"a": 1}
