"""Events: the user's request checked, events read from a file or generated, and one message sent for each."""

import csv
import itertools
import json
import random
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, TextIO

from jmsjca.demo.settings import DemoSettings, check_broker
from jmsjca.errors import InvalidOptionError
from jmsjca.messages import Short
from jmsjca.outbound import ConnectionFactory, MessageProducer, Session

__all__ = ["POISON_MARK", "DemoRequest", "check_readable", "generate", "read_events", "send_events"]

_FIELDS = ("date", "delay", "distance", "origin", "destination")
_AIRPORTS = ("ATL", "BOS", "BWI", "DEN", "DFW", "DTW", "HNL", "IAH", "JFK", "LAS", "LAX", "MCO", "ORD", "PHX", "SEA")


def check_readable(path: Path, option: str) -> None:
    """Refuse a file that cannot be read.

    Raises:
        InvalidOptionError: It is missing, a folder, or not readable; names the option.
    """
    try:
        with path.open("rb"):
            pass
    except OSError as error:
        raise InvalidOptionError(f"{option} {path} cannot be read: {error.strerror}. Name an existing file.") from error


def generate(count: int, seed: int) -> Iterator[dict[str, Any]]:
    """Make events: the same ones for the same seed."""
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
    """Read events from a JSON array, JSON lines or CSV; told apart by the content.

    Raises:
        InvalidOptionError: The file is none of these, or an event lacks a field; names the place.
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
    """Send all events to the queue, in transactions, with a share of the bodies spoiled.

    Args:
        settings: The run.
        events: What to send.
        poison: The share to spoil, 0 to 1.
        seed: Which ones.
        report: Told how many are sent so far.

    Returns:
        The seconds that it took.
    """
    begin = time.perf_counter()
    spoiler = _Spoiler(poison, seed)
    factory = ConnectionFactory(settings.url)
    with factory.create_connection() as connection, connection.create_session(transacted=True) as session:
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
    with session.transaction():
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
    """Chooses which events to spoil, and how: the same ones for the same seed."""

    def __init__(self, share: float, seed: int) -> None:
        self._share = share
        self._chance = random.Random(seed)  # noqa: S311  # chance, not secrecy

    def next(self) -> int | None:
        """How to spoil the next event; None to leave it alone."""
        spoil = self._chance.random() < self._share
        kind = self._chance.randrange(3)
        return kind if spoil else None


def _spoil(body: str, kind: int) -> str:
    """Cut short, not JSON at all, or a field of the wrong type."""
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
        input: A file of events; None for generated ones.
        airports: A CSV file to join; None for none.
        events: How many events to generate.
        poison: The share of bodies to spoil, 0 to 1.
        crash: True to kill the query in the middle and start it again.
        url: The broker; None for an embedded one in the run's folder. On a broker that is given, others may be at
            work: every name there is the run's own, and removed at the end.
        output: Below this folder the run makes one of its own.
        seed: Which events are generated and spoiled.
        json: Where to write the account, too.
        patience: After so many seconds without progress a step is given up.
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
        """Refuse what cannot be done.

        Returns:
            How many events there are.

        Raises:
            ConfigurationError: A file cannot be read, a number is out of range, the URL cannot be used.
            NotSupportedError: The broker of the URL cannot do what is needed.
            JMSError: It cannot be reached, or refuses.
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
        """The events."""
        return generate(self.events, self.seed) if self.input is None else read_events(self.input)
