"""Helpers for the tests of several processes over one file, and of files that fail."""

import logging
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from jmsjca import Queue, TextMessage

PATIENCE = 60
REPEATED = "their release is repeated"  #: in the record of a release that failed

_BEGIN = """
import os, signal, sys, threading
from jmsjca import Queue, TextMessage
from jmsjca.errors import ConnectionLostError, JMSError
from jmsjca.reconnection import ConnectionSettings, connect
from jmsjca.providers.embedded import consumer
consumer._SAFETY_POLL = 3600  # nothing but a ring wakes a waiter
signal.alarm(60)  # hangs are failures
url = sys.argv[1]
connection = connect(ConnectionSettings(url))
def tell(*words): os.write(1, (" ".join(map(str, words)) + "\\n").encode())  # one write: lines of threads do not mix
def send(name, text):
    unit = connection.unit()
    unit.send(TextMessage(text), Queue(name))
    unit.commit()
"""


@contextmanager
def process(broker: object, script: str) -> Iterator[subprocess.Popen[str]]:
    """Another Python process, of the broker with this URL or in this file; it ends when its standard input does."""
    command = [sys.executable, "-c", _BEGIN + script, broker if isinstance(broker, str) else f"embedded://{broker}"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        try:
            yield child
        except BaseException:
            child.kill()  # it may be stopped, and is waited for
            raise


def heard(child: subprocess.Popen[str]) -> str:
    assert child.stdout is not None
    return child.stdout.readline().strip()


def put(connection, *bodies: str, name: str = "q") -> None:
    unit = connection.unit()
    for body in bodies:
        unit.send(TextMessage(body), Queue(name))
    unit.commit()


def received(connection, name: str = "q") -> list[tuple[str, int]]:
    """What comes from a queue, waiting for the first one."""
    deliveries = connection.consumer(Queue(name)).receive(10, PATIENCE)
    return [(d.message.body, d.count) for d in deliveries]


class _Trouble(logging.Handler):
    def __init__(self, text: str, end: Callable[[], object]) -> None:
        super().__init__()
        self._text, self._end = text, end

    def emit(self, record: logging.LogRecord) -> None:
        if self._text in record.getMessage():
            self._end()


@contextmanager
def trouble(text: str, end: Callable[[], object]) -> Iterator[None]:
    """End some trouble when a record with a text is logged, as an operator does who reads the log."""
    handler, logger = _Trouble(text, end), logging.getLogger("jmsjca")
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
