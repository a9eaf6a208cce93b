"""Writes the tables of fail-overs into the documentation: ``python -m tests.support.failover_table``.

The lines of ``evidence/failovers.jsonl`` are what ``failovers`` and ``spark_failovers`` of ``tests.torture`` print.
"""

import json
import re
import statistics
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "explanation" / "reliability.md"
RECORDED = Path(__file__).with_name("evidence") / "failovers.jsonl"
BROKERS = {"artemis": "Artemis", "activemq": "ActiveMQ", "rabbitmq4": "RabbitMQ"}
TOPOLOGIES = {
    "artemis-replication": "primary and backup, replication, ZooKeeper",
    "artemis-pair": "primary and backup, replication alone",
    "artemis-shared-store": "primary and backup, shared store",
    "artemis-cluster": "two active nodes, redistribution",
    "activemq-shared-store": "master and slave, shared store",
    "activemq-network": "network of two brokers",
    "rabbitmq4-quorum": "three nodes, quorum queues",
}
FAULTS = {"kill": "killed", "stop": "stopped in order", "freeze": "frozen"}
SUMS = ("confirmed", "lost", "doubled", "torn", "disordered", "dead")
SUMS_OF_SPARK = ("confirmed", "lost", "doubled", "query_restarts")
HEAD = ("broker", "topology", "leader", "times", "confirmed", "lost", "doubled", "units half done", "out of order",
        "dead-lettered", "seconds until messages flow: median", "95 %")  # fmt: skip
HEAD_OF_SPARK = ("broker", "topology", "leader", "times", "sink", "confirmed", "lost", "doubled", "query started again",
                 "seconds until rows flow: median", "95 %")  # fmt: skip


def page():
    """Return the page with its tables."""
    text = PAGE.read_text()
    for mark, head, spark in (("fail-overs:", HEAD, False), ("fail-overs of Spark:", HEAD_OF_SPARK, True)):
        text = re.sub(
            rf"(<!-- {mark}.*? -->\n).*?(<!-- end -->)", rf"\1\n{table(head, spark)}\n\2", text, flags=re.DOTALL
        )
    return text


def table(head, spark):
    """Return a table: a row for each topology, protocol and fault, with all recorded runs of it together."""
    rows = [head, ["---"] * len(head), *(row(runs, spark) for runs in grouped(spark).values())]
    return "".join(f"| {' | '.join(map(str, cells))} |\n" for cells in rows)


def grouped(spark):
    """Return the recorded runs by topology, protocol and fault, in the order of the names above."""
    groups = defaultdict(list)
    for line in RECORDED.read_text().splitlines():
        run = json.loads(line)
        if (run.get("client") == "spark") == spark:
            groups[run["topology"], run["protocol"], run["fault"]].append(run)
    return dict(sorted(groups.items(), key=lambda each: (
        [*TOPOLOGIES].index(each[0][0]), each[0][1], [*FAULTS].index(each[0][2]),
    )))  # fmt: skip


def row(runs, spark):
    """Return the cells of one row."""
    first, seconds = runs[0], sorted(each for run in runs for each in run["seconds"])
    late = seconds[max(0, round(len(seconds) * 0.95) - 1)]
    return [
        f"{BROKERS[first['broker']]} {first['release']}",
        f"{TOPOLOGIES[first['topology']]}, {first['protocol'].upper()}",
        FAULTS[first["fault"]], sum(run["count"] - run["stalled"] for run in runs),
        *([first["guarantee"]] if spark else []),
        *(f"{sum(run[name] for run in runs):,}" for name in (SUMS_OF_SPARK if spark else SUMS)),
        f"{statistics.median(seconds):.1f}", f"{late:.1f}",
    ]  # fmt: skip


if __name__ == "__main__":
    PAGE.write_text(page())
