"""Compares the state after a crash with the journal and the model."""

import sqlite3
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from copy import deepcopy
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, cast

from jmsjca import JMSError
from tests.model.model import Model
from tests.model.operations import Source, Words, key
from tests.model.real import Real
from tests.torture.crashed_process import BROKER, Account
from tests.torture.workloads import AFTERWARDS, QUEUES, START, WORKLOADS

__all__ = ["Moment", "Seen", "drain", "judge_crash", "judge_image", "moments"]

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


# What failed with these did not happen; of anything else we know nothing.
_UNDONE = ("TransactionRolledBackError", "ResourceAllocationError")
# These return when all is on disk.
_SAFE = frozenset(
    ["commit", "rollback", "give_back", "close_consumer", "close", "consume", "purge", "remove", "configure", "sweep"]
)

_Matches = Callable[[Seen, Moment], bool]


def judge_crash(workload: str, folder: Path, account: Account) -> str | None:
    """Open what a dead process left; tell what is wrong, if anything.

    The broker is in the moment after the last word that ended, or after the one that had begun.

    Args:
        workload: What was being done.
        folder: Where the broker is.
        account: What the process noted.
    """
    past = moments(workload)
    doubtful = account.begun > account.ended and account.error not in _UNDONE
    allowed = past[account.ended : account.ended + 1 + doubtful]
    # To close a connection takes several steps, and of each message's counts the one or the other may hold in between.
    close = allowed[-1].word == "close"
    return _judge(
        folder,
        allowed,
        lambda seen, moment: fits(seen, moment.seen, allowed[0].seen if close else moment.seen),
        afterwards=account.afterwards,
    )


def judge_image(workload: str, folder: Path, begun: int, ended: int) -> str | None:
    """Open what a disk kept when its power was cut; tell what is wrong, if anything.

    What returned when it was safe is there. A receive may be forgotten: then the message was never delivered, and its
    count is lower.

    Args:
        workload: What was being done.
        folder: Where the broker is.
        begun: How many words had begun.
        ended: How many had ended.
    """
    past = moments(workload)
    safe = max(n for n in range(ended + 1) if n == 0 or (past[n].word in _SAFE and past[n].seen != past[n - 1].seen))
    counts = {body: count for messages in past[safe].seen.values() for body, count in messages}

    def matches(seen: Seen, moment: Moment) -> bool:
        least = {place: [(body, counts.get(body, n)) for body, n in m] for place, m in moment.seen.items()}
        return fits(seen, moment.seen, least)

    return _judge(folder, past[safe : begun + 1], matches)


def fits(seen: Seen, one: Seen, other: Seen) -> bool:
    """Tell whether the messages are those of both, each with the count of one or the other or between."""
    bodies, *both = ({place: [body for body, _ in m] for place, m in s.items()} for s in (seen, one, other))
    if any(b != bodies for b in both):
        return False
    counts = ([count for place in sorted(s) for _, count in s[place]] for s in (seen, one, other))
    return all(min(a, b) <= count <= max(a, b) for count, a, b in zip(*counts, strict=True))


def _judge(folder: Path, allowed: Sequence[Moment], matches: _Matches, *, afterwards: bool = False) -> str | None:
    sources = {AFTERWARDS}.union(*(moment.sources for moment in allowed))
    try:
        seen = _look(folder, allowed[0].now, sources)
    except (JMSError, sqlite3.Error, AssertionError) as error:
        return f"{type(error).__name__}: {error}"
    if bool(seen.pop(f"{AFTERWARDS} now", [])) != afterwards:
        return "What was sent after the failure is lost." if afterwards else "What nobody sent is there."
    if any(matches(seen, moment) for moment in allowed):
        return None
    return f"There is {_short(seen)}, not {' or '.join(_short(moment.seen) for moment in allowed)}"


def _look(folder: Path, now: int, sources: set[Source]) -> Seen:
    """Take all messages out of a broker, and check its file."""
    broker = Real(now, folder / BROKER)
    try:
        seen = drain(cast("Words", broker), sources)
    finally:
        broker.end()
    with closing(sqlite3.connect(folder / BROKER)) as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        left = db.execute("SELECT count(*) FROM message WHERE owner IS NOT NULL").fetchone()
        assert left == (0,), f"{left[0]} messages are held by nobody"
    return seen


def _short(seen: Seen) -> str:
    return str({place: [(body[:10], count) for body, count in messages] for place, messages in seen.items()})
