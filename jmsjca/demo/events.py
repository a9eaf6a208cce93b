"""Events: check the request, read or generate the events, and send one message for each."""

import csv
import itertools
import json
import random
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, TextIO

from jmsjca.demo.settings import DemoSettings, check_broker, open_session
from jmsjca.errors import InvalidOptionError
from jmsjca.messages import Short
from jmsjca.outbound import ConnectionFactory, MessageProducer, Session

__all__ = ["POISON_MARK", "DemoRequest", "check_readable", "generate", "read_events", "send_events"]

_FIELDS = ("date", "delay", "distance", "origin", "destination")
_AIRPORTS = ("ATL", "BOS", "BWI", "DEN", "DFW", "DTW", "HNL", "IAH", "JFK", "LAS", "LAX", "MCO", "ORD", "PHX", "SEA")


def check_readable(path: Path, option: str) -> None:
    """Raise an error that names the option if a file cannot be read.

    Raises:
        InvalidOptionError: The file is missing, a folder, or not readable.
    """
    try:
        with path.open("rb"):
            pass
    except OSError as error:
        raise InvalidOptionError(f"{option} {path} cannot be read: {error.strerror}. Name an existing file.") from error


def generate(count: int, seed: int) -> Iterator[dict[str, Any]]:
    """Generate events. The same seed generates the same events."""
    chance = random.Random(seed)  # noqa: S311  # flights, not secrets
    moment = datetime(2001, 1, 1)  # noqa: DTZ001  # local times, as in the published data
    for _ in range(count):
        moment += timedelta(minutes=chance.randrange(1, 9))
        origin, destination = chance.sample(_AIRPORTS, 2)
        yield {
            "date": moment.strftime("%Y/%m/%d %H:%M"),
            "delay": round(chance.gauss(8, 25)),
            "distance": chance.randrange(100, 2700),
            "origin": origin,
            "destination": destination,
        }


def read_events(path: Path) -> Iterator[dict[str, Any]]:
    """Read events from a JSON array, JSON lines or CSV. The format is detected from the content.

    Raises:
        InvalidOptionError: The file has another format, or an event lacks a field. The message names the event.
    """
    with path.open(encoding="utf-8", newline="") as file:
        try:
            start = file.read(64).lstrip()
            file.seek(0)
            for number, event in enumerate(_parse(start, file), 1):
                yield _checked(event, path, number)
        except (json.JSONDecodeError, UnicodeDecodeError, csv.Error) as error:
            raise InvalidOptionError(
                f"--input {path} cannot be read as events: {error}. It must be a JSON array, JSON lines or CSV."
            ) from error


def _parse(start: str, file: Iterable[str]) -> Iterable[Any]:
    if start.startswith("["):
        events: list[Any] = json.loads("".join(file))
        return events
    if start.startswith("{"):
        return (json.loads(line) for line in file if line.strip())
    return csv.DictReader(file)


def _checked(event: Any, path: Path, number: int) -> dict[str, Any]:
    try:
        checked = {name: event[name] for name in _FIELDS}
        return checked | {"delay": int(checked["delay"]), "distance": int(checked["distance"])}
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidOptionError(
            f"--input {path}: event {number} is not a flight ({error}); each needs {', '.join(_FIELDS)}."
        ) from error


POISON_MARK = " poison"
_CHUNK = 200


def send_events(
    settings: DemoSettings, events: Iterable[dict[str, Any]], poison: float, seed: int, report: Callable[[int], None]
) -> float:
    """Send all events to the queue, in transactions if the broker supports them; corrupt a share of the bodies.

    Args:
        settings: The settings of the run.
        events: The events to send.
        poison: The share of bodies to corrupt, 0 to 1.
        seed: Seed that selects the bodies to corrupt.
        report: Called with the number of events sent so far.

    Returns:
        The duration in seconds.
    """
    begin = time.perf_counter()
    spoiler = _Spoiler(poison, seed)
    factory = ConnectionFactory(settings.url)
    with factory.create_connection() as connection, open_session(connection) as session:
        producer = session.create_producer(settings.flights)
        with settings.journal.open("w") as journal:
            for sent, chunk in _chunks(events):
                _send(session, producer, journal, [(f"{n:08d}", event, spoiler.next()) for n, event in chunk])
                report(sent)
    settings.all_sent.touch()
    return time.perf_counter() - begin


def _chunks(events: Iterable[dict[str, Any]]) -> Iterator[tuple[int, list[tuple[int, dict[str, Any]]]]]:
    numbered = enumerate(events, 1)
    while chunk := list(itertools.islice(numbered, _CHUNK)):
        yield chunk[-1][0], chunk


def _send(
    session: Session, producer: MessageProducer, journal: TextIO, chunk: list[tuple[str, dict[str, Any], int | None]]
) -> None:
    journal.writelines(f"{id_}{'' if kind is None else POISON_MARK}\n" for id_, _, kind in chunk)
    journal.flush()
    with session.transaction() if session.transacted else nullcontext():
        for id_, event, kind in chunk:
            body = json.dumps({"id": id_, **event})
            properties = {
                "event_id": id_,
                "origin": event["origin"],
                "delay": Short(event["delay"]),
                "distance": event["distance"],
            }
            text = body if kind is None else _spoil(body, kind)
            producer.send(session.create_text_message(text, properties=properties))


class _Spoiler:
    """Chooses the events to corrupt, and how. The same seed makes the same choices."""

    def __init__(self, share: float, seed: int) -> None:
        self._share = share
        self._chance = random.Random(seed)  # noqa: S311  # chance, not secrecy

    def next(self) -> int | None:
        """Return how to corrupt the next event; None leaves it unchanged."""
        spoil = self._chance.random() < self._share
        kind = self._chance.randrange(3)
        return kind if spoil else None


def _spoil(body: str, kind: int) -> str:
    """Return the body truncated, wrapped in XML, or with a field of the wrong type."""
    spoiled = (
        body[: len(body) // 2],
        f"<flight>{body}</flight>",
        body.replace('"delay": ', '"delay": "late", "was": '),
    )
    return spoiled[kind]


@dataclass(frozen=True, slots=True)
class DemoRequest:
    """The options of ``jmsjca demo``.

    Args:
        input: The file of events; None generates them.
        airports: The CSV file of airports to join; None joins nothing.
        events: Number of events to generate.
        poison: The share of bodies to corrupt, 0 to 1.
        crash: True to kill the query in the middle and start it again.
        url: The URL of the broker; None starts an embedded broker in the folder of the run. Another broker may be
            shared, so every destination name is unique to the run, and the destinations are removed at the end.
        output: The folder below which each run creates its own folder.
        seed: Seed for the generated and the corrupted events.
        json: An additional file for the account; None writes only the one in the folder of the run.
        patience: Seconds without progress after which a step is abandoned.
    """

    input: Path | None = None
    airports: Path | None = None
    events: int = 20_000
    poison: float = 0.0
    crash: bool = False
    url: str | None = field(default=None, repr=False)  # may hold a password
    output: Path = Path("jmsjca-demo")
    seed: int = 2001
    json: Path | None = None
    patience: float = 60.0

    def check(self) -> int:
        """Check the options and the broker.

        Returns:
            The number of events.

        Raises:
            ConfigurationError: A file cannot be read, a number is out of range, the URL cannot be used.
            NotSupportedError: The broker lacks a capability that the demo needs.
            JMSError: The broker cannot be reached, or refuses the connection.
        """
        if not 0 <= self.poison <= 1:
            raise InvalidOptionError(f"--poison {self.poison} must be a share between 0 and 1, for instance 0.01.")
        if self.events < 1:
            raise InvalidOptionError(f"--events {self.events} must be at least 1.")
        for option, file in (("--input", self.input), ("--airports", self.airports)):
            if file is not None:
                check_readable(file, option)
        if self.json is not None and not self.json.resolve().parent.is_dir():
            raise InvalidOptionError(f"--json {self.json} cannot be written: there is no folder {self.json.parent}.")
        if self.url is not None:
            check_broker(self.url)
        return self.events if self.input is None else sum(1 for _ in read_events(self.input))

    def stream(self) -> Iterable[dict[str, Any]]:
        """Return the events, read from the input file or generated."""
        return generate(self.events, self.seed) if self.input is None else read_events(self.input)
