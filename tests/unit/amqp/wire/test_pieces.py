"""Large units are written piece by piece: the broker begins before all of it is handed to proton."""

import threading

import pytest
from amqp_peer import SECONDS, Broker
from amqp_peer.performatives import Transfer

from jmsjca.destinations import Queue
from jmsjca.messages import TextMessage
from jmsjca.providers.amqp.engine import proton_ffi
from tests.unit.amqp.wire.account import body_of

COUNT, LATER = 100, 80
BODIES = [f"{number:0>1024}" for number in range(COUNT)]


class Begun:
    """A broker that tells when the first message has come, and proton, which waits for that at a later one."""

    def __init__(self, stage, monkeypatch):
        self._came, self._handed, self._send = threading.Event(), 0, proton_ffi._send
        self.in_time = None
        self.broker = Broker("Apache Qpid Broker-J Core")
        self.broker.instead[Transfer] = self._note
        self.connection = stage(self.broker).connect()
        monkeypatch.setattr(proton_ffi, "_send", self._wait)

    def bodies(self):
        return [body_of(kept.payload) for kept in self.broker.store.queues["out"]]

    def _note(self, service, frame):
        if service.links[frame.channel, frame.body.handle].attach.target.address == "out":
            self._came.set()
        service.carry_out(frame)

    def _wait(self, link, payload, size):
        self._handed += size > len(BODIES[0])
        if self._handed == LATER and self.in_time is None:
            self.in_time = self._came.wait(SECONDS)
        return self._send(link, payload, size)


@pytest.mark.parametrize("atomic", [True, False])
def test_the_broker_begins_before_all_is_handed_over(stage, monkeypatch, atomic):
    begun = Begun(stage, monkeypatch)
    unit = begun.connection.unit(atomic=atomic)
    for body in BODIES:
        unit.send(TextMessage(body), Queue("out"))
    unit.commit()
    assert begun.in_time
    assert begun.bodies() == BODIES
