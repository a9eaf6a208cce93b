"""Subscriptions of topics: what one side publishes waits for the other, and both can share one."""

import uuid

import pytest
from jms_java import JavaClient, OurClient, receive

from jmsjca.messages import TextMessage

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
