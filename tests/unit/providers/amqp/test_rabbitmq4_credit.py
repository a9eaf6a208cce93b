"""Link credit for a broker that answers each drain."""

import pytest

from jmsjca.errors import ConnectionLostError
from jmsjca.providers.amqp.links.credit import RabbitMQ4Credit
from tests.unit.providers.amqp.test_credit import Line


@pytest.fixture
def line():
    line = Line(RabbitMQ4Credit, lambda: line.encoded, (later := []).append)
    line.encoded, line.later = True, later
    return line


def test_a_drain_tells_that_no_more_is_there(line):
    line.grant(3)
    drain = line.credit.drain()
    line.message()
    assert not drain.done()
    line.drained()
    assert drain.result(0) is True
    assert (line.counted, line.link.credit, line.link.drain_mode) == (0, 0, False)


def test_a_drain_that_messages_fulfil_waits_for_its_answer_and_proves_nothing(line):
    line.grant(1)
    drain = line.credit.drain()
    line.message()
    assert not drain.done()
    line.drained()
    assert drain.result(0) is False


def test_without_credit_there_is_nothing_to_drain(line):
    assert line.credit.drain().result(0) is False
    assert line.link.asked == []


@pytest.mark.parametrize("credit", [0, 3])
def test_a_round_trip_leaves_the_credit_as_it_was(line, credit):
    if credit:
        line.grant(credit)
    trip = line.credit.round_trip()
    assert "drain" in line.link.asked
    assert not trip.done()
    line.drained()
    assert trip.done()
    assert line.link.credit == line.counted == credit


def test_credit_that_is_granted_meanwhile_waits_for_the_answer(line):
    line.grant(2)
    line.credit.round_trip()
    line.grant(5)
    assert line.link.credit == 2
    line.drained()
    assert line.link.credit == line.counted == 7


def test_one_drain_is_on_its_way_at_a_time_and_the_next_is_shared(line):
    line.grant(2)
    first = line.credit.round_trip()
    second, drain = line.credit.round_trip(), line.credit.drain()
    assert line.link.asked.count("drain") == 1
    line.drained()
    assert (first.done(), second.done(), drain.done()) == (True, False, False)
    assert line.link.asked.count("drain") == 2
    line.drained()
    assert second.done()
    assert drain.done()
    assert line.link.credit == line.counted == 0


def test_what_was_settled_before_is_written_before_the_drain(line):
    line.encoded = False
    trip = line.credit.round_trip()
    assert line.link.asked == []
    line.encoded = True
    line.later.pop()()
    assert line.link.asked == ["drain"]
    line.drained()
    assert trip.done()


def test_the_end_of_the_link_ends_all_requests(line):
    line.grant(1)
    requests = [line.credit.round_trip(), line.credit.drain()]
    line.credit.on_link_ended(ConnectionLostError("cut"))
    for request in requests:
        with pytest.raises(ConnectionLostError, match="cut"):
            request.result(0)
    closed = line.credit.round_trip()
    line.credit.on_link_ended(None)
    assert closed.result(0) is False
