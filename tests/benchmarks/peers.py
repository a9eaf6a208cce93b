"""Libraries that call a Python function with each message, beside which our listeners are timed.

Each works in one process, on the broker in memory that it brings along. None has transactions or batches.
"""

import asyncio
import logging
from typing import Any

import dramatiq
from celery import Celery
from celery.contrib.testing.worker import start_worker
from dramatiq.brokers.stub import StubBroker
from faststream.rabbit import RabbitBroker, TestRabbitBroker

from tests.benchmarks.tally import TEXT, Tally

__all__ = ["CeleryContender", "DramatiqContender", "FastStreamContender"]

_QUEUE = "bench"


class DramatiqContender:
    """dramatiq's worker on its stub broker: a `queue.Queue` that its tests use.

    Args:
        threads: How many threads handle messages.
    """

    def __init__(self, threads: int) -> None:
        self.tally = Tally()
        self._threads = threads

    def fill(self, count: int) -> None:
        self._broker = StubBroker()  # a worker that has stopped leaves traces in the old one
        actor = dramatiq.actor(self.tally.__call__, actor_name="bench", queue_name=_QUEUE, broker=self._broker)
        for _ in range(count):
            actor.send(TEXT)

    def work(self) -> None:
        worker = dramatiq.Worker(self._broker, worker_threads=self._threads)
        worker.start()
        self._broker.join(_QUEUE)
        worker.stop()
        self._broker.close()

    def close(self) -> None:
        """Nothing is left open."""


class CeleryContender:
    """Celery's worker on kombu's transport in memory; it acknowledges late, so that a handler's failure can count.

    It handles messages on the thread that receives them ("solo"): with others it waits up to a second between them.
    """

    def __init__(self) -> None:
        self.tally = Tally()
        self._app: Any = Celery("bench", broker="memory://", set_as_current=False)
        self._app.conf.update(task_acks_late=True, task_ignore_result=True)

        def handle(text: str) -> None:
            self.tally(text)

        self._task = self._app.task(handle, name="bench")

    def fill(self, count: int) -> None:
        for _ in range(count):
            self._task.delay(TEXT)

    def work(self) -> None:
        logging.getLogger("celery").setLevel(logging.ERROR)  # not a record for each message
        with start_worker(self._app, pool="solo", perform_ping_check=False, loglevel="ERROR"):
            self.tally.wait()

    def close(self) -> None:
        self._app.close()


class FastStreamContender:
    """FastStream's test broker. Nothing waits in it: whoever publishes calls the handler, so filling does nothing."""

    def __init__(self) -> None:
        self.tally = Tally()
        self._runner = asyncio.Runner()
        self._broker = RabbitBroker(logger=None)

        @self._broker.subscriber(_QUEUE)
        async def handle(text: str) -> None:
            self.tally(text)

    def fill(self, count: int) -> None:
        self._count = count

    def work(self) -> None:
        self._runner.run(self._publish())

    def close(self) -> None:
        self._runner.close()

    async def _publish(self) -> None:
        async with TestRabbitBroker(self._broker):
            for _ in range(self._count):
                await self._broker.publish(TEXT, _QUEUE)
