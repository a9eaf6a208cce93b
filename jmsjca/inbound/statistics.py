"""The statistics of an activation, and the text and map forms that the JMSJCA manual defines."""

import threading
from collections.abc import Sequence
from itertools import pairwise
from types import TracebackType

from jmsjca.config.clock import SYSTEM_CLOCK, Clock
from jmsjca.messages.delivery import Outcome

__all__ = ["Statistics", "StatisticsRecorder"]

_NEVER = float("inf")


class Statistics:
    """Counters of one activation, with the names of the JMSJCA manual. ``str()`` returns the manual's text form.

    Args:
        clock: The source of time.

    Attributes:
        n_messages: Calls of the handler with any outcome: one for each message, for each end of a batch, and for each
            whole batch that the handler takes in one call.
        n_delivered_messages: Messages that the handler was called with.
        n_bypassed_messages: Messages that were moved or deleted instead of being delivered, with any outcome.
        n_active_endpoints: Handlers that are active now.
        n_highest_active_endpoints: The highest number of handlers that were active at the same time.
        n_total_endpoints: Endpoints that exist; 0 while nothing is delivered.
        n_configured_endpoints: The maximum number of endpoints: 1 in mode serial, the receivers in mode sync, the size
            of the pool in mode cc; -1 while there is no connection.
        n_redeliveries: Redeliveries of messages.
        n_redelivered_messages: Messages that were redelivered at least once.
        n_delivery_commits: Units that were committed after a handler saw them.
        n_bypass_commits: Units that were committed to move or delete a message.
        handler_seconds: The sum of the durations of all completed calls of the handler.
        settled_messages: The messages of settled units by their outcome, since the activation was created.
        returned_messages: Received messages that were released although no handler saw them, for example at a stop.
        sample_times: The times when ``n_messages`` reached 1, 1000, 10000, 20000 and 100000, in seconds since the
            epoch.
    """

    def __init__(self, clock: Clock = SYSTEM_CLOCK) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self.n_active_endpoints = 0
        self.n_total_endpoints = 0
        self.n_configured_endpoints = -1
        self.n_redeliveries = 0
        self.n_redelivered_messages = 0
        self.settled_messages = dict.fromkeys(Outcome, 0)
        self.returned_messages = 0
        self.reset()

    def reset(self) -> None:
        """Reset messages, durations, sample times, the highest number of active handlers, and commits."""
        with self._lock:
            self.n_messages = self.n_delivered_messages = self.n_bypassed_messages = 0
            self.n_highest_active_endpoints = self.n_active_endpoints
            self.handler_seconds = 0.0
            self.sample_times: list[float] = []
            self._next_sample: float = _SAMPLES[0]
        self._reset_commits()

    def _reset_commits(self) -> None:
        self.n_delivery_commits: int = 0
        self.n_bypass_commits: int = 0
        self._deliveries_at_bypass: int = 0
        self._bypasses_at_delivery: int = 0

    @property
    def n_delivery_commits_since_bypass(self) -> int:
        """Units committed after a handler saw them, since the last message was moved or deleted."""
        return self.n_delivery_commits - self._deliveries_at_bypass

    @property
    def n_bypass_commits_since_delivery(self) -> int:
        """Messages moved or deleted since the last commit of a unit that a handler saw."""
        return self.n_bypass_commits - self._bypasses_at_delivery

    def as_dict(self) -> dict[str, int]:
        """Return all counters by name."""
        return {name: value for name, value in vars(self).items() if name.startswith("n_")}

    def as_map(self) -> dict[str, int]:
        """Return the map of the message property ``JMSJCA.stats``: the manual's short keys; times in milliseconds."""
        return _map_form(self)

    def __str__(self) -> str:
        return _text_form(self, self._clock.now())

    def __repr__(self) -> str:
        return f"<Statistics {' '.join(f'{name}={value}' for name, value in self.as_dict().items())}>"


class StatisticsRecorder(Statistics):
    """Statistics, and the methods by which the activation updates them."""

    def reset_commits(self) -> None:
        """Reset the commits, as at the start of each connection."""
        self._reset_commits()

    def endpoint(self) -> "_LiveEndpoint":
        """Count an endpoint as existing during the block."""
        return _LiveEndpoint(self)

    def record_commit(self) -> None:
        """Count the commit of a unit that a handler saw. Call it from one thread at a time."""
        self.n_delivery_commits += 1
        self._bypasses_at_delivery = self.n_bypass_commits

    def record_settlement(self, outcome: Outcome, messages: int) -> None:
        """Count the messages of a settled unit. Call it from one thread at a time."""
        self.settled_messages[outcome] += messages
        if outcome is Outcome.COMMITTED:
            self.record_commit()

    def record_return(self, messages: int) -> None:
        """Count messages that were released although no handler saw them."""
        with self._lock:
            self.returned_messages += messages

    def record_bypass(self) -> None:
        """Count a message that will be moved or deleted instead of being delivered."""
        with self._lock:
            self.n_bypassed_messages += 1

    def record_bypass_commit(self) -> None:
        """Count the commit of a message that was moved or deleted."""
        with self._lock:
            self.n_bypass_commits += 1
            self._deliveries_at_bypass = self.n_delivery_commits

    def record_redelivery(self, *, new: bool) -> None:
        """Count the redelivery of a message.

        Args:
            new: True if it is the first redelivery of the message.
        """
        with self._lock:
            self.n_redeliveries += 1
            self.n_redelivered_messages += new

    def record_start(self, messages: int) -> None:
        """Count a call of the handler as active.

        Args:
            messages: The number of messages of the call; 0 for the end of a batch.
        """
        with self._lock:
            self.n_messages += 1
            self.n_delivered_messages += messages
            if self.n_messages >= self._next_sample:
                self._sample()
            self.n_active_endpoints = active = self.n_active_endpoints + 1
            if active > self.n_highest_active_endpoints:  # noqa: PLR1730  # a call per message is too slow
                self.n_highest_active_endpoints = active

    def record_end(self, seconds: float) -> None:
        """Count the handler as no longer active.

        Args:
            seconds: The duration of the call.
        """
        with self._lock:
            self.n_active_endpoints -= 1
            self.handler_seconds += seconds

    def add_endpoints(self, change: int) -> None:
        """Add ``change``, which may be negative, to the number of endpoints. Used by `endpoint`."""
        with self._lock:
            self.n_total_endpoints += change

    def _sample(self) -> None:
        self.sample_times.append(self._clock.now())
        reached = len(self.sample_times)
        self._next_sample = _SAMPLES[reached] if reached < len(_SAMPLES) else _NEVER


class _LiveEndpoint:
    __slots__ = ("_statistics",)

    def __init__(self, statistics: StatisticsRecorder) -> None:
        self._statistics = statistics

    def __enter__(self) -> None:
        self._statistics.add_endpoints(1)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._statistics.add_endpoints(-1)


_SAMPLES = (1, 1000, 10_000, 20_000, 100_000)
"""At these numbers of messages the time is recorded."""


def _text_form(stats: "Statistics", now: float) -> str:
    """Return ``key=value`` pairs, separated by "; ": counts, times in milliseconds, rates in messages per second.

    Args:
        stats: The counters.
        now: The current time in seconds since the epoch.
    """
    figures = {
        "nMessages": stats.n_messages,
        **{f"t({sample})": time for sample, time in zip(_SAMPLES, _times(stats), strict=True)},
        "t(now)": round(now * 1000),
        **_rates(stats, now),
        "nEndpoints": stats.n_total_endpoints,
        "nRedelivies": stats.n_redeliveries,  # the manual's spelling
        "nRedeliveredMsgs": stats.n_redelivered_messages,
        "msgsDeliveryCommits": stats.n_delivery_commits,
        "msgsDeliveryCommitsSinceLastBypassCommit": stats.n_delivery_commits_since_bypass,
        "msgsBypassCommits": stats.n_bypass_commits,
        "msgsBypassCommitsSinceLastDeliveryCommit": stats.n_bypass_commits_since_delivery,
    }
    return "; ".join(f"{key}={value}" for key, value in figures.items())


def _map_form(stats: "Statistics") -> dict[str, int]:
    """Return the counters by the manual's short keys; times in milliseconds, 0 for a number not reached yet."""
    times = _times(stats)
    return {
        "DA": stats.n_messages,
        "DC": stats.n_delivery_commits,
        "BC": stats.n_bypass_commits,
        "DCSLBC": stats.n_delivery_commits_since_bypass,
        "BCSLDC": stats.n_bypass_commits_since_delivery,
        "R": stats.n_redeliveries,
        "RM": stats.n_redelivered_messages,
        "A-EP": stats.n_active_endpoints,
        "H-EP": stats.n_highest_active_endpoints,
        "EP": stats.n_total_endpoints,
        **{f"t(s{number})": time for number, time in enumerate(times)},
        **{f"D(s{number})": sample for number, sample in enumerate(_SAMPLES)},
    }


def _times(stats: "Statistics") -> Sequence[int]:
    reached = [round(time * 1000) for time in stats.sample_times]
    return reached + [0] * (len(_SAMPLES) - len(reached))


def _rates(stats: "Statistics", now: float) -> dict[str, str]:
    points = list(zip(_SAMPLES, stats.sample_times, strict=False))
    known = dict(points)
    rates = {f"rate({a},{b})": _rate((a, known.get(a)), (b, known.get(b))) for a, b in pairwise(_SAMPLES)}
    return rates | {f"rate(1,{stats.n_messages})": _rate((1, known.get(1)), (stats.n_messages, now))}


def _rate(first: tuple[int, float | None], last: tuple[int, float | None]) -> str:
    (begin, since), (end, until) = first, last
    if since is None or until is None or until <= since:
        return "n/a"
    return f"{(end - begin) / (until - since):.1f}"
