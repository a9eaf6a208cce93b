"""What a broker cannot do for an endpoint is refused, or told with the reason."""

import logging
import threading
from dataclasses import replace

import pytest

from jmsjca import ActivationSpec, DestinationSettings, Queue, Topic
from jmsjca.errors import NotSupportedError
from jmsjca.inbound.capability_check import CapabilityCheck
from jmsjca.inbound.endpoint import terms_of
from tests.unit.delivering.stage import until
from tests.unit.inbound import PATIENCE, Inbox

DURABLE = {"destination": Topic("t"), "subscription_durability": "Durable", "subscription_name": "s"}
MOVES = {"redelivery_handling": "3:move(queue:dlq)"}
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
    adjustments, terms = CapabilityCheck("it"), terms_of(ActivationSpec(**{"destination": "q"} | spec))
    adjustments.check(terms, link)
    adjustments.check_max_deliveries(terms, link)
    for thread in threading.enumerate():
        if thread.name == "jmsjca it":
            thread.join(PATIENCE)


@pytest.fixture
def told(caplog):
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
    forwarding = replace(terms_of(ActivationSpec(destination="q")), requires_atomic_unit=True)
    CapabilityCheck("it").check(forwarding, link)
    with pytest.raises(NotSupportedError, match="it lacks the capability atomic"):
        CapabilityCheck("it").check(forwarding, Weaker(link, atomic=False))


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
def test_what_is_done_otherwise_is_told(link, told, lacks, spec, level, reason):  # noqa: PLR0917
    check(link, **spec)
    assert told() == []
    check(Weaker(link, **{lacks: False}), **spec)
    [(its_level, text)] = told()
    assert (its_level, reason in text, f"({lacks})" in text) == (level, True, True)


@pytest.mark.parametrize("lacks", ["delivery_count", "transacted_receive"])
def test_what_is_not_asked_for_is_not_missed(link, told, lacks):
    check(Weaker(link, **{lacks: False}), redelivery_handling="")
    assert told() == []


def test_one_receiver_for_a_topic(link, told):
    check(link, destination=Topic("t"), concurrency_mode="sync")
    [(level, text)] = told()
    assert (level, "one receiver" in text) == ("INFO", True)


@pytest.mark.parametrize(("most", "short"), [(3, True), (4, False), (None, False)])
def test_a_limit_of_the_broker_below_the_redelivery_handling(link, told, most, short):
    link.admin().configure(Queue("q"), DestinationSettings(max_deliveries=most))
    check(link, **MOVES)
    assert [level for level, _ in told()] == (["WARNING"] if short else [])
    if short:
        assert "3 times at most: set max_deliveries to 4 at least" in told()[0][1]


def test_a_limit_that_the_broker_tells_and_only_its_operator_sets(link, told):
    link.admin().configure(Queue("q"), DestinationSettings(max_deliveries=3))
    check(Weaker(link, configurable=False), **MOVES)
    assert ["3 times at most" in text for _, text in told()] == [True]


def test_who_asks_a_broker_for_its_limit_does_not_wait_for_the_answer(link, told):
    link.admin().configure(Queue("q"), DestinationSettings(max_deliveries=3))
    slow, answers = Weaker(link, configurable=False), threading.Event()
    slow.admin = lambda: answers.wait(PATIENCE) and link.admin()
    CapabilityCheck("it").check_max_deliveries(terms_of(ActivationSpec(destination="q", **MOVES)), slow)
    assert not told()
    answers.set()
    until(told)


def test_each_reason_is_told_once(link, told):
    adjustments, weaker = CapabilityCheck("it"), Weaker(link, delivery_count=False)
    for _ in range(3):
        adjustments.check(terms_of(ActivationSpec(destination="q")), weaker)
    assert len(told()) == 1


def test_an_activation_tells(adapter, recorder, told):
    adapter.activate(ActivationSpec(destination=Topic("t"), concurrency_mode="sync"), Inbox()).start()
    recorder.await_status("Connecting", "Up")
    assert any("TopicSubscriber(t)" in text and "has one receiver" in text for _, text in told())
