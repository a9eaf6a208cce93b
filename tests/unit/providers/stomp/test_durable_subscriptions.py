"""A durable subscription has one consumer on a connection."""

import threading
from dataclasses import replace

import pytest

from jmsjca.destinations import Subscription, Topic
from jmsjca.errors import IllegalStateError
from tests.unit.providers.embedded.test_group_commit import PATIENCE, in_background
from tests.unit.providers.stomp.reference_frames import read

DURABLE = Subscription(Topic("t"), "s", "client")


def test_second_consumer_is_refused_before_anything_is_written(line):
    line = line(client_id="client")
    line.connection.consumer(DURABLE)
    line.channel.written.clear()
    for source in (DURABLE, replace(DURABLE, topic=Topic("another"))):
        with pytest.raises(IllegalStateError, match="in use"):
            line.connection.consumer(source)
    assert not line.channel.written


@pytest.mark.parametrize("use", ["consumer", "remove"])
def test_it_is_in_use_while_another_thread_opens_its_consumer(line, use):
    """A second SUBSCRIBE would take over the subscription; an UNSUBSCRIBE would end that of the other thread."""
    line = line(client_id="client")
    subscribing: list[dict[str, str]] = []
    begun = threading.Event()

    def answer_only_the_second(headers):
        subscribing.append(headers)
        if len(subscribing) > 1:
            line.channel.silent.clear()
        begun.set()

    line.channel.early["SUBSCRIBE"] = answer_only_the_second
    line.channel.silent.add("SUBSCRIBE")
    opened = in_background(line.connection.consumer, DURABLE)
    assert begun.wait(PATIENCE)
    with pytest.raises(IllegalStateError, match="in use"):
        getattr(line.connection, use)(DURABLE)
    line.channel.say("RECEIPT", receipt_id=subscribing[0]["receipt"])
    opened.result(PATIENCE).close()
    line.connection.remove(DURABLE)


def test_one_in_use_is_not_removed(line):
    line = line(client_id="client")
    consumer = line.connection.consumer(DURABLE)
    with pytest.raises(IllegalStateError, match="in use"):
        line.connection.remove(DURABLE)
    consumer.close()
    line.connection.remove(DURABLE)


def test_it_is_in_use_as_long_as_a_unit_holds_a_message_of_it(line):
    """Its acknowledgement would settle nothing once the subscription is another consumer's."""
    line = line(client_id="client")
    consumer = line.connection.consumer(DURABLE)
    line.message(dict(read(bytes(line.channel.written))[0][1])["id"], 1)
    unit = line.connection.unit()
    unit.take(consumer.receive(1, None))
    consumer.close()
    with pytest.raises(IllegalStateError, match="in use"):
        line.connection.consumer(DURABLE)
    unit.commit()
    line.connection.consumer(DURABLE)


def test_a_message_that_comes_while_it_is_removed_on_rabbitmq_does_no_harm(line):
    """The broker has unsubscribed us already, and tells that it does not know for whom the message is."""
    line = line("RabbitMQ/3", client_id="client")
    line.channel.reactions["UNSUBSCRIBE"] = lambda _: line.channel.say("ERROR", message="Subscription not found")
    line.connection.remove(DURABLE)
    assert line.channel.frames().count("UNSUBSCRIBE") == 1
