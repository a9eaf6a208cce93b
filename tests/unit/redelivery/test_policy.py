"""Which action is in force when."""

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jmsjca import Queue, Topic
from jmsjca.errors import InvalidRedeliveryHandlingError
from jmsjca.redelivery import DEFAULT_REDELIVERY_HANDLING, Delay, Delete, Deliver, Move, RedeliveryPolicy
from tests.unit.redelivery.ladders import ladders, printed


def test_an_action_is_in_force_until_the_next():
    policy = RedeliveryPolicy.parse("5:1000; 10:5000; 50:move(queue:mydlq)")
    given_actions = [policy.action(n) for n in range(60)]
    assert given_actions == [Deliver()] * 5 + [Delay(1000)] * 5 + [Delay(5000)] * 40 + [Move("queue", "mydlq")] * 10


@pytest.mark.parametrize("text", ["", ";", " "])
def test_no_entry_is_no_action(text):
    policy = RedeliveryPolicy.parse(text)
    assert {policy.action(n) for n in (0, 1, 2, 10**9)} == {Deliver()}
    assert policy.highest_index == 0


def test_the_last_action_is_in_force_for_ever():
    assert RedeliveryPolicy.parse("1:5").action(10**12) == Delay(5)
    assert RedeliveryPolicy.parse("1:delete").action(10**12) == Delete()


def test_the_default_delays_longer_and_longer():
    policy = RedeliveryPolicy.parse(DEFAULT_REDELIVERY_HANDLING)
    assert [policy.action(n) for n in (2, 3, 4, 5, 9, 10, 19, 20, 49, 50)] == [
        *[Deliver(), Delay(25), Delay(25), Delay(50), Delay(50), Delay(100), Delay(100), Delay(1000), Delay(1000)],
        Delay(5000),
    ]
    assert policy.highest_index == 50


def test_policies_are_equal_if_written_alike_for_the_same_source():
    policy = RedeliveryPolicy.parse("1:move(same:$)", "a", "queue")
    assert policy == RedeliveryPolicy.parse("1:move(same:$)", "a", "queue")
    assert hash(policy) == hash(RedeliveryPolicy.parse("1:move(same:$)", "a", "queue"))
    others = [("1:move(queue:$)", "a", "queue"), ("1:move(same:$)", "b", "queue"), ("1:move(same:$)", "a", "topic")]
    assert policy not in [RedeliveryPolicy.parse(*other) for other in others]


def test_the_target_of_a_move_is_a_destination():
    assert Move("queue", "a").destination == Queue("a")
    assert Move("topic", "a").destination == Topic("a")


def test_another_handling_is_read_for_the_same_source():
    policy = RedeliveryPolicy.parse("1:5", "orders", "topic")
    assert policy.with_text("2:move(same:$.dead)").action(2) == Move("topic", "orders.dead")
    with pytest.raises(InvalidRedeliveryHandlingError):
        policy.with_text("2")


@given(ladders(), st.data())
def test_policies_travel_as_pickles(ladder, data):
    policy = RedeliveryPolicy.parse(data.draw(printed(ladder)))
    travelled = pickle.loads(pickle.dumps(policy))  # noqa: S301  # our own
    assert travelled == policy
    assert (travelled.text, travelled.rules, str(travelled)) == (policy.text, policy.rules, policy.text)


@given(ladders(highest=30), st.data())
def test_actions_follow_the_ladder(ladder, data):
    policy = RedeliveryPolicy.parse(data.draw(printed(ladder)))
    in_force = Deliver()
    for n in range(40):
        in_force = ladder.get(n, in_force)
        assert policy.action(n) == in_force
    assert policy.highest_index == max(ladder, default=0)
