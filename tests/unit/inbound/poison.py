"""Messages of any legal and half-legal AMQP and STOMP form, sent through listeners that always fail.

Each message is handed to the handler as often as the redelivery handling allows, never more often, and is then found in
the dead-letter queue::

    PYTHONPATH=tests/support python -m tests.unit.inbound.poison --messages 10000
"""

import argparse
import queue
from collections import Counter
from dataclasses import replace
from typing import NamedTuple

from amqp_peer import Broker, Peer

from jmsjca import ActivationSpec, Hooks, ResourceAdapter
from tests.unit.inbound.listeners import PATIENCE
from tests.unit.inbound.poison_forms import amqp_messages, drawn, stomp_letters
from tests.unit.providers.stomp import broker as stomp

__all__ = ["MODES", "TIMES", "Report", "dead_letter_amqp", "dead_letter_stomp", "delete_amqp", "run"]

MODES = ("serial", "sync", "cc")
TIMES = 2
"""How often the handler sees a message, by ``2:move(queue:dlq)``."""
_ROUND = 100  # messages of one listener


class Report(NamedTuple):
    """What was seen of some messages."""

    messages: int
    moved: int
    calls: int
    most_calls: int  # of one message; on average in modes that keep no order


class _Account(Hooks):
    """Counts the calls of the handler between the ends of messages."""

    def __init__(self):
        self.calls, self.since, self.most = 0, 0, 0
        self.letters = queue.Queue()

    def handle(self, message):
        self.calls += 1
        self.since += 1
        raise ValueError("poison")

    def dead_lettered(self, endpoint, letter):
        self.most, self.since = max(self.most, self.since), 0
        self.letters.put(letter)


def _listen(url, mode, messages, *, action="move(queue:dlq)", **spec):
    account = _Account()
    adapter = ResourceAdapter(url, hooks=[account])
    handling = f"{TIMES}:{action}"
    spec = {"destination": "q", "concurrency_mode": mode, "redelivery_handling": handling, **spec}
    adapter.activate(ActivationSpec(**spec), account.handle)
    with adapter:
        for number in range(messages):
            try:
                account.letters.get(timeout=PATIENCE)
            except queue.Empty:
                raise AssertionError(f"{number} of {messages} messages were moved in mode {mode}") from None
    return account


def dead_letter_amqp(payloads, mode, *, broker=None, **spec):
    """Let a listener dead-letter messages over AMQP; return the report and the bytes in the dead-letter queue."""
    broker = broker or Broker()
    for payload in payloads:
        broker.store.put("q", payload)
    peer = Peer(broker)
    try:
        account = _listen(f"amqp://{peer.address}", mode, len(payloads), **spec)
    finally:
        peer.close()
    left = [kept.payload for kept in broker.store.queues["dlq"]]
    assert not broker.store.queues["q"]
    return _report(account, mode, payloads, left), left


def delete_amqp(payloads, mode):
    """Let a listener delete messages over AMQP, and return the account of its calls."""
    broker = Broker()
    for payload in payloads:
        broker.store.put("q", payload)
    peer = Peer(broker)
    try:
        account = _listen(f"amqp://{peer.address}", mode, len(payloads), action="delete")
    finally:
        peer.close()
    assert not broker.store.queues["q"]
    return account


def dead_letter_stomp(letters, mode, **spec):
    """Let a listener dead-letter messages over STOMP; return the report and the letters in the dead-letter queue."""
    with stomp.Peer() as peer:
        peer.queues["/queue/q"] = list(letters)
        account = _listen(peer.url, mode, len(letters), **spec)
        left = peer.queues.get("/queue/dlq", [])
        assert not peer.queues.get("/queue/q")
    return _report(account, mode, letters, left), left


def _report(account, mode, messages, left):
    most = account.most if mode == "serial" else -(-account.calls // len(messages))
    return Report(len(messages), len(left), account.calls, most)


def run(messages, seed):
    """Send messages in rounds, over both protocols and in every mode, and return the total.

    Raises:
        AssertionError: A message was not moved, or was handled too often.
    """
    total = Counter()
    for number in range(-(-messages // _ROUND)):
        mode = MODES[number // 2 % len(MODES)]
        if number % 2:
            letters = drawn(stomp_letters(), _ROUND, seed + number)
            named = [replace(letter, name=f"m{place}") for place, letter in enumerate(letters)]
            report, _ = dead_letter_stomp(named, mode)
        else:
            report, _ = dead_letter_amqp(drawn(amqp_messages(), _ROUND, seed + number), mode)
        assert report.moved == report.messages, f"round {number}: {report}"
        assert report.most_calls <= TIMES, f"round {number}: {report}"
        assert report.calls <= TIMES * report.messages, f"round {number}: {report}"
        total.update(messages=report.messages, calls=report.calls)
    return total


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=20)
    arguments = parser.parse_args()
    done = run(arguments.messages, arguments.seed)
    print(f"poison messages {done['messages']}, handler calls {done['calls']} of {TIMES * done['messages']} at most")
