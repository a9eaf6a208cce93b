"""Runs the parts of ``make test`` and prints the seconds of each: ``python tests/parts.py [PART …]``."""

import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

BIN = Path(sys.executable).parent
PYTEST = [sys.executable, "-m", "pytest", "-q", "-ra"]
BROKERS_AND_SPARK = ["tests/brokers/test_demo.py", "tests/brokers/test_spark.py"]
ONE_DEMO = "tests/demo/test_demo.py"

# The commands of a part run side by side.
PARTS = {
    "lint": [[BIN / "ruff", "check", "."], [BIN / "ruff", "format", "--check", "."]],
    "types": [[BIN / "mypy"], [BIN / "pyright", "--pythonpath", sys.executable]],
    "unit": [[*PYTEST, "-m", "not spark", "tests/unit", "tests/contract", "tests/docs"]],
    "brokers": [
        [*PYTEST, "-m", "not torture", "tests/brokers", *(f"--ignore={file}" for file in BROKERS_AND_SPARK)],
        [*PYTEST, "-m", "not torture", *BROKERS_AND_SPARK],
    ],
    "crash": [[*PYTEST, "-s", "tests/torture"], [*PYTEST, "-s", "tests/model"]],
    "spark": [[*PYTEST, "-s", "tests/spark"], [*PYTEST, "-m", "spark", "tests/docs"]],
    "demo": [[*PYTEST, "tests/demo", f"--ignore={ONE_DEMO}"], [*PYTEST, ONE_DEMO]],
}


def run(name):
    begin = time.monotonic()
    print(f"── {name}", flush=True)
    commands = PARTS[name]
    with ThreadPoolExecutor(len(commands)) as pool:
        failed = not all(pool.map(run_alone if len(commands) == 1 else run_beside, commands))
    return time.monotonic() - begin, failed


def run_alone(command):
    return subprocess.run(command, check=False).returncode == 0


def run_beside(command):
    """Print what a command says in one piece, when it has ended."""
    done = subprocess.run(command, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    sys.stdout.buffer.write(done.stdout)
    sys.stdout.flush()
    return done.returncode == 0


def main(names):
    results = {name: run(name) for name in names or PARTS}
    print("── seconds per part")
    for name, (seconds, failed) in results.items():
        print(f"{name:<8}{seconds:6.0f}  {'FAILED' if failed else 'ok'}")
    print(f"{'total':<8}{sum(seconds for seconds, _ in results.values()):6.0f}")
    return 1 if any(failed for _, failed in results.values()) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
