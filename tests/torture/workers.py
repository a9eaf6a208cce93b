"""The processes that the kill loops start and kill: ``python -m tests.torture.workers ROLE FOLDER NAME SEED URL``."""

import itertools
import logging
import os
import random
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from jmsjca import (
    ActivationSpec,
    Connection,
    ConnectionFactory,
    Hooks,
    JMSError,
    Message,
    Outcome,
    Queue,
    ResourceAdapter,
    Session,
    reconnection,
)
from jmsjca.errors import ConnectionLostError, IllegalStateError, TransactionInDoubtError, TransactionRolledBackError
from jmsjca.hooks import DeadLetter
from jmsjca.outbound import MessageConsumer, MessageProducer
from tests.torture.journal import Journal
from tests.torture.moves import HANDLING, POISON

__all__ = ["FULL", "Worker"]

FULL = "full"  # the file that lets producers pause
_PARENT = os.getppid()


@dataclass
class Worker:
    """One process."""

    role: str
    folder: Path
    name: str
    url: str
    dice: random.Random
    journal: Journal
    tries: int = 0  # how many transactions it tried to end

    @property
    def is_embedded(self) -> bool:
        """Whether it has what others may lack: delays, and depths that nobody is asked for over a network."""
        return self.url.startswith("embedded:")

    def goes_on(self) -> bool:
        return os.getppid() == _PARENT and not (self.folder / f"stop-{self.role}").exists()

    def is_full(self) -> bool:
        return (self.folder / FULL).exists()

    def chance(self, probability: float) -> bool:
        return self.dice.random() < probability

    def note_try(self, ids: Sequence[str]) -> None:
        """Note that a transaction is about to end."""
        self.tries += 1
        self.journal.note("try", ids)

    def commit(self, session: Session, ids: Sequence[str]) -> None:
        """Commit, and note before and after it what is known."""
        self.note_try(ids)
        try:
            session.commit()
        except (TransactionRolledBackError, ConnectionLostError):  # it did not happen, says the one and the other
            self.journal.note("refused", ids)
        except TransactionInDoubtError:
            self.journal.note("doubt", ids)
        else:
            self.journal.note("ok", ids)

    def roll_back(self, session: Session, ids: Sequence[str]) -> None:
        """Whatever becomes of the rollback, nothing of it may be there."""
        self.note_try(ids)
        self.journal.note("rolled-back", ids)
        session.rollback()


WORK = Queue("work")
DONE = Queue("done")
POISONOUS = 0.02  # of the messages over a network
MOST_WAITING = 2000  # producers pause above it
AGAIN = 0.1  # seconds until somebody who lost his connection makes another one


def produce(worker: Worker) -> None:
    """Send batches of 1 to 50 messages with unique ids; a few batches are rolled back."""
    numbers = itertools.count()
    while worker.goes_on():
        with _begins_again():
            _produce_while_connected(worker, numbers)


def _produce_while_connected(worker: Worker, numbers: Iterator[int]) -> None:
    with _connect(worker) as connection, connection.create_session(transacted=True) as session:
        producer, poisoner = session.create_producer(WORK), session.create_producer(Queue(POISON))
        while worker.goes_on():
            ids = [f"{worker.name}.{next(numbers)}" for _ in range(worker.dice.randint(1, 50))]
            for message_id in ids:
                is_poison = not worker.is_embedded and worker.chance(POISONOUS)
                _send_work(worker, session, poisoner if is_poison else producer, message_id)
            (worker.roll_back if worker.chance(0.05) else worker.commit)(session, ids)
            _wait_for_room(worker, connection)


def consume(worker: Worker) -> None:
    """Forward the ids of up to 20 messages per transaction; now and then roll back, or close the consumer."""
    while worker.goes_on():
        with _begins_again():
            _consume_while_connected(worker)


def listen(worker: Worker) -> None:
    """Forward in a serial listener, which fails now and then."""
    adapter = ResourceAdapter(worker.url, hooks=[_Noting(worker.journal)])

    @adapter.listener(WORK)
    def forward(message: Message, session: Session) -> None:
        taken = _id(message)
        worker.journal.note("took", [taken])
        _send_done(worker, session, session.create_producer(DONE), message)
        worker.note_try([taken])
        if worker.chance(0.02):
            message.set_rollback_only()
        if worker.chance(0.01):
            raise JMSError("The handler fails on purpose.")

    with adapter:
        worker.journal.note("opened")
        while worker.goes_on():
            time.sleep(0.02)
            if adapter.activations[0].status == "Down":
                sys.exit("The listener is down.")


def listen_concurrently(worker: Worker) -> None:
    """Forward in a listener with several units at one time: batches or not, held or not, as the dice say."""
    adapter, held = ResourceAdapter(worker.url), deque[Message]()
    hold, batch_size = worker.chance(0.5), worker.dice.choice([0, 5])
    spec = ActivationSpec(
        destination=WORK,
        concurrency_mode=worker.dice.choice(["sync", "cc"]),
        endpoint_pool_max_size=3,
        batch_size=batch_size,
        hold_until_ack=hold,
    )

    def forward(message: Message, session: Session) -> None:
        if not message.end_of_batch:
            worker.journal.note("took", [_id(message)])
            _send_done(worker, session, session.create_producer(DONE), message)
        if worker.chance(0.02):
            message.set_rollback_only()
        if worker.chance(0.01):
            raise JMSError("The handler fails on purpose.")
        held.append(message)

    activation = adapter.activate(spec, forward)
    with adapter:
        worker.journal.note("opened")
        while worker.goes_on():
            time.sleep(0.005)
            _acknowledge_some(worker, held)
            if activation.status == "Down":
                sys.exit("The listener is down.")


def move_poison(worker: Worker) -> None:
    """Fail with all messages of a listener in any mode, until they are moved."""
    adapter = ResourceAdapter(worker.url, hooks=[_NotingMoves(worker.journal)])
    mode = worker.dice.choice(["serial", "sync", "cc"])
    spec = ActivationSpec(
        destination=POISON, concurrency_mode=mode, endpoint_pool_max_size=3, redelivery_handling=HANDLING
    )

    def fail(message: Message) -> None:
        worker.journal.note("handled", [_id(message)])
        raise ValueError("poison")

    activation = adapter.activate(spec, fail)
    with adapter:
        worker.journal.note("opened")
        while worker.goes_on():
            time.sleep(0.02)
            if activation.status == "Down":
                sys.exit("The listener is down.")


def _acknowledge_some(worker: Worker, held: deque[Message]) -> None:
    """In any order; without held acknowledgement this does nothing."""
    messages = [held.popleft() for _ in range(len(held))]
    worker.dice.shuffle(messages)
    for message in messages:
        if worker.chance(0.02):
            with suppress(IllegalStateError):  # its unit is settled
                message.set_rollback_only()
        message.acknowledge()


class _Noting(Hooks):
    """Notes how each delivery of the listener ended."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def settled(self, endpoint: str, outcome: Outcome, messages: int) -> None:
        verb = {Outcome.COMMITTED: "ok", Outcome.ROLLED_BACK: "rolled-back", Outcome.IN_DOUBT: "doubt"}
        self._journal.note(verb.get(outcome, "refused"))


class _NotingMoves(Hooks):
    """Notes each move."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def dead_lettered(self, endpoint: str, letter: DeadLetter) -> None:
        self._journal.note("moved", [letter.message_id])


def _consume_while_connected(worker: Worker) -> None:
    with _connect(worker) as connection, connection.create_session(transacted=True) as session:
        producer = session.create_producer(DONE)
        while worker.goes_on():
            with session.create_consumer(WORK) as consumer:
                while worker.goes_on():
                    if _forward(worker, session, consumer, producer) and worker.chance(0.03):
                        break  # not while idle: what an idle consumer keeps to itself must show


@contextmanager
def _begins_again() -> Iterator[None]:
    """The broker is dead, or takes this process for dead."""
    try:
        yield
    except ConnectionLostError:
        time.sleep(AGAIN)


def _connect(worker: Worker) -> Connection:
    connection = ConnectionFactory(worker.url).create_connection()
    connection.start()
    worker.journal.note("opened")
    return connection


def _send_work(worker: Worker, session: Session, producer: MessageProducer, message_id: str) -> None:
    body = "x" * worker.dice.randint(0, 300)
    message = session.create_text_message(body, properties={"id": message_id})
    delay = 0.05 if worker.is_embedded and worker.chance(0.02) else 0
    producer.send(message, priority=worker.dice.randint(0, 9), delivery_delay=delay)


def _send_done(worker: Worker, session: Session, producer: MessageProducer, message: Message) -> None:
    producer.send(session.create_message(properties={
        "id": _id(message), "count": message.delivery_count, "by": worker.name, "batch": worker.tries,
    }))  # fmt: skip


def _forward(worker: Worker, session: Session, consumer: MessageConsumer, producer: MessageProducer) -> bool:
    first = consumer.receive(timeout=0.3)
    if first is None:
        return False
    rest = (consumer.receive(timeout=0) for _ in range(worker.dice.randint(0, 19)))
    messages = [first, *(m for m in rest if m is not None)]
    ids = [_id(m) for m in messages]
    worker.journal.note("took", ids)
    for message in messages:
        _send_done(worker, session, producer, message)
    (worker.roll_back if worker.chance(0.05) else worker.commit)(session, ids)
    if worker.chance(0.05):
        session.rollback()  # of nothing
    return True


def _wait_for_room(worker: Worker, connection: Connection) -> None:
    while worker.goes_on() and _is_full(worker, connection):
        time.sleep(0.02)


def _is_full(worker: Worker, connection: Connection) -> bool:
    admin = connection.admin if worker.is_embedded else None  # elsewhere it asks the broker that is being killed
    return worker.is_full() if admin is None else admin.depth(WORK).total > MOST_WAITING


def _id(message: Message) -> str:
    return str(message.properties["id"])


ROLES: dict[str, Callable[[Worker], None]] = {
    "producer": produce,
    "consumer": consume,
    "listener": listen,
    "concurrent": listen_concurrently,
    "mover": move_poison,
}

if __name__ == "__main__":
    role, folder, name, seed, url = sys.argv[1:]
    logging.basicConfig(level=logging.WARNING)
    reconnection._BACKOFF = (AGAIN,)  # of a listener, or it would see few of the kills
    journal = Journal(Path(folder, "journals", f"{name}.journal"))
    ROLES[role](Worker(role, Path(folder), name, url, random.Random(f"{seed} {name}"), journal))
