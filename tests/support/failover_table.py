"""Writes the tables of fail-overs into the documentation: ``python -m tests.support.failover_table``.

The lines of ``evidence/failovers.jsonl`` are what ``tests.torture.failovers`` prints.
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
HEAD = ("broker", "topology", "leader", "times", "confirmed", "lost", "doubled", "units half done", "out of order",
        "dead-lettered", "seconds until messages flow: median", "95 %")  # fmt: skip


def page():
    """Return the page with its table."""
    return re.sub(
        r"(<!-- fail-overs.*? -->\n).*?(<!-- end -->)", rf"\1\n{table()}\n\2", PAGE.read_text(), flags=re.DOTALL
    )


def table():
    """Return the table: a row for each topology, protocol and fault, with all recorded runs of it together."""
    rows = [HEAD, ["---"] * len(HEAD), *map(row, grouped().values())]
    return "".join(f"| {' | '.join(map(str, cells))} |\n" for cells in rows)


def grouped():
    """Return the recorded runs by topology, protocol and fault, in the order of the names above."""
    groups = defaultdict(list)
    for line in RECORDED.read_text().splitlines():
        run = json.loads(line)
        groups[run["topology"], run["protocol"], run["fault"]].append(run)
    return dict(sorted(groups.items(), key=lambda each: (
        [*TOPOLOGIES].index(each[0][0]), each[0][1], [*FAULTS].index(each[0][2]),
    )))  # fmt: skip


def row(runs):
    """Return the cells of one row."""
    first, seconds = runs[0], sorted(each for run in runs for each in run["seconds"])
    late = seconds[max(0, round(len(seconds) * 0.95) - 1)]
    return [
        f"{BROKERS[first['broker']]} {first['release']}",
        f"{TOPOLOGIES[first['topology']]}, {first['protocol'].upper()}",
        FAULTS[first["fault"]], sum(run["count"] - run["stalled"] for run in runs),
        *(f"{sum(run[name] for run in runs):,}" for name in SUMS),
        f"{statistics.median(seconds):.1f}", f"{late:.1f}",
    ]  # fmt: skip


if __name__ == "__main__":
    PAGE.write_text(page())
