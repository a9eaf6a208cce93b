"""Open MQ: its bridge's settlement rules, names, properties and renewed subscriptions."""

import pytest

from jmsjca.destinations import Queue, Subscription, Topic, destination
from jmsjca.errors import ConnectionLostError, InvalidDestinationError, TransactionInDoubtError
from jmsjca.messages import TextMessage
from jmsjca.providers.stomp.protocol.frames import Frame
from jmsjca.providers.stomp.provider import dialect_for
from jmsjca.spi import Order
from tests.unit.providers.stomp.reference_frames import read

OPENMQ = "Eclipse OpenMQ(tm)"
QUEUE = Queue("q")
TEMPORARY = "temporary_destination://queue/127.0.0.1/34860/1"


def not_found(ack):
    """What the bridge says to an acknowledgement."""
    subscription, _, number = ack.partition("ID:")
    return f"ACK: [BSS4028]: ACK a message ID:{number} that is not found in subscriber {subscription}"


def received(line, order, count):
    consumer = line.connection.consumer(QUEUE, order=order)
    subscription = dict(read(bytes(line.channel.written))[-1][1])["id"]
    for number in range(count):
        ack = f"{subscription}ID:{number}-127.0.0.1(ab:cd)-1-2"
        line.channel.say("MESSAGE", b"", destination="/queue/q", message_id=ack[2:], subscription=subscription, ack=ack)
    deliveries = []
    while len(deliveries) < count:
        deliveries.extend(consumer.receive(count - len(deliveries), None))
    line.channel.silent.add("ACK")
    return deliveries


def unit_of(line, deliveries):
    unit = line.connection.unit(atomic=False)
    unit.take(deliveries)
    return unit


def answer_each(line, answer):
    line.channel.reactions["ACK"] = lambda headers: line.channel.say("ERROR", b"", message=answer(headers["id"]))


def test_what_is_acknowledged_alone_is_settled_although_the_bridge_refuses_it(line):
    line = line(OPENMQ)
    deliveries = received(line, Order.ANY, 3)
    answer_each(line, not_found)
    unit_of(line, deliveries[1:]).commit()
    assert not line.told


def test_a_release_that_confirms_it_is_understood_too(line):
    line = line(OPENMQ)
    deliveries = received(line, Order.ANY, 2)
    line.channel.silent.clear()
    unit_of(line, deliveries).commit()
    assert not line.told


@pytest.mark.parametrize(
    ("order", "answer"),
    [
        (Order.PREFIX, not_found),
        (Order.ANY, lambda _: "ACK: [C4000]: Packet acknowledge failed."),
        (Order.ANY, lambda ack: f"ACK: [BSS4021]: No session found for subscriber id {ack.partition('ID:')[0]}"),
    ],
)
def test_any_other_refusal_is_one(line, order, answer):
    line = line(OPENMQ)
    deliveries = received(line, order, 1)
    answer_each(line, answer)
    with pytest.raises(TransactionInDoubtError, match="refused something"):
        unit_of(line, deliveries).commit()
    assert line.lost.wait(30)


@pytest.mark.parametrize("answered", [0, 1])
def test_the_refusal_of_one_message_does_not_confirm_another(line, answered):
    """The commit goes on waiting for what it has not been told of."""
    line = line(OPENMQ)
    deliveries = received(line, Order.ANY, 2)
    refusal = not_found(deliveries[answered].frame.headers["ack"])
    line.channel.early["ACK"] = lambda _: line.channel.early.clear() or line.channel.say("ERROR", b"", message=refusal)
    with pytest.raises(TransactionInDoubtError, match="did not answer"):
        unit_of(line, deliveries).commit(timeout=0.1)


def test_other_brokers_mean_it(line):
    line = line("ActiveMQ-Artemis/2.56.0")
    deliveries = received(line, Order.ANY, 1)
    answer_each(line, not_found)
    with pytest.raises(TransactionInDoubtError):
        unit_of(line, deliveries).commit()


@pytest.mark.parametrize("name", ["a", "_a", "$a", "a.b", "a" * 200, "é.ü", "queue1"])
def test_names_that_it_takes(name):
    assert dialect_for(OPENMQ, "1.2").address(Queue(name)) == {"destination": f"/queue/{name}"}


@pytest.mark.parametrize(
    "name", ["1a", "a-b", "a b", "a/b", "a:b", "a*", "a>", ".a", "mq.sys.dmq", "a" * 201, "é" * 101]
)
def test_names_that_it_would_refuse_or_fall_over(name):
    with pytest.raises(InvalidDestinationError):
        dialect_for(OPENMQ, "1.2").address(Queue(name))


@pytest.mark.parametrize("name", ["JMSJCA.name", "é"])
def test_properties_that_it_would_refuse_the_message_for_travel_in_ours(name):
    dialect = dialect_for(OPENMQ, "1.2")
    [(_, headers, body)] = read(
        dialect.send_frame(dialect.encode(TextMessage("x", properties={"n": 2, name: 1}), QUEUE))
    )
    assert dict(headers)["n"] == "2"
    assert name not in dict(headers)
    got = dialect.decode(Frame("MESSAGE", {**dict(headers), "message-id": "ID:1"}, body, 1), QUEUE)
    assert dict(got.properties) == {"n": 2, name: 1}


def test_replies_go_where_the_request_says():
    dialect = dialect_for(OPENMQ, "1.2")
    asked = dialect.read_address(f"/temp-queue/{TEMPORARY}")
    assert asked == destination(TEMPORARY, "queue", temporary=True)
    assert dialect.address(asked) == {"destination": f"/temp-queue/{TEMPORARY}"}


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


def received_after_renewal(consumer, timeout=None):
    return [d.message.body for d in consumer.receive(10, timeout)]


def short_receive(line, consumer):
    """One in which time passes."""
    clock, still = line.clock, line.clock.monotonic

    def monotonic():
        clock.time += 0.0006
        return still()

    clock.monotonic = monotonic
    try:
        return received_after_renewal(consumer, 0.001)
    finally:
        clock.monotonic = still


@pytest.mark.parametrize("source", [QUEUE, DURABLE])
@pytest.mark.parametrize("order", Order)
def test_a_message_that_was_kept_back_comes_over_the_second_subscription(line, source, order):
    line, consumer = opened(line, source, order=order)
    sent_to_the_second(line)
    line.clock.pass_five()
    assert received_after_renewal(consumer) == ["0"]
    (_, first), (_, ended), (_, second) = written(line, "SUBSCRIBE", "UNSUBSCRIBE")
    assert (ended["id"], {**second, "receipt": first["receipt"]}) == (first["id"], {**first, "id": second["id"]})


def test_a_receiver_waits_no_longer_than_until_then(line):
    line, consumer = opened(line)
    sent_to_the_second(line)
    line.clock.monotonic = iter([1000.0, 1004.999, *[1005.0] * 100]).__next__
    assert received_after_renewal(consumer) == ["0"]


def test_what_still_came_over_the_first_one_comes_once(line):
    line, consumer = opened(line)
    first = names(line)[0]
    line.channel.early["UNSUBSCRIBE"] = lambda _: line.message(first, 0)
    sent_to_the_second(line)
    line.clock.pass_five()
    assert received_after_renewal(consumer) == ["0"]
    assert received_after_renewal(consumer, 0) == []


def test_what_is_being_taken_from_the_first_one_comes_once(line):
    """The thread that reads has found whose it is, and not handed it over."""
    line, consumer = opened(line)
    first = names(line)[0]
    hands_over = line.connection._session.dispatcher._listeners[first]
    frame = Frame("MESSAGE", {"subscription": first, "ack": "a0", "message-id": "m0"}, b"0", 1)
    line.channel.early["UNSUBSCRIBE"] = lambda _: hands_over([frame])
    sent_to_the_second(line)
    line.clock.pass_five()
    assert received_after_renewal(consumer) == ["0"]
    assert received_after_renewal(consumer, 0) == []


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
    assert received_after_renewal(consumer, 0) == []
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
    with pytest.raises(ConnectionLostError, match="could not be renewed"):
        consumer.receive(1, None)
