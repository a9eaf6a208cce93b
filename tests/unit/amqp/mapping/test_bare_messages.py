"""What of a message stays the same on its way is known again, however a broker writes what stands before it."""

import pytest

from jmsjca.providers.amqp.codec.sections import bare_message
from tests.unit.amqp.wire.account import encoded

HEADERS = {
    "a small number": b"\x53\x70",
    "a long number": b"\x80\0\0\0\0\0\0\0\x70",
    "a name": b"\xa3\x10amqp:header:list",
}
NO_FIELDS = b"\x45"


@pytest.mark.parametrize("kind", HEADERS)
def test_a_header_is_left_out(kind):
    rest = encoded("x")
    assert bare_message(b"\0" + HEADERS[kind] + NO_FIELDS + rest) == bare_message(rest)


def test_a_header_is_left_out_before_what_is_no_section():
    assert bare_message(b"\0" + HEADERS["a small number"] + NO_FIELDS + b"\xff") == b"\xff"


def test_nothing_but_a_header_leaves_nothing():
    assert bare_message(b"\0" + HEADERS["a name"] + NO_FIELDS) == b""
