"""Messages as rows: whatever a message may hold comes out as it went in."""

import math
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from jmsjca import Byte, BytesMessage, DeliveryMode, Double, Float, Int, Long, Message, Queue, Short, TextMessage, Topic
from jmsjca.messages import type_name
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


def through(message: Message, to: Queue | Topic, deliveries: int = 1) -> Message:
    row = encode(message, to)
    return decode(row.headers.encode(), row.body, deliveries, row.expires)


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


@given(BODIES)
def test_bodies(message):
    got = through(message, Queue("q"))
    assert (type(got), got.body) == (type(message), message.body)


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
