"""Kills, stops and freezes the leader of a cluster while Spark moves messages from one of its queues to another one.

``PYTHONPATH=tests/support python -m tests.torture.spark_failovers rabbitmq4-quorum --faults kill --rounds 5``

The stream reads with ``format("jms")`` and writes with the exactly-once sink, or with the at-least-once sink where the
broker refuses the former. A query that fails is started again from its checkpoint. Each run prints one line of JSON.
"""

import json
import os
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

from brokers.clusters import TOPOLOGIES
from pyspark.errors import StreamingQueryException
from pyspark.sql import functions
from spark_home import spark_home
from spark_session import spark_session

from tests.torture.failovers import OPTIONS, Client, arguments, fail_over

KIND = "spark"
COPIES = "copies"  # what the sink writes
PAUSE = 2.0  # seconds until a query that failed is started again


class Stream(Client):
    """A sender, and a query from one queue to another one, in this process."""

    kinds = (KIND,)

    def __init__(self, url, label, folder, session):
        super().__init__(url, label)
        self.session, self.folder, self.query, self.restarts = session, folder, None, 0
        self.guarantee = "exactly-once" if self.atomic else "at-least-once"
        self.threads = [threading.Thread(target=task, daemon=True) for task in (self._send, self._run)]

    def start(self):
        for thread in self.threads:
            thread.start()

    def _send(self):
        while not self.stopping.wait(0.03):
            body = self.begin(KIND)
            with self.noting([body]):
                self.sender.send(self.place(KIND), body)

    def _run(self, **trigger):
        """Run the query; again from its checkpoint, as often as it fails."""
        self.session.createDataFrame([], "text string")  # in this thread Spark then knows its session, and so "jms"
        while True:
            try:
                self.query = self._query(**trigger)
                self.query.awaitTermination()
            except StreamingQueryException as error:
                self.restarts += 1
                self.account.errors[str(error.__cause__ or error).splitlines()[0][:160]] += 1
                time.sleep(PAUSE)
            else:
                return

    def _query(self, **trigger):
        source = {"url": self.url, "destination": self.place(KIND), "stagingLocation": f"{self.folder}/staging"}
        source |= {"columns": "text", "maxMessagesPerBatch": "200", "partitions": "1"}
        sink = {"url": self.url, "destination": self.place(COPIES), "guarantee": self.guarantee}
        rows = self.session.readStream.format("jms").options(**source).load()
        number = functions.split("text", " ")[1].cast("long")
        rows = rows.select("text").observe("flow", functions.max(number).alias("number"))
        written = rows.writeStream.format("jms").options(checkpointLocation=f"{self.folder}/checkpoint", **sink)
        return written.queryName(self.label).trigger(**trigger or {"processingTime": "0 seconds"}).start()

    def idle(self, moment):
        """Return the kinds of which no message that was sent later is in a batch that ended."""
        progress = self.query and self.query.lastProgress
        observed = progress and progress.observedMetrics.get("flow")
        number = observed and observed["number"]
        if number:
            self.account.latest[KIND] = max(
                self.account.latest.get(KIND, 0), self.account.began.get(f"{KIND} {number}", 0)
            )
        return self.account.idle_since(moment, self.kinds)

    @property
    def states(self):
        """What the query does, for a person who waits."""
        return f"{self.query and self.query.status}, {self.restarts} restarts"

    def settle(self):
        """Stop sending, and write what is in the queue."""
        self.stopping.set()
        sender, query = self.threads
        sender.join(60)
        self.sender.stop()
        while query.is_alive():
            with suppress(Exception):  # it may be between two runs
                self.query.stop()
            query.join(5)
        for _ in range(2):  # a node may have returned some late
            self._run(availableNow=True)


def judge(stream):
    """Compare what was confirmed with what was written."""
    account, how = stream.account, Counter(stream.account.sent.values())
    left = [body for body, _ in stream.drain(stream.place(KIND))]
    rows = Counter(body for body, _ in stream.drain(stream.place(COPIES)))
    lost = [body for body, outcome in account.sent.items() if outcome == "ok" and not rows[body] and body not in left]
    many = {body: times for body, times in rows.items() if times > 1}
    return {
        "client": "spark", "guarantee": stream.guarantee, "sent": len(account.sent), "confirmed": how["ok"],
        "doubt": how["doubt"], "refused": how["refused"], "rows": rows.total(), "lost": len(lost),
        "doubled": len(many), "left": len(left), "query_restarts": stream.restarts,
        "unexpected": sum(account.sent.get(body, "refused") == "refused" for body in rows),
        "errors": dict(account.errors), "examples": [*lost[:6], *map(str, [*many.items()][:6])],
    }  # fmt: skip


def run(topology, protocol, fault, rounds, seed, folder, session):
    """Do the faults while the stream runs, and give the account."""
    label = f"{fault}{seed}"
    place = folder / label
    place.mkdir()
    stream = Stream(topology.url(protocol, OPTIONS), label, place, session)
    return fail_over(topology, stream, fault, rounds, seed) | judge(stream)


def main():
    """Run the topologies one after the other; 0 if nothing was lost, nor doubled by the exactly-once sink."""
    options = arguments(__doc__)
    os.environ.setdefault("SPARK_HOME", str(spark_home()))  # workers that start fast
    good = True
    with (
        tempfile.TemporaryDirectory(prefix="jmsjca-spark-failovers-") as folder,
        spark_session(Path(folder)) as session,
    ):
        for name in options.topologies:
            topology = TOPOLOGIES[name]()
            try:
                topology.start()
                for fault in options.faults:
                    place = Path(folder) / name
                    place.mkdir(exist_ok=True)
                    args = options.protocol, fault, options.rounds, options.seed, place, session
                    result = run(topology, *args)
                    print(json.dumps(result), flush=True)
                    doubled = result["guarantee"] == "exactly-once" and result["doubled"]
                    good = good and not (result["lost"] or result["left"] or result["stalled"] or doubled)
            finally:
                topology.close()
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
