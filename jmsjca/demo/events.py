"""Where events come from: a file, or a generated stream of the same shape."""

import csv
import json
import random
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from jmsjca.errors import InvalidOptionError

__all__ = ["check_readable", "generate", "read_events"]

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
