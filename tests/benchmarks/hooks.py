"""What hooks, metrics and tracing cost a serial listener in memory, each beside a listener without, in one run.

``python -m tests.benchmarks.hooks``
"""

import statistics
import threading
import time
import uuid
from collections.abc import Callable, Sequence

from opentelemetry.sdk.trace import TracerProvider
from prometheus_client import CollectorRegistry

from jmsjca import Hooks, Message, ResourceAdapter
from jmsjca.management.metrics import Metrics
from jmsjca.management.tracing import Tracing
from jmsjca.providers.embedded.store.store import drop_memory_store

MESSAGES, ROUNDS = 4000, 15


class Nothing(Hooks):
    """A hook that only goes on."""

    def around_delivery(self, endpoint: str, message: Message, call_next: Callable[[], object]) -> object:
        return call_next()


CONTENDERS: dict[str, Callable[[], Sequence[Hooks]]] = {
    "none": lambda: (),
    "empty hook": lambda: [Nothing()],
    "metrics": lambda: [Metrics(CollectorRegistry())],
    "tracing": lambda: [Tracing()],
    "tracing, SDK": lambda: [Tracing(TracerProvider())],
}


def seconds(hooks: Sequence[Hooks]) -> float:
    """The processor time of a serial listener over its messages, in a broker of its own."""
    name, done = f"hooks-{uuid.uuid4().hex}", threading.Event()
    ResourceAdapter(f"embedded://{name}").send_many("q", ["x" * 100] * MESSAGES)
    adapter, left = ResourceAdapter(f"embedded://{name}", hooks=hooks), MESSAGES

    @adapter.listener("q", concurrency_mode="serial", redelivery_handling="3:25; 5:move(queue:dlq.$)")
    def count(message: Message) -> None:
        nonlocal left
        left -= 1
        if not left:
            done.set()

    began = time.process_time()
    with adapter:
        done.wait()
        spent = time.process_time() - began
    drop_memory_store(name)
    return spent


def main() -> None:
    """Measure in turns, so that a slow moment of the machine hits all."""
    rounds = [{name: seconds(make()) for name, make in CONTENDERS.items()} for _ in range(ROUNDS)]
    for name in CONTENDERS:
        cost = statistics.median(each[name] for each in rounds) / MESSAGES * 1e6
        ratio = statistics.median(each[name] / each["none"] for each in rounds)
        print(f"{name:14} {cost:7.1f} µs of processor time per message  {100 * (ratio - 1):+6.1f} %")


if __name__ == "__main__":
    main()
