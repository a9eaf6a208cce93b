"""Prometheus metrics of listeners and senders, as hooks. The extra ``metrics`` installs the client library."""

import threading
from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import accumulate
from time import perf_counter, time
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from jmsjca.destinations import Destination
from jmsjca.errors import JMSError, ProviderNotInstalledError
from jmsjca.hooks import DeadLetter, Hooks
from jmsjca.messages.delivery import Outcome
from jmsjca.messages.message import Message

if TYPE_CHECKING:
    from jmsjca.adapter import ResourceAdapter
    from jmsjca.inbound.activation import Activation

__all__ = ["Metrics", "exposition"]

_BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
_bucket_of = partial(bisect_left, _BUCKETS)
_OTHER, _TEMPORARY = "other", "temporary"
_LISTENER = ["listener"]
_MAX_PENDING = 256  # durations of handlers that wait to be counted
_NOT_SAMPLED = 63  # messages without a measured age after one with it: decoding a timestamp takes time


_instances: "WeakSet[Metrics]" = WeakSet()


class Metrics(Hooks):
    """Counts what listeners and senders do, and is a collector of a Prometheus registry.

    Pass one instance to the adapter (``hooks=[metrics]``). Call `watch` to add the figures of its activations and its
    pool. Pickling a connection factory replaces this object by plain `Hooks`.

    Args:
        registry: The registry of `prometheus_client` to register with; required, because the global registry is never
            used.
        max_destinations: Number of destinations with a separate label in the metrics of sends. All further destinations
            are counted as "other", and temporary destinations as "temporary".

    Attributes:
        registry: As given.

    Raises:
        ProviderNotInstalledError: The extra is not installed.
    """

    def __init__(self, registry: Any, *, max_destinations: int = 100) -> None:
        self._families = _families()
        self._max_destinations = max_destinations
        self._lock = threading.Lock()
        self._listeners: dict[str, _ListenerFigures] = {}
        self._sends: dict[str, _SendFigures] = {}
        self._adapters: list[ResourceAdapter] = []
        self.registry = registry
        registry.register(self)
        _instances.add(self)

    def watch(self, adapter: "ResourceAdapter") -> None:
        """Export also the figures of an adapter's activations and of its pool.

        Activations with the same name are one listener: their figures are added, and it is up if all of them are up.

        Args:
            adapter: The adapter. Watching it again has no effect.
        """
        with self._lock:
            if adapter not in self._adapters:
                self._adapters.append(adapter)

    def handled(self, endpoint: str, message: Message | None, seconds: float, *, failed: bool) -> None:
        """Count a call of the handler. Measure the age of the first message, and of one in 64 after it."""
        figures = self._listeners.get(endpoint) or self._listener(endpoint)
        pending = figures.pending
        pending.append(seconds)
        waiting = len(pending)
        if waiting & _NOT_SAMPLED == 1 and message is not None:
            figures.record_lag(message, seconds)
        if failed:
            figures.record_failure()
        if waiting >= _MAX_PENDING:
            figures.count_pending()

    def around_send(self, message: Message, destination: Destination, call_next: Callable[[], None]) -> None:
        """Measure and count a send."""
        del message
        began, failed = perf_counter(), True
        try:
            call_next()
            failed = False
        finally:
            self._send(destination).record(perf_counter() - began, failed=failed)

    def dead_lettered(self, endpoint: str, letter: DeadLetter) -> None:
        """Count a message that was moved or deleted."""
        self._listener(endpoint).record_dead_letter(moved=letter.target is not None)

    def status_changed(self, endpoint: str, status: str) -> None:
        """Count each connection."""
        if status == "Up":
            self._listener(endpoint).connections += 1  # status changes of one activation come from one thread at a time

    def collect(self) -> Iterator[Any]:
        """Yield the metric families. The registry calls it at each scrape."""
        with self._lock:
            listeners, sends, adapters = dict(self._listeners), dict(self._sends), list(self._adapters)
        for figures in listeners.values():
            figures.count_pending()
        yield from _listener_families(self._families, listeners)
        yield from _send_families(self._families, sends)
        yield from _activation_families(self._families, adapters)

    def describe(self) -> Iterator[Any]:
        """Yield nothing: all names are fixed, so the registry does not need to collect once to learn them."""
        return iter(())

    def __reduce__(self) -> tuple[type[Hooks], tuple[()]]:
        return Hooks, ()

    def _listener(self, name: str) -> "_ListenerFigures":
        with self._lock:
            return self._listeners.setdefault(name, _ListenerFigures())

    def _send(self, destination: Destination) -> "_SendFigures":
        name = _TEMPORARY if destination.temporary else str(destination)
        found = self._sends.get(name)
        if found is not None:
            return found
        with self._lock:
            return self._sends.setdefault(name if len(self._sends) < self._max_destinations else _OTHER, _SendFigures())


def exposition(adapter: "ResourceAdapter") -> Callable[[], bytes]:
    """Return a function that renders the metrics of an adapter in the text format of Prometheus.

    If the program has created `Metrics`, the text has everything in its registry. Otherwise it has the figures of the
    adapter's activations and pool.

    Args:
        adapter: The adapter.


    Raises:
        ProviderNotInstalledError: The extra is not installed.
    """
    _families()  # raises an error that names the extra if it is missing
    from prometheus_client import CollectorRegistry, generate_latest

    metrics = next(iter(_instances), None) or Metrics(CollectorRegistry())
    metrics.watch(adapter)
    return lambda: generate_latest(metrics.registry)


class _Histogram:
    """Counts observations by bucket. Cheaper than the client library's histogram: one search, and no lock inside."""

    __slots__ = ("counts", "sum")

    def __init__(self) -> None:
        self.counts = [0] * (len(_BUCKETS) + 1)
        self.sum = 0.0

    def observe(self, seconds: float) -> None:
        """Count an observation. The caller holds a lock."""
        self.counts[bisect_left(_BUCKETS, seconds)] += 1
        self.sum += seconds

    def observe_all(self, seconds: Sequence[float]) -> None:
        """Count many observations at once, which is cheaper than one by one. The caller holds a lock."""
        for bucket, count in Counter(map(_bucket_of, seconds)).items():
            self.counts[bucket] += count
        self.sum += sum(seconds)

    def buckets(self) -> list[tuple[str, float]]:
        """Return the cumulative counts by upper bound."""
        bounds = [*map(str, _BUCKETS), "+Inf"]
        return [(bound, float(count)) for bound, count in zip(bounds, accumulate(self.counts), strict=True)]


class _ListenerFigures:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.failures = self.moved = self.deleted = self.connections = 0
        self.handler, self.lag = _Histogram(), _Histogram()
        # Durations not yet in the histogram. Appending needs no lock, and counting many at once is cheaper.
        self.pending: deque[float] = deque()

    def record_lag(self, message: Message, seconds: float) -> None:
        """Record the age of a message at the call of its handler, if the message has a timestamp.

        Args:
            message: The message.
            seconds: Duration of the call, which has ended.
        """
        try:
            sent = message.timestamp
        except JMSError:  # damaged headers: the handler gets the message anyway
            return
        if sent is not None:
            with self._lock:
                self.lag.observe(max(time() - seconds - sent.timestamp(), 0.0))

    def record_failure(self) -> None:
        """Count a call of the handler that raised an exception."""
        with self._lock:
            self.failures += 1

    def count_pending(self) -> None:
        """Add the pending durations to the histogram."""
        with self._lock:
            # Other threads may append at the same time; only the holder of the lock removes.
            self.handler.observe_all([self.pending.popleft() for _ in range(len(self.pending))])

    def record_dead_letter(self, *, moved: bool) -> None:
        """Count a message that was moved or deleted."""
        with self._lock:
            self.moved += moved
            self.deleted += not moved


class _SendFigures:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.failures = 0
        self.seconds = _Histogram()

    def record(self, seconds: float, *, failed: bool) -> None:
        """Count a send."""
        with self._lock:
            self.failures += failed
            self.seconds.observe(seconds)


def _families() -> Any:
    try:
        from prometheus_client import metrics_core  # an extra
    except ImportError as error:
        raise ProviderNotInstalledError(f'Metrics need {error.name}: pip install "jmsjca[metrics]"') from error
    return metrics_core


_LISTENER_COUNTERS: Sequence[tuple[str, str, str]] = (
    ("failures", "jmsjca_handler_failures", "Calls of the handler that raised an exception."),
    ("connections", "jmsjca_listener_connections", "Connections of the listener; all but the first are reconnects."),
)


def _listener_families(families: Any, listeners: dict[str, _ListenerFigures]) -> Iterator[Any]:
    for attribute, name, text in _LISTENER_COUNTERS:
        counter = families.CounterMetricFamily(name, text, labels=_LISTENER)
        for listener, figures in listeners.items():
            counter.add_metric([listener], getattr(figures, attribute))
        yield counter
    yield _by_action(families, listeners)
    for attribute, name, text in (
        (
            "handler",
            "jmsjca_handler_seconds",
            "Duration of a call of the handler, with decoding and replies.",
        ),
        ("lag", "jmsjca_message_lag_seconds", "Time from the timestamp of a message to its delivery; of one in 64."),
    ):
        histogram = families.HistogramMetricFamily(name, text, labels=_LISTENER)
        for listener, figures in listeners.items():
            found: _Histogram = getattr(figures, attribute)
            histogram.add_metric([listener], found.buckets(), found.sum)
        yield histogram


def _by_action(families: Any, listeners: dict[str, _ListenerFigures]) -> Any:
    counter = families.CounterMetricFamily(
        "jmsjca_messages_dead_lettered", "Messages that the listener gave up.", labels=[*_LISTENER, "action"]
    )
    for listener, figures in listeners.items():
        counter.add_metric([listener, "moved"], figures.moved)
        counter.add_metric([listener, "deleted"], figures.deleted)
    return counter


def _send_families(families: Any, sends: dict[str, _SendFigures]) -> Iterator[Any]:
    failures = families.CounterMetricFamily("jmsjca_send_failures", "Sends that failed.", labels=["destination"])
    seconds = families.HistogramMetricFamily(
        "jmsjca_send_seconds", "Duration of a send; its count is the number of sends.", labels=["destination"]
    )
    for destination, figures in sends.items():
        failures.add_metric([destination], figures.failures)
        seconds.add_metric([destination], figures.seconds.buckets(), figures.seconds.sum)
    yield from (failures, seconds)


def _activation_families(families: Any, adapters: Sequence["ResourceAdapter"]) -> Iterator[Any]:
    """Yield the figures that are read from the activations at the scrape, without any cost per message."""
    gauge, counter = families.GaugeMetricFamily, families.CounterMetricFamily
    up = gauge("jmsjca_listener_up", "1 while the listener is up.", labels=_LISTENER)
    active = gauge("jmsjca_handlers_active", "Active handlers.", labels=_LISTENER)
    limit = gauge("jmsjca_handlers_limit", "Handlers that may be active.", labels=_LISTENER)
    text = "Units with an active handler, or that wait for acknowledgement or the end of a delay."
    in_flight = gauge("jmsjca_units_in_flight", text, labels=_LISTENER)
    received = counter("jmsjca_messages_received", "Messages that were delivered, moved or deleted.", labels=_LISTENER)
    redelivered = counter("jmsjca_messages_redelivered", "Redeliveries of messages.", labels=_LISTENER)
    settled = counter("jmsjca_messages_settled", "Messages of settled units.", labels=[*_LISTENER, "outcome"])
    for listener, activations in _by_name(adapters).items():
        name, stats = [listener], [each.stats for each in activations]
        up.add_metric(name, all(each.status == "Up" for each in activations))
        active.add_metric(name, sum(each.n_active_endpoints for each in stats))
        limit.add_metric(name, sum(max(each.n_configured_endpoints, 0) for each in stats))
        in_flight.add_metric(name, sum(each.units_in_flight for each in activations))
        received.add_metric(name, sum(each.n_delivered_messages + each.n_bypassed_messages for each in stats))
        redelivered.add_metric(name, sum(each.n_redeliveries for each in stats))
        for outcome in Outcome:
            settled.add_metric([*name, outcome.name.lower()], sum(each.settled_messages[outcome] for each in stats))
    yield from (up, active, limit, in_flight, received, redelivered, settled, _pool_gauge(families, adapters))
    prepared = [each.prepared_units for each in adapters if each.prepared_units is not None]
    if prepared:
        text = "Prepared units at the broker, of live processes also; a number that stays above 0 needs attention."
        yield gauge("jmsjca_prepared_units", text, value=sum(prepared))


def _by_name(adapters: Sequence["ResourceAdapter"]) -> dict[str, list["Activation"]]:
    """Group the activations by name, because Prometheus refuses two samples with equal labels."""
    found: dict[str, list[Activation]] = {}
    for adapter in adapters:
        for activation in adapter.activations:
            found.setdefault(activation.name, []).append(activation)
    return found


def _pool_gauge(families: Any, adapters: Sequence["ResourceAdapter"]) -> Any:
    gauge = families.GaugeMetricFamily("jmsjca_pool", "The sender's pool: see ConnectionPool.", labels=["figure"])
    totals: dict[str, int] = {}
    for adapter in adapters:
        for figure, value in adapter.pool_stats().items():
            totals[figure] = totals.get(figure, 0) + value
    for figure, value in totals.items():
        gauge.add_metric([figure], value)
    return gauge
