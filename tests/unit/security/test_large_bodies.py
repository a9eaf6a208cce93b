"""A body of 100 MB, or one that would grow, is not decoded or copied to show its message: in texts, views and forms."""

import logging
import pickle
import tracemalloc

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from jmsjca import BytesMessage, ConnectionFactory, MapMessage, ObjectMessage, Queue, StreamMessage, TextMessage
from jmsjca.management.console.pages import editable_text
from jmsjca.management.dead_letter import DeadLetterRecord
from jmsjca.management.metrics import Metrics
from jmsjca.management.tracing import Tracing
from jmsjca.management.views import MessageView
from tests.unit.security.test_hostile_messages import LIMIT, fields_of, listen

LARGE = 100_000_000
MEBIBYTE = 1024 * 1024


def doubled(times):
    """Return a list whose text has 2 to the power of ``times`` words."""
    found = ["word"]
    for _ in range(times):
        found = [found, found]
    return found


def cycle():
    """Return a mapping that holds itself."""
    found = {}
    found["itself"] = found
    return found


MAKERS = {
    "text": lambda: TextMessage("x" * LARGE),
    "bytes": lambda: BytesMessage(bytes(LARGE)),
    "map": lambda: MapMessage({"text": "x" * LARGE, "bytes": bytes(LARGE)}),
    "stream": lambda: StreamMessage(["x" * LARGE, bytes(LARGE)]),
    "object": lambda: ObjectMessage.from_pickled(bytes(LARGE)),
    "bomb": lambda: ObjectMessage.from_pickled(pickle.dumps(doubled(24))),  # 192 bytes
    "cycle": lambda: ObjectMessage(cycle()),
}
SHOWN = {
    "repr": repr,
    "str": str,
    "format": "{}".format,
    "dead letter": lambda message: str(DeadLetterRecord.of(message)),
}


@pytest.fixture(scope="module", params=MAKERS)
def message(request):
    return MAKERS[request.param]()


def memory_of(act):
    """Return what a call returns, and the memory that it needed at its peak."""
    tracemalloc.start()
    try:
        found = act()
        return found, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("shown", SHOWN)
def test_what_shows_a_message_needs_little_memory_and_is_short(message, shown):
    found, memory = memory_of(lambda: SHOWN[shown](message))
    assert memory < MEBIBYTE
    assert len(found) <= LIMIT


def test_a_view_needs_little_memory(message):
    view, memory = memory_of(lambda: MessageView.of(message))
    assert memory < MEBIBYTE
    assert view.size is not None


def test_a_form_needs_little_memory(message):
    found, memory = memory_of(lambda: editable_text(message))
    assert found is None
    assert memory < MEBIBYTE


def test_a_received_message_is_shown_without_its_body():
    with ConnectionFactory("embedded://large-bodies").create_connection() as connection:
        connection.start()
        with connection.create_session() as session:
            queue = session.create_temporary_queue()
            session.create_producer(queue).send(BytesMessage(bytes(LARGE)))
            received = session.create_consumer(queue).receive(60)
            for show in SHOWN.values():
                found, memory = memory_of(lambda show=show: show(received))
                assert memory < MEBIBYTE
                assert len(found) <= LIMIT


@pytest.mark.torture
def test_records_and_labels_have_nothing_of_a_large_body(caplog):
    registry, url = CollectorRegistry(), "embedded://large-records"
    with ConnectionFactory(url).create_connection() as connection, connection.create_session() as session:
        session.create_producer(Queue("orders")).send(TextMessage("secret-4711" * (LARGE // 11)))
    with caplog.at_level(logging.DEBUG, "jmsjca"):
        listen(url, [Metrics(registry), Tracing()])
    texts = [text for record in caplog.records for text in fields_of(record)]
    assert max(map(len, texts)) <= LIMIT
    assert not any("secret-4711" in text for text in (*texts, generate_latest(registry).decode()))
