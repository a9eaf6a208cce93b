"""Frames that are none: the connection ends with an error or lives on; nothing hangs, is left over, or logged."""

import logging
from contextlib import suppress

import pytest
from amqp_peer import SECONDS
from amqp_peer.frames import frame
from amqp_peer.performatives import Attach, Flow, Open, Transfer
from amqp_peer.script import LOGIN, OPEN, drop, expect, reply, script, send

from jmsjca.destinations import Queue
from jmsjca.errors import JMSError
from tests.unit.amqp.wire.account import encoded
from tests.unit.amqp.wire.malformed import VECTORS

GOOD = frame(Transfer(handle=0, delivery_id=0, delivery_tag=b"good", message_format=0), payload=encoded("good"))


def take_all(consumer):
    while consumer.receive(1, SECONDS):
        pass


def nothing_failed(caplog):
    told = [record for record in caplog.records if record.levelno >= logging.WARNING]
    return not [record for record in told if "asked for transactions" not in record.msg]


@pytest.mark.parametrize("vector", VECTORS)
def test_to_a_receiver(stage, caplog, vector):
    here = stage(script(OPEN, expect(Attach), reply(), expect(Flow), send(VECTORS[vector], GOOD), drop))
    consumer = here.connect().consumer(Queue("q"))
    with pytest.raises(JMSError) as told:
        take_all(consumer)
    assert len(str(told.value)) < 1000
    assert here.lost.wait(SECONDS)
    assert len(here.told) == 1
    assert nothing_failed(caplog), caplog.text


OPENS = [name for name in VECTORS if " field " not in name or name.startswith("Open")]


@pytest.mark.parametrize("vector", OPENS)
def test_instead_of_an_open(stage, caplog, vector):
    here = stage(script(LOGIN, expect(Open), send(VECTORS[vector]), drop))
    with suppress(JMSError):
        here.connect()
    assert nothing_failed(caplog), caplog.text
