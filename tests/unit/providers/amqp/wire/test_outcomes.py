"""Outcomes of a unit's messages: in any order, in two steps, slowly, and in unexpected states."""

import random
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Semaphore

import pytest
from amqp_peer import SECONDS, Broker
from amqp_peer.encoding import Symbol, ULong
from amqp_peer.performatives import (
    Accepted,
    Attach,
    Coordinator,
    Declare,
    Declared,
    Detach,
    Discharge,
    Disposition,
    Received,
    Transactional,
    Transfer,
)

from jmsjca.destinations import Queue
from jmsjca.errors import TransactionInDoubtError, TransactionRolledBackError
from jmsjca.messages import TextMessage
from jmsjca.providers.amqp.links import link_pool
from jmsjca.providers.amqp.links.sender import SendBatch
from tests.unit.clocks import HandClock
from tests.unit.inbound.deliveries import until
from tests.unit.providers.amqp.wire.cut_account import body_of


def commit(connection, messages=1):
    unit = connection.unit()
    for _ in range(messages):
        unit.send(TextMessage("x"), Queue("out"))
    unit.commit()


@pytest.mark.parametrize("state", [None, Received(section_number=0, section_offset=ULong(0))], ids=["none", "received"])
@pytest.mark.parametrize("step", [Declare, Transfer, Discharge])
def test_a_state_without_an_outcome_is_no_answer_yet(stage, step, state):
    """A consumer comes and goes between the two: so the first is heard alone."""
    broker, held, is_held = Broker(), [], threading.Event()

    def hold(service, frame):
        service.agree(frame, settled=False, state=state)
        held.append(frame)
        is_held.set()

    def release(service, frame):
        while held:
            service.carry_out(held.pop())
        service.carry_out(frame)

    broker.instead.update({step: hold, Detach: release})
    connection = stage(broker).connect()
    with ThreadPoolExecutor(1) as pool:
        committing = pool.submit(commit, connection)
        assert is_held.wait(SECONDS)
        connection.consumer(Queue("in")).close()
        assert committing.result(SECONDS) is None
    assert len(broker.store.queues["out"]) == 1


def test_what_has_an_outcome_is_settled(stage):
    """Else both sides would keep it as long as the link lasts."""
    broker, settled = Broker(), []

    def unsettled(service, frame):
        write, service.agree = service.agree, lambda frame, **fields: write(frame, settled=False, **fields)
        service.carry_out(frame)
        service.agree = write

    broker.instead.update(dict.fromkeys((Declare, Transfer, Discharge), unsettled))
    broker.instead[Disposition] = lambda service, frame: settled.append(frame)
    connection = stage(broker).connect()
    commit(connection, messages=3)
    for name in ("in", "other"):  # two round trips: proton writes an attach before what is settled together with it
        connection.check(Queue(name))
    numbers = [
        (frame.channel, number)
        for frame in settled
        for number in range(frame.body.first, (frame.body.last or frame.body.first) + 1)
        if frame.body.settled
    ]
    assert len(numbers) == len(set(numbers)) == 5


def test_a_coordinator_without_local_transactions_is_told(stage):
    broker = Broker()

    def attach(service, frame):
        if isinstance(frame.body.target, Coordinator):
            frame.body.target.fields["capabilities"] = [Symbol("amqp:distributed-transactions")]
        service.carry_out(frame)

    broker.instead[Attach] = attach
    with pytest.raises(TransactionRolledBackError, match="no local transactions over AMQP, only amqp:distributed"):
        commit(stage(broker).connect())


COUNT = 20
ORDERS = {
    "as sent": range(COUNT),
    "backwards": range(COUNT)[::-1],
    "the first one last": [*range(1, COUNT), 0],
    "mixed": random.Random(7).sample(range(COUNT), COUNT),
}


@pytest.mark.parametrize("atomic", [False, True])
@pytest.mark.parametrize("order", ORDERS)
def test_a_unit_ends_when_all_are_answered(stage, order, atomic):
    broker, frames = Broker(), []
    connection = stage(broker).connect()

    def hold(service, frame):
        frames.append(frame)
        if len(frames) == COUNT:
            for number in ORDERS[order]:
                service.carry_out(frames[number])
            frames.clear()

    broker.instead[Transfer] = hold
    for _ in range(3):  # proton uses the deliveries of one unit for the next
        unit = connection.unit(atomic=atomic)
        for number in range(COUNT):
            unit.send(TextMessage(str(number)), Queue("q"))
        unit.commit()
    bodies = [body_of(kept.payload) for kept in broker.store.queues["q"]]
    assert bodies == [str(number) for number in ORDERS[order]] * 3


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
            if self.sending.outstanding:
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


STATES = {
    "transactional": lambda txn_id: Transactional(txn_id=txn_id, outcome=Accepted()),
    "declared": lambda txn_id: Declared(txn_id=txn_id),
}


@pytest.mark.parametrize("state", STATES)
def test_the_unit_is_in_doubt(stage, state):
    """This broker did commit: who believed in a rollback would send twice."""
    broker = Broker()

    def discharge(service, frame):
        txn_id = service._command(frame).txn_id
        service.store.end(txn_id, fail=False)
        service.agree(frame, state=STATES[state](txn_id))

    broker.instead[Discharge] = discharge
    unit = stage(broker).connect().unit()
    unit.send(TextMessage("x"), Queue("out"))
    with pytest.raises(TransactionInDoubtError):
        unit.commit()
    assert len(broker.store.queues["out"]) == 1
