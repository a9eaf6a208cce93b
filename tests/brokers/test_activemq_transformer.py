"""What a client over AMQP is told of ActiveMQ's transformer: nothing, so that it cannot warn of the default one."""

import re
import uuid

import pytest
from brokers import registry
from brokers.products import ActiveMQ
from gap_links import Receiver, send

from tests.brokers.conftest import demand

_OWN = re.compile(r"name=\"[0-9a-f-]{30,}\"")  # of a link


def received_frames(amqp, url, queue, capfd):
    """Send and receive a message; return the frames of the broker before it, and those with it."""
    capfd.readouterr()
    connection = amqp("activemq", url)
    send(connection, f"queue://{queue}", "text")
    assert Receiver(connection, f"queue://{queue}", 1).bodies(1) == ["text"]
    lines = "".join(capfd.readouterr()).splitlines()
    frames = [line.partition("<- ")[2] for line in lines if "<- @" in line]
    conn = connection.connection.conn
    opened = [str(dict(conn.remote_properties)), str(list(conn.remote_offered_capabilities))]
    shown = [*opened, *(_OWN.sub("", frame) for frame in frames if frame.startswith(("@begin", "@attach")))]
    return shown, [frame for frame in frames if frame.startswith("@transfer")]


class Transforming(ActiveMQ):
    """An ActiveMQ whose AMQP connector has the transformer for clients over OpenWire."""

    def command(self, home):
        configuration = self.folder / "conf" / "activemq.xml"
        text, count = re.subn(r'(uri="amqp://[^"?]*)"', r'\1?transport.transformer=jms"', configuration.read_text())
        assert count == 1
        configuration.write_text(text)
        return super().command(home)


@pytest.fixture
def transforming():
    broker = Transforming()
    try:
        yield demand(broker.start)
    finally:
        registry.discard(broker)


def test_no_frame_shows_the_transformer(amqp, broker_url, transforming, capfd):
    """The open, begin and attach frames are equal, so docs/reference/network.md tells the option: no warning can."""
    queue = f"frames.{uuid.uuid4().hex}"
    (native, as_sent), (jms, transformed) = (
        received_frames(amqp, url, queue, capfd) for url in (broker_url("activemq-amqp"), transforming.url("amqp"))
    )
    assert "ActiveMQ" in native[0]
    assert {frame.partition("(")[0] for frame in native[2:]} == {"@begin", "@attach"}
    assert native == jms
    assert as_sent != transformed  # the option is in effect
