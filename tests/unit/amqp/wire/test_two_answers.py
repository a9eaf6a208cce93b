"""Answers to what we send that come in two steps: the outcome counts, and what has one is settled by us, too."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from amqp_peer import SECONDS, Broker
from amqp_peer.performatives import Attach, Coordinator, Declare, Detach, Discharge, Disposition, Received, Transfer
from amqp_peer.values import Symbol, ULong

from jmsjca.destinations import Queue
from jmsjca.errors import TransactionRolledBackError
from jmsjca.messages import TextMessage


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
