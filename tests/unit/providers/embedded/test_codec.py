"""Messages as rows: every message is stored and restored unchanged."""

import json
import math
import sqlite3
from contextlib import closing
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jmsjca import (
    Byte,
    BytesMessage,
    Char,
    DeliveryMode,
    Double,
    Float,
    Int,
    Long,
    MapMessage,
    Message,
    ObjectMessage,
    Queue,
    Short,
    StreamMessage,
    TextMessage,
    Topic,
)
from jmsjca.errors import MessageFormatError
from jmsjca.messages import type_name
from jmsjca.messages.message import may_contain_property
from jmsjca.providers.embedded.codec import decode, encode


def integers(mark: type, bits: int) -> st.SearchStrategy[object]:
    return st.integers(-(1 << bits - 1), (1 << bits - 1) - 1).map(mark)


TEXT = st.text(st.characters(exclude_categories=["Cs"]))
NAMES = st.from_regex(r"\A[A-Za-z_$][A-Za-z0-9_$]{0,20}\Z").filter(lambda name: len(name) > 7)
VALUES = st.one_of(
    st.none(),
    st.booleans(),
    TEXT,
    integers(Byte, 8),
    integers(Short, 16),
    integers(Int, 32),
    integers(Long, 64),
    integers(int, 64),
    st.floats(width=32).map(Float),
    st.floats().map(Double),
    st.floats(),
)
MOMENTS = st.none() | st.integers(0, 4_000_000_000_000).map(lambda ms: datetime.fromtimestamp(ms / 1000, UTC))
DESTINATIONS = st.builds(Queue, TEXT.filter(bool)) | st.builds(Topic, TEXT.filter(bool))
BODIES = st.one_of(
    st.builds(TextMessage, st.none() | TEXT), st.builds(BytesMessage, st.none() | st.binary()), st.builds(Message)
)
CHARS = st.characters(max_codepoint=0xFFFF, exclude_categories=["Cs"]).map(Char)
ENTRIES = VALUES | CHARS | st.binary()


def through(message: Message, to: Queue | Topic, deliveries: int = 1) -> Message:
    row = encode(message, to)
    return decode(row.headers.encode(), row.body, deliveries, row.expires)


def exactly(value: object) -> tuple[str | None, str]:
    """A value with its type; two NaNs are alike."""
    return None if value is None else type_name(value), repr(value)


def same(one: object, other: object) -> bool:
    if isinstance(one, float) and math.isnan(one):
        return isinstance(other, float) and math.isnan(other)
    return one == other


@given(st.dictionaries(NAMES, VALUES))
def test_properties(values):
    got = through(Message(properties=values), Queue("q")).properties
    assert got.keys() == values.keys()
    assert all(same(got[name], values[name]) for name in values)
    types = {name: type_name(value) for name, value in values.items() if value is not None}
    assert {name: type_name(got[name]) for name in types} == types


@given(st.dictionaries(NAMES, st.floats() | st.floats(width=32).map(Float), min_size=1))
def test_numbers_that_json_does_not_know_are_as_sqlite_reads_them(values):
    headers = encode(Message(properties=values), Queue("q")).headers
    with closing(sqlite3.connect(":memory:")) as db:
        read = {
            name: db.execute("SELECT json_extract(?, ?)", (headers, f'$.p."{name}"')).fetchone()[0] for name in values
        }
    assert read == {name: None if math.isnan(value) else value for name, value in values.items()}


@given(st.none() | TEXT, BODIES)
def test_ids(message_id, message):
    message.message_id = message_id
    got = through(message, Queue("q"))
    assert (type(got), got.message_id, got.destination) == (type(message), message_id, Queue("q"))


@given(st.dictionaries(NAMES, VALUES), NAMES)
def test_what_a_message_may_have_without_decoding_it(values, other):
    got = through(Message(properties=values), Queue("q"))
    assert all(may_contain_property(got, name) for name in values)
    assert may_contain_property(through(Message(), Queue("q")), "JBXAcknowledgmentTimeout") is False
    assert may_contain_property(got, other) or other not in got.properties


@given(BODIES)
def test_bodies(message):
    got = through(message, Queue("q"))
    assert (type(got), got.body) == (type(message), message.body)


@given(st.dictionaries(TEXT.filter(bool), ENTRIES))
def test_maps(values):
    body = through(MapMessage(values), Queue("q")).body
    assert list(body) == list(values)
    assert [exactly(value) for value in body.values()] == [exactly(value) for value in values.values()]


@given(st.lists(ENTRIES))
def test_streams(values):
    body = through(StreamMessage(values), Queue("q")).body
    assert [exactly(value) for value in body] == [exactly(value) for value in values]


@given(st.none() | st.binary())
def test_objects_are_not_looked_at(pickled):
    got = through(ObjectMessage.from_pickled(pickled), Queue("q"))
    assert (type(got), got.pickled) == (ObjectMessage, pickled)


@pytest.mark.parametrize("kind", ["map", "stream"])
@pytest.mark.parametrize(
    "body",
    [
        b"",
        None,
        b"{",
        b"7",
        b'"text"',
        b"[[]]",
        b'{"a":[]}',
        b'{"a":["bytes","?"]}',
        b'{"a":["byte",128]}',
        b'[["int","x"]]',
        b'[["bytes","?"]]',
        b"\xff",
    ],
)
def test_body_that_is_none_of_its_kind(kind, body):
    headers = json.dumps({"kind": kind, "to": ["queue", "q"], "mode": 2, "priority": 4}).encode()
    with pytest.raises(MessageFormatError):
        decode(headers, body, 1, None)


def test_kind_of_a_later_release():
    with pytest.raises(MessageFormatError, match="hologram"):
        decode(b'{"kind":"hologram"}', b"", 1, None)


@pytest.mark.parametrize("name", ["id", "correlation", "type"])
@pytest.mark.parametrize("value", [5, True, ["a"], {"a": "b"}])
def test_header_that_is_no_text(name, value):
    headers = {"kind": "bytes", "to": ["queue", "q"], "mode": 2, "priority": 4, name: value}
    with pytest.raises(MessageFormatError, match="text"):
        decode(json.dumps(headers).encode(), b"", 1, None).message_id  # noqa: B018  # decodes them all


@given(
    to=DESTINATIONS,
    reply_to=st.none() | DESTINATIONS,
    texts=st.tuples(*[st.none() | TEXT] * 3),
    moments=st.tuples(*[MOMENTS] * 3),
    grade=st.tuples(st.integers(0, 9), st.sampled_from(DeliveryMode)),
)
def test_headers(to, reply_to, texts, moments, grade):
    message = Message(reply_to=reply_to)
    message.message_id, message.correlation_id, message.type = texts
    message.timestamp, message.expiration, message.delivery_time = moments
    message.priority, message.delivery_mode = grade
    got = through(message, to)
    assert got.destination == to
    assert got.reply_to == reply_to
    assert (got.message_id, got.correlation_id, got.type) == texts
    assert (got.timestamp, got.expiration, got.delivery_time) == moments
    assert (got.priority, got.delivery_mode) == grade


@given(st.integers(1, 1000))
def test_deliveries(deliveries):
    got = through(Message(), Queue("q"), deliveries)
    assert (got.delivery_count, got.redelivered) == (deliveries, deliveries > 1)
