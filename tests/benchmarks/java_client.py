"""The processor time of jmsjca over a client of Java, both processes, beside the same client alone and our own AMQP.

``PYTHONPATH=tests/support python -m tests.benchmarks.java_client artemis activemq --rounds 9``

Units of 100 durable text messages of 1 KiB with three properties, in transactions. All headers and properties of a
received message are read; the client alone encodes each received message as the bridge does. The contenders take turns
within every round. Each figure is the minimum of its rounds, since the other work of the machine only ever adds to it.
"""

import argparse
import subprocess
import sys
import tempfile
import time
import uuid
import zipfile
from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import psutil
from brokers import registry
from brokers.provisioning import find_compiler, java

from jmsjca import Queue, TextMessage, spi
from jmsjca.providers.java.bridge import _find_jar, shared_bridge
from jmsjca.reconnection import ConnectionSettings, connect
from jmsjca.testing.contract.harness import prepare
from tests.benchmarks.measurements import alternating

BATCH = 100
BODY = "x" * 1024
SOURCE = Path(__file__).parents[1] / "java" / "alone" / "Alone.java"
CLIENTS = {"artemis": ("activemq.artemis.jms.client", "javax"), "activemq": ("activemq", "jakarta")}
ALONE, OVER_JAVA, OWN = "the client alone", "jmsjca over it", "jmsjca over AMQP"
Loop = Callable[[str, int], float]


class Alone:
    """The client of Java in a process of its own.

    Args:
        factory: The class of its connection factory.
        url: Its URL.
        jars: Its class path.
        namespace: The API of its jars: jakarta or javax.
        folder: An empty folder, for the compiled program.
    """

    def __init__(self, factory: str, url: str, jars: str, namespace: str, folder: Path) -> None:
        with zipfile.ZipFile(_find_jar()) as bridge:
            bridge.extractall(folder)
        source, classes = folder / SOURCE.name, f"{folder / namespace}:{folder}:{jars}"
        source.write_text(SOURCE.read_text().replace("jakarta.jms", f"{namespace}.jms"))
        compiler = [find_compiler(), "-nowarn", "-proc:none", "-cp", classes, "-d", folder / namespace, source]
        subprocess.run(compiler, check=True)
        command = java(classes, {}, "jmsjca.jms.Alone", factory, url)
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def does(self, loop: str) -> Loop:
        """Return a function that lets it send or receive, and returns the seconds of its processor time."""

        def take_turn(queue: str, count: int) -> float:
            self._process.stdin.write(f"{loop} {queue} {count}\n")  # type: ignore[union-attr]
            self._process.stdin.flush()  # type: ignore[union-attr]
            return float(self._process.stdout.readline())  # type: ignore[union-attr]

        return take_turn

    def close(self) -> None:
        """End the process."""
        self._process.communicate()


def sends(url: str, spent: Callable[[], float]) -> Loop:
    """Units of the provider."""

    def send(queue: str, count: int) -> float:
        to = Queue(queue)
        with closing(connect(ConnectionSettings(url))) as link:
            began = spent()
            for first in range(0, count, BATCH):
                unit = link.unit()
                for number in range(first, first + BATCH):
                    message = TextMessage(BODY, properties={"region": "EU", "number": number, "price": 1.5})
                    unit.send(prepare(message, to), to)
                unit.commit()
            return spent() - began

    return send


def receives(url: str, spent: Callable[[], float]) -> Loop:
    """Units of the provider; what a message has is read."""

    def receive(queue: str, count: int) -> float:
        with closing(connect(ConnectionSettings(url))) as link:
            began = spent()
            consumer = link.consumer(Queue(queue), **spi.together(link, BATCH))
            for _ in range(0, count, BATCH):
                deliveries: list[spi.Delivery] = []
                while len(deliveries) < BATCH:
                    deliveries += consumer.receive(BATCH - len(deliveries), 60)
                for delivery in deliveries:
                    assert len(read(delivery.message)) == len(BODY)
                unit = link.unit()
                unit.take(deliveries)
                unit.commit()
            return spent() - began

    return receive


def read(message: Any) -> str:
    """Read every header, every property and the body."""
    _ = message.message_id, message.correlation_id, message.type, message.destination, message.reply_to
    _ = message.timestamp, message.expiration, message.priority, message.delivery_mode, message.delivery_count
    assert dict(message.properties)["price"] == 1.5
    return message.body  # type: ignore[no-any-return]


def of_both() -> float:
    """Return the processor time of this process and of the bridge."""
    bridge = psutil.Process(shared_bridge()._process.pid).cpu_times()
    return time.process_time() + bridge.user + bridge.system


def measure(loops: Mapping[str, tuple[Loop, Loop]], rounds: int, count: int) -> dict[tuple[str, str], float]:
    """Let all take turns; return the microseconds a message by operation and contender. Two rounds warm up."""
    best: dict[tuple[str, str], float] = {}
    for number, order in enumerate(alternating(list(loops), rounds + 2)):
        for name in order:
            queue = f"bench.{uuid.uuid4().hex}"
            for operation, loop in zip(("send", "receive"), loops[name], strict=True):
                cost = loop(queue, count) / count * 1e6
                if number > 1:
                    best[operation, name] = min(cost, best.get((operation, name), cost))
    return best


def main() -> int:
    """Measure and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("brokers", nargs="+", choices=["artemis", "activemq"])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--count", type=int, default=5000, help="messages per turn; a multiple of 100")
    options = parser.parse_args()
    with ExitStack() as stack:
        stack.callback(registry.discard_shared)
        for name in options.brokers:
            broker = registry.shared(name)
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            alone = stack.enter_context(closing(client_alone(broker, name, folder)))
            loops = {ALONE: (alone.does("send"), alone.does("receive"))}
            for label, protocol, spent in ((OVER_JAVA, "java", of_both), (OWN, "amqp", time.process_time)):
                loops[label] = sends(broker.url(protocol), spent), receives(broker.url(protocol), spent)
            for (operation, who), cost in measure(loops, options.rounds, options.count).items():
                print(f"{name:10}{operation:9}{who:18}{cost:8.1f} us", flush=True)
    return 0


def client_alone(broker: Any, name: str, folder: Path) -> Alone:
    """Start the program with the broker's own client."""
    _, rest = broker.url("java").split("://")
    address, jars = rest.split("?class_path=")
    package, namespace = CLIENTS[name]
    return Alone(f"org.apache.{package}.ActiveMQConnectionFactory", f"tcp://{address}", jars, namespace, folder)


if __name__ == "__main__":
    sys.exit(main())
