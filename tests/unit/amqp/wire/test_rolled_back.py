"""Units that the broker ends although all of them was written or sent: what they took comes again, in its order."""

import pytest
from amqp_peer import SECONDS, Broker
from amqp_peer.answers import command_of
from amqp_peer.performatives import Close, Declare, Discharge, Error, Rejected, Transfer

from jmsjca.destinations import Queue
from jmsjca.errors import TransactionRolledBackError
from jmsjca.messages import TextMessage
from tests.unit.amqp.wire.account import encoded

IN, OUT = Queue("in"), Queue("out")
REASON = Error(condition="amqp:transaction:rollback", description="because")


@pytest.fixture
def broker():
    broker = Broker()
    for body in "abc":
        broker.store.put("in", encoded(body))
    return broker


def received(consumer, messages):
    found = []
    while len(found) < messages:
        found += consumer.receive(messages, SECONDS)
    return [(delivery.message.body, delivery.count) for delivery in found]


def commit(connection, taken=()):
    unit = connection.unit()
    unit.take(taken)
    unit.send(TextMessage("x"), OUT)
    unit.commit()


def test_a_coordinator_that_ends_before_the_discharge_settles_nothing(stage, broker):
    """What is settled in a transaction that is gone is lost to everybody until the connection ends."""
    declared = []

    def declare(service, frame):
        declared.append(frame)
        service.carry_out(frame)

    def end_coordinator(service, frame):
        service.detach(declared.pop(), REASON)
        service.carry_out(frame)
        service.store.end(frame.body.state.txn_id, fail=True)

    broker.instead.update({Declare: declare, Transfer: end_coordinator})
    connection = stage(broker).connect()
    consumer = connection.consumer(IN, window=0)
    with pytest.raises(TransactionRolledBackError, match=r"ended the link to the transaction coordinator.*because"):
        commit(connection, consumer.receive(1, SECONDS))
    assert received(consumer, 3) == [("a", 2), ("b", 1), ("c", 1)]
    broker.instead.clear()
    commit(connection)
    assert len(broker.store.queues["out"]) == 1


@pytest.mark.parametrize("messages", [0, 1])
def test_nothing_is_committed_over_the_end_of_the_connection_that_comes_with_the_last_answer(stage, broker, messages):
    """So it is not in doubt."""

    def answer_and_close(service, frame):
        with service.line.together():
            service.carry_out(frame)
            service.line.write(Close())

    here = stage(broker)
    connection = here.connect()
    taken = connection.consumer(IN, window=0).receive(1, SECONDS) if messages else []
    broker.instead[Transfer] = answer_and_close
    with pytest.raises(TransactionRolledBackError):
        commit(connection, taken)
    here.close()
    assert not broker.seen[Discharge]


def refuse(service, frame):
    """Roll back, as the broker may instead of a commit."""
    service.store.end(command_of(frame).txn_id, fail=True)
    service.agree(frame, state=Rejected(error=REASON))


def test_what_a_refused_commit_took_comes_again_before_what_is_here_already(stage, broker):
    """Only a new connection gets it in order, so the old one is left."""
    broker.instead[Discharge] = refuse
    here = stage(broker)
    connection = here.connect()
    consumer = connection.consumer(IN)
    with pytest.raises(TransactionRolledBackError, match="because"):
        commit(connection, consumer.receive(1, SECONDS))
    assert here.lost.wait(SECONDS)
    assert "rolled a unit back" in str(here.told[0])
    connection.close()
    assert [body for body, _ in received(here.connect().consumer(IN), 3)] == ["a", "b", "c"]


def test_a_refused_commit_that_took_nothing_leaves_the_connection(stage, broker):
    broker.instead[Discharge] = refuse
    here = stage(broker)
    connection = here.connect()
    with pytest.raises(TransactionRolledBackError, match="because"):
        commit(connection)
    broker.instead.clear()
    commit(connection)
    assert not here.told
