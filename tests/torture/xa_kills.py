"""Kills what takes part in units that a database decides (XA), at random moments; each message has its effects once.

``python -m tests.torture.xa_kills --kills 200 artemis-java``

A listener in a process of its own writes a row for each message, and sends it on. Its process, its Java process, the
broker or the database is killed and started again, in random order. In the end recovery has ended all prepared units.
"""

import argparse
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import sqlalchemy as sa
from brokers import registry
from brokers.postgresql import PostgreSQL

from jmsjca import ConnectionFactory, Queue, ResourceAdapter, TextMessage
from jmsjca.reconnection import ConnectionSettings, connect
from jmsjca.transactions import LastResource, joined_session

EACH = 20  # messages for one kill
PATIENCE = 120.0
LOOKS = 1.0  # seconds between looks for prepared units
SOURCE, TARGET = Queue("xa.kills.in"), Queue("xa.kills.out")
ROWS = sa.Table("rows", sa.MetaData(), sa.Column("text", sa.String, nullable=False))
VICTIMS = ("application", "bridge", "broker", "database")


class Report(NamedTuple):
    """What was there in the end."""

    name: str
    messages: int
    kills: Counter[str]
    lost: int
    doubled: int
    prepared: int
    seconds: float

    @property
    def wrong(self):
        return bool(self.lost or self.doubled or self.prepared)

    def __str__(self):
        killed = ", ".join(f"{self.kills[victim]} of the {victim}" for victim in VICTIMS)
        return (
            f"{self.name}: {self.messages} messages, kills: {killed}: {self.lost} lost, {self.doubled} doubled, "
            f"{self.prepared} prepared units left ({self.seconds:.0f} s)"
        )


def engine_of(url):
    return sa.create_engine(url, poolclass=sa.NullPool)


def listen(broker, database):
    """Run the listener until the process is killed."""
    engine = engine_of(database)
    adapter = ResourceAdapter(broker, last_resource=LastResource(engine, interval=LOOKS))

    @adapter.listener(SOURCE, transaction="required", concurrency_mode="cc", endpoint_pool_max_size=4)
    def move(message, session, transaction):
        joined_session(engine, transaction).execute(ROWS.insert().values(text=message.body))
        session.create_producer(TARGET).send(session.create_text_message(message.body))

    adapter.run()


class Stage:
    """A broker, a database and the process of the listener."""

    def __init__(self, product):
        self.broker, self.database = registry.own(product), PostgreSQL()
        self.broker.start()
        self.database.start()
        self.engine = engine_of(self.database.url())
        ROWS.metadata.create_all(self.engine)
        self.start_application()

    @property
    def url(self):
        return self.broker.url("java")

    def start_application(self):
        command = [sys.executable, "-m", __spec__.name, "--listen", self.url, self.database.url()]
        self.application = subprocess.Popen(command, stderr=subprocess.DEVNULL)

    def kill(self, victim):
        """Kill one of them, and start it again."""
        if victim == "application":
            self.application.kill()
            self.application.wait()
            self.start_application()
        elif victim == "bridge":
            os.kill(self._bridge(), signal.SIGKILL)
        else:
            server = self.broker if victim == "broker" else self.database
            server.kill()
            server.start()

    def _bridge(self):
        """Return the number of the Java process, which starts with the first connection."""
        for _ in range(round(PATIENCE * 10)):
            for children in Path(f"/proc/{self.application.pid}/task").glob("*/children"):
                for child in children.read_text().split():
                    return int(child)
            threading.Event().wait(0.1)
        raise AssertionError("The application has no Java process.")

    def rows(self):
        with self.engine.connect() as connection:
            return Counter(connection.scalars(sa.select(ROWS.c.text)))

    def prepared(self):
        """Return the number of prepared units of the database that the broker has."""
        last = LastResource(self.engine)
        connection = connect(ConnectionSettings(self.url, last_resource=last))
        try:
            return sum(xid.qualifier.startswith(last.identity()) for xid in connection.prepared())
        finally:
            connection.close()

    def close(self):
        self.application.kill()
        self.application.wait()
        self.engine.dispose()
        registry.discard_own()
        registry.discard(self.database)


def run(name, kills, seed, victims=VICTIMS):
    """Kill so many times, wait for the end, and count."""
    dice, began, killed = random.Random(seed), time.monotonic(), Counter()
    stage = Stage(name.partition("-")[0])
    try:
        bodies = [str(number) for number in range((kills + 1) * EACH)]
        for number in range(kills):
            send(stage.url, bodies[number * EACH : (number + 1) * EACH])
            threading.Event().wait(dice.uniform(0, 3))
            victim = dice.choice(victims)
            stage.kill(victim)
            killed[victim] += 1
        send(stage.url, bodies[kills * EACH :])
        await_rows(stage, len(bodies))
        arrived = receive(stage.url, len(bodies))
        rows, prepared = stage.rows(), stage.prepared()
    finally:
        stage.close()
    return Report(
        name,
        len(bodies),
        killed,
        lost=sum(body not in counted for counted in (rows, arrived) for body in bodies),
        doubled=sum(count - 1 for counted in (rows, arrived) for count in counted.values()),
        prepared=prepared,
        seconds=time.monotonic() - began,
    )


def send(url, bodies):
    with ConnectionFactory(url).create_connection() as connection, connection.create_session(True) as session:
        producer = session.create_producer(SOURCE)
        for body in bodies:
            producer.send(TextMessage(body))
        session.commit()


def await_rows(stage, number):
    """Wait until there are so many rows, as long as there is progress, and then until recovery had its time."""
    most, deadline = -1, time.monotonic() + PATIENCE
    while (there := stage.rows().total()) < number and time.monotonic() < deadline:
        if there > most:
            most, deadline = there, time.monotonic() + PATIENCE
        threading.Event().wait(0.5)
    deadline = time.monotonic() + PATIENCE
    while stage.prepared() and time.monotonic() < deadline:
        threading.Event().wait(LOOKS)


def receive(url, least):
    """Receive what has arrived; when the number is complete, a little longer for doubles."""
    arrived = Counter()
    with ConnectionFactory(url).create_connection() as connection, connection.create_session() as session:
        consumer = session.create_consumer(TARGET)
        while message := consumer.receive(timeout=10 if arrived.total() < least else 2):
            arrived[message.body] += 1
    return arrived


def main():
    """Print one line for each broker; 0 if each message had its effects once."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=["artemis-java"], help="pairs")
    parser.add_argument("--kills", type=int, default=200, help="of all brokers together")
    parser.add_argument("--victims", nargs="+", choices=VICTIMS, default=VICTIMS, help="what is killed")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 16))
    parser.add_argument("--listen", nargs=2, metavar="URL", help="of the broker and the database: be the listener")
    options = parser.parse_args()
    if options.listen:
        listen(*options.listen)
    reports = [run(name, options.kills // len(options.names), options.seed, options.victims) for name in options.names]
    for report in reports:
        print(report, f"seed {options.seed}", flush=True)
    return int(any(report.wrong for report in reports))


if __name__ == "__main__":
    sys.exit(main())
