"""Sends one message per event, and notes each id before it is sent."""

import itertools
import json
import random
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TextIO

from jmsjca.management.demo.settings import DemoSettings
from jmsjca.messages import Short
from jmsjca.outbound import ConnectionFactory, MessageProducer, Session

__all__ = ["POISON_MARK", "send_events"]

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
