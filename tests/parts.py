"""Runs the parts of ``make test``, prints the seconds of each and what failed: ``python tests/parts.py [PART …]``."""

import os
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
        "test_console_browser.py",
        "test_exactly_once.py",
        "test_inbound.py",
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
ONE_DEMO = "tests/demo/test_demo.py"
running = set()  # processes
LONGEST = 1000  # characters of what is repeated of a failure

# The commands of a part run side by side.
PARTS = {
    "lint": [[BIN / "ruff", "check", "."], [BIN / "ruff", "format", "--check", "."]],
    "types": [[BIN / "mypy"], [BIN / "pyright", "--pythonpath", sys.executable]],
    "unit": [
        [
            *(*PYTEST, "-m", "not spark and not torture", "tests/unit", "tests/contract", "tests/typing"),
            *(f"--ignore={folder}" for folder in (*SOME_UNITS, LISTENERS)),
        ],
        [*PYTEST, "-m", "not spark and not torture", *SOME_UNITS],
        [*PYTEST, "-m", "not spark", LISTENERS, "tests/docs"],
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
        [*PYTEST, "-s", "tests/torture", f"--ignore={SOME_FAULTS}"],
        [*PYTEST, "-s", SOME_FAULTS, "tests/model"],
        [*PYTEST, "-m", "not torture", "tests/release"],
    ],
    "spark": [
        [
            *(*PYTEST, "-s", "-m", "not torture", "tests/spark"),
            *(f"--ignore={path}" for path in (*SOME_SPARK, *OTHER_SPARK)),
        ],
        [*PYTEST, "-s", *SOME_SPARK],
        [*PYTEST, "-s", "-m", "not torture", *OTHER_SPARK],
        [*PYTEST, "-m", "spark", "tests/docs"],
    ],
    "demo": [[*PYTEST, "tests/demo", f"--ignore={ONE_DEMO}"], [*PYTEST, ONE_DEMO]],
}


class Result(NamedTuple):
    """How a part, or a command of it, ended; what failed is repeated at the end, where it is easily found."""

    failed: bool
    failures: list[str]


def run(name):
    print(f"── {name}", flush=True)
    commands = PARTS[name]
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


def main(names):
    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, end)
    results, seconds = {}, {}
    for name in names or PARTS:
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
