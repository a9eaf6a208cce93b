"""Messages over TLS: larger than its records and than what sockets hold, they come whole in both directions."""

import random
import ssl
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from hashlib import sha256

import pytest
from amqp_peer import SECONDS, Broker
from amqp_peer.performatives import Transfer
from authority import Authority

from jmsjca.destinations import Queue
from jmsjca.messages import BytesMessage

RECORD = 16 * 1024  # the most of what a record of TLS holds
FRAME = 256 * 1024
MIB = 1024 * 1024
SIZES = [0, 1, RECORD - 1, RECORD, RECORD + 1, FRAME - 1, FRAME, FRAME + 1, MIB, 5 * MIB]
MUCH = [5 * MIB] * 4  # more than the sockets of both sides hold
QUEUE = Queue("q")
CHANCE = random.Random(0)


@pytest.fixture(scope="module")
def trusted(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("trusted"))


@pytest.fixture
def connect(stage, trusted):
    """Connect to a broker over TLS."""

    def connect(broker):
        context = trusted.server("DNS:localhost")
        here = stage(broker, scheme="amqps", wrap=partial(context.wrap_socket, server_side=True))
        return here.connect(f"ca_file={trusted.file}", host="localhost")

    return connect


def bodies(sizes):
    """Bytes of which no part is like another."""
    return [CHANCE.randbytes(size) for size in sizes]


def digests(found):
    """What tells bodies apart, and is short enough to be shown."""
    return [(len(body), sha256(body).hexdigest()) for body in found]


def send(connection, sent):
    unit = connection.unit()
    for body in sent:
        unit.send(BytesMessage(body), QUEUE)
    unit.commit()


def receive(consumer, count):
    return [consumer.receive(1, SECONDS)[0].message.body for _ in range(count)]


def test_messages_of_all_sizes_come_whole(connect):
    connection, sent = connect(Broker()), bodies(SIZES)
    send(connection, sent)
    assert digests(receive(connection.consumer(QUEUE), len(sent))) == digests(sent)


def test_messages_that_cross_come_whole(connect):
    """While much is written, as much comes."""
    connection, first, second = connect(Broker()), bodies(MUCH), bodies(reversed(SIZES))
    send(connection, first)
    consumer = connection.consumer(QUEUE)
    with ThreadPoolExecutor(1) as pool:
        ended = pool.submit(send, connection, second)
        assert digests(receive(consumer, len(MUCH))) == digests(first)
        ended.result(SECONDS)
    assert digests(receive(consumer, len(SIZES))) == digests(second)


def test_a_broker_that_reads_late_gets_all_of_it(connect, monkeypatch):
    """It reads on only when the client had to wait for room to write."""
    full, write = threading.Event(), ssl.SSLSocket.send

    def note(sock, *what):
        try:
            return write(sock, *what)
        except ssl.SSLWantWriteError:
            full.set()
            raise

    def take(service, frame):
        assert full.wait(SECONDS)
        service.carry_out(frame)

    monkeypatch.setattr(ssl.SSLSocket, "send", note)
    broker, sent = Broker(), bodies(MUCH)
    broker.instead[Transfer] = take
    connection = connect(broker)
    send(connection, sent)
    assert digests(receive(connection.consumer(QUEUE), len(MUCH))) == digests(sent)
