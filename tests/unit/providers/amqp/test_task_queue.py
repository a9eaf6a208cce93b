"""Tasks wake the event loop only while it waits."""

import gc
import select
from contextlib import suppress
from threading import Thread

import pytest

from jmsjca.errors import ConnectionLostError
from jmsjca.providers.amqp.engine import task_queue
from jmsjca.providers.amqp.engine.task_queue import Task, TaskQueue
from tests.support.interruptions import TimeLimitError, each_moment
from tests.unit.providers.embedded.test_group_commit import in_background

NOW, SOON = True, False
SECONDS = 20


@pytest.fixture
def tasks():
    made = TaskQueue()
    yield made
    made.close()


@pytest.fixture
def post(tasks):
    """Post an errand; tells whether the bell rang."""

    def post(*, urgent):
        tasks.put(Task(lambda: None, None, flush_after=False, urgent=urgent))
        rang = bool(select.select([tasks.wakeup_socket], [], [], 0)[0])
        tasks.clear_wakeup()
        return rang

    return post


@pytest.fixture
def turn(tasks):
    """Run what there is, and go to sleep, for a minute at most; tells for how long."""

    def turn():
        tasks.run_pending(lambda: False)
        return tasks.prepare_wait(60)

    return turn


@pytest.mark.parametrize("urgent", [NOW, SOON])
def test_every_errand_wakes_a_thread_that_sleeps(post, turn, urgent):
    assert turn() == 60
    assert post(urgent=urgent)
    assert not post(urgent=NOW)  # it is awake


@pytest.mark.parametrize("urgent", [NOW, SOON])
def test_nothing_wakes_a_thread_that_something_else_has_woken(tasks, post, turn, urgent):
    turn()
    tasks.end_wait()
    assert not post(urgent=urgent)
    assert tasks.prepare_wait(60) < 60


def test_a_thread_that_is_to_sleep_for_ever(tasks):
    assert tasks.prepare_wait(None) is None


def test_after_an_errand_that_could_wait_others_wait_for_a_moment(post, turn):
    turn()
    post(urgent=SOON)
    assert 0 < turn() < 0.1
    assert not post(urgent=SOON)
    assert not post(urgent=SOON)
    assert 0 < turn() < 0.1  # they were run, and more may come
    assert turn() == 60  # none came


def test_what_cannot_wait_wakes_a_thread_that_dozes(post, turn):
    turn()
    post(urgent=SOON)
    turn()
    assert not post(urgent=SOON)
    assert post(urgent=NOW)


def test_a_thread_does_not_sleep_over_what_cannot_wait(tasks, post):
    post(urgent=NOW)
    assert tasks.prepare_wait(60) == 0


def test_a_thread_does_not_sleep_long_over_what_can_wait(tasks, post):
    post(urgent=SOON)
    assert 0 < tasks.prepare_wait(60) < 0.1
    assert 0 < tasks.prepare_wait(None) < 0.1


def test_a_doze_ends_when_something_is_due(tasks, post):
    post(urgent=SOON)
    assert tasks.prepare_wait(0) == 0


class Abandoned:
    """Posts when the collector finds it, as a browser does that nobody ended."""

    def __init__(self, tasks):
        self.tasks, self.circle = tasks, self

    def __del__(self):
        self.tasks.put(Task(lambda: None, None, flush_after=False))


def test_the_collector_may_post_wherever_it_comes(tasks):
    def turn():
        for often in range(1, 20):
            gc.set_threshold(often)  # after so many things that were made
            Abandoned(tasks)
            tasks.put(Task(lambda: None, None, flush_after=False))
            tasks.prepare_wait(None)
            tasks.run_pending(lambda: False)

    before, turning = gc.get_threshold(), Thread(target=turn, daemon=True)
    try:
        turning.start()
        turning.join(SECONDS)
        assert not turning.is_alive()
        gc.collect()  # what is left would post when the tasks is closed
    finally:
        gc.set_threshold(*before)


def test_errands_run_in_order_whether_they_can_wait_or_not(tasks):
    done = []
    for number, urgent in enumerate([SOON, NOW, SOON, NOW]):
        tasks.put(Task(lambda number=number: done.append(number), None, flush_after=False, urgent=urgent))
    tasks.run_pending(lambda: False)
    assert done == [0, 1, 2, 3]


def test_put_that_is_interrupted_at_any_moment_lets_the_abort_wake_the_loop():
    """The call's connection is aborted then: the loop does not sleep over that."""

    def play(interruption):
        tasks = TaskQueue()
        tasks.prepare_wait(60)
        with suppress(TimeLimitError), interruption.planted():
            tasks.put(Task(lambda: None, None, flush_after=False))
        in_background(tasks.close_with, ConnectionLostError("aborted")).result(SECONDS)
        tasks.wake()
        assert select.select([tasks.wakeup_socket], [], [], 0)[0]
        tasks.close()

    assert each_moment(play, TimeLimitError, task_queue.__file__) > 3
