"""Our loops: sessions, units, listeners."""

from collections.abc import Mapping
from contextlib import closing
from typing import Any

from jmsjca import AcknowledgeMode, ActivationSpec, BytesMessage, ConnectionFactory, Limits, Queue, ResourceAdapter
from jmsjca.reconnection import ConnectionSettings, connect
from jmsjca.testing.contract.harness import prepare
from tests.benchmarks.field.turns import BATCH, Contender, Turn, since
from tests.benchmarks.measurements import clocks
from tests.benchmarks.proton_loops import BODY, PATIENCE
from tests.benchmarks.tally import Tally

__all__ = [
    "empty",
    "fill",
    "listens",
    "session_receives",
    "session_sends",
    "session_sends_asynchronously",
    "unit_receives",
    "unit_sends",
]

_AT_ONCE = 500


def fill(turn: Turn) -> None:
    """Let messages wait in the queue."""
    with closing(connect(ConnectionSettings(turn.url))) as link:
        _send(link, Queue(turn.queue), turn.count, _AT_ONCE, atomic=True)


def empty(turn: Turn) -> None:
    """Leave no message in the queue: a broker keeps those of all rounds in its memory."""
    with closing(connect(ConnectionSettings(turn.url))) as link:
        if (admin := link.admin()) is not None:
            admin.purge(Queue(turn.queue))


def unit_sends(*, atomic: bool, together: int | None = BATCH) -> Contender:
    """Units of the provider's, of so many messages, or one of all; each is confirmed as a whole."""

    def send(turn: Turn) -> Mapping[str, float]:
        with closing(connect(ConnectionSettings(turn.url))) as link:
            began = clocks()
            _send(link, Queue(turn.queue), turn.count, together or turn.count, atomic=atomic)
            return since(began)

    return send


def unit_receives(turn: Turn) -> Mapping[str, float]:
    """Units of the provider's, each a transaction."""
    with closing(connect(ConnectionSettings(turn.url))) as link:
        began, received = clocks(), 0
        consumer = link.consumer(Queue(turn.queue), window=turn.ahead)
        while received < turn.count:
            deliveries = consumer.receive(BATCH, PATIENCE)
            assert all(len(d.message.body) == len(BODY) for d in deliveries)
            unit = link.unit()
            unit.take(deliveries)
            unit.commit()
            received += len(deliveries)
        return since(began)


def session_receives(mode: AcknowledgeMode | int) -> Contender:
    """A session of the public API: its mode, or how many messages a transaction has."""

    def receive(turn: Turn) -> Mapping[str, float]:
        with ConnectionFactory(turn.url, limits=Limits(prefetch_messages=turn.ahead)).create_connection() as connection:
            connection.start()
            session, batch = _session(connection, mode)
            began, consumer = clocks(), session.create_consumer(Queue(turn.queue))
            for number in range(1, turn.count + 1):
                assert len(consumer.receive(timeout=PATIENCE).body) == len(BODY)
                if batch and number % batch == 0:
                    session.commit()
            return since(began)

    return receive


def session_sends(mode: AcknowledgeMode | int) -> Contender:
    """The same for sending."""

    def send(turn: Turn) -> Mapping[str, float]:
        with ConnectionFactory(turn.url).create_connection() as connection:
            session, batch = _session(connection, mode)
            began, producer = clocks(), session.create_producer(Queue(turn.queue))
            for number in range(1, turn.count + 1):
                producer.send(session.create_bytes_message(BODY))
                if batch and number % batch == 0:
                    session.commit()
            return since(began)

    return send


def session_sends_asynchronously(turn: Turn) -> Mapping[str, float]:
    """A session with a completion listener, one send after the other; the last answer ends it."""
    with ConnectionFactory(turn.url).create_connection() as connection:
        session, failed = connection.create_session(), list[Exception]()
        began, producer = clocks(), session.create_producer(Queue(turn.queue))
        for _ in range(turn.count):
            producer.send(
                session.create_bytes_message(BODY), on_completion=lambda _, error: error and failed.append(error)
            )
        producer.close()  # waits for all answers
        assert not failed
        return since(began)


def listens(**spec: Any) -> Contender:
    """A listener with a function as its handler; timed from the first message that it sees to the last."""

    def listen(turn: Turn) -> Mapping[str, float]:
        tally = Tally()
        tally.expect(turn.count)
        with ResourceAdapter(turn.url, limits=Limits(prefetch_messages=turn.ahead)) as adapter:
            given = ActivationSpec(destination=Queue(turn.queue), **spec)
            activation = adapter.activate(given, lambda message: None if message.end_of_batch else tally(message.body))
            activation.start()
            tally.wait()
            activation.stop()
        return tally.seconds()

    return listen


def _send(link: Any, queue: Queue, count: int, batch: int, *, atomic: bool) -> None:
    for begin in range(0, count, batch):
        unit = link.unit(atomic=atomic)
        for _ in range(begin, min(begin + batch, count)):
            unit.send(prepare(BytesMessage(BODY), queue), queue)
        unit.commit()


def _session(connection: Any, mode: AcknowledgeMode | int) -> tuple[Any, int]:
    if isinstance(mode, AcknowledgeMode):
        return connection.create_session(acknowledge_mode=mode), 0
    return connection.create_session(transacted=True), mode
