"""The scripted peer of the tests: its codec agrees with proton's."""

import uuid

import pytest
from amqp_peer import Peer
from amqp_peer.encoding import Symbol, UInt, ULong, composed, decode, encode
from amqp_peer.frames import frame, read_frames
from amqp_peer.performatives import Attach, Begin, Open, Source, Transfer
from amqp_peer.script import LOGIN, OPEN, expect, reply, script
from hypothesis import given, settings
from hypothesis import strategies as st
from proton import Data

from jmsjca.destinations import Queue
from jmsjca.errors import JMSError
from jmsjca.reconnection import ConnectionSettings, connect

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.integers(0, 2**32 - 1).map(UInt),
    st.integers(0, 2**64 - 1).map(ULong),
    st.text(max_size=300),
    st.binary(max_size=300),
)
NESTED = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner))
VALUES = NESTED | st.text("abc:-", min_size=1).map(Symbol)
few = settings(max_examples=30)


@few
@given(VALUES)
def test_what_it_writes_it_reads(value):
    data = encode(value)
    assert decode(data) == (value, len(data))


@few
@given(VALUES)
def test_what_it_writes_proton_reads(value):
    data = Data()
    assert data.decode(encode(value)) == len(encode(value))
    data.rewind()
    data.next()
    assert data.get_object() == value


@few
@given(st.one_of(st.text(max_size=300), st.binary(max_size=300), st.integers(-5, 300), st.uuids(), st.floats(0, 1)))
def test_what_proton_writes_it_reads(value):
    data = Data()
    data.put_object(value)
    assert decode(data.encode()).value == value


def test_a_uuid_is_sixteen_bytes():
    assert decode(b"\x98" + bytes(16)).value == uuid.UUID(int=0)


def test_a_frame_that_arrives_in_pieces_is_read_once():
    data = frame(Transfer(handle=0, delivery_id=1), 3, b"payload")
    buffer, found = bytearray(), []
    for byte in data:
        buffer.append(byte)
        found += read_frames(buffer)
    assert [(each.body.delivery_id, each.channel, each.payload) for each in found] == [(1, 3, b"payload")]


def test_composites_match_by_what_they_name():
    written = composed(decode(encode(Attach(name="a", handle=0, source=Source(address="q", durable=2)))).value)
    assert Attach(source=Source(address="q")).matches(written)
    assert Attach(source=Source).matches(written)
    assert not Attach(source=Source(address="other")).matches(written)
    assert not Begin().matches(written)


def test_a_field_that_is_unknown_is_refused():
    with pytest.raises(AssertionError, match="Open has no"):
        Open(container="x")


def test_what_was_not_expected_is_named_with_all_that_passed():
    peer = Peer(script(LOGIN, expect(Transfer), reply()))
    with pytest.raises(JMSError):
        connect(ConnectionSettings(f"amqp://{peer.address}"))
    with pytest.raises(AssertionError, match=r"expects .*Transfer.*this came: 0: Open\((.|\n)*→ 0: Init\("):
        peer.close()


def test_what_comes_behind_the_script_is_named():
    peer = Peer(script(OPEN, expect(Begin), reply()))
    connection = connect(ConnectionSettings(f"amqp://{peer.address}"))
    with pytest.raises(JMSError):
        connection.consumer(Queue("q"))
    connection.close()
    with pytest.raises(AssertionError, match=r"expects the end, and this came: 0: Attach"):
        peer.close()
