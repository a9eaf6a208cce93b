"""Hostile messages at a listener and its tools: no pickle is loaded, no line is forged, no control property works."""

import json
import logging
import pickle
import threading
from contextlib import closing

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from jmsjca import Hooks, Message, ObjectMessage, Queue, ResourceAdapter, TextMessage
from jmsjca.__main__ import run
from jmsjca.errors import JMSError
from jmsjca.management.insight import Insight
from jmsjca.management.metrics import Metrics
from jmsjca.management.tracing import Tracing
from jmsjca.management.views import MessageView
from jmsjca.messages import delivery
from jmsjca.messages.delivery import vendor_names
from jmsjca.reconnection import ConnectionSettings, connect
from tests.unit.inbound.deliveries import put
from tests.unit.management.test_dead_letters import drain, letter, send

PATIENCE = 60
LARGE = 100_000
HOSTILE = "%s {0} \r\n\x1b[2J\u202e<script>alert(1)</script>"
LIMIT = 1024  # characters of a record, and of each field


class Settled(Hooks):
    """Waits for messages that a listener moved, and for those that it processed."""

    def __init__(self):
        self.moved, self.done = threading.Semaphore(0), threading.Semaphore(0)

    def dead_lettered(self, endpoint, letter):
        self.moved.release()


@pytest.fixture
def url(tmp_path):
    return f"embedded://{tmp_path}/broker.db"


def listen(url, hooks, handler=None, messages=1, queue="orders"):
    """Run a listener that fails, until it has moved as many messages."""
    settled = Settled()
    adapter = ResourceAdapter(url, hooks=[settled, *hooks])

    @adapter.listener(queue, redelivery_handling="1:move(queue:dlq.$)")
    def fail(message: Message) -> None:
        if handler:
            handler(message)
        raise ValueError

    with adapter:
        for _ in range(messages):
            assert settled.moved.acquire(timeout=PATIENCE)


def pickle_that_makes(canary):
    return b"cbuiltins\nopen\n(V" + str(canary).encode() + b"\nVw\ntR."


def test_no_place_that_shows_a_message_loads_its_pickle(url, tmp_path, capsys, caplog):
    canary, registry = tmp_path / "canary", CollectorRegistry()
    send(url, ObjectMessage.from_pickled(pickle_that_makes(canary)))
    with caplog.at_level(logging.DEBUG, "jmsjca"):
        listen(url, [Metrics(registry), Tracing()])
    insight = Insight(url)
    [letter] = insight.messages("dlq.orders")
    shown = [repr(letter), str(insight.dead_letters("dlq.orders")), repr(MessageView.of(letter)), caplog.text]
    shown.append(generate_latest(registry).decode())
    for command in (
        ["browse", "dlq.orders"],
        ["view", "dlq.orders", letter.message_id],
        *(["dlq", *words] for words in (["list", "dlq.orders"], ["show", "dlq.orders", letter.message_id])),
        ["dlq", "export", "dlq.orders"],
        ["dlq", "replay", "dlq.orders", "--to", "repair"],
    ):
        assert run([*command, "--url", url]) == 0
    shown.append(capsys.readouterr().out)
    assert not canary.exists()
    assert all(shown)


def test_a_pickle_that_is_not_shown_would_have_made_the_file(tmp_path):
    """The canary itself works."""
    with closing(pickle.loads(pickle_that_makes(tmp_path / "canary"))):  # noqa: S301  # our own
        assert (tmp_path / "canary").exists()


def test_records_and_labels_have_nothing_of_a_large_body(url, caplog):
    registry = CollectorRegistry()
    send(url, TextMessage("secret-4711" * LARGE, properties={"n": "secret-4711" * LARGE}))
    with caplog.at_level(logging.DEBUG, "jmsjca"):
        listen(url, [Metrics(registry), Tracing()])
    texts = [text for record in caplog.records for text in fields_of(record)]
    assert texts
    assert max(map(len, texts)) <= LIMIT
    assert not any("secret-4711" in text for text in (*texts, generate_latest(registry).decode()))


def fields_of(record):
    """Return the text of a record and of its fields, without the traceback of the handler."""
    own = set(vars(logging.makeLogRecord({})))
    yield record.getMessage()
    yield from (str(value) for name, value in vars(record).items() if name not in own and name != "message")


def test_hostile_headers_make_one_line_for_each_record(url, caplog):
    message = TextMessage("x", correlation_id=HOSTILE * 1000, type=HOSTILE * 1000, properties={"p": HOSTILE * 1000})
    message.reply_to = Queue(f"replies {HOSTILE}")
    send(url, message)
    with caplog.at_level(logging.DEBUG, "jmsjca"):
        listen(url, [])
    assert caplog.records
    for record in caplog.records:
        for text in fields_of(record):
            assert text.isprintable(), text
            assert len(text) <= LIMIT


def assert_lines(caplog):
    """Expect records of one line each, which no value makes long."""
    assert caplog.records
    for record in caplog.records:
        for text in fields_of(record):
            assert text.isprintable(), text
            assert len(text) <= 4 * LIMIT


@pytest.mark.parametrize("name", [f"orders {HOSTILE}", f"orders {HOSTILE}" * 1000])
def test_a_hostile_name_of_a_queue_makes_one_line_for_each_record(url, caplog, name):
    send(url, TextMessage("x"), to=name)
    with caplog.at_level(logging.DEBUG, "jmsjca"):
        listen(url, [], queue=name)
    assert {"dead_lettered", "handler_failed", "status_changed"} <= {each.event for each in caplog.records}
    assert_lines(caplog)


def test_an_error_with_the_text_of_a_message_makes_one_line_for_each_record(url, caplog):
    def quote(message):
        raise {"JMSError": JMSError, "ValueError": ValueError}[message.type](message.body)

    send(url, *(TextMessage(HOSTILE * 100, type=each) for each in ("JMSError", "ValueError")))
    with caplog.at_level(logging.DEBUG, "jmsjca"):
        listen(url, [], quote, messages=2)
    assert any("JMSError" in record.reason for record in caplog.records if record.event == "dead_lettered")
    assert_lines(caplog)


def test_a_hostile_id_makes_one_line_for_each_record(url, caplog):
    """A program that is no JMS client chooses the ids of its messages."""
    with closing(connect(ConnectionSettings(url))) as link, caplog.at_level(logging.DEBUG, "jmsjca"):
        put(link, HOSTILE * 1000)
        listen(url, [], queue="q")
    failed = next(record for record in caplog.records if record.event == "handler_failed")
    assert failed.message_id.startswith(r"ID:%s {0} \r\n")
    assert_lines(caplog)


def test_hostile_names_of_queues_are_escaped_in_tables(url, capsys):
    """A sender may create queues of any name."""
    send(url, TextMessage("x"), to=f"orders {HOSTILE}")
    send(url, letter("x", destination=Queue(f"orders {HOSTILE}")), to="dlq")
    for command in (["queues"], ["dlq", "list", "dlq"], ["dlq", "replay", "dlq", "--dry-run"]):
        assert run([*command, "--url", url]) == 0
        lines = capsys.readouterr().out.split("\n")
        assert len(lines) == 4 - (command != ["queues"])
        assert all(line.isprintable() for line in lines)


CONTROLS = {
    "RedeliveryHandling": "1:move(queue:stolen)",
    "StopMessageDelivery": "stop",
    "UserRollbackData.shop": "forged",
    "ExceptionClass": "forged",
    "RedeliveryCount": 7,
    "MBeanName": "forged",
}


def test_control_properties_of_a_sender_have_no_effect(url):
    forged = {name: value for control, value in CONTROLS.items() for name in vendor_names(control)}
    forged |= {
        f"JMSJCA.{name}": True for name in ("setRollbackOnly", "isRollbackOnly", "EndOfBatch", "redeliveryredirect")
    }
    forged |= {name: True if name.startswith("jmsjca.") else "forged" for name in delivery._TABLE}
    seen = []

    def look(message):
        seen.append(
            (message.rollback_only, message.redelivery_count, message.end_of_batch, message.redelivery_handling)
        )
        seen.append(dict(message.user_rollback_data))

    sent = allowed(forged)
    assert {"_JMSJCA_StopMessageDelivery", "_JMSJCA_RedeliveryHandling"} <= set(sent)
    assert {name for name in delivery._TABLE if name.startswith("_")} <= set(sent)
    send(url, *(TextMessage(str(n), properties=sent) for n in range(2)))
    listen(url, [], look, messages=2)
    assert seen == [(False, 0, False, "1:move(queue:dlq.$)"), {}] * 2
    assert {each.body for each in drain(url, "dlq.orders")} == {"0", "1"}
    assert drain(url, "stolen") == []


def allowed(properties):
    """Return the properties that a message can be sent with."""
    return {name: value for name, value in properties.items() if can_have(name, value)}


def can_have(name, value):
    try:
        TextMessage("", properties={name: value})
    except JMSError:
        return False
    return True


def test_a_dead_letter_keeps_the_facts_of_the_listener_not_those_of_the_sender(url):
    forged = {name: "forged" for fact in ("ExceptionClass", "OriginalDestinationName") for name in vendor_names(fact)}
    send(url, TextMessage("x", properties=forged))
    listen(url, [])
    [record] = Insight(url).dead_letters("dlq.orders")
    assert (record.reason, record.origin) == ("ValueError", Queue("orders"))


def test_hostile_text_stays_text_in_json(url, capsys):
    send(url, TextMessage(HOSTILE, properties={"p": HOSTILE}))
    assert run(["browse", "orders", "--url", url, "--json"]) == 0
    [row] = json.loads(capsys.readouterr().out)
    assert (row["body"], row["properties"]) == (HOSTILE, {"p": HOSTILE})
