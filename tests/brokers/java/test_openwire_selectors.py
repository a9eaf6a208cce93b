"""Selectors between ours over STOMP and ActiveMQ's own Java client over OpenWire, on ActiveMQ."""

import uuid

import pytest
from jms_java import describe

from jmsjca import Queue
from jmsjca.messages import Float, Long, TextMessage

SELECTED = {
    "colour = 'red'": "a",
    "colour LIKE '%red'": "ab",
    "colour IN ('red', 'täxt')": "ac",
    "colour IS NULL": "d",
    "colour NOT LIKE '%red' OR colour IS NULL": "cd",
    "JMSType = 'pear'": "a",
    "JMSPriority > 5": "bd",
    "JMSCorrelationID = 'c-1' AND colour <> 'blue'": "a",
}
COLOURED = [
    TextMessage("a", properties={"colour": "red"}, type="pear", correlation_id="c-1"),
    TextMessage("b", properties={"colour": "dark red"}),
    TextMessage("c", properties={"colour": "täxt"}, type="apple"),
    TextMessage("d", properties={"size": 1}),
]
NUMBERS = {"size = 1": "a", "size > 1.2 AND size < 2": "b", "size BETWEEN 2 AND 1099511627776": "c", "fresh": "d"}
NUMBERED = [
    TextMessage("a", properties={"size": 1}),
    TextMessage("b", properties={"size": Float(1.5)}),
    TextMessage("c", properties={"size": Long(2**40)}),
    TextMessage("d", properties={"fresh": True}),
]


@pytest.mark.parametrize("selector", SELECTED)
def test_java_selects_among_our_messages(over_openwire, our_coloured, selector):
    found = over_openwire.session().browse(our_coloured, selector)
    assert "".join(sorted(message["body"][1] for message in found)) == SELECTED[selector]


def test_our_numbers_are_text_to_their_selectors(over_stomp, over_openwire, queue):
    over_stomp.send(queue, TextMessage("a", properties={"size": 1}))
    assert over_openwire.session().browse(queue, "size = 1") == []
    assert len(over_openwire.session().browse(queue, "size = '1'")) == 1


@pytest.mark.parametrize("selector", SELECTED)
def test_we_select_among_their_messages(over_stomp, over_openwire, queue, selector):
    send_theirs(over_openwire, queue, COLOURED)
    found = over_stomp.take(queue, len(SELECTED[selector]), selector)
    assert "".join(sorted(message.body for message in found)) == SELECTED[selector]


@pytest.mark.parametrize("selector", NUMBERS)
def test_we_select_among_their_messages_by_number(over_stomp, over_openwire, queue, selector):
    """Java's properties have types; over_stomp are text on their way, and no number selects them."""
    send_theirs(over_openwire, queue, NUMBERED)
    [found] = over_stomp.take(queue, 1, selector)
    assert found.body == NUMBERS[selector]


@pytest.fixture(scope="module")
def our_coloured(over_stomp):
    there = Queue(f"java.{uuid.uuid4().hex}")
    for number, message in enumerate(COLOURED):
        over_stomp.send(there, message, priority=7 if number % 2 else 4)
    return there


def send_theirs(over_openwire, queue, messages):
    session = over_openwire.session()
    for number, message in enumerate(messages):
        session.send(queue, {**describe(message), "priority": 7 if number % 2 else 4})
