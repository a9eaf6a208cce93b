"""A forked child refuses the connections of its parent."""

import pytest
from amqp_peer.peer import Broker

from tests.unit.forking import (
    EXPECTED,
    LOCKS,
    PROVIDER_EXPECTED,
    RECEIVING,
    said_by_forking,
    said_by_provider,
)


@pytest.mark.parametrize(
    "lock",
    [
        None,
        "consumer._changed",
        "connection._lock",
        "connection._close_lock",
        "connection._links.commit_lock",
        "connection._engine.task_queue._lock",
    ],
)
def test_forked_child_refuses_what_its_parent_opened(stage, lock):
    urls = (f"amqp://{stage(Broker()).peer.address}?heartbeat=0" for _ in range(2))  # each talks to one at a time
    assert said_by_provider(*urls, lock) == PROVIDER_EXPECTED


@pytest.mark.parametrize("busy", [None, RECEIVING, *LOCKS, "consumer._receiver._consumer._changed"])
def test_application_forks(stage, busy):
    urls = (f"amqp://{stage(Broker()).peer.address}?heartbeat=0" for _ in range(3))
    assert said_by_forking(*urls, busy) == EXPECTED
