"""Credit on a link: answers that come twice, late, or not at all."""

import pytest

from jmsjca.errors import ConnectionLostError
from jmsjca.providers.amqp.credit import AnsweredCredit, DrainedCredit


class FakeLink:
    """Proton's receiver, as far as credit goes."""

    def __init__(self):
        self.credit = 0
        self.drain_mode = False
        self.asked = []

    def flow(self, more):
        self.credit += more
        self.asked.append(more)

    def drain(self, more):
        self.credit += more
        self.drain_mode = True
        self.asked.append("drain")


class Line:
    def __init__(self, kind):
        self.link = FakeLink()
        self.credit = kind(self.link)

    def message(self):
        self.link.credit -= 1
        self.credit.arrived()

    def drained(self):
        """The broker's flow: it used up the credit, and has no more."""
        self.link.credit = 0
        self.credit.answered()


@pytest.fixture
def draining():
    return Line(DrainedCredit)


@pytest.fixture
def answering():
    return Line(AnsweredCredit)


def test_stop_without_credit_is_at_once_and_tells_nothing(draining):
    assert draining.credit.stop().result(0) is False
    assert draining.link.asked == []


def test_drain_that_is_answered(draining):
    draining.credit.grant(5)
    draining.message()
    answer = draining.credit.stop()
    assert not answer.done()
    assert draining.credit.stop() is answer
    draining.drained()
    assert answer.result(0) is True
    assert not draining.link.drain_mode


def test_drain_that_messages_complete(draining):
    draining.credit.grant(2)
    answer = draining.credit.stop()
    draining.message()
    assert not answer.done()
    draining.message()
    assert answer.result(0) is False


def test_late_answer_is_not_taken_for_that_of_the_next_drain(draining):
    draining.credit.grant(1)
    draining.credit.stop()
    draining.message()  # completes it; the broker's answer is under way
    draining.credit.grant(3)
    answer = draining.credit.stop()
    draining.drained()  # of the first
    assert answer.result(0) is False
    draining.credit.grant(3)
    answer = draining.credit.stop()
    draining.drained()
    assert answer.result(0) is True


def test_late_answer_that_took_the_next_credit_gives_it_back(draining):
    draining.credit.grant(1)
    draining.credit.stop()
    draining.message()
    draining.credit.grant(3)
    draining.drained()  # of the first, but it ate the three
    assert draining.link.credit == 3
    draining.credit.answered()  # and again
    assert draining.link.credit == 3
    answer = draining.credit.stop()
    draining.drained()
    assert answer.result(0) is True


def test_flow_that_changes_nothing_answers_nothing(draining):
    draining.credit.grant(5)
    draining.credit.answered()
    answer = draining.credit.stop()
    draining.credit.answered()  # credit is still there
    assert not answer.done()
    assert draining.link.credit == 5


def test_reminder_only_while_somebody_waits(draining):
    draining.credit.remind()
    draining.credit.grant(1)
    draining.credit.stop()
    draining.credit.remind()
    draining.drained()
    draining.credit.remind()
    assert draining.link.asked == [1, "drain", "drain"]


def test_end_answers_a_drain(draining):
    draining.credit.grant(1)
    answer = draining.credit.stop()
    draining.credit.end(ConnectionLostError("gone"))
    assert answer.result(0) is False


def test_changes_are_asked_one_after_the_other(answering):
    answering.credit.grant(5)
    stopped = answering.credit.stop()
    confirmed = answering.credit.confirm()
    assert answering.link.asked == [5]
    answering.credit.answered()
    answering.credit.answered()
    assert stopped.result(0) is True
    assert not confirmed.done()
    for _ in range(3):
        answering.credit.answered()
    assert confirmed.result(0) is True
    assert answering.link.credit == 0


def test_stop_of_nothing_is_not_asked(answering):
    assert answering.credit.stop().result(0) is True
    assert answering.link.asked == []


def test_answer_nobody_asked_for(answering):
    answering.credit.answered()
    answer = answering.credit.confirm()
    assert not answer.done()
    answering.credit.answered()
    assert answer.result(0) is True


@pytest.mark.parametrize("error", [None, ConnectionLostError("gone")])
def test_end_answers_everybody(answering, error):
    answering.credit.grant(1)
    answers = [answering.credit.stop(), answering.credit.confirm()]
    answering.credit.end(error)
    for answer in answers:
        assert answer.exception(0) is error
    answering.credit.answered()
