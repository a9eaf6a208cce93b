"""A process that is killed while it works: what it had not committed comes again."""

from __future__ import annotations

import subprocess
import sys

import pytest

from jmsjca.destinations import Queue
from jmsjca.testing.contract.harness import PATIENCE, Contract, Harness

__all__ = ["TestCrashes"]

# Takes three messages: one in a unit that commits, one in a unit that stays open and sends, one in none.
_WORKER = """
import sys
from jmsjca.destinations import Queue
from jmsjca.links import ConnectionSettings, connect
from jmsjca.messages import TextMessage
from jmsjca.spi import Order
connection = connect(ConnectionSettings(sys.argv[1]))
consumer, atomic = connection.consumer(Queue(sys.argv[2]), order=Order.ANY), connection.capabilities.atomic
held = []
while len(held) < 3:
    held += consumer.receive(3 - len(held), None)
done, unit = connection.unit(atomic=atomic), connection.unit(atomic=atomic)
done.take(held[:1])
done.commit()
unit.take(held[1:2])
unit.send(TextMessage("never"), Queue(sys.argv[3]))
print("working", flush=True)
sys.stdin.read()
"""


class TestCrashes(Contract):
    """SIGKILL, to a process of its own (capability shared_between_processes)."""

    @pytest.fixture(autouse=True)
    def _needs_processes(self, harness: Harness) -> None:
        harness.require("shared_between_processes")

    def test_killed_process_leaves_what_it_had_not_committed(self, harness: Harness) -> None:
        """What it committed is done; what it held comes again; what it was about to send is not sent."""
        source, target = harness.queue(), harness.queue()
        harness.send(source, *"abcd")
        _work_and_die(harness, source, target)
        harness.expect(source, "b", "c", "d", ordered=False)  # "d" may come before the death is noticed
        harness.expect(target)

    def test_message_of_a_killed_process_is_marked_redelivered(self, harness: Harness) -> None:
        """Somebody may have seen it (JMS 3.1, section 3.4.7; capability counts_lost)."""
        harness.require("counts_lost")
        source = harness.queue()
        harness.send(source, *"abcd")
        _work_and_die(harness, source, harness.queue())
        came = {d.message.body: d for d in harness.gather(harness.connection.consumer(source), 3)}
        assert came["b"].redelivered
        assert came["b"].count in {2, None}


def _work_and_die(harness: Harness, source: Queue, target: Queue) -> None:
    command = [sys.executable, "-c", _WORKER, harness.url, source.name, target.name]
    with subprocess.Popen(  # noqa: S603  # our own interpreter and script
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as worker:
        assert worker.stdout
        ready = harness.in_background(worker.stdout.readline).result(PATIENCE)
        worker.kill()
    assert ready == "working\n"
