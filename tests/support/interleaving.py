"""Runs the steps of several threads in every order: what may go wrong between two locks goes wrong here every time.

Threads of a scenario run one at a time, and are switched where they enter or leave a lock of `Schedule.lock`, touch an
event of `Schedule.event` or wait with `Schedule.until`. `explore` walks through all orders with at most so many
preemptions: switches away from a thread that could have gone on. Most faults need one or two.
"""

import random
import threading
from collections.abc import Callable, Iterator

__all__ = ["Schedule", "explore"]

_PATIENCE = 30

Check = Callable[[], None]
Scenario = Callable[["Schedule"], Check]


class _Thread:
    def __init__(self, name: str, act: Callable[[], object]) -> None:
        self.name, self.act = name, act
        self.turn = threading.Semaphore(0)
        self.condition: Callable[[], object] | None = None
        self.done = False
        self.error: BaseException | None = None

    @property
    def runnable(self) -> bool:
        return not self.done and (self.condition is None or bool(self.condition()))


class Schedule:
    """One order: the first choices are given, the others are the first that there are, or are thrown.

    Args:
        choices: Which of the threads that can go on does, at each switch.
        preemptions: How many there may be.
        dice: Throws the choices that are not given.
    """

    def __init__(self, choices: list[int], preemptions: int, dice: random.Random | None = None) -> None:
        self._given = choices
        self._left = preemptions
        self._dice = dice
        self._threads: list[_Thread] = []
        self._current: _Thread | None = None
        self._back = threading.Semaphore(0)
        self._running = False
        self.chosen: list[tuple[int, int]] = []  # which one of how many

    def thread(self, name: str, act: Callable[[], object]) -> None:
        """Add a thread, also while others run."""
        thread = _Thread(name, act)
        self._threads.append(thread)
        if self._running:
            self._launch(thread)

    def lock(self) -> "_Lock":
        """Make a lock; entering it is where threads are switched."""
        return _Lock(self)

    def event(self) -> "_Event":
        """Make an event; asking for it and setting it is where threads are switched."""
        return _Event(self)

    def pause(self) -> None:
        """Let others go on here."""
        self.until(lambda: True)

    def until(self, condition: Callable[[], object]) -> None:
        """Let others go on until something is so."""
        me = self._current
        if me is None:  # before or after the threads
            assert condition()
            return
        me.condition = condition
        self._back.release()
        me.turn.acquire()
        me.condition = None

    def others_are_done(self) -> bool:
        """True if only the thread that asks has not ended."""
        return sum(not thread.done for thread in self._threads) <= 1

    def run(self) -> None:
        """Run all threads to their ends; raise what one of them raised."""
        self._running = True
        for thread in self._threads:
            self._launch(thread)
        last = None
        while not all(thread.done for thread in self._threads):
            last = self._current = self._choose(last)
            last.turn.release()
            assert self._back.acquire(timeout=_PATIENCE), f"{last.name} does not come back"
        self._current = None
        for thread in self._threads:
            if thread.error is not None:
                raise thread.error

    def _launch(self, thread: _Thread) -> None:
        threading.Thread(target=self._live, args=(thread,), daemon=True).start()

    def _live(self, thread: _Thread) -> None:
        thread.turn.acquire()
        try:
            thread.act()
        except BaseException as error:  # noqa: BLE001  # raised by `run`
            thread.error = error
        thread.done = True
        self._back.release()

    def _choose(self, last: _Thread | None) -> _Thread:
        runnable = [thread for thread in self._threads if thread.runnable]
        assert runnable, f"deadlock of {[thread.name for thread in self._threads if not thread.done]}"
        if last in runnable:
            others = [thread for thread in runnable if thread is not last] if self._left else []
            runnable = [last, *others]
        position = len(self.chosen)
        given = self._given[position] if position < len(self._given) else self._throw(len(runnable))
        self.chosen.append((given, len(runnable)))
        self._left -= runnable[given] is not last and last in runnable
        return runnable[given]

    def _throw(self, count: int) -> int:
        return 0 if self._dice is None else self._dice.randrange(count)


class _Lock:
    def __init__(self, schedule: Schedule) -> None:
        self._schedule = schedule
        self._held = False

    def acquire(self, *, blocking: bool = True) -> bool:
        self._schedule.until(lambda: not (blocking and self._held))
        free, self._held = not self._held, True
        return free

    def release(self) -> None:
        self._schedule.pause()
        self._held = False

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(self, *error: object) -> None:
        self.release()


class _Event:
    def __init__(self, schedule: Schedule) -> None:
        self._schedule = schedule
        self._is_set = False

    def is_set(self) -> bool:
        self._schedule.pause()
        return self._is_set

    def set(self) -> None:
        self._schedule.pause()
        self._is_set = True

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for it; no time passes in a schedule."""
        del timeout
        self._schedule.until(lambda: self._is_set)
        return True


def explore(scenario: Scenario, preemptions: int, sample: int | None = None, seed: int = 0) -> int:
    """Run a scenario in every order, or in some.

    Args:
        scenario: Adds its threads to a schedule, and gives what checks the end.
        preemptions: How many there may be in one order.
        sample: How many orders to throw; None for all.
        seed: What the dice are made from.

    Returns:
        How many orders were run.
    """
    orders = _all(scenario, preemptions) if sample is None else _some(scenario, preemptions, sample, seed)
    return sum(1 for _ in orders)


def _all(scenario: Scenario, preemptions: int) -> Iterator[None]:
    choices: list[int] | None = []
    while choices is not None:
        choices = _next(_run(scenario, Schedule(choices, preemptions)))
        yield


def _some(scenario: Scenario, preemptions: int, sample: int, seed: int) -> Iterator[None]:
    dice = random.Random(seed)
    for _ in range(sample):
        _run(scenario, Schedule([], preemptions, dice))
        yield


def _run(scenario: Scenario, schedule: Schedule) -> list[tuple[int, int]]:
    check = scenario(schedule)
    try:
        schedule.run()
        check()
    except BaseException as error:
        error.add_note(f"in the order {[choice for choice, _ in schedule.chosen]}")
        raise
    return schedule.chosen


def _next(chosen: list[tuple[int, int]]) -> list[int] | None:
    """The choices of the next order in depth-first sequence."""
    while chosen and chosen[-1][0] + 1 >= chosen[-1][1]:
        chosen.pop()
    return [*(choice for choice, _ in chosen[:-1]), chosen[-1][0] + 1] if chosen else None
