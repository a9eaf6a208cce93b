"""What goes back is what was asked for: counted or not, and nothing comes that was not selected."""

import pytest
from amqp_peer import SECONDS, Broker
from amqp_peer.performatives import Attach, Source

from jmsjca.destinations import Queue, TemporaryQueue
from jmsjca.errors import InvalidDestinationError, NotSupportedError
from tests.unit.amqp.wire.account import encoded

QUEUE = Queue("q")


def receive_all(consumer, number):
    found = []
    while len(found) < number:
        found += consumer.receive(number, SECONDS)
    return found


def test_what_failed_comes_back_counted_and_what_nobody_used_does_not(stage):
    broker = Broker()
    for body in "ab":
        broker.store.put("q", encoded(body))
    connection = stage(broker).connect()
    consumer = connection.consumer(QUEUE)
    for count in (1, 2, 3):
        failed, unused = receive_all(consumer, 2)
        assert [(failed.message.body, failed.count), (unused.message.body, unused.count)] == [("a", count), ("b", 1)]
        unit = connection.unit()
        unit.take([failed, unused])
        unit.rollback(unused=[unused])


def test_a_broker_that_drops_a_selector_is_not_taken_for_one_that_minds_it(stage):
    def drop_filter(service, frame):
        source = Source(**{**frame.body.source.fields, "filter": None})
        service.agree(frame, source=source)

    broker = Broker()
    broker.store.put("q", encoded("a"))
    broker.instead[Attach] = drop_filter
    with pytest.raises(NotSupportedError, match="ignored jms-selector"):
        stage(broker).connect().consumer(QUEUE, selector="a = 1")
    assert len(broker.store.queues["q"]) == 1


def test_a_temporary_queue_of_another_connection_is_not_even_asked_for(stage):
    broker = Broker()
    with pytest.raises(InvalidDestinationError, match="another connection's"):
        stage(broker).connect().consumer(TemporaryQueue("not ours"))
    assert Attach not in broker.seen
