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
from jmsjca.providers.common.codec import LazyHeaders
from jmsjca.providers.embedded.codec import _StoredHeaders, decode, encode


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
DESTINATIONS = st.builds(Queue, TEXT.filter(str.strip)) | st.builds(Topic, TEXT.filter(str.strip))
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


WRITTEN = st.one_of(
    *(st.none(), st.booleans(), st.integers(), st.integers(-(1 << 40), 1 << 40), st.floats(), st.text()),
    *(st.lists(st.integers(), max_size=2), st.dictionaries(st.text(), st.integers(), max_size=1)),
)
TYPE_NAMES = st.sampled_from(["byte", "short", "int", "long", "float", "double", "string", "boolean", "bytes", "other"])
HEADERS = st.fixed_dictionaries(
    {"kind": st.just("text"), "id": st.none() | TEXT, "to": st.just(["queue", "q"]) | WRITTEN},
    optional={
        "mode": st.sampled_from([1, 2]) | WRITTEN,
        "priority": st.integers(0, 9) | WRITTEN,
        **{name: st.none() | st.integers(0, 1 << 62) | WRITTEN for name in ("time", "due")},
        **dict.fromkeys(("correlation", "type"), TEXT | WRITTEN),
        "reply": st.just(["topic", "t", True]) | WRITTEN,
        "p": st.dictionaries(st.text(), WRITTEN) | WRITTEN,
        "t": st.dictionaries(st.text(), TYPE_NAMES) | WRITTEN,
    },
)


@given(HEADERS, st.booleans(), st.none() | st.integers(0, 1 << 62))
def test_headers_that_are_decoded_at_once_are_those_that_are_decoded_one_by_one(fields, ascii_only, expires):
    text = json.dumps(fields, separators=(",", ":"), ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
    headers = _StoredHeaders(text, 2, expires)
    whole = headers.whole("properties")
    if whole is not None:
        one_by_one = {name: LazyHeaders.select(headers, [name])[0] for name in headers}
        at_once = {**whole, "properties": None}
        properties, found = one_by_one.pop("properties"), whole["properties"]
        assert at_once == {**one_by_one, "properties": None}
        assert [(name, exactly(value)) for name, value in found.items()] == [
            (name, exactly(value)) for name, value in properties.items()
        ]


@given(st.dictionaries(NAMES, VALUES.filter(lambda value: not isinstance(value, float) or math.isfinite(value))))
def test_usual_headers_are_decoded_at_once_and_as_the_release_before_reads_them(values):
    message = Message(properties=values)
    message.message_id, message.correlation_id, message.timestamp = "ID:1", "c", datetime.now(UTC)
    headers = _StoredHeaders(encode(message, Queue("q")).headers.encode(), 1, None)
    whole = headers.whole("properties")
    assert whole is not None
    (before,) = LazyHeaders.select(headers, ["properties"])
    assert [(name, exactly(value)) for name, value in whole["properties"].items()] == [
        (name, exactly(value)) for name, value in before.items()
    ]
    assert [(name, exactly(value)) for name, value in before.items()] == [
        (name, exactly(value)) for name, value in message.properties.items()
    ]


def test_the_first_access_decodes_all_headers_but_keeps_those_that_were_set():
    sent = Message(correlation_id="c", type="t", properties={"n": 1})
    got = through(sent, Queue("q"))
    got.correlation_id = "changed"
    assert (got.type, got.correlation_id, got.destination, dict(got.properties)) == (
        "t",
        "changed",
        Queue("q"),
        {"n": 1},
    )


def test_damaged_header_does_not_hide_the_others():
    got = decode(b'{"kind":"text","id":"ID:1","to":["queue","q"],"mode":9,"priority":4,"time":1}', b"", 1, None)
    assert (got.message_id, got.priority, got.destination) == ("ID:1", 4, Queue("q"))
    with pytest.raises(MessageFormatError, match="9"):
        got.delivery_mode  # noqa: B018  # raises


class Name(str):
    """A text of another type, as an enumeration or a template engine has it."""

    __slots__ = ()


def test_texts_and_numbers_of_subclasses():
    message = Message(correlation_id=Name("c"), type=Name("t"), properties={"n": Short(5), "s": "v"})
    message.priority = Int(7)
    got = through(message, Queue(Name("q")))
    assert (got.correlation_id, got.type, got.priority, got.destination) == ("c", "t", 7, Queue("q"))
    assert [exactly(value) for value in got.properties.values()] == [exactly(Short(5)), exactly("v")]
    assert through(Message(correlation_id=Name("c")), Queue("q")).properties == {}
