"""Stops a listener with SIGTERM at random moments; its account equals what the broker still has.

``python -m tests.torture.stop_moments --moments 200 embedded artemis-amqp``

The listener is a process of its own. Its handlers take random times, some longer than the deadline. It writes the
account of the stop, and that of its whole life; then the messages in the queue are counted, and those of them that were
delivered before. In every second run nothing is settled before the signal, so that the account of the stop alone must
explain the queue.
"""

import argparse
import json
import random
import subprocess
import sys
import tempfile
import threading
import time
from typing import NamedTuple

from jmsjca import ConnectionFactory, Queue, TextMessage

QUEUE = "stop.moments"
MESSAGES = 60
PATIENCE = 120.0

LISTENER = """
import json, random, sys, threading, time
from dataclasses import asdict
from jmsjca import ResourceAdapter
url, mode, gated, seed = sys.argv[1], sys.argv[2], sys.argv[3] == "gated", int(sys.argv[4])
adapter, dice, stopping = ResourceAdapter(url), random.Random(seed), threading.Event()

options = {"redelivery_handling": "9:delete", "endpoint_pool_max_size": 1 if mode == "serial" else 4}
@adapter.listener("stop.moments", concurrency_mode=mode, **options)
def handle(message):
    sys.stdout.write("began\\n")  # in one piece: print writes the end of the line apart
    sys.stdout.flush()
    if gated:
        stopping.wait()
    time.sleep(dice.choice([0, 0, 0.001, 0.01, 0.03] + [1.0] * gated))

def ended(read=sys.stdin.readline):
    read()
    while adapter.activations[0].status == "Up":  # the signal is not handled yet
        time.sleep(0.001)
    stopping.set()

threading.Thread(target=ended, daemon=True).start()
report = adapter.run(0.4)
total = [each.account() for each in adapter.activations]
print(json.dumps({
    **asdict(report),
    "all_finished": sum(each.finished for each in total), "all_in_doubt": sum(each.in_doubt for each in total),
}), flush=True)
"""


class Moment(NamedTuple):
    """One stop."""

    mode: str
    gated: bool
    account: dict
    left: int
    redelivered: int | None

    @property
    def wrong(self):
        """What does not fit; None if everything does."""
        account, gone = self.account, MESSAGES - self.left
        if not account["all_finished"] <= gone <= account["all_finished"] + account["all_in_doubt"]:
            return f"{gone} messages are gone, and {account['all_finished']} are finished"
        if self.gated and not account["finished"] <= gone <= account["finished"] + account["in_doubt"]:
            return f"{gone} messages are gone, and the stop finished {account['finished']}"
        if self.redelivered is not None and self.redelivered != account["abandoned"]:
            return f"{self.redelivered} messages are redelivered, and {account['abandoned']} are abandoned"
        return None


class Report(NamedTuple):
    """What came of all stops over one broker."""

    name: str
    moments: list
    seconds: float

    @property
    def wrong(self):
        return [(moment, moment.wrong) for moment in self.moments if moment.wrong]

    def total(self, what):
        return sum(moment.account[what] for moment in self.moments)

    def __str__(self):
        counts = ", ".join(f"{self.total(what)} {what}" for what in ("finished", "returned", "in_doubt", "abandoned"))
        return (
            f"{self.name}: {len(self.moments)} stops, {len(self.wrong)} accounts wrong; {counts} ({self.seconds:.0f} s)"
        )


def run(name, moments, seed):
    """Stop a listener at so many moments."""
    with tempfile.TemporaryDirectory(prefix="jmsjca-stop-") as folder:
        if name == "embedded":
            return _run(name, f"embedded://{folder}/broker.db", moments, seed)
        from brokers import registry

        product, _, protocol = name.partition("-")
        try:
            return _run(name, registry.own(product).start().url(protocol), moments, seed)
        finally:
            registry.discard_own()


def _run(name, url, moments, seed):
    dice, began = random.Random(seed), time.monotonic()
    found = [
        _moment(url, dice, ("serial", "cc", "sync")[number % 3], gated=number % 2 == 0) for number in range(moments)
    ]
    return Report(name, found, time.monotonic() - began)


def _moment(url, dice, mode, *, gated):
    _fill(url)
    command = [sys.executable, "-c", LISTENER, url, mode, "gated" if gated else "free", str(dice.randrange(1 << 16))]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as listener:
        try:
            assert listener.stdout.readline() == "began\n"
            threading.Event().wait(dice.uniform(0, 0.15))
            listener.terminate()
            listener.stdin.write("stopping\n")
            listener.stdin.close()
            *_, last = listener.stdout
            listener.wait(PATIENCE)
        finally:
            listener.kill()
    left, redelivered = _drain(url)
    return Moment(mode, gated, json.loads(last), left, redelivered)


def _fill(url):
    with ConnectionFactory(url).create_connection() as connection, connection.create_session(True) as session:
        producer = session.create_producer(Queue(QUEUE))
        for number in range(MESSAGES):
            producer.send(TextMessage(str(number)))
        session.commit()


def _drain(url):
    """Consume what is left; return its number, and the number of the redelivered, if the broker tells them exactly."""
    with ConnectionFactory(url).create_connection() as connection, connection.create_session(True) as session:
        exact = connection.capabilities.give_back == "uncounted" and connection.capabilities.counts_lost
        consumer, left = session.create_consumer(Queue(QUEUE)), []
        while connection.admin.depth(Queue(QUEUE)).total > len(left):
            message = consumer.receive(timeout=60)
            assert message is not None, f"{len(left)} messages came, and the broker has more"
            left.append(message.redelivered)
        session.commit()
        return len(left), sum(left) if exact else None


def main():
    """Print one line for each broker; 0 if all accounts were right."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="+", help="embedded, or a pair of a broker and a protocol")
    parser.add_argument("--moments", type=int, default=200)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 16))
    options = parser.parse_args()
    reports = [run(name, options.moments, options.seed) for name in options.names]
    for report in reports:
        print(report, f"seed {options.seed}", *report.wrong[:5], sep="\n  ", flush=True)
    return int(any(report.wrong for report in reports))


if __name__ == "__main__":
    sys.exit(main())
