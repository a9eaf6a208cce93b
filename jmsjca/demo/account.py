"""The account, in a process of its own: ``python -m jmsjca.demo.account FILE`` prints it as JSON.

It knows nothing of what the run believes: it compares the ids noted before each send with the ids that are found in
Parquet, in the topic and in the dead-letter queue.
"""

import json
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TextIO

from jmsjca.config import Limits
from jmsjca.demo.events import POISON_MARK
from jmsjca.demo.settings import DemoSettings
from jmsjca.destinations import Queue, Subscription
from jmsjca.messages import DUPLICATE_ID, Message
from jmsjca.outbound import ConnectionFactory, MessageConsumer, Session

__all__ = [
    "Findings",
    "Repeats",
    "balance",
    "collect_dead_letters",
    "collect_results",
    "collect_unprocessed",
    "read_parquet",
    "take_account",
]


def take_account(settings: DemoSettings) -> dict[str, Any]:
    """Count what was sent and what became of it."""
    lines = settings.journal.read_text().splitlines()
    sent = {line.removesuffix(POISON_MARK) for line in lines}
    poison = {line.removesuffix(POISON_MARK) for line in lines if line.endswith(POISON_MARK)}
    published, dead = collect_results(settings, sent - poison), collect_dead_letters(settings, poison)
    missing = sent - published.events.keys() - dead.events.keys()
    waiting = collect_unprocessed(settings, missing) if missing else Findings()
    account = balance(
        sent,
        poison,
        stored=_stored(settings),
        published=published.events,
        dead=dead.events,
        waiting=waiting.events,
    )
    return account | {"repeated": published.repeated + dead.repeated}


def balance(
    sent: set[str],
    poison: set[str],
    *,
    stored: Counter[str],
    published: Counter[str],
    dead: Counter[str],
    waiting: Counter[str],
) -> dict[str, Any]:
    """Compare what was sent with what was found.

    Args:
        sent: All ids.
        poison: Those whose bodies were spoiled.
        stored: How often each id is in Parquet.
        published: How often each id is in the results of the topic.
        dead: How often each id is in the dead-letter queue.
        waiting: How often each id is still in the queue of the events.
    """
    processed = stored.keys() & published.keys()
    unprocessed = (waiting.keys() & sent) - processed - dead.keys()
    lost = sent - processed - dead.keys() - unprocessed
    twice = {i for found in (stored, published, dead) for i, n in found.items() if n > 1}
    twice |= dead.keys() & (stored.keys() | published.keys())
    unexpected = (stored.keys() | published.keys() | dead.keys() | waiting.keys()) - sent
    account = {
        "sent": len(sent),
        "processed": len(processed),
        "dead_lettered": len(dead),
        "unprocessed": len(unprocessed),
        "lost": len(lost),
        "duplicated": len(twice),
        "unexpected": len(unexpected),
        "wrongly_dead_lettered": len(dead.keys() ^ poison),
    }
    whole = len(processed) + len(dead) == len(sent)
    wrong = sum(account[k] for k in ("unprocessed", "lost", "duplicated", "unexpected", "wrongly_dead_lettered"))
    return account | {"balanced": whole and wrong == 0}


def _stored(settings: DemoSettings) -> Counter[str]:
    if not settings.events.exists():
        return Counter()
    return Counter(read_parquet(settings.events, ["id"]).column("id").to_pylist())


class Findings:
    """The events in the messages of one place.

    Attributes:
        events: How often each event was found.
    """

    def __init__(self) -> None:
        self.events: Counter[str] = Counter()
        self._repeats = Repeats()
        self._file: TextIO | None = None

    @classmethod
    def kept_in(cls, file: Path) -> Self:
        """Go on with what a file holds, and add to it."""
        findings = cls()
        for line in file.read_text().splitlines() if file.exists() else ():
            findings.add(*json.loads(line))
        findings._file = file.open("a")
        return findings

    @property
    def repeated(self) -> int:
        """How many messages were recognised as sent again, and dropped."""
        return self._repeats.recognised

    def add(self, id_: str | None, events: list[str]) -> None:
        """Count the events of a message, unless it was sent again.

        Args:
            id_: What recognises the message; None for nothing.
            events: The ids of its events.
        """
        line = json.dumps([id_, events])
        if self._file is not None:
            self._file.write(line + "\n")
        if not self._repeats.is_repeat(id_, line):
            self.events.update(events)

    def hold(self, expected: set[str]) -> bool:
        """Tell whether all of these events were found."""
        return expected <= self.events.keys()

    def flush(self) -> None:
        """Let the file have all that was added."""
        if self._file is not None:
            self._file.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


_UNIT = 100
_LIMITS = Limits(prefetch_messages=_UNIT)  # some brokers deliver no more than that before something is settled
_QUIET = 1.0  # seconds without a message after which a broker that does not count them has no more
_PATIENCE = 10.0  # the same, as long as something is missing

_Events = Callable[[Message], list[str]]


def collect_results(settings: DemoSettings, expected: set[str]) -> Findings:
    """The events in the results of the topic, of which so many are expected."""
    return _collect(settings, settings.audit, "results", expected, lambda message: json.loads(message.body)["ids"])


def collect_dead_letters(settings: DemoSettings, expected: set[str]) -> Findings:
    """The events in the dead-letter queue. A broker of the run's own keeps them."""
    if settings.shared:
        return _collect(settings, settings.dead_letters, "dead-letters", expected, _event)
    findings = Findings()
    with ConnectionFactory(settings.url).create_connection() as connection, connection.create_session() as session:
        for message in session.create_browser(settings.dead_letters):
            findings.add(message.get_string_property(DUPLICATE_ID), _event(message))
    return findings


def collect_unprocessed(settings: DemoSettings, expected: set[str]) -> Findings:
    """The events that the query has left in its queue."""
    return _collect(settings, settings.flights, "unprocessed", expected, _event)


def _event(message: Message) -> list[str]:
    return [str(message.properties["event_id"])]


def _collect(
    settings: DemoSettings, source: Subscription | Queue, name: str, expected: set[str], events: _Events
) -> Findings:
    client_id = source.client_id if isinstance(source, Subscription) else None
    factory = ConnectionFactory(settings.url, client_id=client_id, limits=_LIMITS)
    with (
        Findings.kept_in(settings.path(f"{name}.jsonl")) as findings,
        factory.create_connection() as connection,
        connection.create_session(transacted=True) as session,
    ):
        quiet, patience = (0.0, 0.0) if connection.admin else (_QUIET, _PATIENCE)
        consumer = _consumer(session, source)
        while unit := list(_receive(consumer, quiet if findings.hold(expected) else patience)):
            _add(findings, unit, events)
            session.commit()
    return findings


def _add(findings: Findings, messages: Iterable[Message], events: _Events) -> None:
    for message in messages:
        findings.add(message.get_string_property(DUPLICATE_ID), events(message))
    findings.flush()


def _consumer(session: Session, source: Subscription | Queue) -> MessageConsumer:
    if isinstance(source, Queue):
        return session.create_consumer(source)
    return session.create_durable_consumer(source.topic, str(source.name))


def _receive(consumer: MessageConsumer, timeout: float) -> Iterator[Message]:
    """One unit's worth: wait for the first message, then take those that are there."""
    for position in range(_UNIT):
        message = consumer.receive(0.0 if position else timeout)
        if message is None:
            return
        yield message


class Repeats:
    """Remembers ids with what came under them.

    A micro-batch that Spark repeats sends its results again, under the same ids. A broker with duplicate detection
    drops the second ones; elsewhere whoever consumes them does, with this.

    Attributes:
        recognised: How many repeats were recognised.
    """

    def __init__(self) -> None:
        self._seen: dict[str, str] = {}
        self.recognised = 0

    def is_repeat(self, id_: str | None, content: str) -> bool:
        """Tell whether the same content came under this id before.

        What has no id is never a repeat; nor is other content under a known id, which is a fault that must show.
        """
        if id_ is None:
            return False
        if id_ not in self._seen:
            self._seen[id_] = content
            return False
        repeat = self._seen[id_] == content
        self.recognised += repeat
        return repeat


def read_parquet(folder: Path, columns: Sequence[str] | None = None) -> Any:
    """Read all files below a folder as one Arrow table.

    Args:
        folder: What Spark wrote, a folder per batch.
        columns: Which columns; None for all.
    """
    dataset: Any = import_module("pyarrow.dataset")  # slow to import, used at the end of a run
    files = sorted(str(path) for path in folder.glob("batch=*/*.parquet"))
    return dataset.dataset(files, format="parquet").to_table(columns=columns)


if __name__ == "__main__":
    json.dump(take_account(DemoSettings.load(sys.argv[1])), sys.stdout)
