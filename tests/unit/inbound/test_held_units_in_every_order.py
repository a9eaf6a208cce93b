"""Held acknowledgement and the cache of encounters in every order of thread steps."""

import os
from contextlib import suppress
from functools import partial

import pytest
from interleaving import explore

from jmsjca import Outcome
from jmsjca.config import SYSTEM_CLOCK
from jmsjca.errors import IllegalStateError
from jmsjca.inbound.concurrency import InFlightLimit
from jmsjca.inbound.hold_until_ack import HeldDeliveryAttempt, HeldUnitSettler
from jmsjca.redelivery.encounter import EncounterCache
from jmsjca.spi import Order
from tests.unit.inbound.deliveries import depth, endpoint_of, put, terms
from tests.unit.inbound.listeners import Recorder

WHOLE = os.environ.get("JMSJCA_ALL_ORDERS") == "1"
SAMPLE = 100
PREEMPTIONS = {4: 2, 5: 1}  # for so many threads; each one more costs ten times as long


class Held:
    """A unit of two messages, with all that threads may do with it."""

    def __init__(self, link, schedule):
        self.link, self.schedule = link, schedule
        self.messages, self.failures, self.recorder = [], [], Recorder()
        self.endpoint = endpoint_of(self.handle, terms("cc", hold_until_ack=True), self.recorder)
        self.endpoint.held._lock = schedule.lock()
        self.settler = HeldUnitSettler("test", SYSTEM_CLOCK, self.failures.append)
        self.settler._lock = schedule.lock()
        self.settler._thread = self  # which `settle` is
        self.kept = False
        self.in_flight = InFlightLimit(1)
        assert self.in_flight.acquire(0)
        put(link, "a", "b")
        consumer = link.consumer(terms().source, order=Order.ANY)
        self.deliveries = consumer.receive(2, 0)
        self.unit = HeldDeliveryAttempt(self.endpoint, link, consumer, self.in_flight, self.settler)
        self.unit._lock = schedule.lock()
        self.consumer = consumer

    def handle(self, message):
        self.messages.append(message)

    def deliver(self):
        for delivery in self.deliveries:
            self.unit.deliver_one(delivery)
        self.unit.finish()

    def acknowledge(self, index):
        self.schedule.until(lambda: len(self.messages) > index)
        self.messages[index].acknowledge()

    def roll_back(self):
        self.schedule.until(lambda: self.messages)
        with suppress(IllegalStateError):  # it is acknowledged, or settled
            self.messages[0].set_rollback_only()

    def time_out(self):
        self.schedule.until(lambda: self.unit in self.settler._held_units or self.recorder.outcomes.qsize())
        self.settler._run_on_thread(partial(self.settler._expire, self.unit))

    def settle(self):
        """The settler's thread."""
        while True:
            self.schedule.until(lambda: self.settler._tasks.qsize() or self.schedule.others_are_done())
            if not self.settler._tasks.qsize():
                break
            task = self.settler._tasks.get_nowait()
            if task is None:
                break
            task()
        self.kept = True

    def join(self):
        """Wait for the settler's thread."""
        self.schedule.until(lambda: self.kept)

    def check(self, *, may_commit, must_commit):
        outcome, count = self.recorder.outcomes.get_nowait()
        assert count == 2
        assert self.recorder.outcomes.empty()
        assert outcome in ([Outcome.COMMITTED] if must_commit else [Outcome.COMMITTED, Outcome.ROLLED_BACK])
        assert may_commit or outcome is Outcome.ROLLED_BACK
        assert {message.acknowledge().wait(0) for message in self.messages} == {outcome}
        assert depth(self.link).total == (0 if outcome is Outcome.COMMITTED else 2)
        assert (depth(self.link).held, self.in_flight._count, len(self.settler._held_units)) == (0, 0, 0)
        assert (self.endpoint.held._held, self.failures) == ({}, [])
        self.consumer.close()
        self.link.admin().purge(terms().source)


CASES = {
    "both are acknowledged": (["first", "second"], True, True),
    "both, while it is closed": (["first", "second", "close"], True, False),
    "both, while it times out": (["first", "second", "time out"], True, False),
    "both, while it is rolled back": (["first", "second", "roll back"], True, False),
    "one, while it is closed": (["first", "close"], False, False),
    "one, while it times out": (["second", "time out"], False, False),
    "one twice, and the other": (["first", "first", "second"], True, True),
    "none, while it times out and is closed": (["time out", "close"], False, False),
}


@pytest.mark.parametrize("case", CASES)
def test_a_held_unit_is_settled_once_whatever_comes_first(connected, capsys, case):
    link = connected()
    names, may_commit, must_commit = CASES[case]

    def scenario(schedule):
        held = Held(link, schedule)
        acts = {
            "first": lambda: held.acknowledge(0),
            "second": lambda: held.acknowledge(1),
            "close": held.settler.close,
            "time out": held.time_out,
            "roll back": held.roll_back,
        }
        schedule.thread("deliver", held.deliver)
        schedule.thread("settler", held.settle)
        for name in names:
            schedule.thread(name, acts[name])
        return lambda: held.check(may_commit=may_commit, must_commit=must_commit)

    orders = explore(scenario, PREEMPTIONS[len(names) + 2], None if WHOLE else SAMPLE, seed=20)
    with capsys.disabled():
        print(f"\norders of a held unit, {case}: {orders}{'' if WHOLE else ' thrown (sample)'}")


def test_those_who_meet_a_message_at_once_meet_the_same(capsys):
    def scenario(schedule):
        cache = EncounterCache(capacity=1)
        cache._lock = schedule.lock()
        met = []
        for message_id in ("a", "b", "a"):
            schedule.thread(message_id, lambda message_id=message_id: met.append((message_id, *meet(message_id))))

        def meet(message_id):
            encounter = cache.encounter(message_id)
            return encounter, cache.find(message_id)

        def check():
            assert all(found is encounter or found is None for _, encounter, found in met)
            first, second = (encounter for message_id, encounter, _ in met if message_id == "a")
            assert first is second
            assert first not in [encounter for message_id, encounter, _ in met if message_id == "b"]
            assert len(cache) <= 3

        return check

    orders = explore(scenario, preemptions=3)
    with capsys.disabled():
        print(f"\norders of encounters: {orders}")
