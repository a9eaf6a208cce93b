"""Redelivery decisions for single messages and for long runs of redeliveries."""

import copy
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jmsjca.errors import IllegalStateError, InvalidRedeliveryHandlingError
from jmsjca.redelivery import Decision, Delay, Delete, Deliver, Move, RedeliveryHandler, RedeliveryPolicy
from tests.unit.config.conformance_cases import rows_of
from tests.unit.redelivery.strategies import ladders, printed


@pytest.fixture
def retry_handler():
    return RedeliveryHandler(RedeliveryPolicy.parse("2:7; 4:move(same:$.dead)", "orders", "queue"))


def again(retry_handler, message_id="m", delivery_count=None):
    return retry_handler.decide(message_id, redelivered=True, delivery_count=delivery_count)


@pytest.mark.parametrize("count", [None, 0, 1])
def test_the_first_delivery_goes_to_the_handler(retry_handler, count):
    for _ in range(9):
        assert retry_handler.decide("m", redelivered=False, delivery_count=count) == Decision(Deliver(), 0)
    assert again(retry_handler) == Decision(Deliver(), 1, new=True)


def test_redeliveries_climb_the_ladder(retry_handler):
    decisions = [again(retry_handler) for _ in range(6)]
    assert [decision.count for decision in decisions] == [1, 2, 3, 4, 5, 6]
    dead = Move("queue", "orders.dead")
    assert [decision.action for decision in decisions] == [Deliver(), Delay(7), Delay(7), dead, dead, dead]
    assert [decision.new for decision in decisions] == [True, False, False, False, False, False]


@pytest.mark.parametrize("copied", [lambda each: pickle.loads(pickle.dumps(each)), copy.deepcopy])  # noqa: S301
def test_a_copy_knows_what_it_knew_and_counts_on_by_itself(retry_handler, copied):
    retry_handler.encounter("m").set_rollback_data("step", "one")
    retry_handler.encounter("m").set_retry_delay(3.0)
    again(retry_handler)
    other = copied(retry_handler)
    assert [again(other).count, again(other).count, again(retry_handler).count] == [2, 3, 2]
    assert again(other).action == Move("queue", "orders.dead")
    other.encounter("m").set_rollback_data("step", "two")
    assert dict(retry_handler.encounter("m").rollback_data) == {"step": "one"}
    assert retry_handler.has_encounters
    assert not copied(RedeliveryHandler(retry_handler.policy)).has_encounters


def test_it_is_new_when_it_comes_again_first_also_if_something_is_remembered_of_its_first_delivery(retry_handler):
    retry_handler.encounter("m").set_rollback_data("step", "one")
    assert [again(retry_handler).new for _ in range(3)] == [True, False, False]


def test_messages_are_told_apart(retry_handler):
    assert [again(retry_handler, name).count for name in "abab"] == [1, 1, 2, 2]


def test_the_count_of_the_broker_survives_a_restart(retry_handler):
    assert again(retry_handler, delivery_count=5) == Decision(Move("queue", "orders.dead"), 4, new=True)


@pytest.mark.parametrize(
    ("unproven", "delivery_count", "hand_overs", "moved"),
    [
        (0, 5, 0, True),
        (1, 5, 0, False),
        (1, 6, 0, True),
        (1, 2, 3, False),
        (1, 2, 4, True),
        (None, 2, 3, False),
        (None, 99, 3, False),
        (None, 2, 4, True),
    ],
)
def test_a_message_is_moved_once_handlers_certainly_had_it_so_often(
    retry_handler, unproven, delivery_count, hand_overs, moved
):
    for _ in range(hand_overs):
        retry_handler.encounter("m").record_hand_over()
    decision = retry_handler.decide("m", redelivered=True, delivery_count=delivery_count, unproven=unproven)
    assert isinstance(decision.action, Move) is moved
    assert decision.count == max(delivery_count - 1, hand_overs)


def test_a_count_above_one_means_redelivered(retry_handler):
    assert retry_handler.decide("m", redelivered=False, delivery_count=3) == Decision(Delay(7), 2, new=True)


def test_a_message_without_id_is_delivered_with_one_warning(retry_handler, caplog):
    decisions = [again(retry_handler, None, delivery_count=9) for _ in range(3)]
    assert decisions == [Decision(Deliver())] * 3
    assert [(record.name, record.levelname) for record in caplog.records] == [("jmsjca.redelivery", "WARNING")]
    assert "from orders" in caplog.text


def test_a_first_delivery_without_id_is_nothing_to_warn_of(retry_handler, caplog):
    retry_handler.decide(None, redelivered=False)
    assert caplog.records == []


def test_a_message_is_not_delayed_again_after_the_broker_held_it(retry_handler):
    again(retry_handler)
    assert again(retry_handler).action == Delay(7)
    retry_handler.encounter("m").mark_returned(waited=True)
    assert again(retry_handler) == Decision(Deliver(), 2)
    assert again(retry_handler) == Decision(Delay(7), 3)


def test_a_message_that_was_put_off_is_delayed_again(retry_handler):
    again(retry_handler)
    assert again(retry_handler).action == Delay(7)
    retry_handler.encounter("m").mark_returned()
    assert again(retry_handler) == Decision(Delay(7), 2)


def test_a_move_is_not_called_off_by_a_delay(retry_handler):
    again(retry_handler)
    again(retry_handler)
    retry_handler.encounter("m").mark_returned(waited=True)
    retry_handler.set_handling("m", "1:delete")
    assert again(retry_handler).action == Delete()


def test_another_handling_set_at_the_first_delivery_is_in_force_at_the_next(retry_handler):
    retry_handler.decide("m", redelivered=False)
    retry_handler.set_handling("m", "1:move(queue:elsewhere)")
    assert again(retry_handler) == Decision(Move("queue", "elsewhere"), 1, new=True)
    assert retry_handler.policy_of("m").text == "1:move(queue:elsewhere)"
    assert again(retry_handler, "other").action == Deliver()


def test_an_index_that_is_past_is_in_force_at_the_next_delivery(retry_handler):
    for _ in range(3):
        again(retry_handler)
    retry_handler.set_handling("m", "1:5; 2:move(same:$.x)")
    assert again(retry_handler).action == Move("queue", "orders.x")


def test_a_wrong_handling_is_refused_at_once_and_changes_nothing(retry_handler):
    with pytest.raises(InvalidRedeliveryHandlingError):
        retry_handler.set_handling("m", "1")
    assert retry_handler.policy_of("m") is retry_handler.policy


def test_asking_for_what_holds_remembers_nothing(retry_handler):
    assert retry_handler.policy_of("m") is retry_handler.policy
    assert retry_handler.policy_of(None) is retry_handler.policy
    assert again(retry_handler).new


def test_nothing_can_be_remembered_of_a_message_without_id(retry_handler):
    with pytest.raises(IllegalStateError, match="no id"):
        retry_handler.encounter(None)
    with pytest.raises(IllegalStateError, match="no id"):
        retry_handler.set_handling(None, "1:5")


def test_what_the_handler_set_at_the_first_delivery_is_there_at_the_next(retry_handler):
    retry_handler.encounter("m").set_rollback_data("mode", "permanent")
    assert again(retry_handler) == Decision(Deliver(), 1, new=True)
    assert retry_handler.encounter("m").rollback_data == {"mode": "permanent"}


def test_the_oldest_are_forgotten():
    retry_handler = RedeliveryHandler(RedeliveryPolicy.parse("2:delete"), capacity=2)
    again(retry_handler, "a")
    for name in ("b", "c", "d", "e", "f"):
        again(retry_handler, name)
    assert again(retry_handler, "a") == Decision(Deliver(), 1, new=True)


@given(ladders(highest=20), st.data(), st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 4)), max_size=30))
def test_actions_never_step_back(ladder, data, steps):
    retry_handler = RedeliveryHandler(RedeliveryPolicy.parse(data.draw(printed(ladder))))
    counted, reached = {"a": 1, "b": 1}, {"a": 0, "b": 0}
    for name, raised in steps:
        counted[name] += raised
        decision = again(retry_handler, name, counted[name])
        assert decision.count >= max(reached[name], 1)
        assert decision.count >= counted[name] - 1
        assert decision.action == retry_handler.policy.action(decision.count)
        reached[name] = decision.count


LADDER = "5:10; 6:15; 10:30; 15:move(queue:a)"
OTHER = "5:11; 6:15; 10:35; 16:move(queue:a)"


def run(handler, message_id, change=None, others=True):
    """The actions for fifty deliveries of a message, each followed by one of a message that comes only once."""
    actions = []
    for n in range(1, 51):
        actions.append(handler.decide(message_id, redelivered=True).action)
        if change:
            handler.set_handling(message_id, change)
        if others:
            handler.decide(f"other than {message_id} {n}", redelivered=True)
    return actions


def new_handler(text=LADDER):
    return RedeliveryHandler(RedeliveryPolicy.parse(text), capacity=5)


def delays(actions):
    return [action.milliseconds for action in actions if isinstance(action, Delay)]


def first_move(actions):
    return next(n for n, action in enumerate(actions, 1) if isinstance(action, Move))


@pytest.mark.parametrize(
    ("earlier", "message"), [([], "1x"), (["1x"], "2x"), (["1x", "2x"], "1x")], ids=["first", "another", "forgotten"]
)
def test_delays_and_then_moves_at_every_encounter(earlier, message):
    handler = new_handler()
    for message_id in earlier:
        run(handler, message_id)
    actions = run(handler, message)
    assert delays(actions) == [10, 15, 15, 15, 15, 30, 30, 30, 30, 30]
    assert sum(delays(actions)) == 220
    assert actions[14:] == [Move("queue", "a")] * 36


@pytest.mark.parametrize("longest", [10_000, 6_000])
def test_long_delays_are_whole(longest):
    actions = run(new_handler(f"5:10; 6:{longest}; 10:30; 15:move(queue:a)"), "m")
    assert delays(actions) == [10, *[longest] * 4, *[30] * 5]
    assert first_move(actions) == 15


def test_without_another_handling_that_of_the_listener_holds():
    actions = run(new_handler(), "1x", others=False)
    assert (sum(delays(actions)), first_move(actions)) == (220, 15)


def test_another_handling_holds_for_its_message_alone():
    handler = new_handler()
    changed = run(handler, "2x", change=OTHER, others=False)
    assert (sum(delays(changed)), first_move(changed)) == (281, 16)
    assert first_move(run(handler, "3x", others=False)) == 15


@pytest.mark.parametrize("row", rows_of("redelivery", "run"))
def test_conformance(row):
    expect, changing = row["expect"], "second" in row["test"]
    actions = run(
        new_handler(row["redelivery_handling"]), "m", OTHER if changing else None, "another" in row["protocol"]
    )
    if "sum_of_delays_ms" in expect:
        assert sum(delays(actions)) == expect["sum_of_delays_ms"]
    if "delays_in_order" in expect:  # in chunks there, the last of which is followed by a delivery
        assert sum(delays(actions)) == sum(int(chunk.split()[0]) for chunk in expect["delays_in_order"])
        assert len(delays(actions)) == len([chunk for chunk in expect["delays_in_order"] if "long" not in chunk])
    assert first_move(actions) == expect.get("first_move_at_encounter", 15)
