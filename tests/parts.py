"""Runs the parts of ``make test`` and prints the seconds of each: ``python tests/parts.py [PART …]``."""

import subprocess
import sys
import time
from pathlib import Path

BIN = Path(sys.executable).parent
PYTEST = [sys.executable, "-m", "pytest", "-q", "-ra"]

PARTS = {
    "lint": [[BIN / "ruff", "check", "."], [BIN / "ruff", "format", "--check", "."]],
    "types": [[BIN / "mypy"], [BIN / "pyright", "--pythonpath", sys.executable]],
    "unit": [[*PYTEST, "-m", "not spark", "tests/unit", "tests/contract", "tests/docs"]],
    "brokers": [[*PYTEST, "-m", "not torture", "tests/brokers"]],
    "crash": [[*PYTEST, "-s", "tests/torture"]],
    "spark": [[*PYTEST, "-s", "tests/spark"], [*PYTEST, "-m", "spark", "tests/docs"]],
    "demo": [[*PYTEST, "tests/demo"]],
}


def run(name):
    begin = time.monotonic()
    print(f"── {name}", flush=True)
    failed = [command for command in PARTS[name] if subprocess.run(command, check=False).returncode]
    return time.monotonic() - begin, failed


def main(names):
    results = {name: run(name) for name in names or PARTS}
    print("── seconds per part")
    for name, (seconds, failed) in results.items():
        print(f"{name:<8}{seconds:6.0f}  {'FAILED' if failed else 'ok'}")
    print(f"{'total':<8}{sum(seconds for seconds, _ in results.values()):6.0f}")
    return 1 if any(failed for _, failed in results.values()) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
