"""What ``import jmsjca`` costs over a bare interpreter, and which libraries it must not load.

``python -m tests.benchmarks.import_time``
"""

import statistics
import subprocess
import sys
import time

BOUND = 150.0  # milliseconds
ROUNDS = 7
UNWANTED = ("jmsjca.inbound", "proton", "stomp", "pyspark", "pyarrow", "typer", "rich", "pydantic", "lark")


def milliseconds(code: str) -> float:
    """How long a fresh interpreter takes for some code."""
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True)
    return (time.perf_counter() - began) * 1000


def loaded() -> list[str]:
    """Which of the unwanted libraries ``import jmsjca`` loads."""
    code = f"import sys, jmsjca; print(*(m for m in {UNWANTED} if m in sys.modules))"
    return subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.PIPE, text=True).stdout.split()


def main() -> int:
    """Print the figures; 1 if the import is too slow or loads too much."""
    programs = ("pass", "import jmsjca", "from jmsjca import ResourceAdapter")
    rounds = [[milliseconds(program) for program in programs] for _ in range(ROUNDS + 1)][1:]  # the first fills caches
    bare, cost, listening = (statistics.median(each) for each in zip(*rounds, strict=True))
    cost, listening, unwanted = cost - bare, listening - bare, loaded()
    print(f"import jmsjca: {cost:.0f} ms over a bare interpreter (median of {ROUNDS}, bound {BOUND:.0f} ms)")
    print(f"with the adapter for listeners: {listening:.0f} ms")
    print(f"must not be loaded: {', '.join(UNWANTED)}; loaded: {', '.join(unwanted) or 'none'}")
    return 1 if unwanted or cost > BOUND else 0


if __name__ == "__main__":
    sys.exit(main())
