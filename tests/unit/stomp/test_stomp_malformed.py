"""No malformed frame is delivered as a message, nor what follows it: the connection ends and says why."""

import pytest

from jmsjca.destinations import Queue
from jmsjca.errors import ConnectionLostError
from jmsjca.providers.stomp.protocol.frames import FrameParser
from tests.unit.stomp.letters import read, write
from tests.unit.stomp.malformed import BODY, GOOD, vectors

ENOUGH = 200


def _behind(subscription):
    return write("MESSAGE", {**GOOD, "subscription": subscription, "message-id": "2"}, BODY.encode())


def test_none_is_delivered(line, capsys):
    names = [(version, name) for version in ("1.1", "1.2") for name in vectors("s", version)]
    for version, name in names:
        each = line(version=version)
        consumer = each.connection.consumer(Queue("q"))
        subscription = dict(read(bytes(each.channel.written))[0][1])["id"]
        each.channel.incoming.put(vectors(subscription, version)[name] + _behind(subscription))
        with pytest.raises(ConnectionLostError, match="protocol"):
            assert consumer.receive(1, None) == [], (version, name)
    with capsys.disabled():
        print(f"\nmalformed frames {len(names)} of {len(names)}")
    assert len(names) >= ENOUGH


@pytest.mark.parametrize("version", ["1.1", "1.2"])
def test_none_is_read_in_pieces_either(version):
    """But for a second CONNECTED, which is one too many only for who has read the first."""
    for name, raw in vectors("s", version).items():
        if "connected again" not in name:
            assert _trickle(raw + _behind("s"), version) == ([], True), name


def _trickle(data, version):
    """The frames that are read byte by byte, and whether that ends with an error."""
    parser, frames = FrameParser(1000), []
    parser.version = version
    try:
        for byte in data:
            frames += parser.feed(bytes([byte]))
    except ConnectionLostError:
        return frames, True
    return frames, False
