"""The cases that every test run tries of tests with many cases: a seeded sample, and all in ``make torture``.

What is not drawn is marked ``torture``. ``JMSJCA_SEED`` draws other cases.
"""

import os
import random
import re
from collections import defaultdict

import pytest

SHARES = {  # of these, one case of so many
    "contract artemis-amqp": 3,  # each network provider is tried by one pair more than by the others
    "contract activemq-stomp": 3,
    "contract": 12,
    "java": 24,  # their processes start slowly
    "embedded_memory": 4,  # the store in a file, which has more to keep, has all cases of sessions
    "inbound_memory": 4,
    "inbound_file": 2,
    "inbound": 4,  # over real brokers
    "console_browser": 2,  # most have two widths
    "console_browser of Artemis": 4,  # the pages are the same
}
MANY = 8  # a test with more cases than this
FRACTION = 4  # tries these, and one of four of the others
SEED = os.environ.get("JMSJCA_SEED", "20")
ROOMS = re.compile(
    r"tests/(unit/\w+/|brokers/|spark/|contract/)"
)  # not the rules for all sources, which stand in tests/unit

samples = defaultdict(lambda: [0, 0])  # visited and total of each kind


def count(kind, visited, total):
    """Add the size of a sample to the terminal summary."""
    samples[kind][0] += visited
    samples[kind][1] += total


@pytest.hookimpl(tryfirst=True)  # before the marks choose
def pytest_collection_modifyitems(items):
    matrices = defaultdict(list)
    for item in items:
        if ROOMS.match(item.nodeid) and not item.get_closest_marker("torture"):
            matrices[matrix_of(item)].append(item)
    for name, cases in matrices.items():
        size = drawn_of(name, len(cases))
        if size < len(cases):
            drawn = random.Random(f"{SEED} {name}").sample(cases, size)
            for case in {*cases} - {*drawn}:
                case.add_marker(pytest.mark.torture)
            count("cases of large matrices", size, len(cases))


def matrix_of(item):
    """Return the name of the matrix of a case: a suite over a pair, a file of `SHARES`, or else the cases of a test."""
    name = item.nodeid.partition("[")[0]
    file = item.nodeid.partition("::")[0].rpartition("/")[2].removeprefix("test_").removesuffix(".py")
    if file in {"contract", "java_contract", "java_inbound"}:
        return f"{file} {item.callspec.params['pair']}"
    if item.nodeid.startswith("tests/brokers/test_console_browser"):
        return "console_browser of Artemis"
    return file if file in SHARES and file != "console_browser" else f"{file} {name}"


def drawn_of(name, total):
    """Return how many cases of a matrix are tried in every run."""
    file = name.partition(" ")[0]
    share = SHARES.get(name) or SHARES.get("java" if file.startswith("java_") else file)
    return -(-total // share) if share else min(total, MANY + max(0, total - MANY) // FRACTION)


def pytest_terminal_summary(terminalreporter):
    """Print the sizes of the samples, unless the run asked for the other cases too."""
    if "not torture" in terminalreporter.config.option.markexpr:
        for kind, (visited, total) in samples.items():
            terminalreporter.write_line(f"{kind}: {visited} / {total} (sample, seed {SEED})")
