"""The cases of the contract that every test run tries on real brokers: all on two pairs, a seeded sample on the others.

The two have both protocols, and so each network provider. What is not drawn is marked ``torture``.
"""

import random
from collections import defaultdict

import pytest

WHOLE = {"artemis-amqp", "activemq-stomp"}
SHARE = 8  # one case of eight
SEED = 20

counts = {"visited": 0, "total": 0}


@pytest.hookimpl(tryfirst=True)  # before the marks choose
def pytest_collection_modifyitems(items):
    by_pair = defaultdict(list)
    for item in items:
        if item.path.name == "test_contract.py":
            by_pair[item.callspec.params["pair"]].append(item)
    for pair, cases in by_pair.items():
        drawn = cases if pair in WHOLE else random.Random(f"{SEED} {pair}").sample(cases, -(-len(cases) // SHARE))
        for case in {*cases} - {*drawn}:
            case.add_marker(pytest.mark.torture)
        counts["visited"] += len(drawn)
        counts["total"] += len(cases)


def pytest_terminal_summary(terminalreporter):
    """Tell the size of the sample, unless the run asked for the others, too."""
    if counts["total"] and terminalreporter.config.option.markexpr == "not torture":
        terminalreporter.write_line(f"cases of the contract: {counts['visited']} / {counts['total']} (sample)")
