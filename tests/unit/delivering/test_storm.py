"""Endpoints that many threads start and stop at the same time."""

import random
import threading
from collections import Counter
from contextlib import suppress

import pytest

from jmsjca import ActivationSpec, Message, Queue, ResourceAdapter, Session, TextMessage
from jmsjca.errors import IllegalStateError
from jmsjca.reconnection import ConnectionSettings, connect
from tests.unit.delivering.stage import depth, put, until

MESSAGES, THREADS, ROUNDS = 300, 3, 12


@pytest.mark.parametrize(
    ("mode", "hold"), [("serial", False), ("sync", False), ("cc", False), ("sync", True), ("cc", True)]
)
def test_nothing_is_lost_or_doubled_or_left_behind(jms_broker_url, mode, hold):
    before = set(threading.enumerate())
    link = connect(ConnectionSettings(jms_broker_url))
    adapter = ResourceAdapter(jms_broker_url)
    spec = ActivationSpec(destination="q", concurrency_mode=mode, endpoint_pool_max_size=3, hold_until_ack=hold)

    def forward(message: Message, session: Session) -> None:
        session.create_producer(Queue("out")).send(TextMessage(message.body))
        message.acknowledge()

    activation = adapter.activate(spec, forward)

    def storm(seed):
        dice = random.Random(seed)
        for _ in range(ROUNDS):
            with suppress(IllegalStateError):  # it is being stopped just now
                dice.choice([activation.start, activation.start, activation.stop])()

    put(link, *map(str, range(MESSAGES)))
    threads = [threading.Thread(target=storm, args=(seed,)) for seed in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    activation.stop()
    activation.start()
    until(lambda: depth(link).total == 0)
    activation.stop()
    forwarded = Counter(d.message.body for chunk in link.browse(Queue("out")) for d in chunk)
    assert forwarded == Counter(map(str, range(MESSAGES)))
    assert depth(link).held == 0
    until(lambda: not set(threading.enumerate()) - before)
    link.close()
