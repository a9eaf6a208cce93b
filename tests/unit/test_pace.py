"""How many threads take messages at a time: one as long as that is fast enough."""

import threading
from functools import partial

import pytest

from jmsjca.inbound.concurrency import AdaptiveConcurrency


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
