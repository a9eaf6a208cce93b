"""Receivers that rest as long as another one takes messages fast enough."""

import threading

from jmsjca.inbound.turns import Turns
from tests.unit.inbound import PATIENCE, in_thread


def rested(turns, release):
    """Let a thread rest that was overtaken by this one, and tell when it goes on."""
    took, went_on = threading.Event(), threading.Event()
    overtaken = threading.Event()

    def receive():
        turns.took()
        took.set()
        overtaken.wait(PATIENCE)
        turns.rest()
        went_on.set()

    in_thread(receive)
    assert took.wait(PATIENCE)
    turns.took()
    overtaken.set()
    release()
    return went_on.wait(PATIENCE)


def test_nobody_rests_before_anything_was_taken():
    turns = Turns()
    turns.rest()
    turns.rest()
    assert not turns.hurried


def test_who_took_the_last_message_goes_on():
    turns = Turns()
    turns.took()
    turns.rest()
    assert not turns.hurried


def test_nobody_rests_long_when_messages_are_not_taken_fast_enough():
    turns = Turns()
    assert rested(turns, lambda: None)
    assert turns.hurried


def test_nobody_rests_at_the_end():
    turns = Turns()
    assert rested(turns, turns.close)
