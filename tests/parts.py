"""Runs the parts of ``make test``, prints the seconds of each and what failed: ``python tests/parts.py [PART …]``.

``check``, ``torture``, ``bench``, ``docs``, ``release``, ``lock`` … are what ``make`` runs under these names.
"""

import os
import re
import shlex
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import NamedTuple

BIN = Path(sys.executable).parent
PYTEST = [sys.executable, "-m", "pytest", "-q", "-ra"]
WITH_CLIENTS = [  # of other languages, kills of brokers, and Spark
    f"tests/brokers/{name}"
    for name in (
        "java",
        "test_broker_kills.py",
        "test_demo.py",
        "test_broker_processes.py",
        "test_spark.py",
        "test_spark_crashes.py",
        "test_spark_failures.py",
    )
]
WITH_DATABASES = [  # and what else rather waits than works
    f"tests/brokers/{name}"
    for name in (
        "test_acknowledge_modes.py",
        "test_console_browser.py",
        "test_exactly_once.py",
        "test_failover_features.py",
        "test_failovers.py",
        "test_inbound.py",
        "test_java_tls.py",
        "test_outbox.py",
        "test_postgresql.py",
        "test_pytest_kit.py",
        "test_queue_management.py",
        "test_rabbitmq4_alarm.py",
        "test_two_resources.py",
    )
]
SOME_UNITS = ["tests/unit/providers", "tests/unit/management"]
LISTENERS = "tests/unit/inbound"
NOT_NOW = "not spark and not torture"
QUICK_ROOMS = ("messages", "selectors", "config", "redelivery", "descriptors")
QUICK_FILES = ("sender", "producer", "consumer", "connection", "transacted_sessions", "acknowledge_modes", "pool")
SOME_SPARK = [
    f"tests/spark/{name}"
    for name in (
        "test_crashes.py",
        "test_crashing_sink.py",
        "test_event_pipeline.py",
        "test_exactly_once_stream.py",
        "test_flights_through_connector.py",
        "test_wheel.py",
    )
]
OTHER_SPARK = [
    f"tests/spark/{name}" for name in ("test_amqp_defects.py", "test_duplicate_resolution.py", "test_staging_faults.py")
]
SOME_FAULTS = "tests/torture/test_documentation_faults.py"
running = set()  # processes
LONGEST = 1000  # characters of what is repeated of a failure

# The commands of a part run side by side.
PARTS = {
    "lint": [[BIN / "ruff", "check", "."], [BIN / "ruff", "format", "--check", "."]],
    "types": [[BIN / "mypy"], [BIN / "pyright", "--pythonpath", sys.executable]],
    "unit": [
        [
            *(*PYTEST, "-m", NOT_NOW, "tests/unit", "tests/contract", "tests/typing"),
            *(f"--ignore={folder}" for folder in (*SOME_UNITS, LISTENERS)),
        ],
        [*PYTEST, "-m", NOT_NOW, *SOME_UNITS],
        [*PYTEST, "-m", NOT_NOW, LISTENERS, "tests/docs"],
    ],
    "brokers": [
        [
            *(*PYTEST, "-m", "not torture", "tests/brokers"),
            *(f"--ignore={path}" for path in (*WITH_CLIENTS, *WITH_DATABASES)),
        ],
        [*PYTEST, "-m", "not torture", *WITH_CLIENTS],
        [*PYTEST, "-m", "not torture", *WITH_DATABASES],
    ],
    "crash": [
        [*PYTEST, "-s", "-m", "not torture", "tests/torture", f"--ignore={SOME_FAULTS}"],
        [*PYTEST, "-s", SOME_FAULTS, "tests/model"],
        [*PYTEST, "-m", "not torture", "tests/release"],
        [*PYTEST, "-m", "not torture", "tests/demo"],
    ],
    "spark": [
        [
            *(*PYTEST, "-s", "-m", "not torture", "tests/spark"),
            *(f"--ignore={path}" for path in (*SOME_SPARK, *OTHER_SPARK)),
        ],
        [*PYTEST, "-s", "-m", "not torture", *SOME_SPARK],
        [*PYTEST, "-s", "-m", "not torture", *OTHER_SPARK],
        [*PYTEST, "-m", "spark", "tests/docs"],
    ],
}
CHECK = {  # two minutes, before a commit
    "lint": PARTS["lint"],
    "types": PARTS["types"],
    "quick": [
        [*PYTEST, "-m", NOT_NOW, "tests/unit/test_package.py", *(f"tests/unit/{room}" for room in QUICK_ROOMS)],
        [*PYTEST, "-m", NOT_NOW, *(f"tests/unit/outbound/test_{name}.py" for name in QUICK_FILES)],
    ],
}

# One after the other, by this interpreter; words with "=" are the environment. The import times come last: they have a
# bound, which a machine may be too slow for.
TORTURE = """
-m tests.torture.kill_loop --messages 20000 --kills 100
-m tests.torture.relay_kills embedded artemis-amqp activemq-stomp
-m tests.torture.replay_kills embedded artemis-amqp
-m tests.torture.stop_moments embedded artemis-amqp
-m tests.torture.unseen_moves
-m tests.torture.xa_kills --kills 200 artemis-java
-m tests.torture.spark_kills --messages 20000 --kills 100 embedded artemis-amqp activemq-stomp
-m tests.torture.backlog_memory
-m tests.model.run --steps 1000000
-m tests.unit.inbound.random_walk --walks 50
-m tests.unit.inbound.poison --messages 10000
-m tests.unit.providers.amqp.wire.cuts
-m tests.torture.crash_points
-m tests.torture.crash_points --errors
-m tests.torture.group_points
-m tests.torture.failed_releases
-m tests.torture.power_loss
-m tests.torture.planted_faults
-m tests.torture.documentation_faults
-m tests.torture.fuzz_stomp --runs 10000000
-m tests.torture.broker_kills artemis-amqp activemq-amqp qpid-amqp activemq-stomp
-m tests.torture.failovers artemis-replication activemq-shared-store rabbitmq4-quorum
-m tests.torture.spark_failovers artemis-replication rabbitmq4-quorum
-m tests.benchmarks.own_broker artemis-amqp tests.docs.replay
-m pytest -q -s -m torture tests/brokers tests/contract tests/demo tests/release tests/spark tests/typing tests/unit \
    tests/torture/test_spark_faults.py
JMSJCA_POOL_CYCLES=100000 -m pytest -q --timeout 1200 tests/unit/outbound/test_pool.py
JMSJCA_ALL_STEPS=1 -m pytest -q --timeout 1200 tests/unit/transactions tests/unit/descriptors tests/unit/outbound \
    tests/unit/providers tests/unit/inbound/test_interrupted_adapters.py tests/unit/test_adapter.py \
    tests/docs/test_provider_example.py tests/brokers/test_two_resources.py tests/brokers/test_interrupted_calls.py
JMSJCA_EXAMPLES=1000 -m pytest -q --timeout 3600 -m hypothesis tests/unit
JMSJCA_ALL_STEPS=1 -m pytest -q -s tests/torture/test_failing_calls.py tests/torture/test_connector_points.py \
    tests/torture/test_connector_faults.py
JMSJCA_ALL_STEPS=1 -m pytest -q -s --timeout 3000 tests/spark/test_crashes.py tests/spark/test_crashing_sink.py \
    tests/spark/test_prefetch.py
JMSJCA_ALL_ORDERS=1 -m pytest -q -s tests/spark/test_duplicate_resolution.py tests/spark/test_power_cuts.py
JMSJCA_ALL_CELLS=1 -m pytest -q -s --timeout 3600 tests/unit/inbound/test_killer.py
JMSJCA_ALL_ORDERS=1 -m pytest -q -s --timeout 3600 tests/unit/inbound/test_held_units_in_every_order.py \
    tests/unit/inbound/test_activation_states_in_every_order.py tests/unit/inbound/test_receiver_prefetch.py
"""
EARLIER_SPARK = f"""
-m pip install --quiet --no-deps --upgrade --target {sys.prefix}/spark-4.2 pyspark==4.2.*
PYTHONPATH={sys.prefix}/spark-4.2 -m pytest -q -m "not torture" tests/spark
"""
BENCH = """
-m pip install --quiet --group bench
-m tests.benchmarks.embedded
-m tests.benchmarks.scale
-m tests.benchmarks.many_queues
-m tests.benchmarks.inbound
-m tests.benchmarks.transactions
-m tests.benchmarks.hooks
-m tests.benchmarks.own_broker artemis-amqp tests.benchmarks.workers
-m tests.benchmarks.console
-m tests.benchmarks.amqp_codec
-m tests.benchmarks.amqp_engine
-m tests.benchmarks.own_broker artemis-amqp tests.benchmarks.field
-m tests.benchmarks.own_broker artemis-amqp tests.benchmarks.asynchronous_sends
-m tests.benchmarks.senders embedded
-m tests.benchmarks.own_broker artemis-amqp tests.benchmarks.senders --others repid
-m tests.benchmarks.own_broker rabbitmq-amqp tests.benchmarks.senders --others faststream --no-bare
-m tests.benchmarks.own_broker activemq-stomp tests.benchmarks.stomp
-m tests.benchmarks.own_broker rabbitmq-amqp tests.benchmarks.inbound_rabbitmq
-m tests.benchmarks.connector
-m tests.benchmarks.spark_partition
-m tests.benchmarks.own_broker artemis-amqp tests.benchmarks.spark_partition
-m tests.benchmarks.spark_table
-m tests.benchmarks.own_broker artemis-amqp tests.benchmarks.spark_table
-m tests.benchmarks.spark_to_parquet
-m tests.benchmarks.spark_latency
-m tests.benchmarks.import_time
"""
DOCS = """
-m pip install --quiet --group docs
-m tests.benchmarks.plot
-m tests.support.diagrams
-m tests.support.pictures
-m tests.support.reference
-m tests.support.llms_text
-m zensical build --strict -f docs/mkdocs.yml
-m tests.support.reference check
"""
RELEASE = """
-m pip install --quiet --group release
-m pytest -q tests/release
-m hatchling build
-m venv dist/.environment
-m pip --python dist/.environment install --quiet --require-hashes -r .ci/locked.txt
-m pip --python dist/.environment install --quiet --no-deps --no-index --find-links dist jmsjca
-m cyclonedx_py environment --output-reproducible --pyproject pyproject.toml --output-file dist/jmsjca.cdx.json \
    dist/.environment
-m tests.support.audit dist/.environment
"""
AUDIT = """
-m pip install --quiet --group release
-m venv --clear dist/.audited
-m pip --python dist/.audited install --quiet --require-hashes -r .ci/locked.txt
-m pip --python dist/.audited install --quiet --no-deps .
-m tests.support.audit dist/.audited
"""
LOCK = f"""
-m venv --clear {sys.prefix}/locking
-m pip --python {sys.prefix}/locking install --quiet pip-tools
-m tests.support.lock {sys.prefix}/locking
"""
FORMAT = """
-m ruff check --fix .
-m ruff format .
"""
SERIES = {
    "format": FORMAT,
    "torture": TORTURE + EARLIER_SPARK.lstrip(),
    "bench": BENCH,
    "earlier-spark": EARLIER_SPARK,
    "docs": DOCS,
    "release": RELEASE,
    "lock": LOCK,
    "audit": AUDIT,
}


class Result(NamedTuple):
    """How a part, or a command of it, ended; what failed is repeated at the end, where it is easily found."""

    failed: bool
    failures: list[str]


def run(name):
    print(f"── {name}", flush=True)
    commands = (PARTS | CHECK)[name]
    with ThreadPoolExecutor(len(commands)) as pool:
        results = list(pool.map(partial(run_command, alone=len(commands) == 1), commands))
    return Result(any(r.failed for r in results), [line for r in results for line in r.failures])


def run_command(command, *, alone):
    """Print what a command says: at once if it is alone, else in one piece when it has ended."""
    lines = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, errors="replace") as process:
        running.add(process)
        for line in process.stdout:
            lines.append(line)
            if alone:
                print(line, end="", flush=True)
    if not alone:
        print("".join(lines), end="", flush=True)
    return Result(process.returncode != 0, failures(lines) if process.returncode else [])


def failures(lines):
    """The tests that pytest names, each with its first line; of what names none the last words."""
    named = [line for line in lines if line.startswith(("FAILED ", "ERROR "))]
    return [line.rstrip()[:LONGEST] for line in named or lines[-5:]]


def end(signum, _):
    """End what runs, as this run is ended; the tests' reaper then ends their brokers."""
    for process in running:
        process.terminate()
    os._exit(128 + signum)  # threads wait for the processes


def run_series(commands):
    """Run commands one after the other, up to the first that fails; return its exit status."""
    for command in commands.strip().splitlines():
        words = shlex.split(command)
        settings = dict(word.split("=", 1) for word in words if re.match("[A-Z_]+=", word))
        print(f"── {command}", flush=True)
        environment = {**os.environ, "PYTHONPATH": "tests/support", **settings}
        with subprocess.Popen([sys.executable, *words[len(settings) :]], env=environment) as process:
            running.add(process)
        if process.returncode:
            return process.returncode
    return 0


def main(names):
    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, end)
    if len(names) == 1 and names[0] in SERIES:
        return run_series(SERIES[names[0]])
    results, seconds = {}, {}
    for name in CHECK if names == ["check"] else names or PARTS:
        begin = time.monotonic()
        results[name] = run(name)
        seconds[name] = time.monotonic() - begin
    print("── seconds per part")
    for name, result in results.items():
        print(f"{name:<8}{seconds[name]:6.0f}  {'FAILED' if result.failed else 'ok'}")
    print(f"{'total':<8}{sum(seconds.values()):6.0f}")
    for line in (line for result in results.values() for line in result.failures):
        print(line)
    return 1 if any(result.failed for result in results.values()) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
