"""The live numbers of the console: samples, rates, plots and events."""

import asyncio
import json

import pytest

from jmsjca import ResourceAdapter
from jmsjca.management.console.pages import PLOT_HEIGHT, PLOT_WIDTH, LiveNumbers, plot_points


class Seconds:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def seconds():
    return Seconds()


def points(text):
    return [tuple(float(number) for number in each.split(",")) for each in text.split()]


def test_a_plot_ends_on_the_right_and_its_largest_value_is_at_the_top():
    assert points(plot_points([0.0, 4.0, 2.0]))[-1][0] == PLOT_WIDTH
    left, middle, right = (y for _, y in points(plot_points([0.0, 4.0, 2.0])))
    assert (left, middle, right) == (PLOT_HEIGHT - 1, 1, PLOT_HEIGHT / 2)
    assert plot_points([]) == ""
    assert points(plot_points([0.0] * 60))[0] == (0, PLOT_HEIGHT - 1)


def test_rates_come_from_the_counters(jms_adapter, jms_calls, jms_wait_until_idle, seconds):
    jms_adapter.listener("orders")(lambda message: None)
    live = LiveNumbers(jms_adapter, seconds)
    [first] = live.rows()
    assert (first.values["rate"], first.values["delivered"], first.plots["rate"]) == ("0.0", "0", "")
    jms_adapter.send_many("orders", ["a pear"] * 10)
    jms_calls.wait_for("orders", 10)
    jms_wait_until_idle()
    seconds.now += 2
    [second] = live.rows()
    assert (second.values["rate"], second.values["delivered"]) == ("5.0", "10")
    assert second.values["in_flight"] == "0"
    assert len(points(second.plots["rate"])) == 1
    assert len(points(second.plots["in_flight"])) == 2
    assert second.number == 0


def test_latency_is_the_mean_of_the_calls_that_ended_between_two_samples(jms_adapter, seconds):
    jms_adapter.listener("orders")(lambda message: None)
    live, stats = LiveNumbers(jms_adapter, seconds), jms_adapter.activations[0].stats
    live.rows()
    for durations, latency in (([0.25, 0.05], "150.0"), ([0.5], "500.0"), ([], "0.0")):
        for each in durations:
            stats.record_start(1)
            stats.record_end(each)
        stats.record_start(1)  # a call that goes on counts when it ends
        seconds.now += 1
        [row] = live.rows()
        assert row.values["latency"] == latency
        stats.record_end(0.0)
        live = LiveNumbers(jms_adapter, seconds)
        live.rows()


def test_the_duration_of_each_call_is_measured(jms_adapter, jms_calls, jms_wait_until_idle, seconds):
    jms_adapter.listener("orders")(lambda message: None)
    live = LiveNumbers(jms_adapter, seconds)
    live.rows()
    jms_adapter.send("orders", "a pear")
    jms_calls.wait_for("orders")
    jms_wait_until_idle()
    assert jms_adapter.activations[0].stats.handler_seconds > 0
    seconds.now += 1
    [row] = live.rows()
    assert len(points(row.plots["latency"])) == 1


def test_readers_share_the_samples_and_old_ones_are_forgotten(jms_adapter, seconds):
    jms_adapter.listener("orders")(lambda message: None)
    live = LiveNumbers(jms_adapter, seconds)
    for _ in range(5):
        [row] = live.rows()
    assert len(points(row.plots["in_flight"])) == 1
    for _ in range(100):
        seconds.now += 1
        [row] = live.rows()
    assert len(points(row.plots["in_flight"])) == 60


def test_counters_that_are_reset_give_no_negative_rate(jms_adapter, jms_calls, seconds):
    jms_adapter.listener("orders")(lambda message: None)
    jms_adapter.send("orders", "a pear")
    jms_calls.wait_for("orders")
    live = LiveNumbers(jms_adapter, seconds)
    live.rows()
    jms_adapter.activations[0].reset_stats()
    seconds.now += 1
    assert live.rows()[0].values["rate"] == "0.0"


def test_an_event_has_the_numbers_of_every_activation():
    adapter = ResourceAdapter("embedded://x")
    adapter.listener("orders")(lambda message: None)
    adapter.listener("parcels")(lambda message: None)

    async def first():
        return await anext(LiveNumbers(adapter).events())

    event = asyncio.run(first())
    assert event.endswith("\n\n")
    rows = json.loads(event.removeprefix("data: "))
    assert [row["number"] for row in rows] == [0, 1]
    assert rows[0]["values"]["status"] == "Down"
