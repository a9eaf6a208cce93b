"""What no test noticed until its fault was planted."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from jmsjca import Queue, TextMessage
from jmsjca.providers.embedded import consumer as consumer_module
from jmsjca.reconnection import ConnectionSettings, connect
from jmsjca.spi import Connection

QUEUE = Queue("found")
PATIENCE = 10  # seconds


@pytest.fixture
def connection(jms_broker_url: str) -> Iterator[Connection]:
    connection = connect(ConnectionSettings(jms_broker_url))
    yield connection
    connection.close()


def test_commit_wakes_who_waits_in_the_same_process(connection: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing else does: the consumer would look by itself in an hour."""
    monkeypatch.setattr(consumer_module, "_SAFETY_POLL", 3600)
    waiting, wakeups = threading.Event(), connection._store.wakeups
    wait = wakeups.wait

    def say_and_wait(seen: int, timeout: float) -> None:
        waiting.set()
        wait(seen, min(timeout, 2 * PATIENCE))

    monkeypatch.setattr(wakeups, "wait", say_and_wait)
    consumer = connection.consumer(QUEUE)
    with ThreadPoolExecutor() as threads:
        received = threads.submit(consumer.receive, 1, None)
        assert waiting.wait(PATIENCE)
        unit = connection.unit()
        unit.send(TextMessage("a"), QUEUE)
        unit.commit()
        assert len(received.result(PATIENCE)) == 1
