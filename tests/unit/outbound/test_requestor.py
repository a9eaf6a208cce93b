"""Request and reply (JMS 3.1, sections 2.16 and 4.1.7)."""

import pytest
from poisoning import poison_embedded

from jmsjca import AcknowledgeMode, Queue, Requestor, TextMessage, Topic
from jmsjca.errors import IllegalStateError, InvalidDestinationError, MessageFormatError, NotSupportedError
from tests.unit.outbound.queues import PATIENCE, QUEUE, take


@pytest.fixture
def session(connection):
    with connection.create_session() as session:
        yield session


@pytest.fixture
def answer(other):
    """Answers so many requests, each with its body in capitals, and correlated as told."""

    def answering(count=1, *, source=QUEUE, correlation=lambda request: request.message_id):
        with other.create_session() as session, session.create_consumer(source) as consumer:
            requests = [consumer.receive(PATIENCE) for _ in range(count)]
            for request in requests:
                reply = TextMessage(request.body.upper(), correlation_id=correlation(request))
                session.create_producer().send(reply, request.reply_to)
            return requests

    return answering


def unanswered(requestor, body):
    """A request that nobody answers in time."""
    assert requestor.request(TextMessage(body), timeout=0) is None


@pytest.mark.parametrize("attribute", ["message_id", "correlation_id"])
def test_reply_is_found_by_its_correlation(session, answer, in_thread, attribute):
    """JMSCorrelationID of the reply refers to the request: to its message id, or to its own correlation id (3.4.5)."""
    with Requestor(session, QUEUE) as requestor:
        answering = in_thread(lambda: answer(correlation=lambda request: getattr(request, attribute)))
        assert requestor.request(TextMessage("a"), PATIENCE).body == "A"
        answering.result()


def test_several_requests(session, answer, in_thread):
    with Requestor(session, QUEUE) as requestor:
        for body in ("a", "b"):
            answering = in_thread(answer)
            assert requestor.request(TextMessage(body), PATIENCE).body == body.upper()
            answering.result()


def test_no_reply_in_time(session):
    with Requestor(session, QUEUE) as requestor:
        assert requestor.request(TextMessage("a"), timeout=0.01) is None


def test_late_reply_is_dropped(session, answer, in_thread):
    """The reply to an earlier request is not taken for that to a later one."""
    with Requestor(session, QUEUE) as requestor:
        unanswered(requestor, "early")
        answering = in_thread(lambda: answer(2))
        assert requestor.request(TextMessage("late"), PATIENCE).body == "LATE"
        answering.result()


@pytest.mark.parametrize("correlation", [None, "nonsense"])
def test_reply_to_nothing_is_dropped(session, answer, correlation):
    with Requestor(session, QUEUE) as requestor:
        unanswered(requestor, "a")
        answer(correlation=lambda _: correlation)
        unanswered(requestor, "b")


@pytest.mark.parametrize("mode", [AcknowledgeMode.AUTO, AcknowledgeMode.DUPS_OK])
def test_reply_that_cannot_be_decoded_fails_one_request(connection, answer, in_thread, jms_broker_url, mode):
    """Whose reply it is nobody can tell; the next request gets its own."""
    with connection.create_session(acknowledge_mode=mode) as session, Requestor(session, QUEUE) as requestor:
        poisoned = requestor.replies
        poison_embedded(jms_broker_url, poisoned)
        with pytest.raises(MessageFormatError):
            requestor.request(TextMessage("a"), PATIENCE)
        with connection.create_session() as another, another.create_consumer(QUEUE) as consumer:
            assert take(consumer, 1) == ["a"]
        answering = in_thread(answer)
        assert requestor.request(TextMessage("b"), PATIENCE).body == "B"
        answering.result()
        with pytest.raises(InvalidDestinationError):
            session.create_producer(poisoned).send(TextMessage("too late"))


@pytest.mark.parametrize("attribute", ["message_id", "correlation_id"])
def test_message_can_be_sent_again(session, answer, in_thread, attribute):
    """Even then the reply to the first request is late for the second."""
    with Requestor(session, QUEUE) as requestor:
        message = TextMessage("first")
        assert requestor.request(message, timeout=0) is None
        answer(correlation=lambda request: getattr(request, attribute))
        message.body = "second"
        answering = in_thread(lambda: answer(correlation=lambda request: getattr(request, attribute)))
        assert requestor.request(message, PATIENCE).body == "SECOND"
        answering.result()


def test_correlation_id_of_the_application_is_kept(session, answer):
    with Requestor(session, QUEUE) as requestor:
        assert requestor.request(TextMessage("a", correlation_id="order 7"), timeout=0) is None
        [request] = answer()
        assert request.correlation_id == "order 7"


def test_request_over_a_topic(session, other, in_thread):
    """The first reply counts (4.2.10)."""
    topic = Topic("t")
    with other.create_session() as answering, Requestor(session, topic) as requestor:
        subscribers = [answering.create_consumer(topic) for _ in range(2)]

        def answer_twice():
            for number, subscriber in enumerate(subscribers):
                request = subscriber.receive(PATIENCE)
                reply = TextMessage(str(number), correlation_id=request.message_id)
                answering.create_producer().send(reply, request.reply_to)

        call = in_thread(answer_twice)
        assert requestor.request(TextMessage("who?"), PATIENCE).body == "0"
        call.result()
        unanswered(requestor, "again?")


def test_requests_have_the_options_of_the_producer(session, other):
    with Requestor(session, QUEUE) as requestor, other.create_session() as answering:
        requestor.producer.priority = 9
        requestor.producer.time_to_live = 60
        requestor.producer.disable_message_id = True
        unanswered(requestor, "a")
        request = answering.create_consumer(QUEUE).receive(0)
        assert (request.priority, request.message_id, request.expiration is None) == (9, None, False)


def test_requests_without_message_ids_get_their_replies(session, answer, in_thread):
    """And none of the replies that refer to nothing."""
    with Requestor(session, QUEUE) as requestor:
        requestor.producer.disable_message_id = True
        unanswered(requestor, "a")
        answer()  # refers to the message id, which is none
        answering = in_thread(lambda: answer(correlation=lambda request: request.correlation_id))
        assert requestor.request(TextMessage("b"), PATIENCE).body == "B"
        answering.result()


def test_closing_deletes_the_queue(session):
    with Requestor(session, QUEUE) as requestor:
        unanswered(requestor, "a")
        replies = requestor.replies
    with pytest.raises(InvalidDestinationError):
        session.create_producer(replies).send(TextMessage("too late"))
    requestor.close()


@pytest.mark.parametrize("what", ["session", "connection"])
def test_closing_after_what_it_used(connection, session, what):
    requestor = Requestor(session, QUEUE)
    {"session": session, "connection": connection}[what].close()
    requestor.close()


@pytest.mark.parametrize(
    "options",
    [
        {"transacted": True},
        {"acknowledge_mode": AcknowledgeMode.CLIENT},
        {"acknowledge_mode": AcknowledgeMode.INDIVIDUAL},
    ],
)
def test_session_must_send_and_acknowledge_by_itself(connection, options):
    """A request that waits for its commit would never be answered (4.1.7)."""
    with connection.create_session(**options) as session, pytest.raises(IllegalStateError, match="AUTO"):
        Requestor(session, QUEUE)


def test_requestor_of_a_context(context, answer, in_thread):
    context.start()
    with Requestor(context, QUEUE) as requestor:
        answering = in_thread(answer)
        assert requestor.request(TextMessage("a"), PATIENCE).body == "A"
        answering.result()


def test_closing_the_session_ends_a_request(session, receiving):
    """As it ends every receive (6.2.15)."""
    requestor = Requestor(session, QUEUE)
    call = receiving(lambda: requestor.request(TextMessage("a")))
    session.close()
    assert call.result() is None


def test_what_is_no_destination(session):
    with pytest.raises(InvalidDestinationError, match="'q'"):
        Requestor(session, "q")


def test_broker_without_temporary_destinations(jms_connection_factory, lacking):
    lacking("temporary")
    with jms_connection_factory.create_context() as context, pytest.raises(NotSupportedError, match="temporary"):
        Requestor(context, QUEUE)


def test_the_plain_way(connection, session, answer, in_thread):
    """Without a Requestor: a queue for the replies, and a selector for the right one (2.16)."""
    replies = Queue("replies")
    request = TextMessage("a", reply_to=replies)
    session.create_producer(QUEUE).send(request)
    in_thread(answer).result()
    consumer = session.create_consumer(replies, f"JMSCorrelationID = '{request.message_id}'")
    assert consumer.receive(PATIENCE).body == "A"
