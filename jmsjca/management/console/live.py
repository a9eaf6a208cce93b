"""Live numbers of the console: samples of the activations, as server-sent events and as points of plots."""

import asyncio
import json
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Protocol

from jmsjca.inbound.activation import Activation

__all__ = ["PLOT_HEIGHT", "PLOT_WIDTH", "LiveNumbers", "LiveRow", "plot_points"]

PLOT_WIDTH, PLOT_HEIGHT = 120, 32  # of the coordinates of a plot
_INTERVAL = 1.0  # seconds between two samples
_SAMPLES = 60


class SampledAdapter(Protocol):
    """The part of a resource adapter that is sampled."""

    @property
    def activations(self) -> Sequence[Activation]:
        """The activations."""
        ...


@dataclass(frozen=True, slots=True)
class LiveRow:
    """The numbers of one activation.

    Attributes:
        number: The number of the activation in its adapter.
        values: The numbers by name, as the page shows them.
        plots: The points of the plots by name.
    """

    number: int
    values: dict[str, str]
    plots: dict[str, str]


@dataclass(frozen=True, slots=True)
class _Sample:
    moment: float
    delivered: int
    in_flight: int
    calls: int
    seconds: float


class LiveNumbers:
    """Samples the activations of an adapter, at most once in a second, while a page is looked at. Thread-safe.

    Args:
        adapter: The adapter.
        clock: The source of the time, in seconds.
    """

    def __init__(self, adapter: SampledAdapter, clock: Callable[[], float] = time.monotonic) -> None:
        self._adapter = adapter
        self._clock = clock
        self._lock = Lock()
        self._samples: dict[Activation, deque[_Sample]] = {}

    def rows(self) -> list[LiveRow]:
        """Take a sample, and return the numbers of all activations."""
        with self._lock:
            return [self._row(number, each) for number, each in enumerate(self._adapter.activations)]

    async def events(self) -> AsyncGenerator[str]:
        """Yield the numbers as server-sent events, once in a second, until the reader goes."""
        while True:
            rows = [{"number": each.number, "values": each.values, "plots": each.plots} for each in self.rows()]
            yield f"data: {json.dumps(rows)}\n\n"
            await asyncio.sleep(_INTERVAL)

    def _row(self, number: int, activation: Activation) -> LiveRow:
        samples = self._samples.setdefault(activation, deque(maxlen=_SAMPLES))
        stats, now = activation.stats, self._clock()
        if not samples or now - samples[-1].moment >= _INTERVAL / 2:  # several readers share the samples
            flight, calls = activation.units_in_flight, stats.n_messages - stats.n_active_endpoints
            samples.append(_Sample(now, stats.n_delivered_messages, flight, calls, stats.handler_seconds))
        rates, latencies = _rates(samples), _latencies(samples)
        values = {
            "status": activation.status,
            "in_flight": str(activation.units_in_flight),
            "delivered": str(stats.n_delivered_messages),
            "redelivered": str(stats.n_redelivered_messages),
            "bypassed": str(stats.n_bypassed_messages),
            "rate": f"{rates[-1]:.1f}" if rates else "0.0",
            "latency": f"{latencies[-1]:.1f}" if latencies else "0.0",
        }
        flights = [float(sample.in_flight) for sample in samples]
        plots = {"rate": rates, "in_flight": flights, "latency": latencies}
        return LiveRow(number, values, {name: plot_points(found) for name, found in plots.items()})


def _rates(samples: Sequence[_Sample]) -> list[float]:
    """Return the messages per second between neighbouring samples; 0 where the counters were reset."""
    pairs = zip(list(samples)[:-1], list(samples)[1:], strict=True)
    return [max(later.delivered - sooner.delivered, 0) / (later.moment - sooner.moment) for sooner, later in pairs]


def _latencies(samples: Sequence[_Sample]) -> list[float]:
    """Return the mean milliseconds of the calls that ended between neighbouring samples; 0 where none ended."""
    pairs = zip(list(samples)[:-1], list(samples)[1:], strict=True)
    calls = [(later.calls - sooner.calls, later.seconds - sooner.seconds) for sooner, later in pairs]
    return [1000 * max(seconds, 0.0) / ended if ended > 0 else 0.0 for ended, seconds in calls]


def plot_points(values: Sequence[float]) -> str:
    """Return the points of an SVG polyline: the latest value on the right, the largest at the top, 0 at the bottom.

    Args:
        values: The values, from the oldest on; none of them is negative.
    """
    largest, step = max([1.0, *values]), PLOT_WIDTH / (_SAMPLES - 1)
    first = PLOT_WIDTH - step * (len(values) - 1)
    heights = ((PLOT_HEIGHT - 2) * value / largest for value in values)
    return " ".join(f"{first + step * n:.1f},{PLOT_HEIGHT - 1 - height:.1f}" for n, height in enumerate(heights))
