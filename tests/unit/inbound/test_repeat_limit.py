"""Records that repeat are limited, and none is left out untold."""

import logging

import pytest

from jmsjca import Message, ResourceAdapter, Retry
from jmsjca.inbound.listener_log import RepeatLimit
from tests.unit.clocks import HandClock
from tests.unit.inbound.deliveries import until
from tests.unit.inbound.listeners import send

MANY = 200


@pytest.fixture
def clock():
    return HandClock()


@pytest.fixture
def limit(clock):
    return RepeatLimit(clock)


def test_a_burst_is_admitted_and_then_one_a_second(limit, clock):
    assert [limit.admit() for _ in range(50)] == [0] * 50
    assert [limit.admit() for _ in range(1000)] == [None] * 1000
    clock.time += 1
    assert [limit.admit(), limit.admit()] == [1000, None]
    clock.time += 0.5
    assert limit.admit() is None
    clock.time += 0.5
    assert limit.admit() == 2


def test_idle_seconds_admit_a_burst_and_no_more(limit, clock):
    for _ in range(51):
        limit.admit()
    clock.time += 3600
    assert [limit.admit() for _ in range(51)] == [1] + [0] * 49 + [None]


def test_what_is_left_out_at_last_is_told_once(limit):
    for _ in range(53):
        limit.admit()
    assert (limit.take_suppressed(), limit.take_suppressed()) == (3, 0)


def records(caplog, event):
    return [record for record in caplog.records if getattr(record, "event", None) == event]


def run(adapter, recorder):
    """Process many messages; a stop ends the activation."""
    send(adapter, *map(str, range(MANY)))
    with adapter:
        until(lambda: recorder.outcomes.qsize() >= MANY)


@pytest.mark.parametrize("mode", ["serial", "cc"])
def test_a_handler_that_fails_all_the_time_does_not_flood_the_log(adapter, recorder, caplog, mode):
    @adapter.listener("q", concurrency_mode=mode, redelivery_handling="1:delete")
    def fail(message: Message) -> None:
        raise ValueError(message.body)

    run(adapter, recorder)
    written, last = records(caplog, "handler_failed"), records(caplog, "records_suppressed")
    assert 50 <= len(written) < MANY
    assert sum(record.suppressed for record in written + last) == MANY - len(written)
    assert (
        f"the last {last[0].suppressed} records about failures of the handler were not logged" in last[0].getMessage()
    )
    told = [record for record in written if record.suppressed]
    assert all(f"({record.suppressed} failures before were not logged)" in record.getMessage() for record in told)


def test_rollbacks_of_commits_do_not_flood_the_log(adapter, recorder, caplog, connected):
    """As when the broker refuses each commit: here the message is gone before it."""
    broker = connected()

    @adapter.listener("q")
    def lose(message: Message) -> None:
        with broker._store.write() as cursor:
            cursor.execute("DELETE FROM message WHERE owner IS NOT NULL AND CAST(body AS TEXT) = ?", (message.body,))

    run(adapter, recorder)
    written, last = records(caplog, "unit_rolled_back"), records(caplog, "records_suppressed")
    assert 50 <= len(written) < MANY
    assert sum(record.suppressed for record in written + last) == MANY - len(written)
    assert (written[0].outcome, written[0].messages, written[0].destination) == ("rolled back", 1, "queue:q")
    assert written[0].duration > 0


def test_records_that_the_log_does_not_want_suppress_no_others(jms_broker_url, recorder, caplog):
    caplog.set_level(logging.WARNING, "jmsjca")
    adapter = ResourceAdapter(jms_broker_url, mbean_object_name="shop", hooks=[recorder])

    @adapter.listener("q", redelivery_handling="2:delete")
    def retry(message: Message) -> None:
        if message.delivery_count == 1:
            raise Retry
        raise ValueError(message.body)

    send(adapter, *map(str, range(60)))
    with adapter:
        until(lambda: recorder.outcomes.qsize() >= 120)
    assert len(records(caplog, "handler_failed")) >= 50
    assert {record.adapter for record in records(caplog, "handler_failed")} == {"shop"}
