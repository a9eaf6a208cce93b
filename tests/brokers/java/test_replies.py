"""Requests and replies between us and Java's Qpid JMS: each asks, the other answers where it is told to."""

from concurrent.futures import ThreadPoolExecutor

from jms_java import SECONDS, describe, receive

from jmsjca import Queue, Requestor, ResourceAdapter
from jmsjca.messages import TextMessage


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
        received = answer.result()
        assert (kind, received.body) == ("temporary queue", "answer")
        assert (received.destination.kind, received.destination.temporary) == ("queue", True)


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
    assert answer["destination"] == [kind, name]


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
        answer = receive(answers)
        assert (kind, answer.body, answer.destination) == ("temporary topic", "answer", topic)


def test_we_answer_to_a_temporary_topic_of_theirs(ours, theirs, queue):
    session = theirs.session()
    topic = session.temporary("topic")
    answers = session.consumer(topic)
    session.send(queue, {**describe(TextMessage("question")), "reply_to": topic})
    [question] = ours.take(queue)
    assert (question.reply_to.kind, question.reply_to.temporary) == ("topic", True)
    ours.send(question.reply_to, TextMessage("answer"))
    answer = answers.receive()
    assert (answer["body"], answer["destination"]) == (["string", "answer"], topic)


def test_we_answer_to_a_queue_that_they_name(ours, theirs, queue):
    answers = Queue(f"{queue.name}.answers")
    session = theirs.session()
    session.send(queue, TextMessage("question", reply_to=answers))
    [question] = ours.take(queue)
    ours.send(question.reply_to, TextMessage("answer"))
    assert [answer["body"][1] for answer in session.take(answers)] == ["answer"]


def test_they_answer_to_a_topic_that_we_name(ours, theirs, names, queue):
    topic, _ = names
    with ours.connection.create_session() as session, session.create_consumer(topic) as answers:
        ours.send(queue, TextMessage("question", reply_to=topic))
        consumer = theirs.session().consumer(queue)
        consumer.receive()
        consumer.reply("answer")
        answer = receive(answers)
    assert (answer.body, answer.destination) == ("answer", topic)


def test_we_answer_to_a_topic_that_they_name(ours, theirs, names, queue):
    our_name, their_name = names
    session = theirs.session()
    answers = session.consumer(their_name)
    session.send(queue, TextMessage("question", reply_to=their_name))
    [question] = ours.take(queue)
    assert question.reply_to == our_name
    ours.send(question.reply_to, TextMessage("answer"))
    assert answers.receive()["body"] == ["string", "answer"]
