"""How many may be in flight, and how those who wait for a place are told to go on."""

import queue
import threading

import pytest

from jmsjca import ActivationSpec, Outcome
from jmsjca.inbound.concurrency import InFlightLimit
from tests.unit.inbound import PATIENCE, in_thread, send


def test_places_are_taken_up_to_the_bound():
    in_flight = InFlightLimit(2)
    assert [in_flight.acquire(0) for _ in range(3)] == [True, True, False]
    in_flight.release()
    assert in_flight.acquire(0)


def test_what_has_come_already_is_counted_over_the_bound():
    in_flight = InFlightLimit(1)
    in_flight.acquire_over_limit()
    in_flight.acquire_over_limit()
    in_flight.release()
    assert not in_flight.acquire(0)


@pytest.mark.parametrize("first", ["wait", "end"])
def test_who_waits_for_a_place_is_let_go_at_the_end_whichever_comes_first(first):
    in_flight = InFlightLimit(1)
    in_flight.acquire_over_limit()
    got: list[bool] = []
    waiter = threading.Thread(target=lambda: got.append(in_flight.acquire(None)), daemon=True)
    if first == "wait":
        waiter.start()
        in_flight.close()
    else:
        in_flight.close()
        waiter.start()
    waiter.join(PATIENCE)
    assert got == [False]


def test_a_place_that_becomes_free_is_for_one_who_waits():
    in_flight = InFlightLimit(1)
    in_flight.acquire_over_limit()
    waiter = in_thread(lambda: in_flight.acquire(None))
    in_flight.release()
    waiter.join(PATIENCE)
    assert not waiter.is_alive()
    assert not in_flight.acquire(0)


def test_who_waits_until_a_place_is_free_learns_of_those_that_nobody_took():
    """Also when they became free while somebody was on the way to the first of them."""
    in_flight = InFlightLimit(3)
    for _ in range(3):
        in_flight.acquire_over_limit()
    taking = in_thread(lambda: in_flight.acquire(None))
    looking = [in_thread(lambda: in_flight.wait_until_free(None)) for _ in range(2)]
    for _ in range(3):
        in_flight.release()
    for waiter in (taking, *looking):
        waiter.join(PATIENCE)
        assert not waiter.is_alive()


def test_a_place_is_not_only_for_the_one_who_was_told_of_it():
    """He may find no message for it; what the others have already must not wait for him."""
    in_flight = InFlightLimit(2)
    in_flight.acquire_over_limit()
    in_flight.acquire_over_limit()
    looking = [in_thread(lambda: in_flight.wait_until_free(None)) for _ in range(2)]
    in_flight.release()
    for waiter in looking:
        waiter.join(PATIENCE)
        assert not waiter.is_alive()


@pytest.mark.parametrize("mode", ["cc", "sync"])
def test_what_is_acknowledged_is_settled_although_no_handler_comes_by(adapter, mode):
    """Each time: nothing is delivered any more that would settle what was acknowledged before."""
    held = queue.Queue()
    adapter.activate(ActivationSpec(destination="q", concurrency_mode=mode, hold_until_ack=True), held.put)
    send(adapter, *"abcd")
    adapter.start()
    messages = [held.get(timeout=PATIENCE) for _ in range(4)]
    for message in messages:
        assert message.acknowledge().wait(PATIENCE) is Outcome.COMMITTED
