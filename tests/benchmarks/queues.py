"""Queues that Python programs use where they have no broker, beside which ours are timed.

Both acknowledge message by message and know no transactions: 100 messages cost them 100 times as much as one.
"""

from pathlib import Path
from typing import Any
from uuid import uuid4

from kombu import Connection
from persistqueue import SQLiteAckQueue

from tests.benchmarks.contenders import BODY

__all__ = ["KombuContender", "PersistQueueContender"]


class KombuContender:
    """kombu's transport in memory, as Celery's tests use it: for the threads of one process, lost with it."""

    def __init__(self) -> None:
        self._connection = Connection("memory://")
        self._queue: Any = self._connection.SimpleQueue(uuid4().hex)

    def send(self, count: int, batch: int) -> None:
        for _ in range(count):
            self._queue.put(BODY)

    def receive(self, count: int, batch: int) -> None:
        for _ in range(count):
            message = self._queue.get(block=False)
            assert len(message.payload) == len(BODY)
            message.ack()

    def close(self) -> None:
        self._connection.close()


class PersistQueueContender:
    """persist-queue's queue with acknowledgement, in a file; for one process at a time.

    Args:
        folder: Where its database is made.
    """

    def __init__(self, folder: Path) -> None:
        self._queue: Any = SQLiteAckQueue(str(folder))

    def send(self, count: int, batch: int) -> None:
        for _ in range(count):
            self._queue.put(BODY)

    def receive(self, count: int, batch: int) -> None:
        for _ in range(count):
            item = self._queue.get(block=False, raw=True)
            assert len(item["data"]) == len(BODY)
            self._queue.ack(item)
        self._queue.clear_acked_data(max_delete=0, keep_latest=0)  # or every later get passes over them

    def close(self) -> None:
        self._queue.close()
