"""Failures that the broker does not count, as for large messages on Artemis."""

import pytest
from proton import Message

from jmsjca.destinations import Queue
from jmsjca.providers.amqp import delivery as delivery_module

QUEUE = Queue("q")


@pytest.fixture
def line(line):
    line = line()
    line.open()
    return line


def encoded(**header):
    return bytes(Message(body="a", **header).encode())


def receive(line, message):
    """Let the broker send a message to a new consumer, and take it."""
    line.peer.do(lambda: line.peer.stock.append(message))
    [delivery] = line.connection.consumer(QUEUE).receive(1, None)
    return delivery


def told(delivery):
    return delivery.count, delivery.redelivered


def roll_back(line, delivery, **unused):
    unit = line.connection.unit()
    unit.take([delivery])
    unit.rollback(**unused)


@pytest.mark.parametrize("message", [encoded(id="1"), b"\0\x53\x77\x3f"], ids=["decoded", "undecodable"])
def test_what_failed_and_was_not_counted_is_counted_here(line, message):
    """Whichever consumer of the connection it comes to."""
    for count in range(1, 4):
        delivery = receive(line, message)
        assert told(delivery) == (count, count > 1)
        roll_back(line, delivery)


def test_a_message_tells_what_its_delivery_tells(line):
    roll_back(line, receive(line, encoded(id="1")))
    message = receive(line, encoded(id="1")).message
    assert (message.delivery_count, message.redelivered) == (2, True)


def test_what_the_broker_counted_is_not_counted_twice(line):
    roll_back(line, receive(line, encoded(id="1")))
    assert told(receive(line, encoded(id="1", delivery_count=1))) == (2, True)


def test_what_went_back_unused_is_not_counted(line):
    delivery = receive(line, encoded(id="1"))
    roll_back(line, delivery, unused=[delivery])
    assert told(receive(line, encoded(id="1"))) == (1, False)


def test_what_has_no_id_may_be_another_message(line):
    roll_back(line, receive(line, encoded()))
    assert told(receive(line, encoded())) == (1, False)


def test_another_message_is_new(line):
    roll_back(line, receive(line, encoded(id="1")))
    assert told(receive(line, encoded(id="2"))) == (1, False)


def test_what_failed_first_is_forgotten_first():
    class Failed:
        def __init__(self, body):
            self.encoded, self.message = body, self
            self._original_id = "id"

    memory = delivery_module.FailureCounts(max_messages=2)
    memory.record(map(Failed, [b"a", b"b", b"a", b"c"]))
    assert list(memory.counts_for([b"a", b"b", b"c"])) == [2, 0, 1]
