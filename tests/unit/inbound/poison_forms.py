"""Messages of any legal and half-legal AMQP and STOMP form, drawn by hypothesis."""

import string
import struct

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from tests.unit.providers.amqp.codec.encodings import DAMAGED, FORMS
from tests.unit.providers.stomp.broker_sessions import Letter

__all__ = ["amqp_messages", "drawn", "encoded_list", "encoded_map", "encoded_text", "section", "stomp_letters"]

_CODES_BY_WIDTH = {
    0: b"\x40\x41\x42\x43\x44\x45",
    1: b"\x50\x51\x52\x53\x54\x55\x56",
    2: b"\x60\x61",
    4: b"\x70\x71\x72\x73\x74",
    8: b"\x80\x81\x82\x83\x84",
    16: b"\x94\x98",
}
_HUGE = struct.pack(">q", 253_402_300_800_000)  # the first millisecond of the year 10000
_EXTREMES = [b"\x83" + _HUGE, b"\x83\x80" + bytes(7), b"\x81" + _HUGE, b"\x83\x7f" + 7 * b"\xff", b"\xa1\x01\x00"]
_TEXTS = ["", "ID:1", "ID:AMQP_UUID:no", "ID:AMQP_ULONG:7", "a b", "ü", "\U0001f600", "x" * 300, "\0", "queue://q"]
_NAMES = [
    *("colour", "a b", "", "ü", "NULL", "x" * 300, "_AMQ_DUPL_ID", "JBXAcknowledgmentTimeout"),
    *("JMSXGroupID", "JMSXGroupSeq", "JMSXDeliveryCount", "JMSXUserID", "JMSX-a b", "JMS_Sun_JMSJCA_RedeliveryCount"),
    *("JMS_AMQP_TTL", "JMS_AMQP_TYPED_ENCODING", "JMS_AMQP_REPLY_TO_GROUP_ID", "JMS_AMQP_STREAM_FILTER"),
]
_ANNOTATIONS = [
    *("x-opt-jms-msg-type", "x-opt-jms-dest", "x-opt-jms-reply-to", "x-opt-delivery-time"),
    *("x-opt-of-nobody", "x-stream-offset", "x-stream-filter-value"),
]
_CONTENT_TYPES = ["text/plain", "text/plain;charset=utf-7", "application/x-java-serialized-object", "a/b", "no type"]
_FIELDS, _CONTENT_TYPE = 13, 6  # of the properties section, and the place of one of them


def section(code, value):
    """Return a section of a message."""
    return bytes((0, 0x53, code)) + value


def encoded_text(text):
    """Return the encoding of a string."""
    return _sized(0xB1, text.encode())


def encoded_list(values):
    """Return the encoding of a list of encoded values."""
    return _compound(0xD0, values)


def encoded_map(pairs):
    """Return the encoding of a map of encoded names and values."""
    return _compound(0xD1, [part for pair in pairs.items() for part in pair])


def _compound(code, parts):
    data = b"".join(parts)
    return bytes([code]) + struct.pack(">II", len(data) + 4, len(parts)) + data


def _sized(code, content):
    return bytes([code]) + struct.pack(">I", len(content)) + content


def _symbol(text):
    return _sized(0xB3, text.encode())


def _often(strategy, times):
    """Return a list for `st.one_of`, which counts equal strategies once."""
    return [strategy.map(lambda value: value) for _ in range(times)]


def _number_of_any_type():
    """Return a strategy of values of a fixed width, with any bytes, so that some are no character and no UTF-8."""
    widths = [st.tuples(st.sampled_from(list(codes)), st.binary(min_size=n, max_size=n)) for n, codes in _widths()]
    return st.one_of(widths).map(lambda parts: bytes([parts[0]]) + parts[1])


def _widths():
    return [(width, codes) for width, codes in _CODES_BY_WIDTH.items() if width]


def _sized_of_any_type():
    """Return a strategy of binaries, strings and symbols with any bytes."""
    return st.tuples(st.sampled_from([0xB0, 0xB1, 0xB3]), st.binary(max_size=8)).map(lambda parts: _sized(*parts))


_LEAVES = st.one_of(
    st.sampled_from([bytes.fromhex(code) for code, _ in FORMS] + [bytes([code]) for code in _CODES_BY_WIDTH[0]]),
    st.sampled_from([encoded_text(text) for text in _TEXTS] + _EXTREMES),
    _number_of_any_type(),
    st.text(max_size=8).map(encoded_text),
    _sized_of_any_type(),
)
_VALUES = st.recursive(
    _LEAVES,
    lambda values: st.one_of(
        st.lists(values, max_size=3).map(encoded_list),
        st.dictionaries(_LEAVES, values, max_size=2).map(encoded_map),
        st.tuples(_LEAVES, values).map(lambda described: b"\0" + b"".join(described)),
    ),
    max_leaves=4,
)
_TYPE_NUMBERS = st.integers(-1, 7).map(lambda number: struct.pack(">Bb", 0x51, number))
_PROPERTY_NAMES = (st.sampled_from(_NAMES) | st.text(string.ascii_letters, max_size=4)).map(encoded_text)
_PAIRS = st.dictionaries(_PROPERTY_NAMES, _VALUES, max_size=4)


def _header():
    durable, priority = st.sampled_from([b"\x40", b"\x41", b"\x42"]), st.binary(min_size=1, max_size=1)
    fields = st.tuples(durable, priority.map(lambda number: b"\x50" + number) | st.just(b"\x40"))
    damaged = st.lists(_VALUES, max_size=5)
    return st.one_of(*_often(fields, 5), damaged).map(lambda values: section(0x70, encoded_list(values)))


def _annotations():
    names = st.sampled_from(_ANNOTATIONS).map(_symbol)
    values = st.one_of(*_often(_TYPE_NUMBERS, 8), _VALUES)  # other values mostly damage the whole message
    return st.dictionaries(names, values, max_size=2).map(lambda pairs: section(0x72, encoded_map(pairs)))


def _properties():
    places = st.dictionaries(st.integers(0, _FIELDS - 1), _VALUES, max_size=5)
    content_type = st.none() | st.sampled_from(_CONTENT_TYPES).map(_symbol)
    identity = st.none() | st.integers(0, 2**64).map(lambda number: encoded_text(f"ID:{number}"))

    def join(drawn):
        fields, kind, name = drawn
        told = {**fields, **({_CONTENT_TYPE: kind} if kind else {}), **({0: name} if name else {})}
        return section(0x73, encoded_list([told.get(place, b"\x40") for place in range(_FIELDS)]))

    return st.tuples(places, content_type, identity).map(join)


def _body():
    data = st.lists(st.binary(max_size=4).map(lambda content: section(0x75, _sized(0xB0, content))), max_size=3)
    value = _VALUES.map(lambda value: section(0x77, value))
    sequence = st.lists(_VALUES, max_size=3).map(lambda values: section(0x76, encoded_list(values)))
    pairs = _PAIRS.map(lambda pairs: section(0x77, encoded_map(pairs)))
    damaged = st.tuples(st.sampled_from([0x75, 0x76]), _VALUES).map(lambda drawn: section(*drawn))
    whole = data.map(b"".join)
    legal = st.one_of(whole, sequence, value, pairs, st.just(b""))
    return st.one_of(*_often(legal, 6), damaged, st.tuples(whole, value).map(b"".join))


def amqp_messages():
    """Return a strategy of the bytes of messages: most are legal, others legal in part, cut off, longer, or none."""
    absent = st.just(b"")
    properties = st.just(b"") | _PAIRS.map(lambda pairs: section(0x74, encoded_map(pairs)))
    legal = st.tuples(absent | _header(), absent | _annotations(), absent | _properties(), properties, _body()).map(
        b"".join
    )
    damaged = st.sampled_from([bytes.fromhex(code) for code in DAMAGED.values()])
    cut = st.tuples(legal, st.integers(1, 40)).map(lambda drawn: drawn[0][: -drawn[1]])
    longer = st.tuples(legal, _VALUES | damaged).map(b"".join)
    return st.one_of(
        *_often(legal, 12), cut, longer, st.binary(max_size=30), damaged.map(lambda value: section(0x77, value))
    )


_HEADERS = {
    "correlation-id": _TEXTS[:-2],
    "type": _TEXTS[:-2],
    "reply-to": ["/queue/answers", "/temp-queue/x", "nowhere", "", "/queue/"],
    "priority": ["0", "9", "99", "-1", "high", ""],
    "timestamp": ["1767323045678", "253402300800000", "-99999999999999", "yesterday", "1.5"],
    "expires": ["0", "253402300800000", "never"],
    "persistent": ["true", "false", "perhaps"],
    "content-type": ["text/plain", "application/octet-stream", "no type"],
    "transformation": ["jms-map-json", "jms-map-xml", "nothing"],
    "colour": ["red", "", " red ", "a\nb", "x" * 300],
    "JMSXGroupID": ["g", ""],
    "JMSXGroupSeq": ["1", "one"],
    "JMS_AMQP_TTL": ["1000", "soon"],
    "_jmsjca": ["{", "[]", "7", '{"k":"map"}', '{"k":"text","i":7}', '{"k":"text","c":"\\ud800"}', '{"k":"none"}'],
    "a b": ["c"],
}
_BODIES = [b"", b"text", "ü".encode(), b"\xff\xfe", b"{", b'{"a":1}', b"a\0b", b"x" * 2000]
_OTHER_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)


def stomp_letters():
    """Return a strategy of messages with headers that a sender may have set, to whatever value."""
    named = st.sampled_from(list(_HEADERS)).flatmap(
        lambda name: st.tuples(st.just(name), st.sampled_from(_HEADERS[name]) | _OTHER_TEXT)
    )
    other = st.tuples(st.text(string.ascii_letters, min_size=1, max_size=4).map("x-".__add__), _OTHER_TEXT)
    bodies = st.sampled_from(_BODIES) | st.binary(max_size=8)
    return st.builds(
        lambda pairs, body: Letter("", dict(pairs), body), st.lists(st.one_of(named, named, other), max_size=5), bodies
    )


def drawn(strategy, count, number):
    """Return examples that hypothesis draws.

    Args:
        strategy: The strategy.
        count: The number of examples.
        number: The seed.
    """
    found = []

    @seed(number)
    @settings(
        max_examples=count,
        phases=[Phase.generate],
        database=None,
        deadline=None,
        derandomize=False,
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def collect(example):
        found.append(example)

    collect()
    assert len(found) >= count, f"hypothesis drew {len(found)} of {count} examples"
    return found[:count]
