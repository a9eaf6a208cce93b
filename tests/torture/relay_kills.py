"""Kills relays of an outbox, and the broker, while they send; each message arrives, once where duplicates are detected.

``python -m tests.torture.relay_kills --rows 20000 --kills 100 embedded artemis-amqp activemq-stomp``

Two relays share the table. One of them is killed each time that a share of the messages is sent, and replaced; each
tenth kill is one of the broker, which is restarted on its data.
"""

import argparse
import logging
import random
import sys
import tempfile
import threading
import time
from collections import Counter
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

import sqlalchemy as sa

from jmsjca import ConnectionFactory, Queue
from jmsjca.transactions import Outbox, Relay

KEYS = 20
EMBEDDED_LEASE = 1.0
NETWORK_LEASE = 6.0  # a third of it is for a send that is on its way, also on a busy machine
PATIENCE = 120.0
BROKER_EVERY = 10
QUEUE = Queue("relay.kills")


class Report(NamedTuple):
    """What arrived."""

    name: str
    rows: int
    relays_killed: int
    brokers_killed: int
    detects: bool
    lost: int
    doubled: int
    disordered: int
    seconds: float

    @property
    def wrong(self):
        return bool(self.lost or (self.detects and (self.doubled or self.disordered)))

    def __str__(self):
        detects = "detects duplicates" if self.detects else "does not detect duplicates"
        return (
            f"{self.name} ({detects}): {self.rows} rows, {self.relays_killed} relays and {self.brokers_killed} brokers "
            f"killed: {self.lost} lost, {self.doubled} doubled, {self.disordered} out of order ({self.seconds:.0f} s)"
        )


class Relays:
    """Two relays in processes of their own."""

    def __init__(self, database, url):
        self._context = get_context("forkserver")
        self._context.set_forkserver_preload([__name__])
        self._arguments = database, url
        self._running = [self._started() for _ in range(2)]

    def kill(self, which):
        self._running[which].kill()
        self._running[which].join()
        self._running[which] = self._started()

    def close(self):
        for process in self._running:
            process.kill()
            process.join()

    def _started(self):
        process = self._context.Process(target=relay, args=self._arguments)
        process.start()
        return process


def relay(database, url):
    """Send until killed."""
    logging.disable()  # it says each time that the broker is down
    engine = sa.create_engine(database, connect_args=_waiting(database))
    lease = EMBEDDED_LEASE if url.startswith("embedded:") else NETWORK_LEASE
    Relay(Outbox(sa.MetaData(), engine=engine), ConnectionFactory(url), lease=lease, poll_interval=0.05).run()


def run(name, rows, kills, seed):
    """Send the rows of a new table over a broker, and kill meanwhile."""
    with tempfile.TemporaryDirectory(prefix="jmsjca-relay-") as folder:
        if name == "embedded":
            return _run(name, f"embedded://{folder}/broker.db", None, Path(folder), rows=rows, kills=kills, seed=seed)
        from brokers import registry

        product, _, protocol = name.partition("-")
        broker = registry.own(product)
        try:
            broker.start()
            return _run(name, broker.url(protocol), broker, Path(folder), rows=rows, kills=kills, seed=seed)
        finally:
            registry.discard_own()


def _run(name, url, broker, folder, *, rows, kills, seed):
    dice, began = random.Random(seed), time.monotonic()
    database = f"sqlite:///{folder}/rows.db"
    engine = sa.create_engine(database, connect_args=_waiting(database))
    outbox = _filled(engine, rows)
    relays = Relays(database, url)
    killed = Counter()
    try:
        for number in range(1, kills + 1):
            _await_depth(engine, outbox, rows - number * rows // (kills + 1))
            threading.Event().wait(dice.uniform(0, 0.1))  # at any moment of a batch
            if broker is not None and number % BROKER_EVERY == 0:
                broker.kill()
                broker.start()
                killed["broker"] += 1
            else:
                relays.kill(dice.randrange(2))
                killed["relay"] += 1
        _await_depth(engine, outbox, 0)
    finally:
        relays.close()
        engine.dispose()
    detects, arrived = _arrived(url, rows)
    counted = Counter(arrived)
    lost = sum(f"{number}" not in counted for number in range(rows))
    doubled = sum(count - 1 for count in counted.values())
    seconds = time.monotonic() - began
    return Report(name, rows, killed["relay"], killed["broker"], detects, lost, doubled, _disordered(arrived), seconds)


def _filled(engine, rows):
    metadata = sa.MetaData()
    outbox = Outbox(metadata, engine=engine)
    metadata.create_all(engine)
    with engine.begin() as connection:
        for number in range(rows):
            outbox.add(connection, QUEUE, f"{number}", key=f"{number % KEYS}")
    return outbox


def _await_depth(engine, outbox, depth):
    """Wait until no more than so many rows are left, as long as there is progress."""
    least, deadline = None, time.monotonic() + PATIENCE
    while True:
        with engine.connect() as connection:
            left = outbox.get_stats(connection).depth
        if left <= depth:
            return
        if least is None or left < least:
            least, deadline = left, time.monotonic() + PATIENCE
        assert time.monotonic() < deadline, f"{left} rows are left, and nothing is sent"
        threading.Event().wait(0.02)


def _arrived(url, rows):
    with ConnectionFactory(url).create_connection() as connection, connection.create_session() as session:
        consumer, bodies = session.create_consumer(QUEUE), []
        while message := consumer.receive(timeout=2 if len(bodies) >= rows else PATIENCE / 4):
            bodies.append(message.body)
        return connection.capabilities.duplicate_detection, bodies


def _disordered(arrived):
    """Return how many messages came after a later one of their key."""
    latest, late = {}, 0
    for number in map(int, arrived):
        late += number < latest.get(number % KEYS, -1)
        latest[number % KEYS] = max(number, latest.get(number % KEYS, -1))
    return late


def _waiting(database):
    return {"timeout": PATIENCE} if database.startswith("sqlite") else {}


def main():
    """Print one line for each broker; 0 if nothing was lost, nor doubled where duplicates are detected."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="+", help="embedded, or a pair of a broker and a protocol")
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 16))
    options = parser.parse_args()
    reports = [run(name, options.rows, options.kills, options.seed) for name in options.names]
    for report in reports:
        print(report, f"seed {options.seed}", flush=True)
    return int(any(report.wrong for report in reports))


if __name__ == "__main__":
    sys.exit(main())
