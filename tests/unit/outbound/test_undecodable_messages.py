"""A session never loses a message that cannot be decoded, and it blocks no other message."""

import pytest
from poisoning import poison_embedded

from jmsjca import AcknowledgeMode, DestinationSettings, Queue
from jmsjca.errors import MessageFormatError
from tests.unit.outbound.queues import QUEUE, left, put, shown, take

DEAD = Queue("dead")


@pytest.fixture
def poisoned(connection, jms_broker_url):
    """A queue with "a", a message that cannot be decoded, and "b"."""
    put(connection, "a")
    poison_embedded(jms_broker_url, QUEUE)
    put(connection, "b")
    return connection


def receive_poison(consumer):
    with pytest.raises(MessageFormatError):
        consumer.receive(0)


@pytest.mark.parametrize("mode", [AcknowledgeMode.AUTO, AcknowledgeMode.DUPS_OK])
def test_automatic_session_gives_it_back(poisoned, mode):
    """It was not received successfully, so it is not acknowledged: it comes again, first, counted (6.2.10)."""
    with poisoned.create_session(acknowledge_mode=mode) as session:
        consumer = session.create_consumer(QUEUE)
        assert take(consumer, 1) == ["a"]
        for _ in range(3):
            receive_poison(consumer)
    (poison, last) = poisoned._provider_connection.consumer(QUEUE).receive(3, 0)
    assert (poison.raw, poison.count, last.message.body, last.count) == (b"poison", 4, "b", 1)


@pytest.mark.parametrize("mode", [AcknowledgeMode.AUTO, AcknowledgeMode.DUPS_OK])
def test_automatic_session_sends_it_to_the_dead_letters(poisoned, mode):
    """After so many deliveries as its destination's settings allow; then the next one comes."""
    poisoned.admin.configure(QUEUE, DestinationSettings(max_deliveries=2, dead_letter=DEAD))
    with poisoned.create_session(acknowledge_mode=mode) as session:
        consumer = session.create_consumer(QUEUE)
        assert take(consumer, 1) == ["a"]
        receive_poison(consumer)
        receive_poison(consumer)
        assert left(consumer) == [("b", 1)]
    assert poisoned.admin.depth(DEAD).ready == 1


def test_lazy_session_acknowledges_what_came_before(poisoned):
    with poisoned.create_session(acknowledge_mode=AcknowledgeMode.DUPS_OK) as session:
        consumer = session.create_consumer(QUEUE)
        assert take(consumer, 1) == ["a"]
        receive_poison(consumer)
        assert poisoned.admin.depth(QUEUE).total == 2


def test_automatic_session_gives_it_back_when_only_its_body_was_asked_for(poisoned):
    with poisoned.create_session() as session:
        consumer = session.create_consumer(QUEUE)
        assert take(consumer, 1) == ["a"]
        with pytest.raises(MessageFormatError):
            consumer.receive_body(str, 0)
        assert poisoned.admin.depth(QUEUE).held == 0


def test_client_passes_over_it(poisoned):
    """It was received, and the next acknowledgement is for it, too (6.2.10)."""
    with poisoned.create_session(acknowledge_mode=AcknowledgeMode.CLIENT) as session:
        consumer = session.create_consumer(QUEUE)
        assert take(consumer, 1) == ["a"]
        receive_poison(consumer)
        consumer.receive(0).acknowledge()
    assert poisoned.admin.depth(QUEUE).total == 0


@pytest.mark.parametrize("mode", [AcknowledgeMode.CLIENT, AcknowledgeMode.INDIVIDUAL])
def test_session_acknowledges_it(poisoned, mode):
    """There is no message to acknowledge, so the session does."""
    with poisoned.create_session(acknowledge_mode=mode) as session:
        consumer = session.create_consumer(QUEUE)
        assert take(consumer, 1) == ["a"]
        receive_poison(consumer)
        session.acknowledge()
    assert shown(poisoned) == ["b"]


@pytest.mark.parametrize("mode", [AcknowledgeMode.CLIENT, AcknowledgeMode.INDIVIDUAL])
def test_recovery_brings_it_again(poisoned, mode):
    """It was received and not acknowledged (6.2.10)."""
    with poisoned.create_session(acknowledge_mode=mode) as session:
        consumer = session.create_consumer(QUEUE)
        consumer.receive(0).acknowledge()
        for _ in range(2):
            receive_poison(consumer)
            session.recover()
        receive_poison(consumer)
        assert left(consumer) == [("b", 1)]


def test_transaction_disposes_of_it(poisoned):
    """It belongs to the transaction as any other message (6.2.7)."""
    with poisoned.create_session(transacted=True) as session:
        consumer = session.create_consumer(QUEUE)
        for end in (session.rollback, session.commit):
            assert take(consumer, 1) == ["a"]
            receive_poison(consumer)
            end()
    assert shown(poisoned) == ["b"]
