"""Two threads use one encounter: one is halted at each step while the other runs."""

from pathlib import Path

import pytest
from preemption import Preemption

import jmsjca.redelivery
from jmsjca.redelivery import Decision, Delay, Deliver, RedeliveryHandler, RedeliveryPolicy, encounter
from jmsjca.redelivery import decision as handler_module

ROOM = str(Path(jmsjca.redelivery.__file__).parent)


@pytest.fixture
def play(monkeypatch):
    """Plays two operations on a new handler in every order, and gives the handler after each."""

    def every_order(first, second, prepare=lambda _: None):
        for step in range(1, 10_000):
            preemption = Preemption(step, ROOM)
            for module in (handler_module, encounter):
                monkeypatch.setattr(module, "Lock", preemption.lock)
            handler = RedeliveryHandler(RedeliveryPolicy.parse("1:5;9:delete"), capacity=2)
            prepare(handler)
            results: list[object] = []
            if not preemption.play(noting(first, handler, results), noting(second, handler, results)):
                assert step > 10  # or nothing was halted at all
                return
            yield handler, results

    return every_order


def noting(operation, handler, results):
    return lambda: results.append(operation(handler))


def again(name):
    return lambda handler: handler.decide(name, redelivered=True)


def test_of_two_arrivals_at_once_each_is_counted(play):
    for _, results in play(again("m"), again("m")):
        assert sorted(decision.count for decision in results) == [1, 2]
        assert sorted(decision.new for decision in results) == [False, True]


def test_of_two_more_arrivals_each_is_counted(play):
    for _, results in play(again("m"), again("m"), prepare=again("m")):
        assert sorted(decision.count for decision in results) == [2, 3]


def test_nothing_is_lost_when_the_generations_change(play):
    def remember(handler):
        for name in "xab":  # the third ends the generation
            handler.encounter(name).set_rollback_data("name", name)

    for handler, _ in play(again("a"), again("b"), remember):
        assert handler.encounter("a").rollback_data == {"name": "a"}
        assert handler.encounter("b").rollback_data == {"name": "b"}


def test_what_two_handlers_want_to_be_remembered_is_all_there(play):
    def set_(key):
        return lambda handler: handler.encounter("m").set_rollback_data(key, key)

    for handler, _ in play(set_("a"), set_("b")):
        assert handler.encounter("m").rollback_data == {"a": "a", "b": "b"}


def test_one_of_two_arrivals_finds_its_delay_over(play):
    def held(handler):
        again("m")(handler)
        handler.encounter("m").mark_returned(waited=True)

    for _, results in play(again("m"), again("m"), held):
        assert sorted(results, key=lambda decision: decision.count) == [Decision(Deliver(), 1), Decision(Delay(5), 2)]


def test_no_failure_of_a_move_is_taken_back_that_was_forgotten(play):
    def in_doubt(handler):
        encounter = handler.encounter("m")
        encounter.move_in_doubt(encounter.begin_move())

    for handler, _ in play(in_doubt, lambda handler: handler.encounter("m").reset_move_failures()):
        assert handler.encounter("m").move_failures == 0


def test_one_warning_is_given(play, caplog):
    for _ in play(again(None), again(None)):
        assert len(caplog.records) == 1
        caplog.clear()
