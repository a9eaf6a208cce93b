"""A sample of the killers among innocent messages for every test run; and what is prefetched beside a suspect."""

import random
from threading import Event
from uuid import uuid4

import pytest

from jmsjca import AcknowledgeMode, ConnectionFactory, Queue, ResourceAdapter
from jmsjca.testing.contract.network import FaultProxy
from tests.support.killer import cells
from tests.torture.unseen_moves import COUNTING, PAIRS, verdict

SAMPLE, SEED = 1, 20
PATIENCE = 60
BODIES = [f"message {number}" for number in range(5)]


@pytest.fixture
def queue():
    return Queue(f"unseen.{uuid4().hex[:12]}")


@pytest.mark.timeout(300)
@pytest.mark.parametrize("pair", PAIRS)
def test_no_message_is_moved_or_deleted_unseen(pair, broker_url, tmp_path, capsys):
    url, whole = broker_url(pair), cells()
    wrong = []
    for number, cell in enumerate(random.Random(f"{SEED} {pair}").sample(whole, SAMPLE)):
        folder = tmp_path / str(number)
        folder.mkdir()
        found, _ = verdict(pair, url, cell, folder)
        wrong += [f"{cell}: {found}"] * bool(found)
    with capsys.disabled():
        print(f"\nkillers of {pair}: visited {SAMPLE} / {len(whole)} cells")
    assert wrong == []


@pytest.mark.parametrize("mode", ["serial", "cc", "sync"])
@pytest.mark.parametrize("pair", COUNTING)
def test_others_get_all_messages_but_the_suspect_that_is_delivered(pair, mode, broker_url, queue):
    """All of them were prefetched by a consumer whose connection broke."""
    url = broker_url(pair)
    wire = FaultProxy(url)
    with ConnectionFactory(url).create_connection() as connection, connection.create_session() as session:
        producer = session.create_producer(queue)
        for body in BODIES:
            producer.send(session.create_text_message(body))
        lost = ConnectionFactory(wire.url).create_connection()
        lost.start()
        prefetching = lost.create_session(acknowledge_mode=AcknowledgeMode.CLIENT).create_consumer(queue)
        assert prefetching.receive(PATIENCE) is not None
        wire.close()
        adapter, seen, begun, go = ResourceAdapter(url), [], Event(), Event()

        def handle(message):
            seen.append(message.body)
            begun.set()
            go.wait(PATIENCE)

        terms = {"concurrency_mode": mode, "endpoint_pool_max_size": 1 if mode == "serial" else 3}
        adapter.listener(queue.name, redelivery_handling="1:delete", **terms)(handle)
        with adapter:
            assert begun.wait(PATIENCE)
            consumer = session.create_consumer(queue)
            seen += [consumer.receive(PATIENCE).body for _ in BODIES[1:]]
            go.set()
    assert sorted(seen) == BODIES
