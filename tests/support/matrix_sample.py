"""The cases that every test run tries of tests with many cases: a seeded sample, and all in ``make torture``.

What is not drawn is marked ``torture``. ``JMSJCA_SEED`` draws other cases.
"""

import os
import random
import re
from collections import defaultdict

import pytest

WHOLE = {"artemis-amqp", "activemq-stomp"}
"""The pairs that try all cases of the contract: they have both protocols, and so each network provider."""

SHARE = 8  # of the contract over the other pairs, one case of eight
JAVA_SHARE = 16  # over clients of Java, whose processes start slowly
MANY = 8  # a test with more cases than this
FRACTION = 4  # tries these, and one of four of the others
SEED = os.environ.get("JMSJCA_SEED", "20")
ROOMS = re.compile(r"tests/(unit/\w+/|brokers/|spark/)")  # not the rules for all sources, which stand in tests/unit

samples = defaultdict(lambda: [0, 0])  # visited and total of each kind


def count(kind, visited, total):
    """Add the size of a sample to the terminal summary."""
    samples[kind][0] += visited
    samples[kind][1] += total


@pytest.hookimpl(tryfirst=True)  # before the marks choose
def pytest_collection_modifyitems(items):
    matrices = defaultdict(list)
    for item in items:
        if ROOMS.match(item.nodeid) and hasattr(item, "callspec") and not item.get_closest_marker("torture"):
            name = item.nodeid.partition("[")[0]
            if item.path.name in {"test_contract.py", "test_java_contract.py", "test_java_inbound.py"}:
                name = f"{item.path.stem.removeprefix('test_')} {item.callspec.params['pair']}"
            matrices[name].append(item)
    for name, cases in matrices.items():
        size = drawn_of(name, len(cases))
        if size < len(cases):
            drawn = random.Random(f"{SEED} {name}").sample(cases, size)
            for case in {*cases} - {*drawn}:
                case.add_marker(pytest.mark.torture)
            count("cases of large matrices", size, len(cases))


def drawn_of(name, total):
    """Return how many cases of a test are tried in every run."""
    if name.startswith("java_"):
        return -(-total // JAVA_SHARE)
    if name.startswith("contract "):
        return total if name.split()[1] in WHOLE else -(-total // SHARE)
    return min(total, MANY + max(0, total - MANY) // FRACTION)


def pytest_terminal_summary(terminalreporter):
    """Print the sizes of the samples, unless the run asked for the other cases too."""
    if "not torture" in terminalreporter.config.option.markexpr:
        for kind, (visited, total) in samples.items():
            terminalreporter.write_line(f"{kind}: {visited} / {total} (sample, seed {SEED})")
