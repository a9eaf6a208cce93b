"""Unknown brokers are asked whether they have transactions."""

import pytest
from amqp_peer import SECONDS, Broker
from amqp_peer.encoding import Symbol
from amqp_peer.performatives import (
    Accepted,
    Attach,
    Close,
    Coordinator,
    Declare,
    Declared,
    Discharge,
    Error,
    Open,
    Rejected,
    Transfer,
)

from jmsjca.destinations import Queue
from jmsjca.errors import ConnectionLostError, NotSupportedError
from jmsjca.messages import TextMessage
from tests.unit.providers.amqp.wire.cut_account import body_of, encoded

UNTESTED = "unheard of"
NO = Error(condition="amqp:not-implemented", description="no")


def to_coordinator(reaction):
    """Do something else when a link to the coordinator is asked for."""

    def instead(service, frame):
        target = frame.body.target
        reaction(service, frame) if isinstance(target, Coordinator) else service.carry_out(frame)

    return {Attach: instead}


def refuse_link(service, frame):
    service.agree(frame, target=None)
    service.detach(frame, NO)


REFUSALS = {
    "the session ends": to_coordinator(lambda service, frame: service.end(frame, NO)),
    "the link is refused": to_coordinator(refuse_link),
    "it has only others": to_coordinator(
        lambda service, frame: service.agree(frame, target=Coordinator(capabilities=[Symbol("amqp:others")]))
    ),
    "none is declared": {Declare: lambda service, frame: service.agree(frame, state=Rejected(error=NO))},
    "what is declared is accepted": {Declare: lambda service, frame: service.agree(frame, state=Accepted())},
    "what is declared has no name": {Declare: lambda service, frame: service.agree(frame, state=Declared())},
    "what is declared has a number": {Declare: lambda service, frame: service.agree(frame, state=Declared(txn_id=5))},
    "the rollback is refused": {Discharge: lambda service, frame: service.agree(frame, state=Rejected(error=NO))},
}


@pytest.mark.parametrize("refusal", REFUSALS)
def test_who_refuses_has_no_transactions_and_is_used_without(stage, refusal):
    broker = Broker(UNTESTED)
    broker.instead.update(REFUSALS[refusal])
    here = stage(broker)
    connection = here.connect()
    told = connection.capabilities
    assert (told.atomic, told.transacted_receive, told.transacted_send) == (False, False, False)
    with pytest.raises(NotSupportedError, match="atomic"):
        connection.unit()
    unit = connection.unit(atomic=False)
    unit.send(TextMessage("x"), Queue("out"))
    unit.commit()
    assert len(broker.store.queues["out"]) == 1
    assert not here.told


@pytest.mark.parametrize("confirmed", [True, False])
def test_messages_are_acknowledged_without_transactions(stage, confirmed):
    broker = Broker(UNTESTED)
    broker.instead.update(to_coordinator(refuse_link))
    here = stage(broker)
    broker.store.put("in", encoded("x"))
    connection = here.connect()
    unit = connection.unit(atomic=False)
    unit.take(connection.consumer(Queue("in"), window=1).receive(1, SECONDS))
    unit.commit(confirmed=confirmed)
    assert not here.told
    here.close()
    assert not broker.store.queues["in"]


def test_messages_are_given_back_counted_without_transactions(stage):
    broker = Broker(UNTESTED)
    broker.instead.update(to_coordinator(refuse_link))
    broker.store.put("in", encoded("x"))
    connection = stage(broker).connect()
    consumer = connection.consumer(Queue("in"), window=1)
    unit = connection.unit(atomic=False)
    unit.take(consumer.receive(1, SECONDS))
    unit.rollback()
    again = consumer.receive(1, SECONDS)[0]
    assert (again.count, again.redelivered) == (2, True)


def test_who_declares_and_rolls_back_has_transactions(stage):
    broker = Broker(UNTESTED)
    here = stage(broker)
    connection = here.connect()
    told = connection.capabilities
    assert (told.atomic, told.transacted_receive, told.transacted_send) == (True, True, True)
    assert (broker.seen[Declare], broker.seen[Discharge]) == (1, 1)
    assert not broker.store.transactions
    broker.store.put("in", encoded("x"))
    unit = connection.unit()
    unit.take(connection.consumer(Queue("in"), window=0).receive(1, SECONDS))
    unit.send(TextMessage("moved"), Queue("out"))
    unit.commit()
    here.close()
    assert not broker.store.queues["in"]
    assert [body_of(kept.payload) for kept in broker.store.queues["out"]] == ["moved"]


@pytest.mark.parametrize("product", ["apache-activemq-artemis", "ActiveMQ", "Apache Qpid Broker-J Core", "RabbitMQ"])
def test_who_was_tested_is_not_asked(stage, product):
    broker = Broker(product)
    stage(broker).connect()
    assert broker.seen[Transfer] == broker.seen[Declare] == broker.seen[Attach] == 0


def once(fault):
    """Do something else the first time."""
    left = [fault]
    return lambda service, frame: left.pop()(service, frame) if left else service.carry_out(frame)


def hang_up(service, frame):
    service.line.end(reset=True)


def close(service, frame):
    service.line.write(Close(error=NO))


def say_nothing(service, frame):
    service.peer.leave_unanswered()


ENDS = {
    "the connection breaks": (Attach, hang_up),
    "the connection is closed": (Attach, close),
    "the link is not answered": (Attach, say_nothing),
    "the declaration is not answered": (Declare, say_nothing),
    "the rollback closes the connection": (Discharge, close),
    "the rollback is not answered": (Discharge, say_nothing),
}


@pytest.mark.parametrize("how", ENDS)
def test_who_ends_the_connection_over_the_question_is_used_without(stage, impatient, caplog, how):
    broker = Broker(UNTESTED)
    step, fault = ENDS[how]
    broker.instead.update(to_coordinator(fault) if step is Attach else {step: fault})
    here = stage(broker)
    impatient(here.peer)
    connection = here.connect()
    assert not connection.capabilities.atomic
    assert "is used without" in caplog.text
    unit = connection.unit(atomic=False)
    unit.send(TextMessage("x"), Queue("out"))
    unit.commit()
    assert len(broker.store.queues["out"]) == 1
    assert not here.told  # nobody had what was lost


@pytest.mark.parametrize("fault", [hang_up, close])
def test_a_connection_that_breaks_by_chance_while_it_is_asked_costs_no_capability(stage, fault):
    broker = Broker(UNTESTED)
    broker.instead[Discharge] = once(fault)
    here = stage(broker)
    assert here.connect().capabilities.atomic
    assert not here.told


@pytest.mark.parametrize("asked", [True, False])
def test_a_connection_that_breaks_after_the_question_is_told(stage, asked):
    broker = Broker(UNTESTED)
    if not asked:
        broker.instead.update(to_coordinator(close))
    here = stage(broker)
    connection = here.connect()
    broker.instead[Attach] = hang_up
    with pytest.raises(ConnectionLostError):
        connection.check(Queue("out"))
    assert here.lost.wait(SECONDS)
    assert len(here.told) == 1


def test_a_broker_that_is_gone_when_it_should_be_asked_again_is_told(stage):
    """It cannot be reached, which is no answer."""
    broker = Broker(UNTESTED)
    here = stage(broker)

    def go(service, frame):
        broker.instead[Open] = hang_up
        hang_up(service, frame)

    broker.instead.update(to_coordinator(go))
    with pytest.raises(ConnectionLostError):
        here.connect()
