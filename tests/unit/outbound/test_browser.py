"""Queue browsers (JMS 3.1, section 4.1.6)."""

import pytest

from jmsjca import Topic
from jmsjca.errors import IllegalStateError, InvalidDestinationError
from tests.unit.outbound.queues import QUEUE, put, take


@pytest.fixture
def session(connection):
    with connection.create_session() as session:
        yield session


def test_browser_takes_nothing(connection, session):
    put(connection, *"ab")
    browser = session.create_browser(QUEUE)
    for _ in range(2):
        assert [(message.body, message.delivery_count) for message in browser] == [
            ("a", 1),
            ("b", 1),
        ]  # once it is received
    assert take(session.create_consumer(QUEUE), 2) == ["a", "b"]


def test_browser_with_a_selector_shows_what_matches(connection, session):
    producer = session.create_producer(QUEUE)
    for region in ("EU", "US", "EU"):
        producer.send(session.create_text_message(region, properties={"region": region}))
    assert [message.body for message in session.create_browser(QUEUE, "region = 'EU'")] == ["EU", "EU"]


def test_each_iteration_looks_anew(connection, session):
    """What it shows is not a static snapshot of the queue."""
    browser = session.create_browser(QUEUE)
    assert list(browser) == []
    put(connection, "a")
    assert [message.body for message in browser] == ["a"]


def test_long_queue_is_shown_to_its_end(connection, session):
    with connection.create_session(transacted=True) as sending:
        producer = sending.create_producer(QUEUE)
        for number in range(250):
            producer.send(sending.create_text_message(str(number)))
        sending.commit()
    assert [message.body for message in session.create_browser(QUEUE)] == [str(number) for number in range(250)]


def test_browser_ends_with_its_session(connection, session):
    """Its use is an error then, also in the middle (6.2.15)."""
    put(connection, "a")
    browser = session.create_browser(QUEUE)
    begun = iter(browser)
    session.close()
    with pytest.raises(IllegalStateError, match="session is closed"):
        next(begun)
    with pytest.raises(IllegalStateError, match="session is closed"):
        iter(browser)


def test_closed_browser_shows_nothing(connection, session):
    put(connection, "a")
    with session.create_browser(QUEUE) as browser:
        begun = iter(browser)
    with pytest.raises(IllegalStateError, match="browser is closed"):
        next(begun)
    with pytest.raises(IllegalStateError, match="browser is closed"):
        iter(browser)
    browser.close()


def test_browser_belongs_to_one_thread(connection, session, receiving):
    """As its session does (2.14), at every step."""
    put(connection, "a")
    begun = iter(session.create_browser(QUEUE))
    call = receiving(session.create_consumer(session.create_queue("other")))
    with pytest.raises(IllegalStateError, match="one thread at a time"):
        next(begun)
    session.close()
    assert call.result() is None


def test_topic_is_not_browsed(session):
    """Topics do not support queue browsers (9.2)."""
    with pytest.raises(InvalidDestinationError):
        list(session.create_browser(Topic("t")))
