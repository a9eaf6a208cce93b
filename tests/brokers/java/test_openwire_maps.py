"""Maps between ours over STOMP, with the option java_maps, and ActiveMQ's own Java client over OpenWire."""

import pytest
from jms_java import OurClient, describe

from jmsjca.errors import MessageFormatError
from jmsjca.messages import Byte, BytesMessage, Char, Double, Float, Int, Long, MapMessage, Message, Short, TextMessage

MAPS = {
    "nothing": {},
    "every type": {
        "boolean": True,
        "no": False,
        "byte": Byte(-3),
        "short": Short(300),
        "char": Char("ä"),
        "int": Int(-(2**31)),
        "long": Long(2**40),
        "float": Float(0.5),
        "double": Double(-1.5e300),
        "infinite": Double(float("inf")),
        "bytes": bytes(range(256)),
        "no bytes": b"",
        "null": None,
    },
    "texts": {
        "007": "007",
        "text": "täxt: <&> \"' \\ \r\n €",
        "empty": "",
        " blanks ": "  ",
        "true": "true",
        "1.50": "1.50",
    },
}


@pytest.fixture(scope="module")
def with_maps(broker_url):
    client = OurClient(f"{broker_url('activemq-stomp')}?java_maps=true")
    yield client
    client.close()


@pytest.mark.parametrize("name", MAPS)
def test_java_reads_the_maps_that_we_send(with_maps, over_openwire, queue, name):
    with_maps.send(queue, MapMessage(MAPS[name], properties={"a": "b"}))
    [received] = over_openwire.session().take(queue)
    assert (received["kind"], received["body"]) == ("map", describe(MapMessage(MAPS[name]))["body"])
    assert received["properties"]["a"] == ["string", "b"]


@pytest.mark.parametrize("name", MAPS)
def test_we_read_the_maps_that_java_sends(with_maps, over_openwire, queue, name):
    over_openwire.session().send(queue, describe(MapMessage(MAPS[name])))
    [received] = with_maps.take(queue)
    assert describe(received)["kind"] == "map"
    assert describe(received)["body"] == describe(MapMessage(MAPS[name]))["body"]


@pytest.mark.parametrize("name", MAPS)
def test_we_read_our_own(with_maps, queue, name):
    with_maps.send(queue, MapMessage(MAPS[name], properties={"n": Int(3)}))
    [received] = with_maps.take(queue)
    assert describe(received)["body"] == describe(MapMessage(MAPS[name]))["body"]
    assert dict(received.properties) == {"n": Int(3)}


def test_who_did_not_ask_for_maps_learns_that_one_came(with_maps, over_stomp, queue):
    """Its body is missing, which an empty map would be taken for."""
    with_maps.send(queue, MapMessage({"a": 1}))
    with pytest.raises(MessageFormatError, match="map"):
        over_stomp.take(queue)


@pytest.mark.parametrize("message", [TextMessage("täxt"), TextMessage("<map/>"), BytesMessage(b"\0\xff"), Message()])
def test_other_messages_stay_as_they_are(with_maps, over_openwire, queue, message):
    over_openwire.session().send(queue, describe(message))
    with_maps.send(queue, message)
    first, second = with_maps.take(queue, 2)
    assert describe(second)["kind"] == describe(message)["kind"]
    if type(message) is not Message:  # which looks like an empty text
        assert (type(first), first.body) == (type(message), message.body)
