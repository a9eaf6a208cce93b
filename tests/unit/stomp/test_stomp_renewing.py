"""Open MQ may keep the first message of a subscription back, so one over which nothing comes is made again."""

import pytest

from jmsjca.destinations import Queue, Subscription, Topic
from jmsjca.errors import ConnectionLostError
from jmsjca.providers.stomp.protocol.frames import Frame
from jmsjca.spi import Order
from tests.unit.stomp.letters import read

OPENMQ = "Eclipse OpenMQ(tm)"
QUEUE = Queue("q")
DURABLE = Subscription(Topic("t"), name="s", client_id="c")


def written(line, *commands):
    return [
        (command, dict(headers)) for command, headers, _ in read(bytes(line.channel.written)) if command in commands
    ]


def names(line):
    """The subscriptions so far."""
    return [headers["id"] for _, headers in written(line, "SUBSCRIBE")]


def sent_to_the_second(line):
    """The broker sends a message to every subscription but the first one, as soon as it is there."""
    line.channel.reactions["SUBSCRIBE"] = lambda headers: line.message(headers["id"], 0)


def opened(line, source=QUEUE, server=OPENMQ, **options):
    line = line(server, client_id="c")
    return line, line.connection.consumer(source, **options)


def received(consumer, timeout=None):
    return [d.message.body for d in consumer.receive(10, timeout)]


def short_receive(line, consumer):
    """One in which time passes."""
    clock, still = line.clock, line.clock.monotonic

    def monotonic():
        clock.time += 0.0006
        return still()

    clock.monotonic = monotonic
    try:
        return received(consumer, 0.001)
    finally:
        clock.monotonic = still


@pytest.mark.parametrize("source", [QUEUE, DURABLE])
@pytest.mark.parametrize("order", Order)
def test_a_message_that_was_kept_back_comes_over_the_second_subscription(line, source, order):
    line, consumer = opened(line, source, order=order)
    sent_to_the_second(line)
    line.clock.pass_five()
    assert received(consumer) == ["0"]
    (_, first), (_, ended), (_, second) = written(line, "SUBSCRIBE", "UNSUBSCRIBE")
    assert (ended["id"], {**second, "receipt": first["receipt"]}) == (first["id"], {**first, "id": second["id"]})


def test_a_receiver_waits_no_longer_than_until_then(line):
    line, consumer = opened(line)
    sent_to_the_second(line)
    line.clock.monotonic = iter([1000.0, 1004.999, *[1005.0] * 100]).__next__
    assert received(consumer) == ["0"]


def test_what_still_came_over_the_first_one_comes_once(line):
    line, consumer = opened(line)
    first = names(line)[0]
    line.channel.early["UNSUBSCRIBE"] = lambda _: line.message(first, 0)
    sent_to_the_second(line)
    line.clock.pass_five()
    assert received(consumer) == ["0"]
    assert received(consumer, 0) == []


def test_what_is_being_taken_from_the_first_one_comes_once(line):
    """The thread that reads has found whose it is, and not handed it over."""
    line, consumer = opened(line)
    first = names(line)[0]
    hands_over = line.connection._session.dispatcher._listeners[first]
    frame = Frame("MESSAGE", {"subscription": first, "ack": "a0", "message-id": "m0"}, b"0", 1)
    line.channel.early["UNSUBSCRIBE"] = lambda _: hands_over([frame])
    sent_to_the_second(line)
    line.clock.pass_five()
    assert received(consumer) == ["0"]
    assert received(consumer, 0) == []


def test_it_is_made_again_once(line):
    line, consumer = opened(line)
    line.clock.pass_five()
    assert short_receive(line, consumer) == []
    line.clock.pass_five()
    assert short_receive(line, consumer) == []
    assert len(names(line)) == 2


def test_not_before_its_time(line):
    line, consumer = opened(line)
    line.clock.time += 4.99
    assert short_receive(line, consumer) == []
    assert len(names(line)) == 1


def test_not_after_something_came(line):
    line, consumer = opened(line)
    line.message(names(line)[0], 0)
    unit = line.connection.unit(atomic=False)
    unit.take(consumer.receive(1, None))
    unit.commit()
    line.clock.pass_five()
    assert short_receive(line, consumer) == []
    assert len(names(line)) == 1


def test_who_does_not_wait_does_not_make_it_again(line):
    line, consumer = opened(line)
    line.clock.pass_five()
    assert received(consumer, 0) == []
    assert len(names(line)) == 1


@pytest.mark.parametrize(("server", "source"), [(OPENMQ, Topic("t")), ("ActiveMQ/6.3.1", QUEUE)])
def test_neither_for_topics_nor_on_other_brokers(line, server, source):
    """A topic's would lose what is published meanwhile."""
    line, consumer = opened(line, source, server)
    line.clock.pass_five()
    assert short_receive(line, consumer) == []
    assert len(names(line)) == 1


def test_a_closed_consumer_has_no_subscription_left(line):
    line, consumer = opened(line)
    line.clock.pass_five()
    short_receive(line, consumer)
    consumer.close()
    ended = [headers["id"] for _, headers in written(line, "UNSUBSCRIBE")]
    assert ended == names(line)


def test_a_consumer_that_is_closed_meanwhile_is_not_made_again(line):
    line, consumer = opened(line)
    line.clock.pass_five()
    consumer._subscriptions.unsubscribe(list)
    consumer._subscriptions.add_subscription(1)
    assert len(names(line)) == 1


@pytest.mark.parametrize("command", ["UNSUBSCRIBE", "SUBSCRIBE"])
def test_a_refusal_is_a_lost_connection(line, command):
    """So that what recovers connections opens a consumer anew, or tells that it cannot."""
    line, consumer = opened(line)
    line.channel.refused.add(command)
    line.clock.pass_five()
    with pytest.raises(ConnectionLostError):
        consumer.receive(1, None)


@pytest.mark.parametrize("command", ["UNSUBSCRIBE", "SUBSCRIBE"])
def test_silence_is_a_lost_connection(line, command):
    """Nobody knows what of it was carried out."""
    line, consumer = opened(line)
    line.channel.silent.add(command)
    line.connection._session.reply_timeout = 0
    line.clock.pass_five()
    with pytest.raises(ConnectionLostError, match="could not be made again"):
        consumer.receive(1, None)
