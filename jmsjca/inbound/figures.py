"""Statistics in the forms of the manual: a text and a map."""

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jmsjca.inbound.statistics import Statistics

__all__ = ["SAMPLES", "as_map", "as_text"]

SAMPLES = (1, 1000, 10_000, 20_000, 100_000)
"""At these numbers of messages the time is noted."""


def as_text(stats: "Statistics", now: float) -> str:
    """Give ``key=value`` pairs, separated by "; ": counts, times in milliseconds, rates in messages per second.

    Args:
        stats: What to tell.
        now: Seconds since the epoch.
    """
    figures = {
        "nMessages": stats.n_messages,
        **{f"t({sample})": time for sample, time in zip(SAMPLES, _times(stats), strict=True)},
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


def as_map(stats: "Statistics") -> dict[str, int]:
    """Give the figures by their short keys; times in milliseconds, 0 for what has not been reached."""
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
        **{f"D(s{number})": sample for number, sample in enumerate(SAMPLES)},
    }


def _times(stats: "Statistics") -> Sequence[int]:
    reached = [round(time * 1000) for time in stats.sample_times]
    return reached + [0] * (len(SAMPLES) - len(reached))


def _rates(stats: "Statistics", now: float) -> dict[str, str]:
    points = list(zip(SAMPLES, stats.sample_times, strict=False))
    known = dict(points)
    rates = {f"rate({a},{b})": _rate((a, known.get(a)), (b, known.get(b))) for a, b in pairwise(SAMPLES)}
    return rates | {f"rate(1,{stats.n_messages})": _rate((1, known.get(1)), (stats.n_messages, now))}


def _rate(first: tuple[int, float | None], last: tuple[int, float | None]) -> str:
    (begin, since), (end, until) = first, last
    if since is None or until is None or until <= since:
        return "n/a"
    return f"{(end - begin) / (until - since):.1f}"
