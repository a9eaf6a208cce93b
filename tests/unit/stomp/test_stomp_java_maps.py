"""Maps in the XML that ActiveMQ exchanges for maps of Java's."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jmsjca.destinations import Queue
from jmsjca.errors import MessageFormatError, NotSupportedError
from jmsjca.messages import Byte, Char, Double, Float, Int, Long, MapMessage, Short, TextMessage, type_name, typed_entry
from jmsjca.providers.stomp.brokers.activemq import from_xml, to_xml
from jmsjca.providers.stomp.brokers.registry import dialect_for
from tests.unit.stomp.letters import read

texts = st.text(
    st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufffe\uffff") | st.sampled_from("\t\n\r")
)
values = st.one_of(
    st.none(),
    st.booleans(),
    st.binary(max_size=100),
    texts,
    st.sampled_from(["007", "1.50", "true", " ", "<&>]]>", "é"]),
    st.integers(-128, 127).map(Byte),
    st.integers(-(2**15), 2**15 - 1).map(Short),
    st.integers(-(2**31), 2**31 - 1).map(Int),
    st.integers(-(2**63), 2**63 - 1).map(Long),
    st.floats(width=32, allow_nan=False).map(Float),
    st.floats(allow_nan=False).map(Double),
    texts.filter(lambda text: len(text) == 1 and ord(text) < 1 << 16).map(Char),
)


@settings(max_examples=300)
@given(st.dictionaries(texts, values, max_size=5))
def test_what_is_written_is_read_back(body):
    found = from_xml(to_xml(body))
    assert list(found) == list(body)
    for name, value in body.items():
        assert found[name] == value
        assert value is None or type_name(found[name]) == type_name(typed_entry(value))


@pytest.mark.parametrize(
    "data",
    [
        *(b"", b"{}", b"<list/>", b"<map", b"<map><entry/></map>", b"<map><entry><string>a</string></entry></map>"),
        b"<map><entry><string>a</string><object/></entry></map>",
        b"<map><entry><string>a</string><int>x</int></entry></map>",
        b"<map><entry><string>a</string><int>99999999999</int></entry></map>",
        b'<!DOCTYPE map [<!ENTITY a "b">]><map><entry><string>a</string><string>&a;</string></entry></map>',
        b"\xff<map/>",
    ],
)
def test_what_is_no_map_is_refused(data):
    with pytest.raises(MessageFormatError, match="map"):
        from_xml(data)


@pytest.mark.parametrize("body", [{"a": "\0"}, {"\x01": 1}, {"a": "\ufffe"}, {"a": "\ud800"}])
def test_what_xml_cannot_hold_is_refused(body):
    with pytest.raises(MessageFormatError):
        to_xml(body)


@pytest.mark.parametrize("server", ["ActiveMQ-Artemis/2.56.0", "RabbitMQ/3.10.8", "Eclipse OpenMQ(tm)/6.7", "Other/1"])
def test_other_brokers_have_none(server):
    with pytest.raises(NotSupportedError, match="java_maps"):
        dialect_for(server, "1.2", java_maps=True)


def test_only_maps_are_written_so_and_only_if_asked_for():
    """An ActiveMQ without XStream ends the connection at the header."""
    with_maps, without = (dialect_for("ActiveMQ/6.3.1", "1.2", java_maps=asked) for asked in (True, False))
    sent = [
        _headers(dialect, message) for dialect in (with_maps, without) for message in (MapMessage(), TextMessage("a"))
    ]
    assert ["transformation" in headers for headers in sent] == [True, False, False, False]
    subscribed = [dialect.subscribe(Queue("q"), 1) for dialect in (with_maps, without)]
    assert ["transformation" in headers for headers in subscribed] == [True, False]


def _headers(dialect, message):
    return dict(read(dialect.send_frame(dialect.encode(message, Queue("q"))))[0][1])
