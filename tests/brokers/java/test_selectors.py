"""Selectors find the same among the other's messages as among one's own."""

import uuid

import pytest

from jmsjca import Queue
from jmsjca.messages import Byte, Double, Float, Long, Short, TextMessage

MESSAGES = [
    TextMessage("a", properties={"size": 1, "colour": "red", "fresh": True}, type="pear", correlation_id="c-1"),
    TextMessage("b", properties={"size": Long(2**40), "colour": "dark red", "fresh": False}),
    TextMessage("c", properties={"size": Float(1.5), "colour": "r_d"}, type="apple"),
    TextMessage("d", properties={"size": Double(2.25), "colour": "täxt's"}),
    TextMessage("e", properties={"size": Byte(3)}),
    TextMessage("f", properties={"size": Short(300)}),
]
SELECTED = {
    "size = 1": "a",
    "size > 1099511627775": "b",
    "size = 1.5": "c",
    "size BETWEEN 1 AND 3": "acde",
    "size NOT BETWEEN 1 AND 3": "bf",
    "size * 2 - 0.5 = 4": "d",
    "size IN ('x') OR size = 300": "f",
    "fresh": "a",
    "fresh = FALSE": "b",
    "NOT fresh": "b",
    "fresh IS NULL AND colour IS NOT NULL": "cd",
    "colour = 'red'": "a",
    "colour LIKE '%red'": "ab",
    "colour LIKE 'r_d'": "ac",
    r"colour LIKE 'r\_d' ESCAPE '\'": "c",
    "colour NOT LIKE 'r%'": "bd",
    "colour IN ('red', 'täxt''s')": "ad",
    "JMSType = 'pear'": "a",
    "JMSCorrelationID = 'c-1'": "a",
    "JMSPriority > 5": "bdf",
    "JMSDeliveryMode = 'PERSISTENT' AND size < 2": "ac",
}


@pytest.fixture(scope="module")
def ours_there(ours):
    return filled(lambda queue, message, priority: ours.send(queue, message, priority=priority))


@pytest.fixture(scope="module")
def theirs_there(theirs):
    session = theirs.session()
    return filled(lambda queue, message, priority: session.send(queue, with_priority(message, priority)))


def filled(send):
    queue = Queue(f"java.{uuid.uuid4().hex}")
    for number, message in enumerate(MESSAGES):
        send(queue, message, 7 if number % 2 else 4)
    return queue


def with_priority(message, priority):
    message.priority = priority
    return message


@pytest.mark.parametrize("selector", SELECTED)
def test_java_selects_among_our_messages(theirs, ours_there, selector):
    found = theirs.session().browse(ours_there, selector)
    assert "".join(sorted(message["body"][1] for message in found)) == SELECTED[selector]


@pytest.mark.parametrize("selector", SELECTED)
def test_we_select_among_their_messages(ours, theirs_there, selector):
    found = ours.browse(theirs_there, selector)
    assert "".join(sorted(message.body for message in found)) == SELECTED[selector]


def test_what_is_not_selected_stays(ours, theirs, queue):
    ours.send(queue, TextMessage("ours", properties={"size": 1}))
    theirs.session().send(queue, TextMessage("theirs", properties={"size": 2}))
    [found] = theirs.session().take(queue, selector="size = 1")
    assert found["body"] == ["string", "ours"]
    assert [message.body for message in ours.take(queue, selector="size = 2")] == ["theirs"]
    assert ours.browse(queue) == []
