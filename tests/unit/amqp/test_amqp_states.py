"""What a broker says of a transaction is read as far as it says it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from proton import Data

from jmsjca.providers.amqp.links.delivery_states import (
    ACCEPTED,
    declared_txn_id,
    transactional_accepted,
    transactional_accepted_wide,
    transactional_outcome,
)
from jmsjca.providers.common.amqp_types import Described, Symbol, ULong, write

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
