"""The process that the backlog check measures: a serial listener, as an application would have it.

``python -m tests.torture.backlog_listener URL MESSAGES`` handles so many, then prints its peak memory in bytes.
"""

import resource
import sys
import threading
from pathlib import Path

from jmsjca import Message, ResourceAdapter


def peak_memory() -> int:
    """Bytes; from /proc where it exists, because what `resource` says includes the parent's peak before the exec."""
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def main(url: str, messages: int) -> None:
    adapter = ResourceAdapter(url)
    enough = threading.Event()

    @adapter.listener("backlog")
    def handle(message: Message) -> None:
        message.get_body(str)
        if adapter.activations[0].stats.n_messages >= messages:
            enough.set()

    with adapter:
        if not enough.wait(timeout=120):
            sys.exit(f"Only {adapter.activations[0].stats.n_messages} of {messages} messages came.")
    print(peak_memory())


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
