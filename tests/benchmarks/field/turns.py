"""One turn of a contender: what it is told, and the seconds that it took by clock."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from tests.benchmarks.measurements import clocks
from tests.benchmarks.proton_loops import Figures

__all__ = ["AHEAD", "BATCH", "Contender", "Turn", "seconds_of", "since"]

AHEAD = 100
BATCH = 100


class Turn(NamedTuple):
    """What is to be done.

    Args:
        url: The broker.
        queue: A queue of this turn's: empty, or with as many messages as are to be received.
        count: How many messages.
        ahead: How many are taken ahead.
    """

    url: str
    queue: str
    count: int
    ahead: int = AHEAD


Contender = Callable[[Turn], Mapping[str, float]]
"""Does it, and tells the seconds by clock: from the making of its link or consumer to the last answer."""


def since(began: Mapping[str, float]) -> Mapping[str, float]:
    """The seconds since then, by clock."""
    return {name: now - began[name] for name, now in clocks().items()}


def seconds_of(figures: Figures, count: int) -> Mapping[str, float]:
    """The seconds of what a stopwatch measured."""
    return {"elapsed": count / figures.rate, "processor": figures.cpu * count / 1e6}
