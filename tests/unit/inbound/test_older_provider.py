"""Listeners work over a provider that was written before `jmsjca.spi.Connection.consumer` had all of its arguments."""

import threading

import pytest

from jmsjca import ResourceAdapter
from jmsjca.providers.embedded.connection import EmbeddedConnection

PATIENCE = 10


@pytest.mark.parametrize("mode", ["serial", "sync", "cc"])
def test_consumer_without_the_argument_together(monkeypatch, mode):
    consumer = EmbeddedConnection.consumer

    def older(self, source, *, selector=None, no_local=False, order, window=None):
        return consumer(self, source, selector=selector, no_local=no_local, order=order, window=window)

    monkeypatch.setattr(EmbeddedConnection, "consumer", older)
    handled = threading.Event()
    with ResourceAdapter(f"embedded://older-{mode}") as adapter:
        adapter.listener("orders", concurrency_mode=mode)(lambda message: handled.set())
        adapter.start(wait=PATIENCE)
        adapter.send("orders", "a")
        assert handled.wait(PATIENCE)
