"""Peers that answer a provider frame by frame; they end with the test, and tell what went wrong at their side."""

import threading

import pytest
from amqp_peer import SECONDS, Peer

from jmsjca.config import Limits
from jmsjca.reconnection import ConnectionSettings, connect


class Stage:
    """A peer, and the connections of the provider to it."""

    def __init__(self, converse, scheme="amqp", **options):
        self.peer = Peer(converse, **options)
        self.scheme = scheme
        self.told = []
        self.lost = threading.Event()
        self.connections = []

    def connect(self, options="", *, host="127.0.0.1", user="", limits=None, **settings):
        port = self.peer.address.rpartition(":")[2]
        if "heartbeat=" not in options:  # the peer sends none, and a busy machine takes its time
            options = f"{options}&heartbeat=0".lstrip("&")
        url = f"{self.scheme}://{user}{host}:{port}?{options}"
        self.connections.append(connect(ConnectionSettings(url, limits=limits or Limits(), **settings), self._end))
        return self.connections[-1]

    def _end(self, error):
        self.told.append(error)
        self.lost.set()

    def close(self):
        while self.connections:
            connection = self.connections.pop()
            connection.close(timeout=0 if self.peer.stuck.done() else SECONDS)
        self.peer.close()


@pytest.fixture
def stage(nothing_is_left):
    """Set up peers."""
    stages = []

    def build(converse, **options):
        stages.append(Stage(converse, **options))
        return stages[-1]

    yield build
    for each in stages:
        each.close()
