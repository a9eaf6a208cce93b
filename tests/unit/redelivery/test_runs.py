"""Messages that come fifty times, one beside the other: how long each is delayed, and when it is moved first."""

import pytest

from jmsjca.redelivery import Delay, Move, RedeliveryHandler, RedeliveryPolicy
from tests.unit.config.cases import rows_of

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
