"""A broker that answers one message after the other: a unit may take longer than the time for one answer."""

from concurrent.futures import Future
from threading import Semaphore

import pytest
from amqp_peer import SECONDS, Broker
from amqp_peer.performatives import Transfer

from jmsjca.destinations import Queue
from jmsjca.messages import TextMessage
from jmsjca.providers.amqp.links import link_pool
from jmsjca.providers.amqp.links.sender import SendBatch
from tests.unit.amqp.wire.account import body_of
from tests.unit.clocks import HandClock
from tests.unit.delivering.stage import until

TIMEOUT, LATER = 30, 2


@pytest.fixture
def clock():
    return HandClock()


@pytest.fixture
def waits():
    """For how long the client waited, each time."""
    return []


@pytest.fixture
def broker(monkeypatch, clock, waits):
    """Answers a message whenever the client's patience for one answer begins, which ends when that has come."""
    broker, asked = Broker(), Semaphore(0)

    class Patience(Future):
        def __init__(self, sending):
            super().__init__()
            self.sending = sending

        def result(self, timeout=None):
            waits.append(timeout)
            missing = self.sending.outstanding
            clock.time += LATER
            asked.release()
            until(lambda: self.sending.outstanding < missing)
            if not self.done():
                clock.time += LATER
                raise TimeoutError
            return super().result(SECONDS)

    class Steady(SendBatch):
        def __init__(self, *of, **how):
            super().__init__(*of, **how)
            self.done = Patience(self)

    def answer(service, frame):
        assert asked.acquire(timeout=SECONDS)
        service.carry_out(frame)

    monkeypatch.setattr(link_pool, "SendBatch", Steady)
    broker.instead[Transfer] = answer
    return broker


@pytest.mark.parametrize("atomic", [True, False])
def test_each_answer_has_its_time(stage, broker, clock, waits, atomic):
    unit = stage(broker).connect(f"reply_timeout={TIMEOUT}&heartbeat=0", clock=clock).unit(atomic=atomic)
    for body in "abc":
        unit.send(TextMessage(body), Queue("out"))
    unit.commit()
    assert [body_of(kept.payload) for kept in broker.store.queues["out"]] == ["a", "b", "c"]
    assert waits == [TIMEOUT, TIMEOUT - LATER, TIMEOUT - LATER]
