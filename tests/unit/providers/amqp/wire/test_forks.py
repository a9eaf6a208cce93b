"""A forked child refuses the connections of its parent."""

import pytest
from amqp_peer.peer import Broker

from tests.unit.forking import (
    EXPECTED,
    LOCKS,
    RECEIVING,
    said_by_forking,
)


@pytest.mark.parametrize("busy", [None, RECEIVING, *LOCKS, "consumer._receiver._consumer._changed"])
def test_application_forks(stage, busy):
    urls = (f"amqp://{stage(Broker()).peer.address}?heartbeat=0" for _ in range(3))
    assert said_by_forking(*urls, busy) == EXPECTED
