"""Other processes that use the broker under test, for cases about what they share and what they leave when killed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager

from jmsjca.testing.contract.harness import PATIENCE, Harness

__all__ = ["Other", "another"]

_BEGIN = """
import sys
from jmsjca.destinations import Queue, Subscription, TemporaryQueue, Topic
from jmsjca.links import ConnectionSettings, connect
from jmsjca.messages import TextMessage
url, names = sys.argv[1], sys.argv[2:]
def connected(client_id=None):
    return connect(ConnectionSettings(url, client_id=client_id))
def gather(consumer, count):
    got = []
    while len(got) < count:
        got += consumer.receive(count - len(got), None)
    return got
def send(connection, body, to):
    unit = connection.unit(atomic=connection.capabilities.atomic)
    unit.send(TextMessage(body), to)
    unit.commit()
def tell(words):
    print(words, flush=True)
"""
_END = """
tell("done")
sys.stdin.read()
"""


class Other:
    """Another process.

    Args:
        child: The process.
        told: What it told, line by line.
    """

    def __init__(self, child: subprocess.Popen[str], told: list[str]) -> None:
        self._child = child
        self.told = told

    def kill(self) -> None:
        """End it at once: SIGKILL, or what comes nearest."""
        self._child.kill()
        self._child.wait(PATIENCE)


@contextmanager
def another(harness: Harness, script: str, *names: str) -> Generator[Other]:
    """Run a script in a process of its own, up to its end; there it waits, with all that it has open.

    Args:
        harness: Whose broker it uses.
        script: What it does. It finds its ``names``, ``connected``, ``gather``, ``send`` and ``tell``.
        names: What it is told.

    Yields:
        The process, when it has done everything; it ends with the context.
    """
    command = [sys.executable, "-c", _BEGIN + script + _END, harness.url, *names]
    with subprocess.Popen(  # noqa: S603  # our own interpreter and script
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        told = harness.in_background(_told, child).result(PATIENCE)
        yield Other(child, told)


def _told(child: subprocess.Popen[str]) -> list[str]:
    """What a process tells before it is done."""
    assert child.stdout is not None
    told: list[str] = []
    for line in child.stdout:
        if line == "done\n":
            return told
        told.append(line.strip())
    raise AssertionError(f"The other process ended with {child.wait()} before it was done.")
