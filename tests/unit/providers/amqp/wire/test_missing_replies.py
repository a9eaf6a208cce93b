"""Replies that never come: each wait ends with an error that names the awaited reply."""

import threading

import pytest
from amqp_peer import SECONDS, Broker
from amqp_peer.performatives import Attach, Begin, Close, Declare, Detach, Discharge, End, Flow, Transfer
from amqp_peer.script import command_of

from jmsjca.destinations import Queue
from jmsjca.errors import ConnectionLostError, TransactionInDoubtError, TransactionRolledBackError
from jmsjca.messages import TextMessage
from jmsjca.providers.amqp.engine.engine import Engine
from jmsjca.providers.amqp.links.link_pool import LinkPool
from tests.unit.providers.amqp.wire.cut_account import encoded

IN, OUT = Queue("in"), Queue("out")


def withhold(service, frame):
    service.peer.leave_unanswered()


def withhold_after_doing(service, frame):
    """The broker does it, and its answer is lost."""
    service.line.mute()
    service.carry_out(frame)
    service.peer.leave_unanswered()


def consume(connection):
    return connection.consumer(IN, window=0)


def move(connection, broker, *, armed):
    """Move a message; the fault waits until the commit."""
    unit = connection.unit()
    unit.take(consume(connection).receive(1, SECONDS))
    unit.send(TextMessage("y"), OUT)
    broker.instead.update(armed)
    unit.commit()


def send(connection):
    unit = connection.unit(atomic=False)
    unit.send(TextMessage("y"), OUT)
    unit.commit()


@pytest.fixture
def play(stage, impatient):
    """Give a function that does something over a connection; at the end it gives the lengths of both queues."""

    def run(error, match, act, product="apache-activemq-artemis", armed=None):
        broker = Broker(product)
        broker.store.put("in", encoded("x"))
        broker.instead.update(armed or {})
        here = stage(broker)
        connection = here.connect()
        impatient(here.peer)
        with pytest.raises(error, match=match):
            act(connection, broker)
        assert here.lost.wait(SECONDS)  # the answer may still come, so the connection is of no use any more
        assert here.told[0].args[0] in str(here.told[0])
        here.close()
        return len(broker.store.queues["in"]), len(broker.store.queues["out"])

    return run


@pytest.mark.parametrize("step", [Begin, Attach])
@pytest.mark.parametrize("call", [consume, lambda c: c.check(OUT), lambda c: list(c.browse(IN))])
def test_a_link_that_is_not_attached(play, step, call):
    play(ConnectionLostError, "did not answer within", lambda c, _: call(c), armed={step: withhold})


@pytest.mark.parametrize("step", [Begin, Attach, Declare, Transfer])
def test_what_comes_before_the_commit_rolls_back(play, step):
    assert play(
        TransactionRolledBackError, "did not answer within", lambda c, b: move(c, b, armed={step: withhold})
    ) == (1, 0)


def test_a_commit_that_does_not_happen_is_in_doubt(play):
    act = lambda c, b: move(c, b, armed={Discharge: withhold})  # noqa: E731
    assert play(TransactionInDoubtError, "may or may not", act) == (1, 0)


def test_a_commit_that_happens_is_in_doubt(play):
    act = lambda c, b: move(c, b, armed={Discharge: withhold_after_doing})  # noqa: E731
    assert play(TransactionInDoubtError, "may or may not", act) == (0, 1)


@pytest.mark.parametrize(("fault", "sent"), [(withhold, 0), (withhold_after_doing, 1)])
def test_a_message_that_is_not_answered_is_in_doubt(play, fault, sent):
    act = lambda c, _: send(c)  # noqa: E731
    assert play(TransactionInDoubtError, "may have been sent", act, armed={Transfer: fault}) == (1, sent)


def test_a_unit_that_was_given_up_is_not_committed_when_its_answer_comes_at_last(stage, impatient, monkeypatch):
    """The connection's thread may be about to go on just when the unit's thread gives up, so here it does."""
    broker, given_up, ends = Broker(), threading.Event(), []
    here = stage(broker)
    connection = here.connect()
    connection.check(OUT)

    def answer_late(service, frame):
        service.peer.leave_unanswered()
        assert given_up.wait(SECONDS)
        service.carry_out(frame)

    def end(service, frame):
        ends.append(command_of(frame).fail)
        service.carry_out(frame)

    broker.instead.update({Transfer: answer_late, Discharge: end})
    monkeypatch.setattr(Engine, "abort", lambda engine, error: None)
    monkeypatch.setattr(LinkPool, "roll_back", lambda links, transaction: given_up.set())
    impatient(here.peer)
    unit = connection.unit()
    unit.send(TextMessage("y"), OUT)
    with pytest.raises(TransactionRolledBackError):
        unit.commit()
    del broker.instead[Transfer]
    connection.check(Queue("another"))  # by now the answer has come,
    connection.check(Queue("one more"))  # and the broker has seen what is written after it
    assert not ends


def test_a_drain_that_is_not_answered(stage):
    broker = Broker()
    broker.instead[Flow] = withhold
    consumer = stage(broker).connect("reply_timeout=2").consumer(OUT)
    with pytest.raises(ConnectionLostError, match="did not answer within 2 s: the drain"):
        consumer.drain()


def test_a_drain_that_is_not_answered_is_told_though_the_connection_has_ended_for_it(stage, monkeypatch):
    def end(engine, error):
        give_up(engine, error)
        engine._thread.join(SECONDS)

    give_up = Engine.abort
    monkeypatch.setattr(Engine, "abort", end)
    broker = Broker()
    broker.instead[Flow] = withhold
    consumer = stage(broker).connect("reply_timeout=1").consumer(OUT)
    with pytest.raises(ConnectionLostError, match="did not answer within 1 s: the drain"):
        consumer.drain()


def test_a_receiver_whose_end_is_not_answered(play):
    play(ConnectionLostError, "the end of the receiver", lambda c, _: consume(c).close(), armed={Detach: withhold})


@pytest.mark.parametrize("step", [Close, End, Detach, Flow])
def test_a_connection_whose_close_is_not_answered_ends(stage, step):
    broker = Broker()
    here = stage(broker)
    connection = here.connect()
    connection.consumer(IN)
    broker.instead = {step: withhold, Close: withhold}
    connection.close(timeout=0)
    assert not here.told  # it was asked for


def test_an_answer_that_comes_too_late_changes_nothing(stage, impatient):
    """The caller was told that the outcome is in doubt; that stays so."""
    broker = Broker()
    broker.store.put("in", encoded("x"))
    here = stage(broker)
    impatient(here.peer)
    given_up = threading.Event()

    def answer_late(service, frame):
        service.peer.leave_unanswered()
        assert given_up.wait(SECONDS)
        service.carry_out(frame)

    with pytest.raises(TransactionInDoubtError):
        move(here.connect(), broker, armed={Discharge: answer_late})
    given_up.set()
    here.close()
    assert len(broker.store.queues["out"]) == 1
