"""The account of a run, made in a separate process: ``python -m jmsjca.demo.account FILE`` prints it as JSON.

The account is independent of the state of the run: it compares the ids recorded before each send with the ids found
in Parquet, in the topic and in the dead-letter queue.
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
from jmsjca.demo.settings import DemoSettings, open_session
from jmsjca.destinations import Queue, Subscription
from jmsjca.messages import DUPLICATE_ID, Message
from jmsjca.outbound import ConnectionFactory, MessageConsumer, Session

__all__ = [
    "Findings",
    "IdempotentReceiver",
    "balance",
    "collect_dead_letters",
    "collect_results",
    "collect_unprocessed",
    "read_parquet",
    "take_account",
]


def take_account(settings: DemoSettings) -> dict[str, Any]:
    """Count the sent events and their outcomes."""
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
    """Compare the ids that were sent with the ids that were found.

    Args:
        sent: The ids of all events.
        poison: The ids of events with a corrupted body.
        stored: Occurrences of each id in Parquet.
        published: Occurrences of each id in the results on the topic.
        dead: Occurrences of each id in the dead-letter queue.
        waiting: Occurrences of each id that is still in the event queue.
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
    """The events found in the messages of one destination.

    Attributes:
        events: Number of occurrences of each event id.
    """

    def __init__(self) -> None:
        self.events: Counter[str] = Counter()
        self._repeats = IdempotentReceiver()
        self._file: TextIO | None = None

    @classmethod
    def kept_in(cls, file: Path) -> Self:
        """Return the findings recorded in a file; further findings are appended to it."""
        findings = cls()
        for line in file.read_text().splitlines() if file.exists() else ():
            findings.add(*json.loads(line))
        findings._file = file.open("a")
        return findings

    @property
    def repeated(self) -> int:
        """Number of messages that were recognised as duplicates and dropped."""
        return self._repeats.recognised

    def add(self, id_: str | None, events: list[str]) -> None:
        """Count the events of a message, unless the message is a duplicate.

        Args:
            id_: The duplicate-detection id of the message; None if it has no id.
            events: The ids of its events.
        """
        line = json.dumps([id_, events])
        if self._file is not None:
            self._file.write(line + "\n")
        if not self._repeats.is_repeat(id_, line):
            self.events.update(events)

    def hold(self, expected: set[str]) -> bool:
        """Return True if all expected events were found."""
        return expected <= self.events.keys()

    def flush(self) -> None:
        """Write buffered findings to the file."""
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
_LIMITS = Limits(prefetch_messages=_UNIT)  # some brokers deliver at most this many unsettled messages
_QUIET = 1.0  # seconds without a message after which a queue without a depth count is considered empty
_PATIENCE = 10.0  # the same, while expected events are still missing

_Events = Callable[[Message], list[str]]


def collect_results(settings: DemoSettings, expected: set[str]) -> Findings:
    """Return the events in the results on the topic."""
    return _collect(settings, settings.audit, "results", expected, lambda message: json.loads(message.body)["ids"])


def collect_dead_letters(settings: DemoSettings, expected: set[str]) -> Findings:
    """Return the events in the dead-letter queue. They are only browsed on the embedded broker of the run."""
    if settings.shared:
        return _collect(settings, settings.dead_letters, "dead-letters", expected, _event)
    findings = Findings()
    with ConnectionFactory(settings.url).create_connection() as connection, connection.create_session() as session:
        for message in session.create_browser(settings.dead_letters):
            findings.add(message.get_string_property(DUPLICATE_ID), _event(message))
    return findings


def collect_unprocessed(settings: DemoSettings, expected: set[str]) -> Findings:
    """Return the events that the query has not consumed from its queue."""
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
        open_session(connection) as session,
    ):
        quiet, patience = (0.0, 0.0) if connection.admin else (_QUIET, _PATIENCE)
        consumer = _consumer(session, source)
        while unit := list(_receive(consumer, quiet if findings.hold(expected) else patience)):
            _add(findings, unit, events)
            session.commit() if session.transacted else unit[-1].acknowledge()
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
    """Yield the messages of one unit: wait for the first, then take those that are available."""
    for position in range(_UNIT):
        message = consumer.receive(0.0 if position else timeout)
        if message is None:
            return
        yield message


class IdempotentReceiver:
    """Recognises duplicate messages by id and content (the idempotent receiver pattern).

    A micro-batch that Spark repeats sends its results again, with the same ids. A broker with duplicate detection
    drops the duplicates; on other brokers the consumer drops them with this class.

    Attributes:
        recognised: Number of duplicates recognised.
    """

    def __init__(self) -> None:
        self._seen: dict[str, str] = {}
        self.recognised = 0

    def is_repeat(self, id_: str | None, content: str) -> bool:
        """Return True if the same content was received with this id before.

        A message without id is never a duplicate. Neither is different content with a known id: that is a fault, and
        must not be hidden.
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
    """Read all Parquet files below a folder as one Arrow table.

    Args:
        folder: The output folder of Spark, with one subfolder for each batch.
        columns: The columns to read; None reads all.
    """
    dataset: Any = import_module("pyarrow.dataset")  # slow to import, used at the end of a run
    files = sorted(str(path) for path in folder.glob("batch=*/*.parquet"))
    return dataset.dataset(files, format="parquet").to_table(columns=columns)


if __name__ == "__main__":
    json.dump(take_account(DemoSettings.load(sys.argv[1])), sys.stdout)
