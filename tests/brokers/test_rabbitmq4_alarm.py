"""Senders and consumers while a memory alarm of RabbitMQ 4 blocks everything that is sent to it."""

import re
import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest
from brokers import registry
from brokers.rabbitmq_operator import OperatedRabbitMQ4

from jmsjca import ConnectionFactory, Queue, ResourceAdapter, TextMessage
from jmsjca.errors import ConnectionLostError, TransactionInDoubtError
from tests.brokers.conftest import demand
from tests.torture import confirmed_kills
from tests.unit.inbound.listeners import PATIENCE, Inbox

ALARMS = 3
IMPATIENT = "?reply_timeout=1"
TOLD = {"amqp": r"within 1 s: .* alarm for memory or disk space", "stomp": "within 1 second"}


@pytest.fixture(scope="module", params=TOLD)
def protocol(request):
    return request.param


@pytest.fixture(scope="module")
def broker(protocol):
    """A broker for each protocol, as they do not agree about the type of a queue."""
    del protocol
    operated = OperatedRabbitMQ4()
    try:
        yield demand(operated.start)
    finally:
        registry.discard(operated)


@pytest.fixture
def queue():
    return Queue(f"alarm.{uuid.uuid4().hex}")


@pytest.fixture
def open_session(broker, protocol, request):
    """Return a function that opens a session on a connection of its own."""

    def open_one(options=""):
        connection = ConnectionFactory(broker.url(protocol) + options).create_connection()
        request.addfinalizer(connection.close)
        connection.start()
        return connection.create_session()

    return open_one


def send(session, queue, *bodies):
    producer = session.create_producer(queue)
    for body in bodies:
        producer.send(TextMessage(body))


def send_until_in_doubt(session, queue, name, told):
    """Return what was confirmed and what is in doubt: a connection is told of the alarm soon after its beginning."""
    confirmed = []
    while True:
        body = f"{name} {len(confirmed)}"
        try:
            send(session, queue, body)
        except TransactionInDoubtError as error:
            assert re.search(told, str(error))  # noqa: PT017  # sends before it may succeed
            return confirmed, body
        confirmed.append(body)


def receive_until(consumer, last):
    """Receive from a queue up to the last message."""
    bodies = []
    while last not in bodies:
        bodies.append(consumer.receive(timeout=PATIENCE).body)
    return bodies


def test_a_sender_waits_for_the_end_of_an_alarm_and_one_that_waited_too_long_is_told(
    broker, protocol, open_session, queue
):
    """What is confirmed arrives once, and what is in doubt once or not at all; consumers go on during the alarm."""
    patient, hasty, hastier, reader = open_session(), open_session(IMPATIENT), open_session(IMPATIENT), open_session()
    consumer = reader.create_consumer(queue)
    for session in (patient, hasty, hastier):
        send(session, queue, "before")
    with ThreadPoolExecutor() as threads:
        with broker.memory_alarm():
            confirmed, doubtful = send_until_in_doubt(hasty, queue, "hasty", TOLD[protocol])
            waiting = threads.submit(send, patient, queue, "a", "b", "c")
            more, also_doubtful = send_until_in_doubt(hastier, queue, "hastier", TOLD[protocol])
            assert not waiting.done()
            assert [consumer.receive(timeout=PATIENCE).body for _ in range(3)] == ["before"] * 3
        waiting.result(PATIENCE)
    send(open_session(), queue, "last")
    got = receive_until(consumer, "last")
    assert len(got) == len(set(got))
    assert {*confirmed, *more, "a", "b", "c", "last"} <= set(got)
    assert set(got) <= {*confirmed, *more, "a", "b", "c", "last", doubtful, also_doubtful}
    if protocol == "amqp":  # what the broker gave no window for has not left this process
        assert {doubtful, also_doubtful}.isdisjoint(got)


def test_what_is_confirmed_around_alarms_is_neither_lost_nor_doubled(broker, protocol, capsys):
    def alarm(broker):
        with broker.memory_alarm():
            pass

    account = confirmed_kills.run(broker, protocol, ALARMS, alarm)
    with capsys.disabled():
        print(f"\n{ALARMS} alarms over {protocol}: {len(account.sent)} confirmed, {len(account.in_doubt)} in doubt")
    assert (account.lost, account.doubled) == (set(), set())


def test_a_listener_that_starts_during_an_alarm_receives_after_it(broker, protocol, open_session, queue):
    """Over AMQP it declares its queue by a message to the broker, so it is told of the alarm, and tries again."""
    send(open_session(), queue, "before")
    inbox = Inbox()
    adapter = ResourceAdapter(broker.url(protocol) + IMPATIENT)
    adapter.listener(queue.name)(inbox)
    with broker.memory_alarm():
        if protocol == "amqp":
            with pytest.raises(ConnectionLostError, match="no requests, as during an alarm"):
                open_session(IMPATIENT).create_consumer(queue)
        adapter.start()
    with adapter:
        assert inbox.take(1) == [("before", 1)]
