"""A sample of the fail-overs of clusters, small enough for every test run."""

import random

import pytest
from brokers.clusters import TOPOLOGIES

from tests.torture.failovers import FAULTS, ROUNDS, run

IN_EVERY_RUN = ("activemq-shared-store", "kill")
LOSES_ORDER = ("rabbitmq4-quorum", "freeze")  # a frozen node keeps what its consumers have prefetched
REPLACING = ["artemis-replication", "artemis-shared-store", "activemq-shared-store", "rabbitmq4-quorum"]


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        pytest.param(name, fault, marks=[] if (name, fault) == IN_EVERY_RUN else [pytest.mark.torture])
        for name in REPLACING
        for fault in FAULTS
    ],
)
@pytest.mark.timeout(900)
def test_a_fail_over_loses_and_doubles_nothing(name, fault, tmp_path, capsys):
    topology, seed = TOPOLOGIES[name](), random.randrange(1 << 16)
    try:
        found = run(topology.start(), "amqp", fault, 1, seed, tmp_path)
    finally:
        topology.close()
    with capsys.disabled():
        print(f"\nfail-overs 1 of {ROUNDS} (sample, seed {seed}): {name} {fault}: {found['seconds']} s")
    assert found["confirmed"] > 0
    assert not found["stalled"]
    wrong = {what: found[what] for what in ("lost", "doubled", "torn", "unexpected", "dead")}
    if (name, fault) != LOSES_ORDER:
        wrong["disordered"] = found["disordered"]
    assert wrong == dict.fromkeys(wrong, 0), found["examples"]
