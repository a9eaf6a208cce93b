"""Link credit: replies that come twice, late, or never."""

from random import Random

import pytest

from jmsjca.errors import ConnectionLostError
from jmsjca.providers.amqp.links.credit import DrainCredit, RabbitMQ3Credit


class FakeLink:
    """Proton's receiver, as far as credit goes."""

    def __init__(self):
        self.credit = 0
        self.queued = 0
        self.drain_mode = False
        self.asked = []

    def flow(self, more):
        self.credit += more
        assert self.credit >= self.queued, "on the wire that would be some four billions"
        self.asked.append(more)

    def drain(self, more):
        self.credit += more
        self.drain_mode = True
        self.asked.append("drain")


class Line:
    def __init__(self, kind, *more, link=None):
        self.link = link or FakeLink()
        self.credit = kind(self.link, self.changed, *more)
        self.counted = 0  # the credit as the consumer knows it

    def changed(self, more):
        self.counted += more

    def grant(self, more):
        self.counted += more
        self.credit.grant(more)

    def message(self):
        self.link.credit -= 1
        self.counted -= 1
        self.credit.on_messages()

    def drained(self):
        """The broker's flow: it used up the credit, and has no more."""
        self.link.credit = 0
        self.credit.on_flow()


@pytest.fixture
def draining():
    return Line(DrainCredit)


@pytest.fixture
def answering():
    return Line(RabbitMQ3Credit, lambda: True, None)


class Socket:
    """Takes what is written, or is full."""

    def __init__(self):
        self.full = False
        self.later = []

    def ensure_encoded(self):
        return not self.full

    def empty(self):
        self.full = False
        while self.later:
            self.later.pop(0)()


@pytest.fixture
def socket():
    return Socket()


def test_stop_without_credit_is_at_once_and_tells_nothing(draining):
    assert draining.credit.drain().result(0) is False
    assert draining.link.asked == []


def test_drain_that_is_answered(draining):
    draining.grant(5)
    answer = draining.credit.drain()
    assert not answer.done()
    assert draining.credit.drain() is answer
    draining.drained()
    assert answer.done()
    assert not draining.link.drain_mode


def results(draining, count):
    """Of so many drains that are answered."""
    for _ in range(count):
        draining.grant(5)
        answer = draining.credit.drain()
        draining.drained()
        yield answer.result(0)


def test_second_answer_in_a_row_proves_that_there_is_no_more(draining):
    """The broker gives the first one, too, while messages wait, now and then."""
    assert list(results(draining, 4)) == [False, True] * 2


def test_answer_behind_a_message_proves_nothing_and_the_second_one_from_there_does(draining):
    """The broker gives it, too, while its socket is full of what came before."""
    assert list(results(draining, 1)) == [False]
    draining.grant(5)
    draining.message()
    assert list(results(draining, 3)) == [False, False, True]


def test_drain_that_messages_complete(draining):
    draining.grant(2)
    answer = draining.credit.drain()
    draining.message()
    assert not answer.done()
    draining.message()
    assert answer.result(0) is False


def test_a_broker_that_counts_too_far_ends_a_drain_and_is_asked_for_no_billions(draining):
    draining.grant(1)
    answer = draining.credit.drain()
    draining.link.credit = -3
    draining.credit.on_flow()
    assert answer.result(0) is False
    assert draining.credit.drain().result(0) is False
    draining.grant(2)
    assert draining.link.credit == 2


def test_messages_beyond_the_credit_end_a_drain(draining):
    draining.grant(1)
    answer = draining.credit.drain()
    draining.link.credit = 0  # proton has counted the next message already
    draining.message()
    assert answer.result(0) is False


def test_late_answer_is_not_taken_for_that_of_the_next_drain(draining):
    draining.grant(1)
    draining.credit.drain()
    draining.message()  # completes it; the broker's answer is under way
    draining.grant(3)
    answer = draining.credit.drain()
    draining.drained()  # of the first
    assert answer.result(0) is False
    assert list(results(draining, 2)) == [False, True]


def test_late_answer_that_took_the_next_credit_gives_it_back(draining):
    draining.grant(1)
    draining.credit.drain()
    draining.message()
    draining.grant(3)
    draining.drained()  # of the first, but it ate the three
    assert draining.link.credit == 3
    draining.credit.on_flow()  # and again
    assert draining.link.credit == 3
    assert list(results(draining, 2)) == [False, True]


def test_flow_that_changes_nothing_answers_nothing(draining):
    draining.grant(5)
    draining.credit.on_flow()
    answer = draining.credit.drain()
    draining.credit.on_flow()  # credit is still there
    assert not answer.done()
    assert draining.link.credit == 5


def test_reminder_only_while_somebody_waits(draining):
    draining.credit.repeat_drain()
    draining.grant(1)
    draining.credit.drain()
    draining.credit.repeat_drain()
    draining.drained()
    draining.credit.repeat_drain()
    assert draining.link.asked == [1, "drain", "drain"]


def drain_that_messages_cross(line, messages):
    """By its answer, Artemis (2.56) may subtract some of the messages from the credit of the next grant, too."""
    line.grant(messages + 1)
    line.credit.drain()
    for _ in range(messages):
        line.message()
    line.drained()
    assert line.counted == line.link.credit == 0
    line.link.asked.clear()


def test_a_broker_that_cannot_have_miscounted_gets_no_more_credit(draining):
    drain_that_messages_cross(draining, 2)
    draining.grant(3)
    draining.credit.drain()
    for _ in range(9):
        draining.credit.repeat_drain()
    assert draining.link.credit == draining.counted == 3


@pytest.mark.parametrize(("missing", "repeats", "credit"), [(3, 2, 4), (4, 3, 6), (5, 3, 6), (6, 4, 8), (7, 4, 8)])
def test_lost_credit_without_messages_is_drained_with_more_credit(draining, missing, repeats, credit):
    """The broker answers once it has credit by its own count."""
    drain_that_messages_cross(draining, 7)
    draining.grant(3)
    answer = draining.credit.drain()
    asked = []
    while draining.link.credit <= missing and len(asked) < 9:
        draining.credit.repeat_drain()
        asked.append(draining.link.credit)
    assert (len(asked), draining.link.credit) == (repeats, credit)
    assert draining.counted == credit
    for _ in range(9):
        draining.credit.repeat_drain()
    assert draining.counted == draining.link.credit == 8, "no more than certainly suffices"
    draining.drained()
    assert answer.done()
    assert draining.counted == 0


@pytest.fixture
def lost(draining):
    """A line whose broker knows of 2 credits less than it was granted."""
    drain_that_messages_cross(draining, 5)
    draining.grant(5)
    for _ in range(3):
        draining.message()
    answer = draining.credit.drain()
    for _ in range(2):
        draining.credit.repeat_drain()
    draining.message()  # for the credit of the repetition
    draining.credit.repeat_drain()
    assert not answer.done(), "more messages may be on their way"
    draining.credit.repeat_drain()
    assert answer.result(0) is False
    assert draining.counted == 0
    return draining


def test_credit_that_stays_lost_is_not_counted(lost):
    lost.grant(4)
    answer = lost.credit.drain()
    for left in (3, 2, 1, 0):
        assert not answer.done()
        lost.message()
        assert lost.counted == left
    assert answer.result(0) is False
    assert lost.credit.drain().result(0) is False, "without a request, which nothing would answer"


def test_an_answer_ends_the_loss(lost):
    lost.grant(4)
    lost.message()
    answer = lost.credit.drain()
    assert lost.link.credit == 5
    lost.drained()
    assert answer.done()
    assert lost.counted == 0
    assert list(results(lost, 2)) == [False, True]
    assert lost.counted == lost.link.credit == 0


def test_a_flow_that_changes_nothing_leaves_lost_credit_lost(lost):
    lost.grant(4)
    lost.credit.on_flow()
    assert lost.link.credit == 6
    assert lost.counted == 4


def test_credit_taken_for_lost_may_be_used_all_the_same(lost):
    """By a broker that was only slow."""
    lost.message()
    lost.drained()  # the answer to the drain that ended without it
    lost.grant(3)
    assert lost.link.credit == 3
    for _ in range(3):
        lost.message()
    assert lost.credit.drain().result(0) is False
    assert list(results(lost, 3)) == [False, False, True]
    assert lost.counted == lost.link.credit == 0


class MiscountingBroker(FakeLink):
    """A link to a broker that subtracts messages from the next grant, too, if they cross its answer to a drain.

    Args:
        stock: The number of messages in the queue.
    """

    def __init__(self, choose, stock):
        super().__init__()
        self.choose = choose
        self.stock = stock
        self.on_wire = self.counted = 0  # the credit of the link, and by the broker's own count
        self.draining = False

    def flow(self, more):
        super().flow(more)
        self._hear(more, self.drain_mode)

    def drain(self, more):
        super().drain(more)
        self._hear(more, True)

    def _hear(self, more, draining):
        self.on_wire += more
        self.counted += more
        self.draining = draining

    def act(self):
        """Yield numbers of messages that are sent, and -1 after the credit was revoked."""
        sent = self._send(self.choose([0, 1, 3, 50]))
        self.counted -= sent
        if sent:
            yield sent
        if self.draining and self.counted > 0 and self.choose([True, False]):
            crossing = self._send(min(self.counted, self.choose([0, 0, 1, 5, 40])))
            self.counted, self.draining = -crossing, False
            if crossing:
                yield crossing
            self.credit -= self.on_wire
            self.on_wire = 0
            yield -1

    def _send(self, most):
        sent = min(most, max(self.counted, 0), self.stock)
        self.stock -= sent
        self.on_wire -= sent
        return sent


def act(line):
    for messages in line.link.act():
        if messages < 0:
            line.credit.on_flow()
        else:
            line.link.credit -= messages
            line.counted -= messages
            line.credit.on_messages(messages)


@pytest.mark.parametrize("seed", range(200))
def test_each_drain_ends_however_the_broker_miscounts(seed):
    choose = Random(seed).choice
    line = Line(DrainCredit, link=MiscountingBroker(choose, stock=choose([0, 30, 1000])))
    for _ in range(60):
        line.link.stock += choose([0, 0, 1, 200])
        line.grant(choose([1, 5, 60]))
        for _ in range(choose(range(5))):
            act(line)
        answer = line.credit.drain()
        for _ in range(12):
            for _ in range(12):  # times that a broker that answers does so, but for one in 4,096
                act(line)
            line.credit.repeat_drain()
        assert answer.done()
        assert line.counted <= 0


def test_end_answers_a_drain(draining):
    draining.grant(1)
    answer = draining.credit.drain()
    draining.credit.on_link_ended(ConnectionLostError("gone"))
    assert answer.result(0) is False


def test_changes_are_asked_one_after_the_other(answering):
    answering.grant(5)
    stopped = answering.credit.drain()
    confirmed = answering.credit.round_trip()
    assert answering.link.asked == [5]
    answering.credit.on_flow()
    answering.credit.on_flow()
    assert stopped.result(0) is True
    assert not confirmed.done()
    answering.credit.on_flow()
    assert confirmed.result(0) is True
    assert answering.link.asked == [5, -5, 1]


def test_stop_of_nothing_is_not_asked(answering):
    assert answering.credit.drain().result(0) is True
    assert answering.link.asked == []


def test_answer_nobody_asked_for(answering):
    answering.credit.on_flow()
    answer = answering.credit.round_trip()
    assert not answer.done()
    answering.credit.on_flow()
    assert answer.result(0) is True


@pytest.mark.parametrize("error", [None, ConnectionLostError("gone")])
def test_end_answers_everybody(answering, error):
    answering.grant(1)
    answers = [answering.credit.drain(), answering.credit.round_trip()]
    answering.credit.on_link_ended(error)
    for answer in answers:
        assert answer.exception(0) is error
    answering.credit.on_flow()


@pytest.mark.parametrize("messages", [0, 2, 3])
def test_consumer_knows_what_a_drain_took_back(draining, messages):
    draining.grant(3)
    draining.credit.drain()
    for _ in range(messages):
        draining.message()
    if messages < 3:
        draining.drained()
    assert draining.counted == draining.link.credit == 0


def test_consumer_knows_what_a_stop_took_back_though_messages_come_all_the_same(answering):
    answering.grant(5)
    answering.credit.on_flow()
    answering.message()
    stopped = answering.credit.drain()
    answering.credit.on_flow()
    assert stopped.result(0) is True
    assert answering.counted == answering.link.credit == 0
    answering.message()
    assert answering.counted == answering.link.credit == -1


def test_more_than_was_asked_for_counts_against_what_is_asked_next(answering):
    answering.grant(2)
    answering.credit.on_flow()
    for _ in range(5):
        answering.message()
    answering.grant(10)
    assert answering.counted == answering.link.credit == 7


def test_credit_is_never_below_zero(answering):
    """The change waits for the answer to the one before, and meanwhile more messages come than both allow."""
    answering.grant(2)
    answering.grant(2)
    for _ in range(7):
        answering.message()
    answering.credit.on_flow()
    assert answering.counted == answering.link.credit == 0


def test_credit_is_not_below_zero_when_messages_come_between_the_halves_of_a_confirmation(answering):
    answering.grant(1)
    answering.credit.on_flow()
    answering.credit.round_trip()
    for _ in range(5):
        answering.message()
    answering.credit.on_flow()
    assert answering.counted == answering.link.credit == 0


@pytest.mark.parametrize("step", ["round_trip", "drain"])
def test_messages_that_wait_in_proton_have_used_up_credit(answering, step):
    answering.grant(2)
    answering.credit.on_flow()
    answering.link.queued = 5
    getattr(answering.credit, step)()
    while answering.link.queued:
        answering.link.queued -= 1
        answering.message()
    answering.credit.on_flow()
    assert answering.counted == answering.link.credit == (1 if step == "round_trip" else 0)


@pytest.mark.parametrize("credit", [-3, 0, 1, 2])
def test_confirmation_is_asked_whatever_the_credit(answering, credit):
    answering.grant(2)
    answering.credit.on_flow()
    for _ in range(2 - credit):
        answering.message()
    asked = len(answering.link.asked)
    answer = answering.credit.round_trip()
    assert len(answering.link.asked) == asked + 1
    assert not answer.done()
    answering.credit.on_flow()
    assert answer.result(0) is True
    assert answering.counted == answering.link.credit == 1  # never none: who waits for a message would get none


def test_confirmations_that_wait_for_their_turn_share_it(answering):
    answering.grant(5)
    answers = [answering.credit.round_trip() for _ in range(3)]
    answering.credit.on_flow()
    late = answering.credit.round_trip()  # what it is to prove may have been written behind what was asked
    assert not any(answer.done() for answer in [*answers, late])
    answering.credit.on_flow()
    assert [answer.result(0) for answer in answers] == [True] * 3
    assert not late.done()
    answering.credit.on_flow()
    assert late.result(0) is True
    assert answering.link.asked == [5, -1, -1]


def test_a_message_of_which_a_part_has_arrived_is_awaited(answering):
    """It uses the last credit, so there is nothing to revoke, and no answer to wait for."""
    answering.grant(1)
    answering.link.queued = 1
    answering.credit.on_flow()
    answers = [answering.credit.drain() for _ in range(2)]
    answering.credit.on_messages(0)  # another part
    assert not any(answer.done() for answer in answers)
    answering.link.credit = answering.link.queued = 0
    answering.credit.on_messages(1)
    assert [answer.result(0) for answer in answers] == [True, True]
    assert answering.link.asked == [1]
    answering.link.credit = answering.link.queued = 1
    answer, error = answering.credit.drain(), ConnectionLostError("gone")
    answering.credit.on_link_ended(error)
    assert answer.exception(0) is error


def test_confirmation_is_not_asked_before_what_it_proves_is_written(socket):
    line = Line(RabbitMQ3Credit, socket.ensure_encoded, socket.later.append)
    line.grant(5)
    line.credit.on_flow()
    socket.full = True
    answer = line.credit.round_trip()
    shared = line.credit.round_trip()
    assert line.link.asked == [5]
    socket.empty()
    assert line.link.asked == [5, -1]
    line.credit.on_flow()
    assert answer.result(0) is shared.result(0) is True


def test_what_waits_for_room_in_the_socket_is_told_of_the_end(socket):
    line = Line(RabbitMQ3Credit, socket.ensure_encoded, socket.later.append)
    line.grant(5)
    line.credit.on_flow()
    socket.full = True
    answer = line.credit.round_trip()
    error = ConnectionLostError("gone")
    line.credit.on_link_ended(error)
    socket.empty()
    assert answer.exception(0) is error
    assert line.link.asked == [5]
