"""Texts that are hard to carry, between ours and ActiveMQ's Java client over OpenWire: blanks, line ends, NUL, null."""

import pytest
from jms_java import OurClient, describe

from jmsjca import ConnectionFactory, Queue, ResourceAdapter
from jmsjca.messages import MapMessage, StreamMessage, TextMessage

CARRIED = {
    "empty": "",
    "a blank": " ",
    "blanks around": "  a  ",
    "tabs around": "\ta\t",
    "a line end": "\n",
    "line ends around": "\na\r\n",
    "a carriage return inside": "a\rb",
    "control characters": "\x01a\x1f",
    "other white space": "\u00a0a\u2003\u0085",
    "separators": ":a\\n:b\\",
    "long": "ä" * 4000,
}
NUL = "a\0b"
TOO_LONG = "x" * 20_000  # a header of ActiveMQ's has 10 KiB at most
BEYOND = "\U0001f600"


def fields(text):
    return {"properties": {"p": text}, "correlation_id": text, "type": text}


def told_fields(told):
    return told["properties"].get("p"), told["correlation_id"], told["type"]


@pytest.mark.parametrize("name", CARRIED)
def test_java_reads_them_in_properties_and_headers_of_ours(over_stomp, over_openwire, queue, name):
    text = CARRIED[name]
    over_stomp.send(queue, TextMessage("a", **fields(text)))
    assert told_fields(over_openwire.session().take(queue)[0]) == (["string", text], text, text)


@pytest.mark.parametrize("name", CARRIED)
def test_we_read_them_in_properties_and_headers_of_java(over_stomp, over_openwire, queue, name):
    text = CARRIED[name]
    over_openwire.session().send(queue, TextMessage("a", **fields(text)))
    assert told_fields(describe(over_stomp.take(queue)[0])) == (["string", text], text, text)


@pytest.mark.parametrize("text", [*CARRIED.values(), NUL, TOO_LONG, BEYOND, None])
def test_we_read_our_own(over_stomp, queue, text):
    over_stomp.send(queue, TextMessage("a", **fields(text)))
    [received] = over_stomp.take(queue)
    assert (received.properties["p"], received.correlation_id, received.type) == (text, text, text)


@pytest.mark.parametrize("text", [NUL, TOO_LONG, None])
def test_java_sees_nothing_where_no_header_can_hold_it(over_stomp, over_openwire, queue, text):
    over_stomp.send(queue, TextMessage("a", **fields(text)))
    assert told_fields(over_openwire.session().take(queue)[0]) == (None, None, None)


def test_a_selector_of_java_finds_blanks(over_stomp, over_openwire, queue):
    over_stomp.send(queue, TextMessage("a", properties={"p": " a "}))
    over_stomp.send(queue, TextMessage("b", properties={"p": ""}))
    session = over_openwire.session()
    assert [found["body"][1] for found in session.browse(queue, "p = ' a '")] == ["a"]
    assert [found["body"][1] for found in session.browse(queue, "p = ''")] == ["b"]


@pytest.mark.parametrize("text", [NUL, "\0", "ä\0€\0", f"\0{BEYOND}", "\0\nMESSAGE\n\n\0", "\0" * 1000])
def test_java_reads_a_text_of_ours_with_nul(over_stomp, over_openwire, queue, text):
    """As a text; the broker takes a frame with a length for bytes, if nothing else is said."""
    over_stomp.send(queue, TextMessage(text, properties={"p": "q"}))
    over_stomp.send(queue, TextMessage(text))
    [received] = over_openwire.session().take(queue)
    assert (received["kind"], received["body"], received["properties"]["p"]) == (
        "text",
        ["string", text],
        ["string", "q"],
    )
    [received] = over_stomp.take(queue)
    assert (type(received), received.body, dict(received.properties)) == (TextMessage, text, {})


def test_a_null_text_of_ours_is_an_empty_text_to_java(over_stomp, over_openwire, queue):
    for _ in range(2):
        over_stomp.send(queue, TextMessage(None))
    [received] = over_openwire.session().take(queue)
    assert (received["kind"], received["body"]) == ("text", ["string", ""])
    [received] = over_stomp.take(queue)
    assert (type(received), received.body) == (TextMessage, None)


def test_a_null_text_of_java_is_an_empty_text_to_us(over_stomp, over_openwire, queue):
    over_openwire.session().send(queue, TextMessage(None, properties={"p": None}))
    [received] = over_stomp.take(queue)
    assert (type(received), received.body, dict(received.properties)) == (TextMessage, "", {"p": "null"})


@pytest.mark.parametrize("header", ["correlation_id", "type"])
def test_nul_in_a_header_of_java_does_not_end_the_connection(over_openwire, broker_url, queue, header):
    """It is handled, dead-lettered when the handler fails, and so is what is behind it."""
    session = over_openwire.session()
    session.send(queue, TextMessage("a", **{header: f"{NUL}\0"}))
    session.send(queue, TextMessage("b"))
    seen, dead = [], Queue(f"{queue.name}.dead")
    adapter = ResourceAdapter(broker_url("activemq-stomp"))

    @adapter.listener(queue.name, redelivery_handling=f"1:move(queue:{dead.name})")
    def handle(message):
        seen.append((message.body, getattr(message, header)))
        raise ValueError("refused")

    with adapter, ConnectionFactory(broker_url("activemq-stomp")).create_connection() as connection:
        moved = [take(connection, dead) for _ in "ab"]
    assert seen == [("a", f"{NUL}\0"), ("b", None)]
    assert [(message.body, getattr(message, header)) for message in moved] == seen


def take(connection, queue):
    with connection.create_session() as session, session.create_consumer(queue) as consumer:
        message = consumer.receive(timeout=60)
        assert message is not None
        return message


@pytest.fixture(scope="module")
def over_amqp(broker_url):
    client = OurClient(broker_url("activemq-amqp"))
    yield client
    client.close()


@pytest.mark.parametrize("text", [NUL, BEYOND, f"ä{BEYOND}\0{BEYOND}", "\0" * 300, BEYOND * 300])
def test_we_read_modified_utf8_over_amqp(over_amqp, over_openwire, queue, text):
    """The broker hands over the strings of OpenWire as Java's ``writeUTF`` writes them."""
    session = over_openwire.session()
    session.send(queue, TextMessage(text, **fields(text)))
    session.send(queue, MapMessage({"entry": text}))
    session.send(queue, StreamMessage([text]))
    received, entries, values = over_amqp.take(queue, 3)
    assert (received.body, *told_fields(describe(received))) == (text, ["string", text], text, text)
    assert (dict(entries.body), list(values.body)) == ({"entry": text}, [text])
