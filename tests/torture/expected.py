"""What a broker must hold after a crash: the model's word for each moment of a workload, and a look at the broker."""

from collections.abc import Callable, Iterable
from copy import deepcopy
from functools import lru_cache
from typing import Any, NamedTuple, cast

from tests.model.model import Model
from tests.model.words import Source, Words, key
from tests.torture.workloads import QUEUES, START, WORKLOADS

__all__ = ["Moment", "Seen", "drain", "moments"]

LONG = 1_000_000  # milliseconds: whatever is delayed is due by then

Seen = dict[str, list[tuple[str, int]]]
"""What came from which source, now or later: bodies, in order, with their counts."""


class Moment(NamedTuple):
    """After so many words: the last of them, when, where messages may be, and which there are after a crash."""

    word: str
    now: int
    sources: set[Source]
    seen: Seen


class _Watched:
    """Notes the model after each word."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self.states = [("nothing", deepcopy(model))]

    def __getattr__(self, word: str) -> Callable[..., object]:
        def say(*arguments: Any, **named: Any) -> object:
            answer = getattr(self._model, word)(*arguments, **named)
            self.states.append((word, deepcopy(self._model)))
            return answer

        return say


@lru_cache(1)
def moments(workload: str) -> list[Moment]:
    """Every moment of a workload, from before its first word to after its last."""
    watched = _Watched(Model(START))
    WORKLOADS[workload](cast("Words", watched))
    return [_after_a_crash(word, model) for word, model in watched.states]


def drain(broker: Words, sources: Iterable[Source]) -> Seen:
    """Receive all there is, then all that is due later; what expires meanwhile is not there."""
    broker.connect("judge")
    seen: Seen = {}
    for turn in ("now", "later"):
        broker.sweep()
        for source in sorted(sources, key=key):
            seen[f"{source} {turn}"] = _consume(broker, f"{source} {turn}", source)
        broker.advance(LONG)
    broker.close("judge")
    return {place: messages for place, messages in seen.items() if messages}


def _consume(broker: Words, name: str, source: Source) -> list[tuple[str, int]]:
    broker.consume(name, "judge", source)
    seen: list[tuple[str, int]] = []
    while receipts := broker.receive(name, 1000):
        broker.begin(name, "judge")
        broker.take(name, [receipt.number for receipt in receipts])
        broker.commit(name)
        seen += [(receipt.body, receipt.deliveries) for receipt in receipts]
    broker.close_consumer(name)
    return seen


def _after_a_crash(word: str, model: Model) -> Moment:
    for connection in list(model.connections):
        model.crash(connection)
    now = model.now
    sources = set(QUEUES) | {box.subscription or box.address for box in model.places.boxes.values()}
    return Moment(word, now, sources, drain(model, sources))
