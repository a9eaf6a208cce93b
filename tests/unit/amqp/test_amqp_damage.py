"""The header of a message is read alone, and damaged messages are noticed."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from proton import Message as WireMessage

from jmsjca.errors import MessageFormatError
from jmsjca.messages import Int, TextMessage
from jmsjca.providers.amqp.codec.addresses import ReceiveContext
from jmsjca.providers.amqp.codec.decoder import decode
from jmsjca.providers.amqp.codec.encoder import encode
from jmsjca.providers.amqp.codec.sections import find_sections, read_header
from jmsjca.providers.amqp.delivery import ReceivedMessage
from jmsjca.providers.common.amqp_types import MALFORMED
from tests.unit.amqp.coding import NOW, QUEUE, read


@given(st.integers(0, 1000), st.booleans(), st.none() | st.booleans())
def test_header_is_read_alone(count, first, durable):
    message = WireMessage(body="x", delivery_count=count, first_acquirer=first, durable=bool(durable))
    head = bytes(message.encode())
    assert read_header(head) == (count, first)
    assert read_header(head + b"poison") == (count, first)
    assert decode(head, ReceiveContext(QUEUE)).delivery_count == count + 1


@given(st.integers(0, 1000), st.booleans(), st.integers(0, 3), st.booleans())
def test_a_message_tells_how_often_it_came_as_its_delivery_does(before, first, failures, counts):
    """What the broker does not count, and failures that it does not know of, are counted here."""
    raw = bytes(WireMessage(body="x", delivery_count=before, first_acquirer=first).encode())
    found = ReceivedMessage(raw, ReceiveContext(QUEUE, counts_deliveries=counts), failures)
    assert found.count == (before + 1 + failures if counts or failures else None)
    assert found.redelivered == (failures > 0 or (before > 0 if counts else not first))
    assert (found.message.delivery_count, found.message.redelivered) == (found.count or 0, found.redelivered)


HEADER = bytes(WireMessage(body="x", delivery_count=3, first_acquirer=True, ttl=1, durable=True).encode())


def assert_harmless(header):
    assert isinstance(header.delivery_count, int)
    assert isinstance(header.first_acquirer, bool)
    assert header.delivery_count >= 0


@given(st.binary(max_size=80))
def test_header_of_noise_does_no_harm(noise):
    assert_harmless(read_header(noise))


@given(st.integers(0, 20), st.binary(min_size=1, max_size=4))
def test_damaged_header_does_no_harm(position, damage):
    assert_harmless(read_header(HEADER[:position] + damage + HEADER[position + len(damage) :]))


WHOLE = encode(TextMessage("text", properties={"a": Int(1), "b": "x"}, correlation_id="c"), QUEUE, NOW)


def test_every_cut_is_noticed():
    find_sections(WHOLE)
    ends = []
    for length in range(len(WHOLE)):
        try:
            read(WHOLE[:length], QUEUE)
            ends.append(length)
        except MessageFormatError:
            pass
    assert len(ends) <= 5  # where one of the sections before the body ends


@given(st.integers(0, len(WHOLE) - 1), st.integers(0, 255))
def test_damage_is_a_message_or_a_format_error(position, value):
    damaged = WHOLE[:position] + bytes([value]) + WHOLE[position + 1 :]
    with suppress(MessageFormatError):
        read(damaged, QUEUE)


@given(st.binary(max_size=200))
def test_noise_is_a_format_error(noise):
    try:
        find_sections(noise)
    except MALFORMED:
        with pytest.raises(MessageFormatError):
            read(noise, QUEUE)


@pytest.mark.parametrize("body", ["\ud800", "x\ud800"])
def test_what_cannot_be_encoded_says_so(body):
    with pytest.raises(MessageFormatError):
        encode(TextMessage(body), QUEUE, NOW)
