"""What is done with a message that has come."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jmsjca.errors import IllegalStateError, InvalidRedeliveryHandlingError
from jmsjca.redelivery import Decision, Delay, Delete, Deliver, Move, RedeliveryHandler, RedeliveryPolicy
from tests.unit.redelivery.ladders import ladders, printed


@pytest.fixture
def handler():
    return RedeliveryHandler(RedeliveryPolicy.parse("2:7; 4:move(same:$.dead)", "orders", "queue"))


def again(handler, message_id="m", delivery_count=None):
    return handler.decide(message_id, redelivered=True, delivery_count=delivery_count)


@pytest.mark.parametrize("count", [None, 0, 1])
def test_the_first_delivery_goes_to_the_handler(handler, count):
    for _ in range(9):
        assert handler.decide("m", redelivered=False, delivery_count=count) == Decision(Deliver(), 0)
    assert again(handler) == Decision(Deliver(), 1, new=True)


def test_redeliveries_climb_the_ladder(handler):
    decisions = [again(handler) for _ in range(6)]
    assert [decision.count for decision in decisions] == [1, 2, 3, 4, 5, 6]
    dead = Move("queue", "orders.dead")
    assert [decision.action for decision in decisions] == [Deliver(), Delay(7), Delay(7), dead, dead, dead]
    assert [decision.new for decision in decisions] == [True, False, False, False, False, False]


def test_it_is_new_when_it_comes_again_first_also_if_something_is_remembered_of_its_first_delivery(handler):
    handler.encounter("m").set_rollback_data("step", "one")
    assert [again(handler).new for _ in range(3)] == [True, False, False]


def test_messages_are_told_apart(handler):
    assert [again(handler, name).count for name in "abab"] == [1, 1, 2, 2]


def test_the_count_of_the_broker_survives_a_restart(handler):
    assert again(handler, delivery_count=5) == Decision(Move("queue", "orders.dead"), 4, new=True)


def test_a_count_above_one_means_redelivered(handler):
    assert handler.decide("m", redelivered=False, delivery_count=3) == Decision(Delay(7), 2, new=True)


def test_a_message_without_id_is_delivered_with_one_warning(handler, caplog):
    decisions = [again(handler, None, delivery_count=9) for _ in range(3)]
    assert decisions == [Decision(Deliver())] * 3
    assert [(record.name, record.levelname) for record in caplog.records] == [("jmsjca.redelivery", "WARNING")]
    assert "from orders" in caplog.text


def test_a_first_delivery_without_id_is_nothing_to_warn_of(handler, caplog):
    handler.decide(None, redelivered=False)
    assert caplog.records == []


def test_a_message_is_not_delayed_again_after_the_broker_held_it(handler):
    again(handler)
    assert again(handler).action == Delay(7)
    handler.encounter("m").mark_returned(waited=True)
    assert again(handler) == Decision(Deliver(), 2)
    assert again(handler) == Decision(Delay(7), 3)


def test_a_message_that_was_put_off_is_delayed_again(handler):
    again(handler)
    assert again(handler).action == Delay(7)
    handler.encounter("m").mark_returned()
    assert again(handler) == Decision(Delay(7), 2)


def test_a_move_is_not_called_off_by_a_delay(handler):
    again(handler)
    again(handler)
    handler.encounter("m").mark_returned(waited=True)
    handler.set_handling("m", "1:delete")
    assert again(handler).action == Delete()


def test_another_handling_set_at_the_first_delivery_is_in_force_at_the_next(handler):
    handler.decide("m", redelivered=False)
    handler.set_handling("m", "1:move(queue:elsewhere)")
    assert again(handler) == Decision(Move("queue", "elsewhere"), 1, new=True)
    assert handler.policy_of("m").text == "1:move(queue:elsewhere)"
    assert again(handler, "other").action == Deliver()


def test_an_index_that_is_past_is_in_force_at_the_next_delivery(handler):
    for _ in range(3):
        again(handler)
    handler.set_handling("m", "1:5; 2:move(same:$.x)")
    assert again(handler).action == Move("queue", "orders.x")


def test_a_wrong_handling_is_refused_at_once_and_changes_nothing(handler):
    with pytest.raises(InvalidRedeliveryHandlingError):
        handler.set_handling("m", "1")
    assert handler.policy_of("m") is handler.policy


def test_asking_for_what_holds_remembers_nothing(handler):
    assert handler.policy_of("m") is handler.policy
    assert handler.policy_of(None) is handler.policy
    assert again(handler).new


def test_nothing_can_be_remembered_of_a_message_without_id(handler):
    with pytest.raises(IllegalStateError, match="no id"):
        handler.encounter(None)
    with pytest.raises(IllegalStateError, match="no id"):
        handler.set_handling(None, "1:5")


def test_what_the_handler_set_at_the_first_delivery_is_there_at_the_next(handler):
    handler.encounter("m").set_rollback_data("mode", "permanent")
    assert again(handler) == Decision(Deliver(), 1, new=True)
    assert handler.encounter("m").rollback_data == {"mode": "permanent"}


def test_the_oldest_are_forgotten():
    handler = RedeliveryHandler(RedeliveryPolicy.parse("2:delete"), capacity=2)
    again(handler, "a")
    for name in ("b", "c", "d", "e", "f"):
        again(handler, name)
    assert again(handler, "a") == Decision(Deliver(), 1, new=True)


@given(ladders(highest=20), st.data(), st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 4)), max_size=30))
def test_actions_never_step_back(ladder, data, steps):
    handler = RedeliveryHandler(RedeliveryPolicy.parse(data.draw(printed(ladder))))
    counted, reached = {"a": 1, "b": 1}, {"a": 0, "b": 0}
    for name, raised in steps:
        counted[name] += raised
        decision = again(handler, name, counted[name])
        assert decision.count >= max(reached[name], 1)
        assert decision.count >= counted[name] - 1
        assert decision.action == handler.policy.action(decision.count)
        reached[name] = decision.count
