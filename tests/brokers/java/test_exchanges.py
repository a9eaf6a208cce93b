"""Transactions, redelivery and topics between us and Java's Qpid JMS."""

from jms_java import receive

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
