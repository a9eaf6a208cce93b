"""Exceptions of signal handlers in the calls of an application: its session works on, also in another thread."""

import threading
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue

import pytest

import jmsjca
from jmsjca import AcknowledgeMode, Session, Topic
from jmsjca.errors import InvalidDestinationError
from tests.support.interruptions import Interruption, TimeLimitError, each_moment
from tests.unit.inbound.deliveries import until
from tests.unit.outbound.queues import QUEUE
from tests.unit.providers.embedded.test_group_commit import PATIENCE, in_background

TOPIC = Topic("t")
PACKAGE = str(Path(jmsjca.__file__).parent)


def outcome(call, *arguments) -> str:
    """Return how a call ended: "done", or the type of its exception."""
    try:
        call(*arguments)
    except (TimeLimitError, jmsjca.errors.TransactionInDoubtError) as error:
        return type(error).__name__
    return "done"


@pytest.mark.parametrize("transacted", [False, True])
def test_interrupted_send_leaves_a_session_that_works(connection, transacted):
    """A message is sent at most once; it is sent if the call said so. A transaction that ended in doubt is over."""

    def play(interruption: Interruption) -> None:
        session = connection.create_session(transacted=transacted)
        producer = session.create_producer(QUEUE)

        def send(body: str) -> None:
            producer.send(body)
            if transacted:
                session.commit()

        def go_on() -> list[object]:
            if transacted:
                session.rollback()
            send("next")
            with connection.create_session() as other, other.create_consumer(QUEUE) as consumer:
                bodies = [message.body for message in iter(lambda: consumer.receive(0), None)]
            session.close()
            return bodies

        with interruption.planted():
            ended = outcome(send, "first")
        bodies = in_background(go_on).result(PATIENCE)
        assert bodies == ["first", "next"] or (ended != "done" and bodies == ["next"])

    assert each_moment(play, TimeLimitError, PACKAGE) > 50


@pytest.mark.parametrize("mode", [{"acknowledge_mode": AcknowledgeMode.CLIENT}, {"transacted": True}])
def test_interrupted_receive_loses_nothing(connection, mode):
    """What the application has not got comes again, at the latest when the session is closed."""

    def play(interruption: Interruption) -> None:
        with connection.create_session() as session, session.create_producer(QUEUE) as producer:
            producer.send("first")
            producer.send("second")
        session = connection.create_session(**mode)
        consumer = session.create_consumer(QUEUE)
        with interruption.planted():
            outcome(consumer.receive, 0)
        in_background(session.close).result(PATIENCE)
        with connection.create_session() as other, other.create_consumer(QUEUE) as rest:
            assert [message.body for message in iter(lambda: rest.receive(0), None)] == ["first", "second"]

    assert each_moment(play, TimeLimitError, PACKAGE) > 50


@pytest.mark.parametrize("end", ["commit", "rollback"])
def test_interrupted_end_of_a_transaction_keeps_no_message(connection, end):
    """The message is settled, or comes again once the session is closed."""

    def play(interruption: Interruption) -> None:
        with connection.create_session() as session, session.create_producer(QUEUE) as producer:
            producer.send("first")
            producer.send("second")
        session = connection.create_session(transacted=True)
        assert session.create_consumer(QUEUE).receive(0).body == "first"
        with interruption.planted():
            ended = outcome(getattr(session, end))
        in_background(session.close).result(PATIENCE)
        with connection.create_session() as other, other.create_consumer(QUEUE) as rest:
            bodies = [message.body for message in iter(lambda: rest.receive(0), None)]
        committed, rolled_back = ["second"], ["first", "second"]
        possible = [rolled_back] if end == "rollback" else [committed] if ended == "done" else [committed, rolled_back]
        assert bodies in possible

    assert each_moment(play, TimeLimitError, PACKAGE) > 30


@pytest.mark.parametrize("listens", [False, True])
def test_interrupted_close_of_a_consumer_can_be_repeated(connection, listens):
    """Then it has released its messages, although the session is open, and has ended its threads."""

    def play(interruption: Interruption) -> None:
        with connection.create_session() as session, session.create_producer(QUEUE) as producer:
            for body in ("first", "second", "third"):
                producer.send(body)
        session, received, released = connection.create_session(), SimpleQueue(), threading.Event()
        consumer = session.create_consumer(QUEUE)
        if listens:
            consumer.set_message_listener(lambda message: (received.put(message.body), released.wait(PATIENCE)))
        else:
            received.put(consumer.receive(0).body)
        assert received.get(timeout=PATIENCE) == "first"
        with interruption.planted():
            released.set()
            outcome(consumer.close)
        in_background(consumer.close).result(PATIENCE)
        until(lambda: not any("listener" in thread.name for thread in threading.enumerate()))
        with connection.create_session() as other, other.create_consumer(QUEUE) as rest:
            bodies = [message.body for message in iter(lambda: rest.receive(0), None)]
        session.close()
        assert bodies == ["second", "third"][received.qsize() :]

    assert each_moment(play, TimeLimitError, PACKAGE) > 30


@pytest.mark.parametrize("mode", [{}, {"acknowledge_mode": AcknowledgeMode.CLIENT}, {"transacted": True}])
def test_interrupted_close_of_a_session_can_be_repeated(connection, mode):
    """Then it has released its messages, although the connection is open."""

    def play(interruption: Interruption) -> None:
        with connection.create_session() as session, session.create_producer(QUEUE) as producer:
            for body in ("first", "second", "third"):
                producer.send(body)
        session = connection.create_session(**mode)
        assert session.create_consumer(QUEUE).receive(0).body == "first"
        with interruption.planted():
            outcome(session.close)
        in_background(session.close).result(PATIENCE)
        with connection.create_session() as other, other.create_consumer(QUEUE) as rest:
            bodies = [message.body for message in iter(lambda: rest.receive(0), None)]
        assert bodies == ["first", "second", "third"][not mode :]

    assert each_moment(play, TimeLimitError, PACKAGE) > 30


def test_interrupted_creation_of_a_consumer_leaves_none_behind(client):
    """The durable subscription can get another one as soon as the session is closed."""

    def play(interruption: Interruption) -> None:
        session = client.create_session()
        with interruption.planted():
            outcome(session.create_durable_consumer, TOPIC, "s")
        in_background(session.close).result(PATIENCE)
        with client.create_session() as other:
            other.create_durable_consumer(TOPIC, "s").close()

    assert each_moment(play, TimeLimitError, f"{PACKAGE}/outbound/") > 20


@pytest.mark.parametrize("source", ["queue", "topic", "durable subscription"])
def test_interrupted_registration_of_a_consumer_leaves_none_at_the_embedded_broker(client, source):
    """The commit of the registration included. A queue or subscription with a consumer could not be removed."""
    store = client._provider_connection._store

    def play(interruption: Interruption) -> None:
        session = client.create_session()
        create = {
            "queue": lambda: session.create_consumer(QUEUE),
            "topic": lambda: session.create_consumer(TOPIC),
            "durable subscription": lambda: session.create_durable_consumer(TOPIC, "s"),
        }[source]
        with interruption.planted():
            outcome(create)
        in_background(session.close).result(PATIENCE)
        with store.read() as cursor:
            assert cursor.execute("SELECT count(*) FROM consumer").fetchone() == (0,)

    client.create_session().create_durable_consumer(TOPIC, "s").close()  # each play has the same moments
    client.create_session().create_consumer(QUEUE).close()
    assert each_moment(play, TimeLimitError, PACKAGE) > 50


def test_interrupted_browser_holds_up_no_other_one(connection):
    with connection.create_session() as session:
        for body in "abc":
            session.create_producer(QUEUE).send(body)

    def browse(session: Session) -> list[object]:
        return [message.body for message in session.create_browser(QUEUE)]

    def play(interruption: Interruption) -> None:
        session = connection.create_session()
        with interruption.planted():
            outcome(browse, session)
        assert in_background(browse, session).result(PATIENCE) == ["a", "b", "c"]
        in_background(session.close).result(PATIENCE)

    assert each_moment(play, TimeLimitError, PACKAGE) > 50


def test_interrupted_unsubscribe_can_be_repeated(client):
    def play(interruption: Interruption) -> None:
        session = client.create_session()
        session.create_durable_consumer(TOPIC, "s").close()
        with interruption.planted():
            outcome(session.unsubscribe, TOPIC, "s")
        with suppress(InvalidDestinationError):  # it is deleted
            in_background(session.unsubscribe, TOPIC, "s").result(PATIENCE)
        session.create_durable_consumer(TOPIC, "s").close()
        in_background(session.close).result(PATIENCE)

    assert each_moment(play, TimeLimitError, PACKAGE) > 30
