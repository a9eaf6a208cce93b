"""Receivers that wait_for_turn as long as another one takes messages fast enough."""

import threading

import pytest

from jmsjca.inbound.concurrency import LeaderFollowers
from tests.unit.inbound import PATIENCE, in_thread


@pytest.fixture(params=[True, False], ids=["shared", "not shared"])
def turns(request):
    return LeaderFollowers(shared=request.param)


def rested(turns, release):
    """Let a thread wait_for_turn that was overtaken by this one, and tell when it goes on."""
    record_taken, went_on = threading.Event(), threading.Event()
    overtaken = threading.Event()

    def receive():
        turns.record_taken(1)
        record_taken.set()
        overtaken.wait(PATIENCE)
        turns.wait_for_turn()
        went_on.set()

    in_thread(receive)
    assert record_taken.wait(PATIENCE)
    turns.record_taken(1)
    overtaken.set()
    release()
    return went_on.wait(PATIENCE)


def test_nobody_rests_before_anything_was_taken(turns):
    turns.wait_for_turn()
    turns.wait_for_turn()
    assert not turns.scaled_up


def test_who_took_the_last_message_goes_on(turns):
    turns.record_taken(1)
    turns.wait_for_turn()
    assert not turns.scaled_up


def test_nobody_rests_long_when_messages_are_not_taken_fast_enough(turns):
    assert rested(turns, lambda: None)
    assert turns.scaled_up


def test_nobody_rests_at_the_end(turns):
    assert rested(turns, turns.close)


def test_one_of_those_who_rest_watches_and_all_go_on_when_there_is_need():
    turns, resting, went_on = LeaderFollowers(shared=True), threading.Barrier(4), threading.Barrier(4)

    def receive():
        turns.record_taken(1)
        resting.wait(PATIENCE)
        turns.wait_for_turn()
        went_on.wait(PATIENCE)

    for _ in range(3):
        in_thread(receive)
    turns.record_taken(1)
    assert not turns.may_prefetch()
    resting.wait(PATIENCE)
    went_on.wait(PATIENCE)
    assert turns.scaled_up
    assert not turns.may_prefetch()


def test_nothing_is_taken_ahead_while_somebody_waits():
    turns = LeaderFollowers(shared=True)
    turns.supervised = True
    assert turns.may_prefetch()
    with turns.waiting_for_message():
        assert not turns.may_prefetch()
    assert turns.may_prefetch()
