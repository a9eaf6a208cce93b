"""The coordinator: transactions declared ahead, and the states in its replies."""

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st
from proton import Data

from jmsjca.destinations import Queue
from jmsjca.errors import TransactionRolledBackError
from jmsjca.messages import TextMessage
from jmsjca.providers.amqp.links.delivery_states import (
    ACCEPTED,
    declared_txn_id,
    transactional_accepted,
    transactional_accepted_wide,
    transactional_outcome,
)
from jmsjca.providers.common.amqp_types import Described, Symbol, ULong, write
from tests.unit.clocks import HandClock
from tests.unit.providers.amqp.broker_behaviour import end_session, reject
from tests.unit.providers.amqp.scripted_broker import SECONDS

QUEUE = Queue("q")


@pytest.fixture
def clock():
    return HandClock()


@pytest.fixture
def busy(line, clock):
    """A line on which units follow each other: two have been committed."""
    line = line("ActiveMQ")
    line.open(clock=clock)
    commit(line)
    commit(line)
    line.peer.wait_for("declare", 3)
    return line


def commit(line):
    unit = line.connection.unit()
    unit.send(TextMessage("x"), QUEUE)
    unit.commit()


def turn(line):
    """Wait until all that is due has been done, which comes behind what is asked for."""
    engine, done = line.connection._engine, threading.Event()
    engine.call(lambda: engine.call_at(engine.now(), done.set))
    assert done.wait(SECONDS)


def commands(line):
    return [step for step in line.peer.order if step in {"declare", "discharge", "rollback"}]


def test_a_single_unit_declares_nothing_more(line, clock):
    line = line("ActiveMQ")
    line.open(clock=clock)
    commit(line)
    assert commands(line) == ["declare", "discharge"]


def test_the_next_declaration_goes_with_the_discharge(busy):
    assert commands(busy) == ["declare", "discharge"] * 2 + ["declare"]
    commit(busy)
    busy.peer.wait_for("declare", 4)
    assert commands(busy) == ["declare", "discharge"] * 3 + ["declare"]


def test_a_unit_that_fails_declares_nothing_more(line, clock):
    line = line("ActiveMQ")
    line.open(clock=clock)
    commit(line)
    line.peer.reactions["transfer"] = reject
    with pytest.raises(TransactionRolledBackError):
        commit(line)
    assert commands(line) == ["declare", "discharge", "declare", "rollback"]


def test_units_far_from_each_other_declare_their_own(line, clock):
    line = line("ActiveMQ")
    line.open("heartbeat=0", clock=clock)
    for _ in range(3):
        commit(line)
        clock.time += 5
    assert commands(line) == ["declare", "discharge"] * 3


def test_what_nobody_uses_is_rolled_back(busy, clock):
    clock.time += 0.9
    turn(busy)
    assert busy.peer.seen["rollback"] == 0
    clock.time += 0.2
    turn(busy)
    busy.peer.wait_for("rollback")
    commit(busy)
    assert commands(busy)[-3:] == ["rollback", "declare", "discharge"]


def test_what_is_used_is_not_rolled_back(busy, clock):
    clock.time += 0.9
    commit(busy)
    clock.time += 0.2
    turn(busy)
    assert busy.peer.seen["rollback"] == 0
    clock.time += 1
    turn(busy)
    busy.peer.wait_for("rollback")


def test_a_refused_declaration_rolls_back_the_unit_that_would_use_it(busy):
    busy.peer.reactions["declare"] = reject
    commit(busy)
    with pytest.raises(TransactionRolledBackError):
        commit(busy)
    busy.peer.reactions.clear()
    commit(busy)


def test_a_refused_declaration_that_nobody_uses_is_not_rolled_back(busy, clock, caplog):
    """There is nothing to roll back."""
    busy.peer.reactions["declare"] = reject
    commit(busy)
    busy.peer.wait_for("declare", 4)
    clock.time += 2
    turn(busy)
    busy.peer.reactions.clear()
    commit(busy)
    assert busy.peer.seen["rollback"] == 0
    assert not caplog.records


def test_what_was_declared_at_a_coordinator_that_ended_is_not_rolled_back(busy, clock, caplog):
    """Its transactions ended with it."""
    busy.peer.do(lambda: end_session(link_of(busy)))
    busy.peer.wait_for("end")
    clock.time += 2
    turn(busy)
    commit(busy)
    assert busy.peer.seen["rollback"] == 0
    assert not caplog.records


def test_a_coordinator_that_ends_takes_what_was_declared_with_it(busy):
    link = busy.connection._links._coordinator
    busy.peer.reactions["transfer"] = lambda event: (end_session(link_of(busy)), busy.peer.on_transfer(event))
    with pytest.raises(TransactionRolledBackError):
        commit(busy)
    assert link._locally_detached.done()
    busy.peer.reactions.clear()
    commit(busy)
    assert busy.peer.seen["coordinator"] == 2


def link_of(line):
    """The event of the peer's end of the link to the coordinator."""

    class Event:
        session = next(
            link.session for link in links(line) if link.remote_target.type == link.remote_target.COORDINATOR
        )

    return Event


def links(line):
    link = line.peer.connection.link_head(0)
    while link is not None:
        yield link
        link = link.next(0)


def test_a_lost_connection_leaves_nobody_waiting(busy, clock):
    busy.peer.do(busy.peer.cut)
    assert busy.lost.wait(SECONDS)
    clock.time += 2


NAME = b"\xff\x00\xfe\x01"
REJECTED = 0x25
REASON = Described(Symbol("amqp:error:list"), [Symbol("amqp:not-allowed"), "because"])


@pytest.mark.parametrize("descriptor", [ULong(REJECTED), Symbol("amqp:rejected:list")])
def test_a_refusal_in_a_transaction_tells_why(descriptor):
    outcome, condition = transactional_outcome(write([NAME, Described(descriptor, [REASON])]))
    assert outcome == REJECTED
    assert (condition.name, condition.description) == ("amqp:not-allowed", "because")


def test_the_state_that_accepts_in_a_transaction_names_both():
    state = transactional_accepted(NAME)
    assert transactional_outcome(state) == (ACCEPTED, None)
    assert declared_txn_id(state) == NAME


@given(st.binary(max_size=300))
def test_a_message_taken_in_a_transaction_is_told_of_as_proton_encodes_it(name):
    state = Data()
    state.decode(transactional_accepted(name))
    assert state.encode() == transactional_accepted_wide(name)
    assert transactional_outcome(transactional_accepted_wide(name)) == (ACCEPTED, None)


@pytest.mark.parametrize("fields", [[], [None], ["text"], [NAME, None], [NAME, 1], [NAME, [1]], {"a": 1}, 1, None])
def test_what_tells_no_outcome_is_none(fields):
    assert transactional_outcome(write(fields)) == (None, None)


@pytest.mark.parametrize("fields", [[], [None], ["text"], [1], {"a": 1}, 1, None])
def test_what_names_no_transaction_is_none(fields):
    assert declared_txn_id(write(fields)) == b""


@given(st.binary(max_size=80))
def test_noise_tells_nothing(noise):
    outcome, _ = transactional_outcome(noise)
    assert outcome is None or isinstance(outcome, int)
    assert isinstance(declared_txn_id(noise), bytes)


@given(st.integers(0, 12), st.binary(min_size=1, max_size=3))
def test_damage_does_no_harm(position, damage):
    state = transactional_accepted(NAME)
    damaged = state[:position] + damage + state[position + len(damage) :]
    assert transactional_outcome(damaged)[0] in {None, ACCEPTED, REJECTED, 0x26, 0x27}
