"""One message ends its listener at each delivery, and innocent ones surround it: none of them may be lost unseen.

``run(url, cell, folder)`` sends 20 innocent messages and the killer, and starts one listener after the other until all
are handled, moved or deleted. The listener is a process of its own, except for a broker in memory and for cuts, which
happen in this process. Each handler call, move and deletion is a line in a journal, which survives SIGKILL.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import uuid
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from jmsjca import ConnectionFactory, Hooks, Queue, ResourceAdapter, TextMessage
from jmsjca.errors import ConnectionLostError, JMSError

__all__ = ["ENDS", "FORMS", "LADDERS", "MODES", "Account", "Cell", "cells", "run"]

INNOCENTS = 20
KILLER = "killer"
PLACE = 3  # innocents before the killer
MAX_LISTENERS = 12  # more ends than any ladder takes
PATIENCE = 60.0
SURVIVED = "survived"  # the end of a listener that handles the killer as any message

ENDS = {
    "kill": "the process ends itself with SIGKILL",
    "stop": "the adapter stops, and the handler fails",
    "close": "the adapter stops without waiting for the handler, so that its connection closes under it",
    "cut": "the connection breaks, and the handler fails",
}
MODES = ("serial", "cc", "sync")
FORMS = {"single": {}, "batch": {"batch_size": 5}, "list": {"batch_size": 5}}
# The redelivery handling, and the number of deliveries that a handler gets.
LADDERS = {
    "1:delete": 1,
    "3:delete": 3,
    "1:move(queue:{dead})": 1,
    "3:move(queue:{dead})": 3,
    "1:20; 3:delete": 3,
    "1:20; 3:move(queue:{dead})": 3,
}


class Cell(NamedTuple):
    """One cell of the matrix: keys of `ENDS`, `FORMS` and `LADDERS`, and a mode."""

    end: str
    mode: str
    form: str
    ladder: str

    def __str__(self):
        return " ".join(self)


def cells(ends=tuple(ENDS)):
    """Return all cells with these ends."""
    forms = [(mode, form) for mode in MODES for form in FORMS if mode != "serial" or form == "single"]
    return [Cell(end, mode, form, ladder) for end in ends for mode, form in forms for ladder in LADDERS]


class Account(NamedTuple):
    """What became of the messages of one cell.

    Attributes:
        cell: The cell.
        unseen: The innocent messages that no handler had.
        condemned: The innocent messages that were moved or deleted before a handler had them as often as the ladder
            says. Those of a batch with the killer may be moved after that.
        calls: The calls of the handler with the killer.
        gone: True if the killer was moved or deleted.
        dead: The bodies in the dead-letter queue.
        listeners: The listeners that were started.
    """

    cell: Cell
    unseen: list
    condemned: list
    calls: int
    gone: bool
    dead: list
    listeners: int

    @property
    def wrong(self):
        """What is wrong; empty if nothing is. A broker without an exact count may allow more calls: see `calls`."""
        allowed = LADDERS[self.cell.ladder]
        found = [f"no handler had {self.unseen}"] if self.unseen else []
        if self.condemned:
            found.append(f"moved or deleted too early: {self.condemned}")
        if not self.gone:
            found.append(f"the killer is still there after {self.listeners} listeners")
        if self.calls < allowed:
            found.append(f"the killer had {self.calls} calls of {allowed}")
        if self.gone and "move" in self.cell.ladder and KILLER not in self.dead:
            found.append("the killer is not in the dead-letter queue")
        return "; ".join(found)


def run(url, cell, folder, *, cut=None, listeners=MAX_LISTENERS, pool=1):
    """Run one cell and return its account.

    Args:
        url: The broker, without messages of this test.
        cell: The cell.
        folder: An empty folder for the journal.
        cut: For the end "cut": called by the handler to break the connection of the listener.
        listeners: The most listeners to start. If the killer or an innocent is still there, one more survives it.
        pool: The handlers of the modes cc and sync that run at a time.
    """
    name = f"killer.{uuid.uuid4().hex[:12]}"
    place = _Place(url, name, f"{name}.dead", str(Path(folder) / "journal"), pool)
    bodies = [f"innocent-{number:02}" for number in range(INNOCENTS)]
    ids = _send(url, name, [*bodies[:PLACE], KILLER, *bodies[PLACE:]])
    place.write_ids(ids)
    started = 0
    while started < listeners and not place.is_done(bodies):
        started += 1
        _listen_once(place, cell, cut)
    calls, gone = place.read("had")[KILLER], bool(place.read("gone")[KILLER])
    if not place.is_done(bodies):  # the killer is still there, or its last listener was stopped before the innocents
        _Listener(place, cell._replace(end=SURVIVED)).run()
    had = place.read("had")
    early = place.gone_early(LADDERS[cell.ladder])
    return Account(
        cell,
        [body for body in bodies if not had[body]],
        [body for body in bodies if body in early],
        calls,
        gone,
        _drain(url, place.dead, place.read("gone").total()) if "move" in cell.ladder else [],
        started,
    )


class _Place(NamedTuple):
    """Where one cell happens: its broker, its queues and its journal."""

    url: str
    queue: str
    dead: str
    journal: str
    pool: int

    def write(self, what, body):
        """Append a line in one write, which a killed process has done or not."""
        fd = os.open(self.journal, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(fd, f"{what} {body}\n".encode())
        finally:
            os.close(fd)

    def lines(self):
        with suppress(FileNotFoundError):
            return [line.split() for line in Path(self.journal).read_text().splitlines()]
        return []

    def read(self, what):
        return Counter(body for kind, body in self.lines() if kind == what)

    def gone_early(self, allowed):
        """The messages that were moved or deleted before a handler had them so many times."""
        calls, found = Counter(), set()
        for kind, body in self.lines():
            if kind == "had":
                calls[body] += 1
            elif kind == "gone" and calls[body] < allowed:
                found.add(body)
        return found

    def is_done(self, bodies, *, survived=False):
        done = self.read("had") + self.read("gone")
        return all(done[body] for body in bodies) and (survived or bool(self.read("gone")[KILLER]))

    def write_ids(self, ids):
        Path(f"{self.journal}.ids").write_text(json.dumps(ids))

    def ids(self):
        return json.loads(Path(f"{self.journal}.ids").read_text())


def _send(url, queue, bodies):
    """Send the messages; return their bodies by their ids."""
    with ConnectionFactory(url).create_connection() as connection, connection.create_session() as session:
        producer, messages = session.create_producer(Queue(queue)), [TextMessage(body) for body in bodies]
        for message in messages:
            producer.send(message)
        return {message.message_id: message.body for message in messages}


def _drain(url, queue, number):
    with ConnectionFactory(url).create_connection() as connection, connection.create_session() as session:
        connection.start()
        consumer = session.create_consumer(Queue(queue))
        return [message.body for _ in range(number) if (message := consumer.receive(PATIENCE)) is not None]


def _listen_once(place, cell, cut):
    """Listen until the killer ends the listener, or all is done."""
    if cell.end == "cut" or (place.url.startswith("embedded://") and not place.url.startswith("embedded:///")):
        _Listener(place, cell, cut).run()
        return
    command = [sys.executable, __file__, json.dumps(place), json.dumps(cell)]
    ended = subprocess.run(command, timeout=2 * PATIENCE, check=False, capture_output=True, text=True)
    assert ended.returncode in {0, -signal.SIGKILL}, ended.stderr


class _Listener(Hooks):
    """A listener that ends when the killer comes, or when all messages are handled, moved or deleted."""

    def __init__(self, place, cell, cut=None):
        self._place = place
        self._cell = cell
        self._cut = cut
        self._ids = place.ids()
        self._ended = threading.Event()
        self._stopped = threading.Event()
        self._by_killer = False

    def run(self):
        options = {
            "concurrency_mode": self._cell.mode,
            "redelivery_handling": self._cell.ladder.format(dead=self._place.dead),
            # Another thread that is about to call a handler when the process dies has recorded that already.
            "endpoint_pool_max_size": 1 if self._cell.mode == "serial" else self._place.pool,
            **FORMS[self._cell.form],
        }
        adapter = ResourceAdapter(self._place.url, hooks=[self])
        handler = self._handle_list if self._cell.form == "list" else self._handle
        adapter.listener(self._place.queue, **options)(handler)
        adapter.start()
        self._check_done()
        self._ended.wait(PATIENCE)
        closes = self._by_killer and self._cell.end == "close"
        adapter.stop(0 if closes else PATIENCE)
        self._stopped.set()

    def dead_lettered(self, endpoint, letter):
        self._place.write("gone", self._ids.get(letter.message_id, letter.message_id))
        self._check_done()

    def settled(self, endpoint, outcome, messages):
        self._check_done()

    def _handle(self, message: TextMessage):
        self._had([message.body])

    def _handle_list(self, messages: list[TextMessage]):
        self._had([message.body for message in messages])

    def _had(self, bodies):
        for body in bodies:
            self._place.write("had", body)
        if KILLER in bodies:
            self._end()

    def _end(self):
        if self._cell.end == SURVIVED:
            return
        if self._cell.end == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if self._cell.end == "cut":
            self._cut()
            raise ConnectionLostError("The test cut the connection.")
        self._by_killer = True
        self._ended.set()
        if self._cell.end == "close":
            self._stopped.wait(PATIENCE)
        raise JMSError("The killer ended its listener.")

    def _check_done(self):
        innocents = set(self._ids.values()) - {KILLER}
        if self._place.is_done(innocents, survived=self._cell.end == SURVIVED):
            self._ended.set()


if __name__ == "__main__":
    _Listener(_Place(*json.loads(sys.argv[1])), Cell(*json.loads(sys.argv[2]))).run()
