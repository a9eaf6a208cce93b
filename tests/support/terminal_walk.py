"""From a broken listener to its mended message with the command line alone, on a terminal of 80 columns."""

import re
import signal
from pathlib import Path

from tests.unit.inbound.deliveries import until
from tests.unit.management.terminals import Terminal

__all__ = ["walk"]

SHOP = """
import os
from jmsjca import Message, Queue, ResourceAdapter, Session, TextMessage

adapter = ResourceAdapter(os.environ["JMSJCA_URL"])

@adapter.listener({name!r}, redelivery_handling="1:move(queue:dlq.$)")
def ship(message: Message, session: Session) -> None:
    price = {{"a pear": 1, "a fig": 2}}[message.body]
    session.create_producer(Queue("shipped.{name}")).send(TextMessage(f"{{message.body}} for {{price}}"))
"""


class Person:
    """Calls commands, one after the other, and reads what the terminal shows."""

    def __init__(self, monkeypatch):
        self.terminal = Terminal(monkeypatch, 80)

    def call(self, *arguments, statuses=(0,)):
        """Call a command, which must end with one of the statuses; return the lines that it shows."""
        process, shown = self.terminal.start(*arguments)
        lines = shown.lines()
        assert process.wait(60) in statuses, shown.errors.read_text()
        assert max(map(len, lines), default=0) <= 80
        return lines

    def see(self, expected, *arguments, statuses=(0,)):
        """Call a command until it shows a text; return all that it shows then."""
        while True:
            if expected in (shown := "\n".join(self.call(*arguments, statuses=statuses))):
                return shown


def walk(monkeypatch, folder, url, name):
    """Find a poison message, read its stack, mend it, and see it processed; then mend the listener and replay another.

    Args:
        monkeypatch: Changes the folder and the environment.
        folder: An empty folder.
        url: The broker.
        name: The queue, which no other test uses.
    """
    monkeypatch.setenv("JMSJCA_URL", url)
    monkeypatch.chdir(folder)
    module = Path(f"shop_{name.replace('.', '_')}.py")
    module.write_text(SHOP.format(name=name))
    person = Person(monkeypatch)
    options = ["--reload", "--health-file", "health.json", "--interval", "5"]  # seconds: then it is idle
    worker, shown = person.terminal.start("run", f"{module.stem}:adapter", *options)
    try:
        _mend_a_message(person, name)
        _mend_the_listener(person, name, module, shown.errors)
    finally:
        worker.send_signal(signal.SIGTERM)
        account, status = shown.lines(), worker.wait(60)
    assert status == 0, shown.errors.read_text()
    assert "finished" in account[0]


def _mend_a_message(person, name):
    letters, shipped = f"dlq.{name}", f"shipped.{name}"
    person.call("send", name, "a paer", "-p", "shop=Bern")
    assert letters in person.see(letters, "queues")
    listed = person.see("KeyError", "dlq", "list", letters)
    letter = re.search(r"ID:\S+", listed)[0]
    read = "\n".join(person.call("dlq", "show", letters, letter))
    assert "a paer" in read
    assert re.search(r'price = \{"a pear": 1, "a fig": 2\}\[message\.body\]', read)
    assert re.search(rf"origin: +queue:{re.escape(name)}", read)
    assert "done" in "\n".join(person.call("dlq", "edit", letters, letter, "--body", "a pear"))
    person.see("a pear for 1", "browse", shipped)
    assert person.call("dlq", "list", letters) == ["nothing found"]


def _mend_the_listener(person, name, module, log):
    letters, shipped = f"dlq.{name}", f"shipped.{name}"
    person.call("send", name, "a plum")
    person.see("'a plum'", "dlq", "list", letters)
    module.write_text(module.read_text().replace('"a fig": 2', '"a fig": 2, "a plum": 3'))
    until(lambda: log.read_text().count("jmsjca: started") == 2)  # the worker has read the mended module
    assert "planned" in "\n".join(person.call("dlq", "replay", letters, "--dry-run"))
    assert "done" in "\n".join(person.call("dlq", "replay", letters))
    person.see("a plum for 3", "browse", shipped)
    person.see("idle", "status", "--file", "health.json", statuses=(0, 1))  # 1 while the listener is not ready
    assert "idle" in "\n".join(person.call("status", "--file", "health.json"))
