"""Statistics of an activation, and their forms in the manual."""

import queue
import threading
from contextlib import contextmanager

import pytest

from jmsjca import ActivationSpec, Message, Outcome, Topic
from jmsjca.inbound.statistics import StatisticsRecorder
from tests.unit.clocks import HandClock
from tests.unit.inbound.listeners import PATIENCE, Inbox, send


@pytest.fixture
def clock():
    clock = HandClock()
    clock.time = 1000.0
    return clock


@contextmanager
def delivering(stats, messages=1):
    stats.record_start(messages)
    yield
    stats.record_end(0.5)


def call(stats, times):
    for _ in range(times):
        with delivering(stats):
            pass


def pairs(stats):
    return dict(pair.split("=") for pair in str(stats).split("; "))


def test_the_text_at_the_beginning(clock):
    assert str(StatisticsRecorder(clock)) == (
        "nMessages=0; t(1)=0; t(1000)=0; t(10000)=0; t(20000)=0; t(100000)=0; t(now)=1000000; "
        "rate(1,1000)=n/a; rate(1000,10000)=n/a; rate(10000,20000)=n/a; rate(20000,100000)=n/a; rate(1,0)=n/a; "
        "nEndpoints=0; nRedelivies=0; nRedeliveredMsgs=0; msgsDeliveryCommits=0; "
        "msgsDeliveryCommitsSinceLastBypassCommit=0; msgsBypassCommits=0; msgsBypassCommitsSinceLastDeliveryCommit=0"
    )


def test_times_and_rates(clock):
    stats = StatisticsRecorder(clock)
    for count, time in [(1, 1000), (500, 1001), (499, 1002), (9500, 1011), (9500, 1020), (79_999, 1100.5), (1, 1101)]:
        clock.time = time
        call(stats, count)
    clock.time = 1111
    told = pairs(stats)
    assert {key: told[key] for key in told if key.startswith(("t(", "rate"))} == {
        "t(1)": "1000000",
        "t(1000)": "1002000",
        "t(10000)": "1011000",
        "t(20000)": "1020000",
        "t(100000)": "1101000",
        "t(now)": "1111000",
        "rate(1,1000)": "499.5",
        "rate(1000,10000)": "1000.0",
        "rate(10000,20000)": "1111.1",
        "rate(20000,100000)": "987.7",
        "rate(1,100000)": "900.9",
    }


def test_sample_points_that_are_reached_in_no_time_have_no_rate(clock):
    stats = StatisticsRecorder(clock)
    call(stats, 25_000)
    assert stats.sample_times == [1000.0] * 4
    assert pairs(stats)["rate(1,1000)"] == "n/a"


def test_calls_messages_and_bypassed_messages_are_counted_apart(clock):
    stats = StatisticsRecorder(clock)
    with delivering(stats, 10), delivering(stats, 0), delivering(stats):
        stats.record_bypass()
    assert (stats.n_messages, stats.n_delivered_messages, stats.n_bypassed_messages) == (3, 11, 1)
    assert (pairs(stats)["nMessages"], stats.as_map()["DA"], len(stats.sample_times)) == ("3", 3, 1)


def test_commits_since_the_last_of_the_other_kind(clock):
    stats = StatisticsRecorder(clock)
    seen = []
    for commit in [
        stats.record_commit,
        stats.record_commit,
        stats.record_bypass_commit,
        stats.record_bypass_commit,
        stats.record_commit,
    ]:
        commit()
        figures = stats.as_map()
        seen.append([figures[key] for key in ("DC", "BC", "DCSLBC", "BCSLDC")])
    assert seen == [[1, 0, 1, 0], [2, 0, 2, 0], [2, 1, 0, 1], [2, 2, 0, 2], [3, 2, 1, 0]]
    assert pairs(stats)["msgsDeliveryCommitsSinceLastBypassCommit"] == "1"


def test_reset(clock):
    stats = StatisticsRecorder(clock)
    with stats.endpoint():
        with delivering(stats, 5), delivering(stats):
            stats.record_redelivery(new=True)
        stats.record_commit()
        stats.record_bypass_commit()
        with delivering(stats, 0):
            stats.reset()
        figures = stats.as_map()
    assert (figures["DA"], figures["DC"], figures["BC"], figures["t(s0)"], figures["H-EP"]) == (0, 0, 0, 0, 1)
    assert (figures["EP"], figures["R"], figures["RM"]) == (1, 1, 1)


def test_the_map(clock):
    stats = StatisticsRecorder(clock)
    call(stats, 999)
    with stats.endpoint(), delivering(stats, 5):
        assert stats.as_map() == {
            "DA": 1000,
            "DC": 0,
            "BC": 0,
            "DCSLBC": 0,
            "BCSLDC": 0,
            "R": 0,
            "RM": 0,
            "A-EP": 1,
            "H-EP": 1,
            "EP": 1,
            "t(s0)": 1_000_000,
            "t(s1)": 1_000_000,
            "t(s2)": 0,
            "t(s3)": 0,
            "t(s4)": 0,
            "D(s0)": 1,
            "D(s1)": 1000,
            "D(s2)": 10_000,
            "D(s3)": 20_000,
            "D(s4)": 100_000,
        }


def test_a_handler_reads_them_in_its_message(adapter, recorder):
    send(adapter, "a", "b")
    seen = []

    def handler(message: Message) -> None:
        seen.append(message.get_object_property("JMSJCA.stats"))

    adapter.activate(ActivationSpec(destination="q"), handler).start()
    for _ in range(2):
        recorder.await_outcome(Outcome.COMMITTED)
    assert [(stats["DA"], stats["DC"], stats["A-EP"]) for stats in seen] == [(1, 0, 1), (2, 1, 1)]


@pytest.mark.parametrize(("mode", "handlers"), [("serial", 1), ("sync", 3), ("cc", 3)])
def test_as_many_endpoints_exist_as_handlers_are_at_work(adapter, mode, handlers):
    met, totals = threading.Barrier(handlers, timeout=PATIENCE), queue.Queue()

    def handler(message: Message) -> None:
        met.wait()
        totals.put(message.get_object_property("JMSJCA.stats")["EP"])
        met.wait()

    send(adapter, *"abc")
    activation = adapter.activate(
        ActivationSpec(destination="q", concurrency_mode=mode, endpoint_pool_max_size=3), handler
    )
    activation.start()
    assert [totals.get(timeout=PATIENCE) for _ in range(3)] == [handlers] * 3
    activation.stop()
    assert activation.stats.n_total_endpoints == 0


def test_moved_messages_are_bypass_commits(adapter, recorder):
    send(adapter, "a")
    inbox = Inbox(ValueError("no"))
    activation = adapter.activate(ActivationSpec(destination="q", redelivery_handling="1:move(queue:dlq)"), inbox)
    there = Inbox()
    adapter.activate(ActivationSpec(destination="dlq"), there)
    adapter.start()
    there.got.get(timeout=PATIENCE)
    adapter.stop()
    stats = activation.stats
    assert (stats.n_messages, stats.n_delivery_commits, stats.n_bypass_commits) == (1, 0, 1)
    assert (stats.n_delivered_messages, stats.n_bypassed_messages) == (1, 1)
    assert stats.n_redeliveries == 1


@pytest.mark.parametrize(
    ("spec", "configured"),
    [
        ({"concurrency_mode": "serial"}, 1),
        ({"concurrency_mode": "sync"}, 3),
        ({"concurrency_mode": "cc"}, 3),
        ({"concurrency_mode": "sync", "destination": Topic("t")}, 1),
        ({"concurrency_mode": "cc", "destination": Topic("t")}, 3),
    ],
)
def test_configured_endpoints_while_there_is_a_connection(adapter, recorder, spec, configured):
    spec = {"destination": "q", "endpoint_pool_max_size": 3} | spec
    activation = adapter.activate(ActivationSpec(**spec), Inbox())
    assert activation.stats.n_configured_endpoints == -1
    activation.start()
    recorder.await_status("Connecting", "Up")
    assert activation.stats.n_configured_endpoints == configured
    activation.stop()
    assert activation.stats.n_configured_endpoints == -1


def test_commits_begin_anew_with_each_start_and_all_by_reset(adapter, recorder):
    send(adapter, "a")
    activation = adapter.activate(ActivationSpec(destination="q"), Inbox())
    activation.start()
    recorder.await_outcome(Outcome.COMMITTED)
    recorder.await_status("Connecting", "Up")
    activation.restart()
    recorder.await_status("Disconnecting", "Down", "Connecting", "Up")
    assert (activation.stats.n_messages, activation.stats.n_delivery_commits) == (1, 0)
    activation.reset_stats()
    assert activation.stats.n_messages == 0


def test_the_bean_name_is_kept_and_told(adapter, recorder):
    send(adapter, "a")
    names = []
    handler = lambda message: names.append(message.get_string_property("JMS_Sun_JMSJCA_MBeanName"))  # noqa: E731
    adapter.activate(ActivationSpec(destination="q", mbean_name="jmsjca:name=orders"), handler).start()
    recorder.await_outcome(Outcome.COMMITTED)
    assert names == ["jmsjca:name=orders"]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"destination": "q"}, "serial-QueueReceiver(q)"),
        ({"destination": Topic("t"), "concurrency_mode": "cc"}, "cc-NonDurable TopicSubscriber(t)"),
        (
            {
                "destination": Topic("t"),
                "subscription_durability": "Durable",
                "subscription_name": "s",
                "concurrency_mode": "sync",
            },
            "sync-Durable TopicSubscriber(s)(t)",
        ),
        ({"destination": "q", "selector": "a = 'b'"}, "serial-QueueReceiver(q)(a = 'b')"),
        ({"destination": "q", "selector": "a = 1", "context_name": "c"}, "serial-QueueReceiver(q)(a = 1){c}"),
    ],
)
def test_display_name(jms_adapter, spec, expected):
    url = "amqp://ann:s3cr3t@host:5672"
    activation = jms_adapter.activate(ActivationSpec(**spec, connection_url=url), Inbox())
    assert activation.name == f"{expected} @ [amqp://ann@host:5672]"


def test_a_message_whose_handler_raised_came_again_too(adapter, recorder):
    adapter.listener("q")(Inbox(KeyError(), KeyError()))
    send(adapter, "a")
    with adapter:
        for outcome in (Outcome.ROLLED_BACK, Outcome.ROLLED_BACK, Outcome.COMMITTED):
            recorder.await_outcome(outcome)
    stats = adapter.activations[0].stats
    assert (stats.n_redeliveries, stats.n_redelivered_messages) == (2, 1)
