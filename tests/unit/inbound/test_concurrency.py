"""InFlightLimit, RateLimit, AdaptiveConcurrency and LeaderFollowers."""

import queue
import threading
from functools import partial

import pytest

from jmsjca import ActivationSpec, Outcome, Queue
from jmsjca.config import DestinationSettings
from jmsjca.inbound.concurrency import AdaptiveConcurrency, InFlightLimit, LeaderFollowers, RateLimit
from tests.unit.clocks import HandClock
from tests.unit.inbound.listeners import PATIENCE, in_thread, send


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


@pytest.mark.parametrize("mode", ["cc", "sync"])
def test_no_message_waits_for_a_slow_handler_that_was_quick_for_long(adapter, mode):
    """Quick ones are called one after the other; then three of them wait for each other."""
    quick = 500
    seen, met, done = [], threading.Barrier(3, timeout=PATIENCE), threading.Semaphore(0)

    def handle(message):
        seen.append(message.body)
        if message.body == "slow":
            met.wait()
        done.release()

    adapter.activate(ActivationSpec(destination=Queue("q"), concurrency_mode=mode, endpoint_pool_max_size=3), handle)
    send(adapter, *["quick"] * quick, *["slow"] * 9)
    adapter.start()
    for _ in range(quick + 9):
        assert done.acquire(timeout=PATIENCE)
    assert sorted(seen) == ["quick"] * quick + ["slow"] * 9


def test_what_was_to_be_in_a_failed_unit_does_not_wait_for_another_handler(adapter, connected):
    """Its worker is not needed any more by then, as the other one took messages since; but that one is slow."""
    begun, came = threading.Event(), threading.Event()

    def handle(message):
        if message.body == "fails" and not begun.is_set():
            send(adapter, "slow")
            assert begun.wait(PATIENCE)
            raise ValueError("as planned")
        if message.body == "slow":
            begun.set()
            assert came.wait(PATIENCE)
        if message.body == "comes":
            came.set()

    spec = ActivationSpec(destination=Queue("q"), concurrency_mode="cc", endpoint_pool_max_size=2, batch_size=2)
    adapter.activate(spec, handle)
    connected().admin().configure(Queue("q"), DestinationSettings(max_deliveries=1))  # so that it does not come again
    send(adapter, "fails", "comes")
    adapter.start()
    assert came.wait(PATIENCE)


@pytest.fixture
def pace():
    return AdaptiveConcurrency()


def on_another_thread(act):
    thread = threading.Thread(target=act)
    thread.start()
    thread.join()


def wait(pace, *, taken=0, something_waits=True, told=False):
    """Let so many messages be taken during a wait, which a notification ends or the clock."""

    class Waiting(threading.Condition):
        def wait(self, timeout=None):
            assert timeout is not None
            pace.record_taken(taken)
            return told

    pace.wait(Waiting(), 10, something_waits=something_waits)


def test_a_thread_goes_on_as_long_as_no_other_one_took_anything_since(pace):
    pace.record_taken(1)
    assert not pace.is_superseded
    on_another_thread(partial(pace.record_taken, 1))
    assert pace.is_superseded
    pace.record_start()
    assert not pace.is_superseded


@pytest.mark.parametrize(("taken", "calm"), [(0, False), (9, False), (10, True)])
def test_messages_that_wait_while_few_are_taken_need_all_threads(pace, taken, calm):
    wait(pace, taken=taken)
    assert pace.single_threaded is calm


@pytest.mark.parametrize("case", [{"something_waits": False}, {"told": True}])
def test_nobody_is_needed_where_nothing_waits_or_somebody_moves(pace, case):
    wait(pace, **case)
    assert pace.single_threaded


def test_nobody_is_overtaken_in_a_hurry(pace):
    on_another_thread(partial(pace.record_taken, 1))
    pace.scale_up()
    assert not pace.is_superseded


def length_of_hurry(pace):
    wait(pace)
    messages = 0
    while not pace.single_threaded:
        pace.record_taken(1)
        messages += 1
        pace.try_scale_down()
    return messages


def test_whether_one_is_enough_is_tried_again_ever_later_and_soon_again_once_it_was(pace):
    assert [length_of_hurry(pace) for _ in range(9)] == [100, 200, 400, 800, 1600, 3200, 6400, 10_000, 10_000]
    wait(pace, taken=10)
    assert length_of_hurry(pace) == 100


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


def test_no_thread_rests_before_a_message_was_taken(turns):
    turns.wait_for_turn()
    turns.wait_for_turn()
    assert not turns.scaled_up


def test_the_thread_that_took_the_last_message_continues(turns):
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


def test_nothing_is_prefetched_while_a_thread_waits_for_a_message():
    turns = LeaderFollowers(shared=True)
    turns.supervised = True
    assert turns.may_prefetch()
    with turns.waiting_for_message():
        assert not turns.may_prefetch()
    assert turns.may_prefetch()


@pytest.mark.parametrize(("rate", "burst"), [(None, 2**31 - 1), (0.5, 1), (5, 1), (100, 10)])
def test_rate_limit_spreads_messages(rate, burst):
    clock = HandClock()
    limit = RateLimit(rate, clock)
    assert (limit.burst, limit.pause()) == (burst, 0)
    limit.record(burst)
    assert limit.pause() == pytest.approx(burst / rate if rate else 0)
    clock.time += limit.pause()
    assert limit.pause() == pytest.approx(0)
