"""What a message costs from RabbitMQ: our listeners over AMQP 1.0 beside FastStream over AMQP 0.9.1, in one run.

``python -m tests.benchmarks.inbound_rabbitmq amqp://127.0.0.1:5672 --rounds 5``

Both take as many messages ahead as a batch has, acknowledge each, and hand its text to the same function; all messages
are persistent and wait when the clocks start. "unconfirmed" does not wait until the broker has noted what it
acknowledges, as FastStream does not. RabbitMQ has no transactions in AMQP 1.0: a handler's sends are not part of its
unit here. "bare loop" is proton's engine on one thread, and shows how fast RabbitMQ itself is over AMQP 1.0.
"""

import argparse
import asyncio
import gc
import json
import sys
import uuid
from collections.abc import Mapping
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, NamedTuple

from faststream.rabbit import Channel, RabbitBroker, RabbitQueue

from jmsjca import AcknowledgeMode, Limits
from tests.benchmarks.listeners import Contender, Listener
from tests.benchmarks.measurements import Measurements, alternating, write
from tests.benchmarks.rabbitmq_loop import LeanLoop
from tests.benchmarks.tally import TEXT, Tally

AHEAD = 100
_USER = "jmsjca:jmsjca"  # that of the brokers of our tests, which we need not name: there it is also the anonymous one


class Case(NamedTuple):
    """One line of the table."""

    clock: str


class FastStreamOnRabbitMQ:
    """A subscriber of FastStream with a function as its handler; it acknowledges when that has returned.

    Args:
        url: The broker.
    """

    def __init__(self, url: str) -> None:
        self.tally = Tally()
        self._url = url.replace("://", f"://{_USER}@")
        self._queue = RabbitQueue(f"bench.{uuid.uuid4().hex}", durable=True)

    def fill(self, count: int) -> None:
        asyncio.run(self._publish(count))

    def work(self) -> None:
        asyncio.run(self._consume())

    def close(self) -> None:
        """Every turn closes its connection."""

    async def _publish(self, count: int) -> None:
        async with RabbitBroker(self._url, logger=None) as broker:
            await broker.declare_queue(self._queue)
            for _ in range(count):
                await broker.publish(TEXT, self._queue, persist=True)

    async def _consume(self) -> None:
        broker = RabbitBroker(self._url, logger=None, default_channel=Channel(prefetch_count=AHEAD))

        @broker.subscriber(self._queue)
        async def handle(text: str) -> None:
            self.tally(text)

        async with broker:
            await broker.start()
            await asyncio.to_thread(self.tally.wait)


def measure(url: str, rounds: int, count: int) -> Measurements[Case]:
    """Let the contenders take turns, in microseconds per message."""
    costs = Measurements[Case]()
    with ExitStack() as stack:
        contenders = {name: stack.enter_context(closing(made)) for name, made in _contenders(url).items()}
        for order in alternating(list(contenders), rounds + 1):
            for name in order:
                for clock, seconds in _turn(name, contenders[name], count).items():
                    costs.note(Case(clock), name, seconds / count * 1e6)
    costs.forget_first_round()
    return costs


def _contenders(url: str) -> Mapping[str, Contender]:
    limits = Limits(prefetch_messages=AHEAD)
    specs: dict[str, dict[str, Any]] = {
        "serial": {"concurrency_mode": "serial"},
        "cc": {"concurrency_mode": "cc"},
        "serial, unconfirmed": {"concurrency_mode": "serial", "acknowledge_mode": AcknowledgeMode.DUPS_OK},
        "cc, unconfirmed": {"concurrency_mode": "cc", "acknowledge_mode": AcknowledgeMode.DUPS_OK},
        "cc, batch 100": {"concurrency_mode": "cc", "batch_size": AHEAD},
    }
    listeners = {name: Listener(url, limits, transaction="none", **spec) for name, spec in specs.items()}
    return {"FastStream": FastStreamOnRabbitMQ(url), **listeners, **_bare(url)}


def _bare(url: str) -> Mapping[str, Contender]:
    """What nobody gets below over AMQP 1.0: it costs the broker more than AMQP 0.9.1."""
    return {
        "bare loop": LeanLoop(url, AHEAD, confirmed=True),
        "bare loop, unconfirmed": LeanLoop(url, AHEAD, confirmed=False),
    }


def _turn(name: str, contender: Contender, count: int) -> Mapping[str, float]:
    gc.collect()
    contender.fill(count)
    contender.tally.expect(count)
    contender.work()
    try:
        return contender.tally.seconds()
    except AssertionError as error:
        error.add_note(f"This was {name}.")
        raise


def main() -> int:
    """Measure, print a table, write JSON if asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--count", type=int, default=2000, help="messages per turn")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    options = parser.parse_args()
    table = [
        {"contender": name, "clock": case.clock, "messages_per_second": round(1e6 / summary.median)}
        | {"microseconds": round(summary.median, 1), "ratio": round(summary.ratio, 2)}
        for case, name, summary in measure(options.url, options.rounds, options.count).summaries("FastStream")
    ]
    for row in table:
        print(json.dumps(row))
    write(options.json, {"rounds": options.rounds, "count": options.count}, table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
