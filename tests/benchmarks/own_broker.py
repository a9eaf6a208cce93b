"""Runs a benchmark against a broker of its own, and stops that: ``… artemis-amqp tests.benchmarks.field``."""

import subprocess
import sys

from brokers import BrokerMissing, registry


def main(pair: str, module: str, *arguments: str) -> int:
    """Start the broker of a pair such as ``artemis-amqp``, and give its URL to the module."""
    name, protocol = pair.split("-")
    try:
        url = registry.shared(name).url(protocol)
    except BrokerMissing as problem:
        print(f"{module} is left out: {problem}", file=sys.stderr)
        return 0
    try:
        return subprocess.run([sys.executable, "-m", module, url, *arguments], check=False).returncode
    finally:
        registry.discard_shared()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
