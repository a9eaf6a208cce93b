"""Events per second of a connector in each recovery mode, and of a pipeline on Spark, beside a serial listener.

``python -m tests.benchmarks.connector [--no-spark]``

The listener's handler converts the body with the connector's data handler, so both do the same work with an event.
All but Spark take turns, over brokers in memory, and are timed in processor time. Spark has a broker in a file, and is
timed by its own progress: the elapsed time of its batches.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from jmsjca import Message, Queue, ResourceAdapter
from jmsjca.connector import BusinessObject, Connector, ConnectorConfig, EventPipeline
from jmsjca.connector.data_handlers import data_handler
from jmsjca.providers.embedded.store.store import drop_memory_store

EVENTS, ROUNDS, ON_SPARK = 1000, 7, 20_000
BODY = json.dumps({"_type": "Order", "id": 7, "name": "x" * 100})
DEFINITIONS = {"Order": {"attributes": {"id": {"type": "integer"}, "name": {}}}}
MODES: Mapping[str, Mapping[str, Any]] = {
    "no in-progress destination": {},
    "in-progress destination": {"in_progress_destination": "held"},
    "duplicate elimination": {"duplicate_event_elimination": True, "monitor_queue": "monitor"},
    "duplicate elimination, to a queue": {"duplicate_event_elimination": True, "monitor_queue": "monitor"},
    "container managed events": {"container_managed_events": True, "source_queue": "in", "fault_queue": "faults"},
}
GOALS = {
    "no in-progress destination": 0.7,
    "in-progress destination": 0.4,
    "duplicate elimination": 0.45,
    "duplicate elimination, to a queue": 0.5,
}


def take(_: BusinessObject) -> None:
    """The collaboration of all."""


def of_listener(url: str) -> float:
    """Return the processor time of a serial listener for all events."""
    handler, left, done = data_handler("application/json"), EVENTS, threading.Event()
    adapter = ResourceAdapter(url)

    @adapter.listener("in", concurrency_mode="serial", redelivery_handling="3:delete")
    def handle(message: Message) -> None:
        nonlocal left
        take(handler.to_business_object(message.get_body(str)))
        left -= 1
        if not left:
            done.set()

    began = time.process_time()
    with adapter:
        done.wait()
        return time.process_time() - began


def of_connector(mode: str, url: str) -> float:
    """Return the processor time of a connector for all events."""
    fields = {"input_destination": "in", **MODES[mode]}
    managed = bool(fields.get("container_managed_events"))
    if managed:
        del fields["input_destination"]
    to_queue = managed or mode.endswith("to a queue")
    config = ConnectorConfig(connection_url=url, poll_quantity=500, **fields)
    with Connector(config, Queue("out") if to_queue else take) as connector:
        poll = connector.transfer_events if managed else connector.poll_for_events
        began = time.process_time()
        for _ in range(EVENTS // 500):
            poll()
        return time.process_time() - began


def turn(work: Callable[[str], float]) -> float:
    """Return the processor time of a contender, over a broker of its own that holds the events."""
    name = f"connector-{uuid.uuid4().hex}"
    url = f"embedded://{name}"
    ResourceAdapter(url).send_many("in", [BODY] * EVENTS)
    spent = work(url)
    drop_memory_store(name)
    return spent


def on_spark(folder: Path) -> float:
    """Return the events per second of a pipeline, from the elapsed time of its batches after the first one."""
    from pyspark.sql import SparkSession  # only where it is timed

    from jmsjca.spark import register

    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    register(spark)
    url = f"embedded://{folder}/broker.db"
    ResourceAdapter(url).send_many("in", [BODY] * ON_SPARK)
    config = ConnectorConfig(connection_url=url, input_destination="in", definitions=DEFINITIONS)
    pipeline = EventPipeline(config, {"Order": lambda table, _: table.write.format("noop").mode("append").save()})
    options = {"maxMessagesPerBatch": ON_SPARK // 4}
    query = pipeline.write_stream(spark, f"{folder}/checkpoint", options=options).trigger(availableNow=True).start()
    query.awaitTermination()
    later = [each for each in query.recentProgress if each.numInputRows][1:]  # the first one starts the workers
    spark.stop()
    return sum(each.numInputRows for each in later) / sum(each.durationMs["triggerExecution"] for each in later) * 1000


def main() -> None:
    """Measure in turns, so that a slow moment of the machine hits all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--no-spark", action="store_true", help="leave Spark out")
    options = parser.parse_args()
    works: dict[str, Callable[[str], float]] = {"serial listener": of_listener}
    works |= {mode: lambda url, mode=mode: of_connector(mode, url) for mode in MODES}
    rounds = [{name: turn(work) for name, work in works.items()} for _ in range(ROUNDS + 1)][1:]
    for name in works:
        rate = EVENTS / statistics.median(each[name] for each in rounds)
        share = statistics.median(each["serial listener"] / each[name] for each in rounds)
        goal = f"  (goal: {GOALS[name]:.0%})" if name in GOALS else ""
        print(f"{name:34} {rate:8.0f} events per second of processor time  {share:6.1%} of the listener{goal}")
    if not options.no_spark:
        with tempfile.TemporaryDirectory() as folder:
            print(f"{'pipeline on Spark, local[2]':34} {on_spark(Path(folder)):8.0f} events per second of elapsed time")


if __name__ == "__main__":
    main()
