"""What brokers do where they lack something about subscribers and temporary destinations, by AMQP 1.0 itself.

Each case is the evidence of a gap, as in `test_gaps.py`.
"""

import uuid

import pytest
from gap_links import Receiver, With, end_over_a_sender, send
from proton import UNDESCRIBED, Array, Data, Described, Endpoint, Message, Terminus, symbol, ulong


def temporary(connection, kind):
    """Make a temporary queue or topic: the link that it lives as long as."""

    def dynamic(link):
        link.target.dynamic = True
        link.target.expiry_policy = Terminus.EXPIRE_WITH_LINK
        link.target.properties.put_dict({symbol("lifetime-policy"): Described(ulong(0x2B), [])})  # delete on close
        link.target.capabilities.put_object(symbol(f"temporary-{kind}"))

    return connection.connection.create_sender(None, name=uuid.uuid4().hex, options=With(dynamic)).link


def test_artemis_lets_everybody_read_a_temporary_queue_by_its_name(amqp):
    made = temporary(amqp("artemis"), "queue").remote_target.address
    other = amqp("artemis")
    send(other, made, "secret")
    assert Receiver(other, made, 1).bodies(1) == ["secret"]


def test_artemis_makes_a_queue_of_a_temporary_one_that_is_gone(amqp):
    connection, other = amqp("artemis"), amqp("artemis")
    link = temporary(connection, "queue")
    made = link.remote_target.address
    link.close()
    connection.connection.wait(lambda: link.state & Endpoint.REMOTE_CLOSED, msg="a detach")
    send(other, made, "late")
    assert Receiver(other, made, 1).bodies(1) == ["late"]


def test_rabbitmq_makes_nothing_temporary(amqp):
    why = end_over_a_sender(amqp("rabbitmq"), lambda target: setattr(target, "dynamic", True))
    assert why.name == "amqp:not-implemented"
    assert "Dynamic targets not supported" in why.description


def subscribed(*capabilities, durable=False, no_local=False):
    def configure(link):
        link.source.capabilities.clear()
        link.source.capabilities.put_object(Array(UNDESCRIBED, Data.SYMBOL, *map(symbol, ("topic", *capabilities))))
        link.source.durability = Terminus.DELIVERIES if durable else Terminus.NONDURABLE
        link.source.expiry_policy = Terminus.EXPIRE_NEVER if durable else Terminus.EXPIRE_WITH_LINK
        if no_local:
            filters = {symbol("no-local"): Described(symbol("apache.org:no-local-filter:list"), [])}
            link.source.filter.put_object(filters)

    return configure


ATTEMPTS = 1000
TOPICS = {
    "activemq": "topic://{}",
    "artemis": "{}",
    "qpid": "amq.topic/{}",
    "rabbitmq": "/topic/{}",
    "rabbitmq4": "/topic/{}",
}


def publish(connection, topic, *bodies):
    kind = None if topic.startswith("/") else lambda link: link.target.capabilities.put_object(symbol("topic"))
    sender = connection.connection.create_sender(topic, name=uuid.uuid4().hex, options=With(kind) if kind else None)
    for body in bodies:
        sender.send(Message(body=body, durable=True))


@pytest.fixture
def topic():
    name = uuid.uuid4().hex
    return lambda broker: TOPICS[broker].format(name)


@pytest.mark.parametrize("broker", ["activemq", "rabbitmq"])
def test_each_of_those_that_share_a_subscription_gets_everything(amqp, topic, broker):
    connection = amqp(broker)
    shared = subscribed("shared", "global")
    receivers = [Receiver(connection, topic(broker), 1, shared, f"s|global-volatile{n}") for n in (1, 2)]
    publish(amqp(broker), topic(broker), "a")
    assert [receiver.bodies(1) for receiver in receivers] == [["a"], ["a"]]


@pytest.mark.torture  # it depends on who is faster: some machines show it at once, and some not in a hundred attempts
def test_artemis_attaches_to_a_shared_subscription_that_it_is_about_to_remove(amqp, topic):
    shared = subscribed("shared", "global")
    Receiver(amqp("artemis"), topic("artemis"), 0, subscribed())  # or the topic may be removed meanwhile, too
    for attempt in range(ATTEMPTS):
        name = f"{uuid.uuid4().hex}|global-volatile1"
        one, other = amqp("artemis"), amqp("artemis")
        Receiver(one, topic("artemis"), 0, shared, name)
        one.connection.close()
        late = Receiver(other, topic("artemis"), 1, shared, name)
        unshared = Receiver(other, topic("artemis"), 1, subscribed())
        publish(other, topic("artemis"), f"{attempt}")
        assert unshared.bodies(1) == [f"{attempt}"]
        late.link.drain(0)
        other.connection.wait(lambda link=late.link: link.current or not link.credit, msg="a message, or no more")
        if not late.link.current:
            return
        other.connection.close()
    pytest.fail(f"The late one heard of the message all of {ATTEMPTS} times.")


@pytest.mark.parametrize("first", [("shared",), ()])
def test_artemis_has_one_queue_for_a_shared_and_an_unshared_subscription_of_a_name(amqp, topic, first):
    connection = amqp("artemis", container_id=uuid.uuid4().hex)
    receiver = Receiver(connection, topic("artemis"), 0, subscribed(*first, durable=True), "s")
    receiver.link.detach()
    publish(connection, topic("artemis"), "a")
    then = () if first else ("shared",)
    assert Receiver(connection, topic("artemis"), 1, subscribed(*then, durable=True), "s").bodies(1) == ["a"]


@pytest.mark.parametrize(("broker", "comes"), [("activemq", "mine"), ("qpid", "after")])
def test_a_durable_subscription_that_was_left_hears_its_client_or_nobody(amqp, topic, broker, comes):
    client = uuid.uuid4().hex
    spared = subscribed(durable=True, no_local=True)
    first = amqp(broker, container_id=client)
    Receiver(first, topic(broker), 0, spared, "s").link.detach()
    first.connection.close()
    second, stranger = amqp(broker, container_id=client), amqp(broker)
    publish(second, topic(broker), "mine")
    publish(stranger, topic(broker), "another's")
    second.connection.close()
    receiver = Receiver(amqp(broker, container_id=client), topic(broker), 1, spared, "s")
    publish(stranger, topic(broker), "after")
    assert receiver.bodies(1) == [comes]


@pytest.mark.parametrize("broker", ["rabbitmq", "rabbitmq4"])
def test_rabbitmq_repeats_the_filter_that_spares_own_messages_and_delivers_them(amqp, topic, broker):
    connection = amqp(broker)
    receiver = Receiver(connection, topic(broker), 1, subscribed(no_local=True))
    assert receiver.link.remote_source.filter.next()
    publish(connection, topic(broker), "mine")
    assert receiver.bodies(1) == ["mine"]


def grouped(body):
    return Message(body=body, group_id=body[0], durable=True)


@pytest.mark.parametrize("broker", ["qpid", "rabbitmq", "rabbitmq4"])
def test_a_group_goes_to_several_consumers(amqp, address, broker):
    connection, name = amqp(broker), address(broker)
    receivers = [Receiver(connection, name, 1) for _ in range(2)]
    send(connection, name, grouped("a1"), grouped("a2"))
    assert sorted(receiver.bodies(1)[0] for receiver in receivers) == ["a1", "a2"]


@pytest.mark.parametrize(("broker", "waits"), [("artemis", True), ("activemq", False)])
def test_a_group_whose_consumer_does_not_ask_holds_up_others(amqp, address, broker, waits):
    connection, name = amqp(broker), address(broker)
    first = Receiver(connection, name, 1)
    send(connection, name, grouped("a1"))
    assert first.bodies(1) == ["a1"]
    second = Receiver(connection, name, 1)
    send(connection, name, grouped("a2"), grouped("b1"))
    if waits:
        second.link.drain(0)
        connection.connection.wait(lambda: second.link.current or not second.link.credit, msg="the answer to a drain")
        assert not second.link.current
        second.link.drain_mode = False
        second.link.flow(1)
        first.link.flow(1)
        assert first.bodies(1) == ["a2"]
    assert second.bodies(1) == ["b1"]
