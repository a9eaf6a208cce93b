"""Receivers that rest as long as another one takes messages fast enough."""

import threading

import pytest

from jmsjca.inbound.concurrency import Turns
from tests.unit.inbound import PATIENCE, in_thread


@pytest.fixture(params=[True, False], ids=["shared", "not shared"])
def turns(request):
    return Turns(shared=request.param)


def rested(turns, release):
    """Let a thread rest that was overtaken by this one, and tell when it goes on."""
    took, went_on = threading.Event(), threading.Event()
    overtaken = threading.Event()

    def receive():
        turns.took(1)
        took.set()
        overtaken.wait(PATIENCE)
        turns.rest()
        went_on.set()

    in_thread(receive)
    assert took.wait(PATIENCE)
    turns.took(1)
    overtaken.set()
    release()
    return went_on.wait(PATIENCE)


def test_nobody_rests_before_anything_was_taken(turns):
    turns.rest()
    turns.rest()
    assert not turns.hurried


def test_who_took_the_last_message_goes_on(turns):
    turns.took(1)
    turns.rest()
    assert not turns.hurried


def test_nobody_rests_long_when_messages_are_not_taken_fast_enough(turns):
    assert rested(turns, lambda: None)
    assert turns.hurried


def test_nobody_rests_at_the_end(turns):
    assert rested(turns, turns.close)


def test_one_of_those_who_rest_watches_and_all_go_on_when_there_is_need():
    turns, resting, went_on = Turns(shared=True), threading.Barrier(4), threading.Barrier(4)

    def receive():
        turns.took(1)
        resting.wait(PATIENCE)
        turns.rest()
        went_on.wait(PATIENCE)

    for _ in range(3):
        in_thread(receive)
    turns.took(1)
    assert not turns.may_take_ahead()
    resting.wait(PATIENCE)
    went_on.wait(PATIENCE)
    assert turns.hurried
    assert not turns.may_take_ahead()


def test_nothing_is_taken_ahead_while_somebody_waits():
    turns = Turns(shared=True)
    turns.watched = True
    assert turns.may_take_ahead()
    with turns.waiting():
        assert not turns.may_take_ahead()
    assert turns.may_take_ahead()
