"""One thread at a time uses a session; any thread may close it (JMS 3.1, section 6.2.5)."""

import pytest

from jmsjca import AcknowledgeMode, Queue, TextMessage
from jmsjca.errors import IllegalStateError
from tests.unit.outbound.queues import QUEUE, put, shown, take

OTHER = Queue("other")


@pytest.fixture
def session(connection):
    with connection.create_session(acknowledge_mode=AcknowledgeMode.CLIENT) as session:
        yield session


USES = {
    "recover": lambda s: s.recover(),
    "acknowledge": lambda s: s.acknowledge(),
    "commit": lambda s: s.commit(),
    "rollback": lambda s: s.rollback(),
    "transaction": lambda s: s.transaction().__enter__(),
    "producer": lambda s: s.create_producer(QUEUE),
    "consumer": lambda s: s.create_consumer(OTHER),
    "browser": lambda s: s.create_browser(QUEUE),
    "temporary": lambda s: s.create_temporary_queue(),
    "unsubscribe": lambda s: s.unsubscribe(s.create_topic("t"), "s"),
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_second_thread_is_refused(session, receiving, use):
    """The error names both threads, and the first one goes on (6.2.5)."""
    call = receiving(session.create_consumer(QUEUE))
    with pytest.raises(IllegalStateError, match=r"'MainThread'.*'receiver'"):
        use(session)
    session.close()
    assert call.result() is None


def test_what_a_session_made_belongs_to_its_thread(connection, session, receiving):
    """Producers, consumers, browsers and received messages too (2.14)."""
    put(connection, "a")
    consumer, waiting = session.create_consumer(QUEUE), session.create_consumer(OTHER)
    producer, browser = session.create_producer(QUEUE), session.create_browser(QUEUE)
    message = consumer.receive(0)
    receiving(waiting)
    uses = [
        lambda: producer.send(TextMessage("b")),
        lambda: consumer.receive(0),
        waiting.receive_no_wait,
        lambda: iter(browser),
        message.acknowledge,
    ]
    for use in uses:
        with pytest.raises(IllegalStateError, match="one thread at a time"):
            use()
    session.close()
    assert shown(connection) == ["a"]


def test_one_thread_after_the_other(connection, session, in_thread):
    """There is no restriction on the number of threads that use a session, one at a time (6.2)."""
    put(connection, *"abc")
    consumer = session.create_consumer(QUEUE)
    messages = [in_thread(lambda: consumer.receive(0)).result() for _ in range(2)]
    assert [message.body for message in messages] == ["a", "b"]
    messages[0].acknowledge()
    assert take(consumer, 1) == ["c"]


def test_refused_use_changes_nothing(session, connection, receiving):
    """The waiting receive gets its message, and then the session is free."""
    consumer, producer = session.create_consumer(QUEUE), session.create_producer(OTHER)
    call = receiving(consumer)
    with pytest.raises(IllegalStateError):
        producer.send(TextMessage("refused"))
    put(connection, "a")
    assert call.result().body == "a"
    producer.send(TextMessage("sent"))
    assert shown(connection, OTHER) == ["sent"]


def test_sessions_of_one_connection_work_at_the_same_time(connection, receiving):
    """Concurrency comes from several sessions (6.2.14)."""
    with connection.create_session() as waiting, connection.create_session() as sending:
        call = receiving(waiting.create_consumer(QUEUE))
        sending.create_producer(QUEUE).send(TextMessage("a"))
        assert call.result().body == "a"


def test_context_may_be_shared_for_making_contexts(context, receiving):
    """Making a context does not use the session; it is how threads share a connection (6.2.6)."""
    consumer = context.create_consumer(QUEUE)
    call = receiving(consumer)
    with context.create_context() as mine:
        mine.create_producer().send(QUEUE, "a")
    assert call.result().body == "a"
    call = receiving(consumer)
    with pytest.raises(IllegalStateError, match="one thread at a time"):
        context.create_producer()
    context.close()
    assert call.result() is None
