"""The bridge is killed while listeners move messages through it: nothing is lost, nothing is doubled."""

import collections
import threading
import uuid

import pytest
from brokers import JAVA_PAIRS

from jmsjca import ConnectionFactory, Queue, ResourceAdapter
from jmsjca.providers.java.bridge import shared_bridge

PATIENCE = 120
KILLS = 100
EACH = 20  # messages between two kills
IN_EVERY_RUN = "activemq-java"  # whose client starts first
PAIRS = [pytest.param(p, marks=[] if p == IN_EVERY_RUN else [pytest.mark.torture]) for p in JAVA_PAIRS]


class Moves:
    """Counts the messages that a listener has moved."""

    def __init__(self):
        self.changed = threading.Condition()
        self.done = 0

    def __call__(self):
        with self.changed:
            self.done += 1
            self.changed.notify_all()

    def wait_for(self, number):
        with self.changed:
            assert self.changed.wait_for(lambda: self.done >= number, PATIENCE), f"{self.done} of {number} in time"


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kills", [2, pytest.param(KILLS, marks=pytest.mark.torture)])
@pytest.mark.parametrize("pair", PAIRS)
def test_kills_of_the_bridge_lose_and_double_nothing(pair, kills, broker_url, capsys):
    url, name = broker_url(pair), uuid.uuid4().hex
    source, target, moves = Queue(f"kills.{name}.source"), Queue(f"kills.{name}.target"), Moves()
    sent = [str(number) for number in range(kills * EACH + EACH)]
    send_all(url, source, sent)
    adapter = ResourceAdapter(url)

    @adapter.listener(source, concurrency_mode="serial")
    def move(message, session):
        session.create_producer(target).send(message)
        moves()

    with adapter:
        for kill in range(1, kills + 1):
            moves.wait_for(kill * EACH)
            killed = shared_bridge()
            killed.kill()
            killed._process.wait(PATIENCE)
        found = collections.Counter(receive_all(url, target, len(sent)))
    with capsys.disabled():
        print(f"\nkills of the bridge {kills} of {KILLS}: {len(sent)} messages over {pair}")
    assert [body for body, times in found.items() if times > 1] == []
    assert sorted(found, key=int) == sent


def test_a_stop_just_after_the_bridge_has_ended_raises_nothing(broker_url):
    adapter = ResourceAdapter(broker_url(IN_EVERY_RUN))
    adapter.listener(f"kills.{uuid.uuid4().hex}", concurrency_mode="serial")(Moves())
    adapter.start(wait=PATIENCE)
    shared_bridge()._input.close()  # each request fails from now on, before anything has noticed the end
    adapter.stop()
    assert adapter.activations[0].status == "Down"


def send_all(url, queue, bodies):
    with ConnectionFactory(url).create_connection() as connection:
        session = connection.create_session(transacted=True)
        producer = session.create_producer(queue)
        for body in bodies:
            producer.send(session.create_text_message(body))
        session.commit()


def receive_all(url, queue, least):
    """Receive all that comes to a queue; when the number is complete, a little longer for doubles."""
    bodies = []
    with ConnectionFactory(url).create_connection() as connection, connection.create_session() as session:
        connection.start()
        consumer = session.create_consumer(queue)
        while (message := consumer.receive(PATIENCE if len(bodies) < least else 1)) is not None:
            bodies.append(message.body)
    return bodies
