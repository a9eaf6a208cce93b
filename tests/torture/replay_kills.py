"""Kills replays of dead letters while they run; each letter is replayed once.

``python -m tests.torture.replay_kills --letters 10000 --kills 5 embedded artemis-amqp``

A replay is a process of its own, ``jmsjca dlq replay``. It is killed each time that a share of the letters is left, at
a random moment of the following transactions, and repeated. The last one may end.
"""

import argparse
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from typing import NamedTuple

from jmsjca import ConnectionFactory, Queue, TextMessage
from jmsjca.management.insight import Insight
from jmsjca.redelivery import MoveFacts, moved_copy

PATIENCE = 120.0
ORIGIN, LETTERS = "replay.kills", "dlq.replay.kills"


class Report(NamedTuple):
    """What was replayed."""

    name: str
    letters: int
    kills: int
    lost: int
    doubled: int
    unmarked: int
    seconds: float

    @property
    def wrong(self):
        return bool(self.lost or self.doubled or self.unmarked)

    def __str__(self):
        return (
            f"{self.name}: {self.letters} dead letters, {self.kills} replays killed: {self.lost} lost, {self.doubled}"
            f" doubled, {self.unmarked} without the mark of one replay ({self.seconds:.0f} s)"
        )


def run(name, letters, kills, seed):
    """Replay letters over a broker, and kill the replays meanwhile."""
    with tempfile.TemporaryDirectory(prefix="jmsjca-replay-") as folder:
        if name == "embedded":
            return _run(name, f"embedded://{folder}/broker.db", letters, kills, seed)
        from brokers import registry

        product, _, protocol = name.partition("-")
        try:
            return _run(name, registry.own(product).start().url(protocol), letters, kills, seed)
        finally:
            registry.discard_own()


def _run(name, url, letters, kills, seed):
    dice, began, killed = random.Random(seed), time.monotonic(), 0
    _fill(url, letters)
    insight = Insight(url)
    for number in range(1, kills + 1):
        replay = subprocess.Popen(_command(url), stdout=subprocess.DEVNULL)
        try:
            _await_depth(insight, letters - number * letters // (kills + 1), replay)
            threading.Event().wait(dice.uniform(0, 0.02))  # at any moment of a transaction
            killed += replay.poll() is None
        finally:
            replay.kill()
            replay.wait()
    subprocess.run(_command(url), stdout=subprocess.DEVNULL, check=True)
    arrived = _drain(url)
    counted = Counter(message.body for message in arrived)
    return Report(
        name,
        letters,
        killed,
        lost=sum(str(number) not in counted for number in range(letters)) + insight.queue_info(LETTERS).depth.total,
        doubled=sum(count - 1 for count in counted.values()),
        unmarked=sum(message.properties.get("_JMSJCA_ReplayCount") != 1 for message in arrived),
        seconds=time.monotonic() - began,
    )


def _command(url):
    return [sys.executable, "-m", "jmsjca", "dlq", "replay", LETTERS, "--url", url]


def _fill(url, letters):
    with ConnectionFactory(url).create_connection() as connection, connection.create_session(True) as session:
        producer = session.create_producer(Queue(LETTERS))
        for number in range(letters):
            producer.send(moved_copy(TextMessage(str(number)), MoveFacts(Queue(ORIGIN), count=1)))
            if number % 500 == 499:
                session.commit()
        session.commit()


def _await_depth(insight, depth, replay):
    """Wait until no more than so many letters are left, as long as there is progress."""
    least, deadline = None, time.monotonic() + PATIENCE
    while (left := insight.queue_info(LETTERS).depth.total) > depth:
        if least is None or left < least:
            least, deadline = left, time.monotonic() + PATIENCE
        assert replay.poll() is None, f"the replay ended, and {left} letters are left"
        assert time.monotonic() < deadline, f"{left} letters are left, and none is replayed"
        threading.Event().wait(0.02)


def _drain(url):
    with ConnectionFactory(url).create_connection() as connection, connection.create_session(True) as session:
        consumer, arrived = session.create_consumer(Queue(ORIGIN)), []
        while message := consumer.receive(timeout=5):
            arrived.append(message)
            session.commit()
        return arrived


def main():
    """Print one line for each broker; 0 if each letter was replayed once."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="+", help="embedded, or a pair of a broker and a protocol")
    parser.add_argument("--letters", type=int, default=10_000)
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 16))
    options = parser.parse_args()
    reports = [run(name, options.letters, options.kills, options.seed) for name in options.names]
    for report in reports:
        print(report, f"seed {options.seed}", flush=True)
    return int(any(report.wrong for report in reports))


if __name__ == "__main__":
    sys.exit(main())
