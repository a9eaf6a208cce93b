"""What is done to a broker while it is killed: the same words every time, so that each system call can be named.

A workload speaks the words of `tests.model`: to a real broker in the process that dies, and to the model, which says
what must be there afterwards.
"""

from collections.abc import Callable

from jmsjca import Queue, Topic
from jmsjca.config import DestinationSettings
from jmsjca.destinations import Destination, Subscription
from jmsjca.spi import Order
from tests.model.operations import PLAIN, Letter, Source, Way, Words

__all__ = ["AFTERWARDS", "QUEUES", "START", "WORKLOADS", "Workload", "send"]

Workload = Callable[[Words], None]

START = 1_800_000_000_000
AFTERWARDS = Queue("afterwards")  # what the process sends when a word has failed

WORK, DONE, DEAD, EXPIRED = QUEUES = Queue("work"), Queue("done"), Queue("dead"), Queue("expired")
NEWS = Topic("news")
DURABLE = Subscription(NEWS, "durable", "client")
SHARED = Subscription(NEWS, "shared", shared=True)
ANY = Way(Order.ANY)


def send(broker: Words, to: Destination, *letters: Letter) -> None:
    broker.begin("sender", "c")
    for letter in letters:
        broker.note("sender", letter, to)
    broker.commit("sender")


def take(broker: Words, unit: str, consumer: str, limit: int) -> list[int]:
    """Receive into a new unit."""
    numbers = [receipt.number for receipt in broker.receive(consumer, limit)]
    broker.begin(unit, "c")
    broker.take(unit, numbers)
    return numbers


def start(broker: Words, source: Source = WORK, way: Way = PLAIN) -> None:
    broker.connect("c")
    broker.consume("k", "c", source, way)


def letters(count: int, name: str = "m") -> list[Letter]:
    return [Letter(f"{name}{n}", priority=n % 10) for n in range(count)]


def one_by_one(broker: Words) -> None:
    """Send, receive, forward, commit; every third unit rolls back."""
    start(broker)
    for n, letter in enumerate(letters(6)):
        send(broker, WORK, letter)
        take(broker, "u", "k", 1)
        broker.note("u", Letter(f"after {letter.body}"), DONE)
        (broker.rollback if n % 3 == 1 else broker.commit)("u")


def in_batches(broker: Words) -> None:
    """Batches that are committed, rolled back in part as unused, given back."""
    start(broker)
    send(broker, WORK, *letters(40))
    take(broker, "u", "k", 10)
    for letter in letters(10, "forwarded"):
        broker.note("u", letter, DONE)
    broker.commit("u")
    numbers = take(broker, "u", "k", 10)
    broker.rollback("u", unused=numbers[5:])
    broker.give_back("k", [receipt.number for receipt in broker.receive("k", 10)])
    take(broker, "first", "k", 5)
    take(broker, "second", "k", 5)
    broker.rollback("first")
    broker.commit("second")


def publish(broker: Words) -> None:
    """A topic with a durable and a shared subscription, of which one ends."""
    start(broker, DURABLE)
    for name in ("s1", "s2"):
        broker.consume(name, "c", SHARED, ANY)
    send(broker, NEWS, *letters(6))
    take(broker, "u", "k", 2)
    broker.commit("u")
    take(broker, "u", "s1", 3)
    take(broker, "v", "s2", 2)
    broker.rollback("u")
    broker.commit("v")
    broker.close_consumer("k")
    send(broker, NEWS, *letters(3, "late"))
    broker.remove("c", DURABLE)


def fail(broker: Words) -> None:
    """Messages that fail until they are dead letters, and messages that expire into a queue."""
    start(broker)
    broker.configure("c", WORK, DestinationSettings(max_deliveries=2, dead_letter=DEAD, expiry=EXPIRED))
    send(broker, WORK, *letters(4), Letter("expires", time_to_live=50), Letter("expires too", time_to_live=50))
    for _ in range(4):
        take(broker, "u", "k", 2)
        broker.rollback("u")
    broker.advance(100)
    broker.sweep()


def delay(broker: Words) -> None:
    """Messages that are due later, and rolled-back ones that come later."""
    start(broker, way=ANY)
    send(broker, WORK, Letter("now"), Letter("later", delay=100), Letter("much later", delay=10_000))
    take(broker, "u", "k", 2)
    broker.rollback("u", 1_000)
    broker.advance(500)
    take(broker, "u", "k", 2)
    broker.commit("u")
    broker.advance(1_000)
    take(broker, "u", "k", 2)
    broker.rollback("u", 1_000)


def repeat(broker: Words) -> None:
    """The same message sent again and again, and a group that stays with its consumer."""
    start(broker, way=ANY)
    broker.consume("other", "c", WORK, ANY)
    for _ in range(2):
        send(broker, WORK, Letter("a", duplicate="a"), Letter("g1", group="g"), Letter("b", duplicate="b", group="g"))
        take(broker, "u", "k", 2)
        take(broker, "v", "other", 2)
        broker.commit("v")
        broker.rollback("u")
    broker.close_consumer("k")
    take(broker, "u", "other", 5)
    broker.commit("u")


def come_and_go(broker: Words) -> None:
    """Connections that close with messages in hand, the last one too; purge and remove."""
    start(broker)
    send(broker, WORK, *letters(8))
    send(broker, DONE, *letters(3))
    broker.receive("k", 2)
    broker.close_consumer("k")
    broker.purge("c", DONE)
    broker.remove("c", DONE)
    broker.consume("k", "c", WORK)
    take(broker, "u", "k", 2)
    broker.close("c")
    start(broker)
    take(broker, "u", "k", 4)
    broker.commit("u")


def fill_pages(broker: Words) -> None:
    """A body of so many pages that the write-ahead log is written back, beside small ones."""
    start(broker)
    send(broker, WORK, Letter("large " + "x" * 2_000_000), *letters(3))
    for _ in range(2):
        take(broker, "u", "k", 2)
        broker.commit("u")


WORKLOADS: dict[str, Workload] = {
    workload.__name__: workload
    for workload in (one_by_one, in_batches, publish, fail, delay, repeat, come_and_go, fill_pages)
}
