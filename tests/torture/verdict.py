"""Holds the journals against what the broker has."""

import sqlite3
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from jmsjca import ConnectionFactory, Message, Queue
from tests.torture.journal import Batch, Log

__all__ = ["Verdict", "compare", "judge", "read_logs", "rows_left"]


@dataclass
class Verdict:
    """What was found. All but `committed`, `consumed`, `in_doubt`, `fenced` and `redelivered` must be 0 or empty."""

    committed: int = 0
    consumed: int = 0
    lost: int = 0  # committed, and not in ``done``
    twice: int = 0  # more than once in ``done``
    in_doubt: int = 0  # tried, outcome not noted: killed in between
    unexpected: int = 0  # in ``done`` although nobody tried, or although it was refused or rolled back
    torn: int = 0  # transactions of which only a part is there, or that were committed and are not there
    refused: int = 0  # commits that the broker refused to a process that nobody took for dead
    fenced: int = 0  # commits that it refused, rightly, to one that was taken for dead
    undercounted: int = 0  # delivery counts below the number of times that somebody noted the receipt
    redelivered: int = 0  # delivery counts above 1
    faults: list[str] = field(default_factory=list)

    @property
    def good(self) -> bool:
        bad = self.lost + self.twice + self.unexpected + self.torn + self.refused + self.undercounted
        return bad == 0 and not self.faults


def judge(folder: Path, outlawed: Collection[str]) -> Verdict:
    """Compare with an embedded broker; all workers must have ended.

    Args:
        folder: That of the run.
        outlawed: The names of the workers that were taken for dead, alive.
    """
    logs, done = read_logs(folder), _browse_done(folder)
    verdict = compare(logs, done, outlawed)
    verdict.faults += _faults(folder)
    receipts = Counter(i for log in logs for i in log.took)
    verdict.undercounted = sum(_count(m) < receipts[_text(m, "id")] for m in done)
    if max(receipts.values(), default=0) > 1 and not verdict.redelivered:
        verdict.faults.append("messages came again, but none has a delivery count above 1")
    return verdict


def read_logs(folder: Path) -> list[Log]:
    """Read all journals of a run."""
    return [Log.read(path) for path in sorted((folder / "journals").iterdir())]


def compare(
    logs: Sequence[Log], done: Sequence[Message], outlawed: Collection[str], dead: Sequence[Message] = ()
) -> Verdict:
    """Hold what the workers noted against the messages in ``done``, and against dead letters.

    Args:
        logs: Their journals.
        done: The messages.
        outlawed: The names of workers that may be refused a commit.
        dead: The dead letters.
    """
    producers = [log for log in logs if log.name.startswith("producer")]
    consumers = [log for log in logs if not log.name.startswith("producer")]
    found = Counter(_text(m, "id") for m in (*done, *dead))
    promised = _ids(producers, "ok") | _ids(consumers, "ok")
    allowed = _ids(producers, "ok") | _ids(producers, "doubt", None)
    return Verdict(
        committed=len(_ids(producers, "ok")),
        consumed=len(done),
        lost=len(promised - found.keys()),
        twice=sum(n > 1 for n in found.values()),
        in_doubt=len(_ids(logs, "doubt", None)),
        unexpected=len(found.keys() - allowed) + sum(_denied(log, done) for log in consumers),
        torn=sum(_torn(batch, set(found)) for batch in _batches(producers))
        + sum(_torn(*pair) for log in consumers for pair in _pairs(log, done)),
        refused=len(_ids((log for log in logs if log.name not in outlawed), "refused")),
        fenced=len(_ids((log for log in logs if log.name in outlawed), "refused")),
        redelivered=sum(_count(m) > 1 for m in done),
    )


def rows_left(folder: Path, queue: str) -> int:
    """How many messages a queue has, held ones included; read past the broker."""
    query = "SELECT count(*) FROM message WHERE queue_id = (SELECT id FROM queue WHERE name = ?)"
    return int(_ask(folder, query, queue))


def _faults(folder: Path) -> list[str]:
    owners = [row for (row,) in _rows(folder, "SELECT id FROM owner")]
    checks = {
        "integrity_check": (str(_ask(folder, "PRAGMA integrity_check")), "ok"),
        "owners left": (str(owners), "[]"),
        "messages held": (_ask(folder, "SELECT count(*) FROM message WHERE owner IS NOT NULL OR token IS NOT NULL"), 0),
        "delivery counts below 0": (_ask(folder, "SELECT count(*) FROM message WHERE deliveries < 0"), 0),
        "messages left": (rows_left(folder, "work"), 0),
        "lock files left": (len(list((folder / "broker.db-owners").iterdir())), 0),
    }
    return [f"{what}: {found}" for what, (found, wanted) in checks.items() if found != wanted]


def _browse_done(folder: Path) -> list[Message]:
    """Through the broker: the last one to open the file, who finds the last dead."""
    with ConnectionFactory(f"embedded://{folder}/broker.db").create_connection() as connection:
        return list(connection.create_session().create_browser(Queue("done")))


def _batches(logs: Iterable[Log]) -> Iterator[Batch]:
    return (batch for log in logs for batch in log.batches)


def _ids(logs: Iterable[Log], *outcomes: str | None) -> set[str]:
    return {i for batch in _batches(logs) if batch.outcome in outcomes for i in batch.ids}


def _torn(batch: Batch, there: set[str]) -> bool:
    """Tell whether a transaction is there in part; one that was committed, whether not all of it is there."""
    if batch.outcome not in ("ok", "doubt", None):
        return False
    missing = set(batch.ids) - there
    return bool(missing) and (batch.outcome == "ok" or len(missing) < len(set(batch.ids)))


def _denied(log: Log, done: Sequence[Message]) -> int:
    """What a consumer has done in transactions that did not happen, as it was told."""
    return sum(len(there) for batch, there in _pairs(log, done) if batch.outcome in ("refused", "rolled-back"))


def _pairs(log: Log, done: Sequence[Message]) -> Iterator[tuple[Batch, set[str]]]:
    """Each transaction of a consumer with what was done in it."""
    there: defaultdict[int, set[str]] = defaultdict(set)
    for message in done:
        if message.properties["by"] == log.name:
            there[cast("int", message.properties["batch"])].add(_text(message, "id"))
    return ((batch, there[number]) for number, batch in enumerate(log.batches))


def _count(message: Message) -> int:
    return int(message.properties["count"] or 0)


def _text(message: Message, name: str) -> str:
    return str(message.properties[name])


def _ask(folder: Path, query: str, *values: object) -> object:
    return _rows(folder, query, *values)[0][0]


def _rows(folder: Path, query: str, *values: object) -> list[tuple[object, ...]]:
    db = sqlite3.connect(f"file:{folder}/broker.db?mode=ro", uri=True, timeout=10)
    try:
        return db.execute(query, values).fetchall()
    finally:
        db.close()
