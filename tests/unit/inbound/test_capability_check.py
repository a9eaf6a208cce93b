"""Features that a broker lacks are refused, or emulated with a log record."""

import logging
import threading
from dataclasses import replace

import pytest

from jmsjca import ActivationSpec, DestinationSettings, Message, Outcome, Queue, Topic
from jmsjca.errors import NameNotFoundError, NotSupportedError
from jmsjca.inbound.endpoint import EndpointSettings
from jmsjca.inbound.lifecycle import CapabilityCheck
from jmsjca.inbound.listener_log import EventSource
from tests.unit.inbound.deliveries import until
from tests.unit.inbound.listeners import PATIENCE, Inbox, send

DURABLE = {"destination": Topic("t"), "subscription_durability": "Durable", "subscription_name": "s"}
MOVES = {"redelivery_handling": "3:move(queue:dlq)"}
SOURCE = EventSource("embedded://it", "it", "queue:q")
BATCH = {"concurrency_mode": "cc", "batch_size": 5}


class Weaker:
    """A connection whose broker lacks something."""

    def __init__(self, connection, **lacks):
        self.connection = connection
        self.capabilities = replace(connection.capabilities, **lacks)

    def admin(self):
        return self.connection.admin()


@pytest.fixture
def link(connected):
    return connected()


def check(link, **spec):
    adjustments, terms = CapabilityCheck(SOURCE), EndpointSettings.of(ActivationSpec(**{"destination": "q"} | spec))
    adjustments.check(terms, link)
    adjustments.check_max_deliveries(terms, link)
    for thread in threading.enumerate():
        if thread.name == "jmsjca it":
            thread.join(PATIENCE)


@pytest.fixture
def warnings_of(caplog):
    caplog.set_level(logging.INFO, "jmsjca.inbound")
    return lambda: [(record.levelname, record.getMessage()) for record in caplog.records]


@pytest.mark.parametrize(
    ("lacks", "spec"), [("selectors", {"selector": "a = 1"}), ("durable", DURABLE)], ids=["selectors", "durable"]
)
def test_what_has_no_other_way_is_refused(link, lacks, spec):
    check(link, **spec)
    with pytest.raises(NotSupportedError, match=f"The broker of it does not support .*{lacks}"):
        check(Weaker(link, **{lacks: False}), **spec)
    check(Weaker(link, **{lacks: False}))


def test_messages_are_not_forwarded_where_they_might_double(link):
    forwarding = replace(EndpointSettings.of(ActivationSpec(destination="q")), requires_atomic_unit=True)
    CapabilityCheck(SOURCE).check(forwarding, link)
    with pytest.raises(NotSupportedError, match="it lacks the capability atomic"):
        CapabilityCheck(SOURCE).check(forwarding, Weaker(link, atomic=False))


def test_all_that_is_refused_is_listed(link):
    with pytest.raises(NotSupportedError, match="selectors, nor a durable subscription"):
        check(Weaker(link, selectors=False, durable=False), selector="a = 1", **DURABLE)


@pytest.mark.parametrize(
    ("lacks", "spec", "level", "reason"),
    [
        ("atomic", MOVES | {"transaction": "none"}, "WARNING", "moves a message by sending, then acknowledging"),
        ("transacted_receive", BATCH, "WARNING", "acknowledges a batch one by one"),
        ("atomic", {}, "INFO", "refuses sends in the unit of a message"),
        ("delivery_count", {}, "INFO", "counts redeliveries itself"),
    ],
)
def test_what_is_done_otherwise_is_told(link, warnings_of, lacks, spec, level, reason):
    check(link, **spec)
    assert warnings_of() == []
    check(Weaker(link, **{lacks: False}), **spec)
    [(its_level, text)] = warnings_of()
    assert (its_level, reason in text, f"({lacks})" in text) == (level, True, True)


@pytest.mark.parametrize("lacks", ["delivery_count", "transacted_receive"])
def test_what_is_not_asked_for_is_not_missed(link, warnings_of, lacks):
    check(Weaker(link, **{lacks: False}), redelivery_handling="")
    assert warnings_of() == []


def test_one_receiver_for_a_topic(link, warnings_of):
    check(link, destination=Topic("t"), concurrency_mode="sync")
    [(level, text)] = warnings_of()
    assert (level, "one receiver" in text) == ("INFO", True)


@pytest.mark.parametrize(("most", "short"), [(3, True), (4, False), (None, False)])
def test_a_limit_of_the_broker_below_the_redelivery_handling(link, warnings_of, most, short):
    link.admin().configure(Queue("q"), DestinationSettings(max_deliveries=most))
    check(link, **MOVES)
    assert [level for level, _ in warnings_of()] == (["WARNING"] if short else [])
    if short:
        assert "3 times at most: set max_deliveries to 4 at least" in warnings_of()[0][1]


def test_a_limit_that_the_broker_tells_and_only_its_operator_sets(link, warnings_of):
    link.admin().configure(Queue("q"), DestinationSettings(max_deliveries=3))
    check(Weaker(link, configurable=False), **MOVES)
    assert ["3 times at most" in text for _, text in warnings_of()] == [True]


def test_who_asks_a_broker_for_its_limit_does_not_wait_for_the_answer(link, warnings_of):
    link.admin().configure(Queue("q"), DestinationSettings(max_deliveries=3))
    slow, answers = Weaker(link, configurable=False), threading.Event()
    slow.admin = lambda: answers.wait(PATIENCE) and link.admin()
    CapabilityCheck(SOURCE).check_max_deliveries(EndpointSettings.of(ActivationSpec(destination="q", **MOVES)), slow)
    assert not warnings_of()
    answers.set()
    until(warnings_of)


def test_each_reason_is_told_once(link, warnings_of):
    adjustments, weaker = CapabilityCheck(SOURCE), Weaker(link, delivery_count=False)
    for _ in range(3):
        adjustments.check(EndpointSettings.of(ActivationSpec(destination="q")), weaker)
    assert len(warnings_of()) == 1


def test_an_activation_tells(adapter, recorder, warnings_of):
    adapter.activate(ActivationSpec(destination=Topic("t"), concurrency_mode="sync"), Inbox()).start()
    recorder.await_status("Connecting", "Up")
    assert any("TopicSubscriber(t)" in text and "has one receiver" in text for _, text in warnings_of())


def test_a_container_managed_transaction_is_refused_where_the_broker_has_none(link):
    with pytest.raises(NotSupportedError, match="transaction='required': it lacks the capability atomic"):
        check(Weaker(link, atomic=False), transaction="required")
    check(link, transaction="required")
    check(Weaker(link, atomic=False), transaction="bean")


@pytest.mark.parametrize(
    ("destination", "handling", "name"),
    [
        ("lookup://jms/orders", "3:5", "jms/orders"),
        ("q", "3:move(queue:lookup://jms/dead)", "jms/dead"),
        ("lookup://jms/q", "3:move(same:dlq$)", "jms/dlqq"),
    ],
)
def test_name_that_is_not_bound_is_refused(jms_adapter, destination, handling, name):
    jms_adapter.naming.bind("jms/q", Queue("q"))
    with pytest.raises(NameNotFoundError, match=name):
        jms_adapter.listener(destination, redelivery_handling=handling)(Inbox())


def test_a_handler_cannot_name_an_unbound_target_either(adapter, recorder):
    refused = []

    def handler(message: Message):
        with pytest.raises(NameNotFoundError, match="jms/dead") as told:
            message.redelivery_handling = "1:move(queue:lookup://jms/dead)"
        refused.append((told.value, message.redelivery_handling))

    adapter.listener("q", redelivery_handling="3:5")(handler)
    send(adapter, "a")
    with adapter:
        recorder.await_outcome(Outcome.COMMITTED)
    assert [handling for _, handling in refused] == ["3:5"]


def test_what_changes_nothing_in_mode_serial_is_taken(jms_adapter):
    jms_adapter.activate(
        ActivationSpec(destination="q", endpoint_pool_max_size=3, max_outstanding=7, batch_size=1), Inbox()
    )
    assert len(jms_adapter.activations) == 1
