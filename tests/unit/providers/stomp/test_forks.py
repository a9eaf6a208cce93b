"""A forked child refuses the connections of its parent."""

import pytest

from tests.unit.forking import (
    EXPECTED,
    LOCKS,
    RECEIVING,
    said_by_forking,
)
from tests.unit.providers.stomp.broker import Peer
from tests.unit.providers.stomp.broker_sessions import Session


@pytest.fixture(autouse=True)
def prompt(monkeypatch):
    """Let peers send a message on as soon as it is there, not only to who subscribes later."""
    publish = Session._publish

    def send_on(session, letter):
        publish(session, letter)
        session._deliver(letter.headers["destination"])

    monkeypatch.setattr(Session, "_publish", send_on)


@pytest.mark.parametrize("busy", [None, RECEIVING, *LOCKS, "consumer._receiver._consumer._changed"])
def test_application_forks(busy):
    with Peer() as peer, Peer() as own:
        urls = (f"{each.url}?heartbeat=0" for each in (peer, own, peer))
        assert said_by_forking(*urls, busy) == EXPECTED
