"""Messages that are moved as they are: because an option says so, or because their copy cannot be sent."""

import queue

import pytest

from jmsjca import ActivationSpec, Limits, Queue, ResourceAdapter
from jmsjca.errors import MessageFormatError
from jmsjca.redelivery import RedeliveryPolicy
from tests.unit.delivering.stage import Breaks, Performance, endpoint_of, put, terms
from tests.unit.inbound import PATIENCE, Inbox, send


@pytest.fixture
def moving(jms_broker_url):
    """Starts a listener that fails as often as is said, and is moved from at the second delivery."""
    adapters = []

    def begin(failing, options=None):
        adapter = ResourceAdapter(jms_broker_url, options=options, limits=Limits(message_bytes=3000))
        adapters.append(adapter)
        moved = queue.Queue()
        adapter.activate(ActivationSpec(destination="q", redelivery_handling="1:move(queue:dlq)"), failing)
        adapter.activate(ActivationSpec(destination="dlq"), moved.put)
        adapter.start()
        return moved

    yield begin
    for adapter in adapters:
        adapter.stop()


def told(message):
    """What a copy tells beside what was sent; properties of JMS are told by every one."""
    return [name for name in message.properties if "JMSX" not in name]


def test_because_an_option_says_so(moving, adapter):
    moved = moving(Inbox(KeyError()), {"JMSJCA.redeliveryredirect": "true"})
    send(adapter, "a")
    message = moved.get(timeout=PATIENCE)
    assert (message.body, told(message)) == ("a", [])


class Terse(Breaks):
    """A unit that takes no message which tells of a failure."""

    def send(self, message, to):
        if told(message):
            raise MessageFormatError("There are more properties than this broker takes.")
        self._real.send(message, to)


def test_because_the_copy_cannot_be_sent(connected, caplog):
    link = connected()
    put(link, "a")
    open_unit = link.unit
    link.unit = lambda **kwargs: Terse(open_unit(**kwargs))
    policy = RedeliveryPolicy.parse("1:move(queue:dlq)", "q", "queue")
    performance = Performance(endpoint_of(Inbox(KeyError()), terms("serial", redelivery=policy)), link)
    (delivery,) = connected().consumer(Queue("dlq")).receive(1, PATIENCE)
    assert (delivery.message.body, told(delivery.message)) == ("a", [])
    assert "could not copy" in caplog.text
    performance.stop()


def test_what_cannot_be_moved_at_all_is_delivered(moving, adapter, caplog):
    inbox = Inbox(KeyError())
    moved = moving(inbox)
    send(adapter, "a" * 5000)
    assert [count for _, count in inbox.take(2)] == [1, 2]
    assert moved.empty()
    assert "could not move" in caplog.text
