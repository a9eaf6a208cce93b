"""Transactions, redelivery, topics and subscriptions between jmsjca and Qpid JMS."""

import uuid

import pytest
from jms_java import JavaClient, OurClient, receive

from jmsjca import AcknowledgeMode
from jmsjca.messages import TextMessage


def texts(told):
    return [message["body"][1] for message in told]


def bodies(messages):
    return [message.body for message in messages]


def test_what_we_send_in_a_transaction_they_see_after_the_commit(ours, theirs, queue):
    looking = theirs.session()
    with ours.connection.create_session(transacted=True) as session:
        producer = session.create_producer(queue)
        producer.send(TextMessage("rolled back"))
        session.rollback()
        producer.send(TextMessage("a"))
        producer.send(TextMessage("b"))
        assert looking.browse(queue) == []
        session.commit()
    assert texts(looking.take(queue, 2)) == ["a", "b"]
    assert looking.browse(queue) == []


def test_what_they_send_in_a_transaction_we_see_after_the_commit(ours, theirs, queue):
    session = theirs.session("transacted")
    session.send(queue, TextMessage("rolled back"))
    session.rollback()
    session.send(queue, TextMessage("a"))
    session.send(queue, TextMessage("b"))
    assert ours.browse(queue) == []
    session.commit()
    assert bodies(ours.take(queue, 2)) == ["a", "b"]
    assert ours.browse(queue) == []


def test_what_we_roll_back_they_get_as_redelivered(ours, theirs, queue):
    counts = ours.connection.capabilities.delivery_count
    theirs.session().send(queue, TextMessage("a"))
    with ours.connection.create_session(transacted=True) as session, session.create_consumer(queue) as consumer:
        for _ in range(2):
            receive(consumer)
            session.rollback()
    [again] = theirs.session().take(queue)
    assert (again["body"][1], again["redelivered"], again["delivery_count"]) == ("a", counts, 3 if counts else 1)


def test_what_they_roll_back_we_get_as_redelivered(ours, theirs, queue):
    counts = ours.connection.capabilities.delivery_count
    ours.send(queue, TextMessage("a"))
    session = theirs.session("transacted")
    consumer = session.consumer(queue)
    for count in (1, 2):
        assert consumer.receive()["delivery_count"] == count
        session.rollback()
    consumer.close()
    [again] = ours.take(queue)
    assert (again.body, again.redelivered) == ("a", counts)
    assert again.delivery_count >= (2 if counts else 0)


def test_what_is_taken_in_a_transaction_is_gone_after_the_commit(ours, theirs, queue):
    ours.send(queue, TextMessage("a"))
    session = theirs.session("transacted")
    consumer = session.consumer(queue)
    consumer.receive()
    session.send(queue, TextMessage("b"))
    consumer.close()
    session.commit()
    with ours.connection.create_session(transacted=True) as session, session.create_consumer(queue) as consumer:
        assert receive(consumer).body == "b"
        session.create_producer(queue).send(TextMessage("c"))
        consumer.close()
        session.commit()
    assert texts(theirs.session().browse(queue)) == ["c"]


def test_what_a_client_does_not_acknowledge_goes_to_the_other(ours, theirs, queue):
    theirs.session().send(queue, TextMessage("a"))
    with ours.connection.create_session(acknowledge_mode=AcknowledgeMode.CLIENT) as session:
        receive(session.create_consumer(queue))
    session = theirs.session("client")
    assert texts(session.take(queue)) == ["a"]
    session.close()
    assert bodies(ours.take(queue)) == ["a"]


def test_what_is_undone_when_a_session_of_theirs_is_closed(ours, theirs, queue):
    ours.send(queue, TextMessage("a"))
    session = theirs.session("transacted")
    session.consumer(queue).receive()
    session.send(queue, TextMessage("never committed"))
    session.close()
    assert bodies(ours.take(queue)) == ["a"]
    assert ours.browse(queue) == []


def test_what_is_undone_when_a_session_of_ours_is_closed(ours, theirs, queue):
    theirs.session().send(queue, TextMessage("a"))
    with ours.connection.create_session(transacted=True) as session:
        receive(session.create_consumer(queue))
        session.create_producer(queue).send(TextMessage("never committed"))
    looking = theirs.session()
    assert texts(looking.take(queue)) == ["a"]
    assert looking.browse(queue) == []


def test_their_subscriber_gets_what_we_publish(ours, theirs, names):
    our_name, their_name = names
    consumer = theirs.session().consumer(their_name)
    ours.send(our_name, TextMessage("a"))
    received = consumer.receive()
    assert (received["body"], received["destination"][0]) == (["string", "a"], "topic")


def test_our_subscriber_gets_what_they_publish(ours, theirs, names):
    our_name, their_name = names
    with ours.connection.create_session() as session, session.create_consumer(our_name) as consumer:
        theirs.session().send(their_name, TextMessage("a"))
        received = receive(consumer)
    assert (received.body, received.destination) == ("a", our_name)


NAME = "s"
BODIES = ["0", "1", "2", "3"]


@pytest.fixture
def url(broker, broker_url):
    return broker_url(f"{broker}-amqp")


@pytest.fixture
def client_id():
    return f"client-{uuid.uuid4().hex}"


def test_what_we_publish_waits_for_their_durable_subscriber(url, java, ours, names, client_id):
    our_name, their_name = names
    for expected in (None, "a"):
        client = JavaClient(java, url, client_id)
        session = client.session()
        subscriber = session.consumer(their_name, sort="durable", subscription=NAME)
        if expected:
            assert subscriber.receive()["body"] == ["string", expected]
            subscriber.close()
            session.unsubscribe(NAME)
        client.close()
        if not expected:
            ours.send(our_name, TextMessage("a"))


def test_what_they_publish_waits_for_our_durable_subscriber(url, theirs, names, client_id):
    our_name, their_name = names
    for expected in (None, "a"):
        client = OurClient(url, client_id)
        with client.connection.create_session() as session:
            subscriber = session.create_durable_consumer(our_name, NAME)
            if expected:
                assert receive(subscriber).body == expected
                subscriber.close()
                session.unsubscribe(our_name, NAME)
        client.close()
        if not expected:
            theirs.session().send(their_name, TextMessage("a"))


@pytest.mark.parametrize("sort", ["shared", "shared durable"])
def test_both_share_a_subscription(ours, theirs, names, sort):
    """What one of them has had, the other does not get."""
    if not ours.connection.capabilities.shared:
        pytest.skip("The broker lacks the capability shared.")
    our_name, their_name = names
    name = f"s-{uuid.uuid4().hex}"
    their_session = theirs.session()
    their_subscriber = their_session.consumer(their_name, sort=sort, subscription=name)
    with ours.connection.create_session() as session:
        make = session.create_shared_consumer if sort == "shared" else session.create_shared_durable_consumer
        our_subscriber = make(our_name, name)
        for body in BODIES:
            ours.send(our_name, TextMessage(body))
        had = receive(our_subscriber).body
        our_subscriber.close()  # what it has taken ahead goes to theirs
        rest = [their_subscriber.receive()["body"][1] for _ in BODIES[1:]]
        assert sorted([had, *rest]) == BODIES
        their_subscriber.close()
        if sort == "shared durable":
            session.unsubscribe(our_name, name)


def test_our_selector_on_what_they_publish(ours, theirs, names):
    our_name, their_name = names
    with ours.connection.create_session() as session:
        subscriber = session.create_consumer(our_name, selector="size > 1")
        for size in (1, 2):
            theirs.session().send(their_name, TextMessage(str(size), properties={"size": size}))
        assert receive(subscriber).body == "2"
