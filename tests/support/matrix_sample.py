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
    "embedded_memory": 8,  # the store in a file, which has more to keep, has all cases of sessions
    "inbound_memory": 8,
    "inbound_file": 4,
    "inbound": 8,  # over real brokers
    "console_browser of Artemis": 8,  # the pages are the same
}
SLOW = {  # of files that start processes, brokers, browsers or Spark for each case
    "brokers/java/test_headers": 4,
    "brokers/java/test_messages": 3,
    "brokers/java/test_openwire": 3,
    "brokers/java/test_rabbitmq4": 3,
    "brokers/java/test_selectors": 4,
    "brokers/java/test_transactions_and_topics": 3,
    "brokers/test_acknowledge_modes": 4,
    "brokers/test_broker_kills": 3,
    "brokers/test_broker_processes": 2,
    "brokers/test_connector_recovery": 3,
    "brokers/test_doctor": 2,
    "brokers/test_exactly_once": 3,
    "brokers/test_foreign_values": 3,
    "brokers/test_interop_shims": 4,
    "brokers/test_interrupted_calls": 3,
    "brokers/test_java_xa_kills": 2,
    "brokers/test_listener": 4,
    "brokers/test_names": 3,
    "brokers/test_openmq": 2,
    "brokers/test_postgresql": 3,
    "brokers/test_queue_management": 2,
    "brokers/test_rabbitmq4": 2,
    "brokers/test_rabbitmq4_alarm": 3,
    "brokers/test_rabbitmq_management": 2,
    "brokers/test_security": 3,
    "brokers/test_spark": 3,
    "brokers/test_spark_crashes": 4,
    "brokers/test_spark_credentials": 2,
    "brokers/test_spark_failures": 2,
    "brokers/test_spark_sinks": 3,
    "brokers/test_two_resources": 3,
    "brokers/test_unseen_moves": 3,
    "release/test_distributions": 3,
    "spark/test_amqp_defects": 4,
    "spark/test_at_least_once": 3,
    "spark/test_crashes": 4,
    "spark/test_crashing_sink": 4,
    "spark/test_duplicate_resolution": 4,
    "spark/test_event_pipeline": 3,
    "spark/test_exactly_once": 2,
    "spark/test_exactly_once_stream": 3,
    "spark/test_jobs": 3,
    "spark/test_memory": 3,
    "spark/test_partition": 3,
    "spark/test_prefetch": 2,
    "spark/test_staging": 3,
    "spark/test_staging_faults": 6,
    "spark/test_stream": 2,
    "spark/test_stream_tasks": 2,
    "torture/test_spark_faults": 3,
    "typing/test_documentation": 4,
    "unit/inbound/test_forks": 4,
    "unit/inbound/test_inbox_outages": 3,
    "unit/inbound/test_shutdown": 2,
    "unit/management/test_console_access": 4,
    "unit/management/test_console_browser": 2,
    "unit/management/test_mcp": 2,
    "unit/management/test_terminal": 4,
    "unit/management/test_worker": 3,
    "unit/outbound/test_interrupted_borrowers": 3,
    "unit/outbound/test_interrupted_calls": 3,
    "unit/outbound/test_interrupted_managed": 3,
    "unit/providers/amqp/wire/test_closing": 2,
    "unit/providers/amqp/wire/test_cut_at_every_frame": 3,
    "unit/providers/amqp/wire/test_forks": 4,
    "unit/providers/amqp/wire/test_link_pool": 2,
    "unit/providers/amqp/wire/test_login": 3,
    "unit/providers/embedded/test_hand_overs": 2,
    "unit/providers/embedded/test_processes": 2,
    "unit/providers/stomp/test_cut_at_every_frame": 3,
    "unit/providers/stomp/test_forks": 4,
    "unit/providers/test_wrong_port": 3,
    "unit/transactions/test_two_resources": 3,
}
MANY = 4  # a test with more cases than this
FRACTION = 8  # tries these, and one of eight of the others
SEED = os.environ.get("JMSJCA_SEED", "20")
ROOMS = re.compile(
    r"tests/(unit/\w+/|brokers/|spark/|contract/|release/|typing/|torture/test_spark_faults)"
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
    """Return the name of the matrix of a case: a suite over a pair, a file with a share, or the cases of a test."""
    name = item.nodeid.partition("[")[0]
    if (path := item.nodeid.partition(".py::")[0].removeprefix("tests/")) in SLOW:
        return path
    file = item.nodeid.partition("::")[0].rpartition("/")[2].removeprefix("test_").removesuffix(".py")
    if file in {"contract", "java_contract", "java_inbound"}:
        return f"{file} {item.callspec.params['pair']}"
    if item.nodeid.startswith("tests/brokers/test_console_browser"):
        return "console_browser of Artemis"
    return file if file in SHARES else f"{file} {name}"


def drawn_of(name, total):
    """Return how many cases of a matrix are tried in every run."""
    file = name.partition(" ")[0]
    share = SLOW.get(name) or SHARES.get(name) or SHARES.get("java" if file.startswith("java_") else file)
    return -(-total // share) if share else min(total, MANY + max(0, total - MANY) // FRACTION)


def pytest_terminal_summary(terminalreporter):
    """Print the sizes of the samples, unless the run asked for the other cases too."""
    if "not torture" in terminalreporter.config.option.markexpr:
        for kind, (visited, total) in samples.items():
            terminalreporter.write_line(f"{kind}: {visited} / {total} (sample, seed {SEED})")
