"""Sessions and listeners refuse what a broker without atomic units cannot do."""

from dataclasses import replace

import pytest

from jmsjca import Outcome, Queue, ResourceAdapter, TextMessage
from jmsjca.errors import NotSupportedError
from jmsjca.providers.embedded.connection import EmbeddedConnection
from tests.unit.inbound.listeners import Inbox, Recorder, send, waiting
from tests.unit.outbound.queues import QUEUE, put, shown

AUDIT = Queue("audit")


@pytest.fixture(autouse=True)
def weaker(monkeypatch):
    """The embedded broker as RabbitMQ is: it opens no atomic unit."""
    make, opened = EmbeddedConnection.__init__, EmbeddedConnection.unit

    def weaken(self, store, limits, capabilities, *ids):
        make(self, store, limits, replace(capabilities, atomic=False), *ids)

    def refuse(self, *, atomic=True):
        if atomic:
            raise NotSupportedError("The broker lacks atomic.")
        return opened(self, atomic=False)

    monkeypatch.setattr(EmbeddedConnection, "__init__", weaken)
    monkeypatch.setattr(EmbeddedConnection, "unit", refuse)


def test_transacted_session_is_refused_when_it_is_created(jms_connection_factory):
    with jms_connection_factory.create_connection() as connection, pytest.raises(NotSupportedError, match="atomic"):
        connection.create_session(transacted=True)


def test_plain_session_sends_and_acknowledges(jms_connection_factory):
    with jms_connection_factory.create_connection() as connection:
        put(connection, "a", "b")
        with connection.create_session() as session:
            assert session.create_consumer(QUEUE).receive(timeout=0).body == "a"
        assert shown(connection) == ["b"]


def test_listener_acknowledges_after_its_handler(jms_broker_url):
    inbox, recorder = Inbox(ValueError("not today")), Recorder()
    adapter = ResourceAdapter(jms_broker_url, hooks=[recorder])
    adapter.listener("q")(inbox)
    with adapter:
        send(adapter, "a")
        recorder.await_outcome(Outcome.ROLLED_BACK)
        recorder.await_outcome(Outcome.COMMITTED)
    assert inbox.take(2) == [("a", 1), ("a", 2)]


def test_handler_cannot_send_with_its_delivery(jms_broker_url):
    recorder, refusals = Recorder(), []
    adapter = ResourceAdapter(jms_broker_url, hooks=[recorder])

    @adapter.listener("q")
    def on_message(message, session):
        try:
            session.create_producer(AUDIT).send(TextMessage("seen"))
        except NotSupportedError as refusal:
            refusals.append(str(refusal))

    with adapter:
        send(adapter, "a")
        recorder.await_outcome(Outcome.COMMITTED)
    assert len(refusals) == 1
    assert "atomic" in refusals[0]
    assert waiting(adapter, AUDIT.name) == []


def test_what_a_handler_sends_through_its_adapter_is_sent_before_the_acknowledgement(jms_broker_url):
    """The failed attempt sends nothing."""
    recorder, failures = Recorder(), [ValueError("once")]
    adapter = ResourceAdapter(jms_broker_url, hooks=[recorder])

    @adapter.listener("q")
    def on_message(message):
        adapter.send(AUDIT, "seen")
        if failures:
            raise failures.pop()

    with adapter:
        send(adapter, "a")
        recorder.await_outcome(Outcome.ROLLED_BACK)
        recorder.await_outcome(Outcome.COMMITTED)
        assert waiting(adapter, AUDIT.name) == [("seen", 0)]
