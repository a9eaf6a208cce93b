"""The sessions of a connection that is lost: all who have one hear of it."""

import pytest
from proton import Collector

from jmsjca.errors import ConnectionLostError
from jmsjca.providers.amqp.engine.events import Events
from jmsjca.providers.amqp.engine.sessions import Sessions


class Transport:
    remote_channel_max = 10


class Owner:
    """Hears of the end, and fails over it."""

    def __init__(self):
        self.told = []

    def on_lost(self, error):
        self.told.append(error)
        raise ValueError


@pytest.fixture
def sessions():
    return Sessions(None, Transport(), Events(Collector(), {}, print), free=print, later=print)


def test_one_who_fails_over_the_end_keeps_it_from_nobody(sessions):
    owners, error = [Owner() for _ in range(3)], ConnectionLostError("gone")
    for owner in owners:
        sessions.adopt(owner, lambda: None)
    sessions.lose(error)
    assert [owner.told for owner in owners] == [[error]] * 3
