"""Crashes the exactly-once sink at every step of its protocol, and repeats the batch as Spark would.

``python -m tests.spark.crashing_sink URL`` prints a report of a crash at each step, as JSON lines. Each attempt is a
process of its own, forked here, so that a crash is a real one. The repeated batch has its rows in another order and
over another number of partitions. The last round crashes an attempt that finds a redelivered token.
"""

import argparse
import json
import sys
import uuid
from functools import partial
from itertools import count
from typing import Any

import pyarrow as pa
from pyspark.sql.types import StringType, StructField, StructType

from jmsjca import ConnectionFactory, Queue
from jmsjca.errors import NotSupportedError
from jmsjca.outbound import MessageConsumer, MessageProducer, Session
from jmsjca.providers.amqp.engine.event_loop import SocketTransport
from jmsjca.providers.amqp.unit import UnitCommit
from jmsjca.providers.embedded.unit import EmbeddedUnit
from jmsjca.spark.exactly_once import BatchSender, Rows, StateQueue
from jmsjca.spark.options import SinkOptions
from tests.spark.crashing import CRASHED, Crash, in_child

SCHEMA = StructType([StructField("text", StringType())])
BATCHES = [["a", "b", "b"], ["c", "d", "e"]]
HELD: list[tuple[object, str]] = [(StateQueue, "_check")]
STEPS: list[tuple[object, str]] = [
    (ConnectionFactory, "create_connection"),
    (StateQueue, "_create"),
    (StateQueue, "_check"),
    (MessageConsumer, "receive"),
    (MessageConsumer, "receive_no_wait"),
    (MessageProducer, "send"),
    (Session, "commit"),
    (EmbeddedUnit, "commit"),
    (UnitCommit, "_write"),
    (UnitCommit, "_discharge"),
    (SocketTransport, "write"),
]


def bodies(session: Session, queue: Queue) -> list[object]:
    """Return what is in a queue, which a broker without browsers loses by that."""
    try:
        return [message.body for message in session.create_browser(queue)]
    except NotSupportedError:
        consumer = session.create_consumer(queue)
        return [message.body for message in iter(lambda: consumer.receive(2), None)]


class Run:
    """A sink of its own over a broker."""

    def __init__(self, url: str) -> None:
        name = f"run-{uuid.uuid4().hex}"
        self.results, self.state = Queue(name), Queue(f"jmsjca.sink.{name}")
        self._factory = ConnectionFactory(url)
        self._options = SinkOptions.parse(
            {"url": url, "destination": name, "queryName": name, "guarantee": "exactly-once"}
        )

    def write(self, number: int, texts: list[str], parts: int) -> None:
        """Write a batch, or its repetition."""
        rows = [pa.RecordBatch.from_pylist([{"text": text}]) for text in texts]
        collected = [Rows.collect(iter(rows[part::parts])) for part in range(parts)]
        BatchSender(self._options, SCHEMA).send(collected, number)

    def crash(self, at: int, number: int, steps: list[tuple[object, str]]) -> None:
        """Write a batch and crash at one of some steps."""
        crash = Crash(at)
        for owner, name in steps:
            crash.around(owner, name)
        self.write(number, BATCHES[number], 2)

    def report(self) -> None:
        """Print the texts and the tokens that the broker has."""
        with self._factory.create_connection() as connection:
            session = connection.create_session()
            found = [bodies(session, queue) for queue in (self.results, self.state)]
        sys.stderr.write(json.dumps(found))


def crash_at(url: str, number: int, at: int, *, held: bool) -> dict[str, Any]:
    """Write all batches. Of one, an attempt crashes at a step; before it, another one may crash that held the token."""
    run, code, point, later = Run(url), 0, "", list[str]()
    for batch, texts in enumerate(BATCHES):
        if batch == number:
            if held:
                in_child(partial(run.crash, 0, batch, HELD))
            code, point = in_child(partial(run.crash, at, batch, STEPS))
        for parts in (3, 1):  # the second time the driver did not learn that the first one was committed
            failed, said = in_child(partial(run.write, batch, texts[::-1], parts))
            later += [said] * bool(failed)
    failed, said = in_child(run.report)
    try:
        texts, tokens = json.loads(said)
    except ValueError:
        raise RuntimeError(f"The report of what the broker has ended with status {failed}: {said!r}") from None
    return {"batch": number, "code": code, "point": point, "later": later, "texts": texts, "tokens": tokens}


def crash_everywhere(url: str, number: int, stride: int, *, held: bool = False) -> None:
    """Crash at each step until there is no further one."""
    for at in count(0, stride):
        report = crash_at(url, number, at, held=held)
        print(json.dumps(report), flush=True)
        if report["code"] != CRASHED:
            break


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("--stride", type=int, default=1)
    parser.add_argument("--patience", type=float, help="seconds for which a missing token is awaited")
    parser.add_argument("--steps", type=int, nargs="*", help="of the second batch, instead of all steps")
    arguments = parser.parse_args()
    if arguments.patience:
        StateQueue.__init__.__defaults__ = (arguments.patience,)
    if arguments.steps:
        for at in arguments.steps:
            print(json.dumps(crash_at(arguments.url, 1, at, held=False)))
        return
    crash_everywhere(arguments.url, 0, arguments.stride)
    crash_everywhere(arguments.url, 1, arguments.stride)
    crash_everywhere(arguments.url, 1, arguments.stride, held=True)


if __name__ == "__main__":
    main()
