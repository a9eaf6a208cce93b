"""What a broker says of a transaction is read as far as it says it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from proton import Data

from jmsjca.providers.amqp.links.delivery_states import ACCEPTED, accepted_in, outcome_in, taken_in, transaction_in
from jmsjca.providers.common.amqp_types import Described, Symbol, ULong, write

NAME = b"\xff\x00\xfe\x01"
REJECTED = 0x25
REASON = Described(Symbol("amqp:error:list"), [Symbol("amqp:not-allowed"), "because"])


@pytest.mark.parametrize("descriptor", [ULong(REJECTED), Symbol("amqp:rejected:list")])
def test_a_refusal_in_a_transaction_tells_why(descriptor):
    outcome, condition = outcome_in(write([NAME, Described(descriptor, [REASON])]))
    assert outcome == REJECTED
    assert (condition.name, condition.description) == ("amqp:not-allowed", "because")


def test_the_state_that_accepts_in_a_transaction_names_both():
    state = accepted_in(NAME)
    assert outcome_in(state) == (ACCEPTED, None)
    assert transaction_in(state) == NAME


@given(st.binary(max_size=300))
def test_a_message_taken_in_a_transaction_is_told_of_as_proton_encodes_it(name):
    state = Data()
    state.decode(accepted_in(name))
    assert state.encode() == taken_in(name)
    assert outcome_in(taken_in(name)) == (ACCEPTED, None)


@pytest.mark.parametrize("fields", [[], [None], ["text"], [NAME, None], [NAME, 1], [NAME, [1]], {"a": 1}, 1, None])
def test_what_tells_no_outcome_is_none(fields):
    assert outcome_in(write(fields)) == (None, None)


@pytest.mark.parametrize("fields", [[], [None], ["text"], [1], {"a": 1}, 1, None])
def test_what_names_no_transaction_is_none(fields):
    assert transaction_in(write(fields)) == b""


@given(st.binary(max_size=80))
def test_noise_tells_nothing(noise):
    outcome, _ = outcome_in(noise)
    assert outcome is None or isinstance(outcome, int)
    assert isinstance(transaction_in(noise), bytes)


@given(st.integers(0, 12), st.binary(min_size=1, max_size=3))
def test_damage_does_no_harm(position, damage):
    state = accepted_in(NAME)
    damaged = state[:position] + damage + state[position + len(damage) :]
    assert outcome_in(damaged)[0] in {None, ACCEPTED, REJECTED, 0x26, 0x27}
