"""The sessions of a connection that is lost: all who have one hear of it."""

import pytest
from proton import Collector

from jmsjca.errors import ConnectionLostError
from jmsjca.providers.amqp.engine.events import EventDispatcher
from jmsjca.providers.amqp.engine.sessions import Sessions


class Transport:
    remote_channel_max = 10


class Handler:
    """Hears of the end, and fails over it."""

    def __init__(self):
        self.told = []

    def on_connection_lost(self, error):
        self.told.append(error)
        raise ValueError


@pytest.fixture
def sessions():
    return Sessions(None, Transport(), EventDispatcher(Collector(), {}, print), free=print, call_later=print)


def test_one_who_fails_over_the_end_keeps_it_from_nobody(sessions):
    handlers, error = [Handler() for _ in range(3)], ConnectionLostError("gone")
    for handler in handlers:
        sessions.begin_or_queue(handler, lambda: None)
    sessions.on_connection_lost(error)
    assert [handler.told for handler in handlers] == [[error]] * 3
