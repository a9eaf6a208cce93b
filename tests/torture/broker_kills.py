"""Kills a broker and its clients under load, over and over: nothing committed may be lost or done twice.

Some messages are poison, which listeners move: each dead letter says where it came from, and no process handles poison
more often than its redelivery handling says.

``PYTHONPATH=tests/support python -m tests.torture.broker_kills artemis-amqp activemq-stomp --kills 50``
"""

import argparse
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
from brokers import PAIRS, registry
from brokers.broker import Broker

from jmsjca import ConnectionFactory, Message, Queue
from tests.torture.broker_report import Report
from tests.torture.moves import DEAD, POISON, account_for
from tests.torture.supervisor import Herd, Slot
from tests.torture.verdict import compare, read_logs
from tests.torture.workers import FULL

__all__ = ["KILLS", "run"]

KILLS = 50
SIZES = {"producer": 2, "consumer": 2, "listener": 1, "concurrent": 2, "mover": 2}
MOST_WAITING = 500  # producers pause above it
PAUSE_EVERY = 5  # kills
PAUSE = 3.0  # seconds, longer than the clients' patience with a broker that is silent
HEARTBEAT = "?heartbeat=1"
RECOVERY = 60.0  # seconds in which everybody must be at work again
QUIET = 3.0  # seconds after which nobody takes anything any more
DEAD_LETTERS = {"activemq": ["ActiveMQ.DLQ"]}  # the others have no such place


def run(broker: Broker, protocol: str, kills: int, seed: int, folder: Path) -> Report:
    """Run the loop.

    Args:
        broker: The one to kill; it runs, and nobody else uses it.
        protocol: What its clients speak.
        kills: How often the broker is killed.
        seed: When it is killed, and what the workers do; not when the scheduler runs them.
        folder: An empty folder for the journals.
    """
    began, url = time.monotonic(), broker.url(protocol)
    herd = Herd(folder, seed, SIZES, url + HEARTBEAT)
    with herd.guarded():
        stalled = [f"{slot.name} before the first kill" for slot in _idle(herd)]
        before = _resources(herd)
        stalled += _kill(herd, broker, kills, random.Random(seed))
        growth = max(after - before.get(what, after) for what, after in _resources(herd).items())
        herd.stop("producer")
        _await_quiet(herd)
        for role in ("consumer", "listener", "concurrent", "mover"):
            herd.stop(role)
    dead = _take_all(url, DEAD)
    done = _take_all(url, "done", herd.counts["producer ok"] - len(dead))
    left = sum(len(_take_all(url, place)) for place in ("work", POISON, *DEAD_LETTERS.get(broker.name, ())))
    logs = read_logs(folder)
    verdict = compare(logs, done, {log.name for log in logs}, dead)  # whoever was at work may be refused
    return Report(
        f"{broker.name}-{protocol}", seed, kills, kills // PAUSE_EVERY, time.monotonic() - began,
        left, stalled, growth, verdict, account_for(logs, dead), herd.crashed, herd.complaints(),
    )  # fmt: skip


def _kill(herd: Herd, broker: Broker, kills: int, dice: random.Random) -> Iterator[str]:
    """Kill the broker, and clients, when all are at work, half of the time just when somebody commits; tell who is not.

    The first one of each role lives on: what it keeps of its lost connections would add up.
    """
    for number in range(1, kills + 1):
        _await_moment(herd, dice)
        herd.kill(dice.choice([slot for slot in herd.slots if slot.number]))
        yield from (f"{slot.name} before kill {number}" for slot in _idle(herd))
        _await_moment(herd, dice)
        broker.kill()
        broker.start()
        yield from (f"{slot.name} after kill {number}" for slot in _idle(herd))
        if number % PAUSE_EVERY == 0:
            _await_moment(herd, dice)
            _pause(broker)
            yield from (f"{slot.name} after the pause behind kill {number}" for slot in _idle(herd))


def _await_moment(herd: Herd, dice: random.Random) -> None:
    if dice.random() < 0.5:
        herd.wait_for_note(dice.choice(herd.slots), patience=0.5)
        time.sleep(dice.uniform(0, 0.005))
    else:
        time.sleep(dice.uniform(0, 1))


def _pause(broker: Broker) -> None:
    """Stop the broker for a while: what its clients wrote before they gave up it reads, and does, afterwards."""
    broker.process.suspend()
    try:
        time.sleep(PAUSE)
    finally:
        broker.process.resume()


def _resources(herd: Herd) -> dict[tuple[str, str], int]:
    """How many descriptors and threads each process has."""
    processes = {slot.name: psutil.Process(slot.process.pid) for slot in herd.slots}
    descriptors = {(name, "descriptors"): process.num_fds() for name, process in processes.items()}
    return descriptors | {(name, "threads"): process.num_threads() for name, process in processes.items()}


def _idle(herd: Herd) -> list[Slot]:
    """Wait until everybody has done something; give those who did not."""
    herd.count()
    begun, end = {slot.name: slot.progress for slot in herd.slots}, time.monotonic() + RECOVERY
    while idle := [slot for slot in herd.slots if slot.progress == begun.get(slot.name, 0)]:
        if time.monotonic() > end:
            break
        time.sleep(0.02)
        herd.count()
        _hold_back(herd)
    return idle


def _hold_back(herd: Herd) -> None:
    """Let producers pause while too much waits."""
    taken = sum(herd.counts[f"{role} took"] for role in SIZES) + herd.counts["mover moved"]
    if herd.counts["producer ok"] - taken > MOST_WAITING:
        (herd.folder / FULL).touch()
    else:
        (herd.folder / FULL).unlink(missing_ok=True)


def _await_quiet(herd: Herd) -> None:
    """Wait until nobody takes anything any more."""
    seen, since = -1, time.monotonic()
    while time.monotonic() - since < QUIET:
        time.sleep(0.05)
        herd.count()
        if (taken := sum(slot.progress for slot in herd.slots)) != seen:
            seen, since = taken, time.monotonic()


def _take_all(url: str, name: str, expected: int = 0) -> list[Message]:
    """Consume all that is in a queue; as long as less came than must be there, wait longer."""
    messages: list[Message] = []
    with (
        ConnectionFactory(url).create_connection() as connection,
        connection.create_session(transacted=True) as session,
        session.create_consumer(Queue(name)) as consumer,
    ):
        while (message := consumer.receive(QUIET if len(messages) < expected else QUIET / 3)) is not None:
            messages.append(message)
            if len(messages) % 100 == 0:
                session.commit()
        session.commit()
    return messages


def main() -> int:
    """Run the pairs one after the other, print a line for each; 0 if nothing was lost or doubled in any."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pairs", nargs="+", choices=PAIRS, metavar="PAIR")
    parser.add_argument("--kills", type=int, default=KILLS)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 16))
    options = parser.parse_args()
    good = [_tell(pair, options.kills, options.seed) for pair in options.pairs]
    return 0 if all(good) else 1


def _tell(pair: str, kills: int, seed: int) -> bool:
    folder = Path(tempfile.mkdtemp(prefix="jmsjca-broker-kills-"))
    kind, protocol = pair.split("-")
    try:
        report = run(registry.own(kind).start(), protocol, kills, seed, folder)
    finally:
        registry.discard_own()
    print(report, flush=True)
    if report.good:
        shutil.rmtree(folder)
        return True
    print("\n".join([*report.verdict.faults, *report.stalled, report.complaints]))
    print(f"Kept: {folder}\nReplay: python -m tests.torture.broker_kills {pair} --kills {kills} --seed {seed}")
    return False


if __name__ == "__main__":
    sys.exit(main())
