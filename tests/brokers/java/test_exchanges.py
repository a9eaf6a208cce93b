"""Transactions, redelivery, replies and topics between us and Java's Qpid JMS."""

import uuid
from concurrent.futures import ThreadPoolExecutor

from jms_java import SECONDS, describe, receive

from jmsjca import AcknowledgeMode, Queue, Requestor, ResourceAdapter, Topic
from jmsjca.messages import TextMessage


def texts(told):
    return [message["body"][1] for message in told]


def bodies(messages):
    return [message.body for message in messages]


def topic_of(broker):
    """A topic, by our name and by theirs: to Java an address of Broker-J's is a name."""
    name = f"java.{uuid.uuid4().hex}"
    return Topic(name), Topic(f"amq.topic/{name}" if broker == "qpid" else name)


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


def test_they_answer_our_request(ours, theirs, queue):
    answers = Queue(f"{queue.name}.answers")
    question = TextMessage("question", reply_to=answers)
    ours.send(queue, question)
    consumer = theirs.session().consumer(queue)
    consumer.receive()
    consumer.reply("answer")
    [answer] = ours.take(answers)
    assert (answer.body, answer.correlation_id) == ("answer", question.message_id)


def test_they_answer_to_a_temporary_queue_of_ours(ours, theirs, queue):
    consumer = theirs.session().consumer(queue)
    with ours.connection.create_session() as session, ThreadPoolExecutor(1) as thread:
        answer = thread.submit(Requestor(session, queue).request, TextMessage("question"), timeout=SECONDS)
        kind, _ = consumer.receive()["reply_to"]
        consumer.reply("answer")
        assert (kind, answer.result().body) == ("temporary queue", "answer")


def test_we_answer_their_request(ours, theirs, queue):
    """By the name of a queue of theirs that lives as long as their connection."""
    session = theirs.session()
    kind, name = session.temporary("queue")
    assert kind == "temporary queue"
    sent = session.send(queue, {**describe(TextMessage("question")), "reply_to": [kind, name]})
    [question] = ours.take(queue)
    ours.send(question.reply_to, TextMessage("answer", correlation_id=question.message_id))
    [answer] = session.take([kind, name])
    assert (answer["body"][1], answer["correlation_id"]) == ("answer", sent["message_id"])


def test_our_listener_answers_their_request(theirs, broker, broker_url, queue):
    session = theirs.session()
    to = session.temporary("queue")
    with ResourceAdapter(broker_url(f"{broker}-amqp")) as adapter:
        adapter.listener(queue)(lambda message: f"{message.body}!")
        sent = session.send(queue, {**describe(TextMessage("question")), "reply_to": to})
        [answer] = session.take(to)
    assert (answer["body"], answer["correlation_id"]) == (["string", "question!"], sent["message_id"])


def test_they_answer_to_a_temporary_topic_of_ours(ours, theirs, queue):
    with ours.connection.create_session() as session:
        topic = session.create_temporary_topic()
        answers = session.create_consumer(topic)
        ours.send(queue, TextMessage("question", reply_to=topic))
        consumer = theirs.session().consumer(queue)
        kind, _ = consumer.receive()["reply_to"]
        consumer.reply("answer")
        assert (kind, receive(answers).body) == ("temporary topic", "answer")


def test_we_answer_to_a_temporary_topic_of_theirs(ours, theirs, queue):
    session = theirs.session()
    topic = session.temporary("topic")
    answers = session.consumer(topic)
    session.send(queue, {**describe(TextMessage("question")), "reply_to": topic})
    [question] = ours.take(queue)
    assert (question.reply_to.kind, question.reply_to.temporary) == ("topic", True)
    ours.send(question.reply_to, TextMessage("answer"))
    assert answers.receive()["body"] == ["string", "answer"]


def test_their_subscriber_gets_what_we_publish(ours, theirs, broker):
    our_name, their_name = topic_of(broker)
    consumer = theirs.session().consumer(their_name)
    ours.send(our_name, TextMessage("a"))
    received = consumer.receive()
    assert (received["body"], received["destination"][0]) == (["string", "a"], "topic")


def test_our_subscriber_gets_what_they_publish(ours, theirs, broker):
    our_name, their_name = topic_of(broker)
    with ours.connection.create_session() as session, session.create_consumer(our_name) as consumer:
        theirs.session().send(their_name, TextMessage("a"))
        received = receive(consumer)
    assert (received.body, received.destination) == ("a", our_name)
