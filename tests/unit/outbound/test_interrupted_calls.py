"""Exceptions of signal handlers in the calls of an application, at each moment.

The connection is aborted: nothing is lost or doubled, a later call works or says why not, and all can be closed.
"""

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

import jmsjca
from jmsjca import AcknowledgeMode, Connection, ConnectionFactory, Session, Topic
from jmsjca.errors import ConnectionLostError, InvalidDestinationError, TransactionInDoubtError
from tests.support.interruptions import Interruption, TimeLimitError, each_moment
from tests.unit.inbound.deliveries import until
from tests.unit.outbound.queues import QUEUE
from tests.unit.providers.embedded.test_group_commit import PATIENCE, in_background

TOPIC = Topic("t")
PACKAGE = str(Path(jmsjca.__file__).parent)
CLIENT = {"acknowledge_mode": AcknowledgeMode.CLIENT}
TRANSACTED = {"transacted": True}


def outcome(call, *arguments) -> str:
    """Return how a call ended: "done", or the type of its exception."""
    try:
        call(*arguments)
    except (TimeLimitError, KeyboardInterrupt, TransactionInDoubtError) as error:
        return type(error).__name__
    return "done"


def drain(factory: ConnectionFactory) -> list[object]:
    """Receive what the queue has, as another client."""
    with factory.create_connection() as connection, connection.create_session() as session:
        consumer = session.create_consumer(QUEUE)
        return [message.body for message in iter(lambda: consumer.receive(0), None)]


def fill(factory: ConnectionFactory, *bodies: str) -> None:
    """Send to the queue, as another client."""
    with factory.create_connection() as connection, connection.create_session() as session:
        for body in bodies:
            session.create_producer(QUEUE).send(body)


def assert_tells(connection: Connection, call: Callable[[], object]) -> None:
    """A later call works, or says that the connection was aborted; then others say so, and all can be closed."""
    error = in_background(call).exception(PATIENCE)
    assert error is None or isinstance(error, ConnectionLostError)
    if error is not None:
        assert "interrupted" in str(error)
        assert isinstance(connection.failure, ConnectionLostError)
        for later in (call, connection.create_session, connection.start):
            with pytest.raises(ConnectionLostError, match=r"interrupted .*Open another connection"):
                later()
    in_background(connection.close).result(PATIENCE)


@pytest.mark.parametrize("kind", [TimeLimitError, KeyboardInterrupt])
@pytest.mark.parametrize("transacted", [False, True])
def test_interrupted_send_is_made_at_most_once(jms_connection_factory, connection, transacted, kind):
    """It is made if the call said so. A transaction whose commit was interrupted is over."""

    def play(interruption: Interruption) -> None:
        own = jms_connection_factory.create_connection()
        session = own.create_session(transacted=transacted)
        producer = session.create_producer(QUEUE)

        def send(body: str) -> None:
            producer.send(body)
            if transacted:
                session.commit()

        def go_on() -> None:
            if transacted:
                session.rollback()
            send("next")

        with interruption.planted():
            ended = outcome(send, "first")
        assert_tells(own, go_on)
        found = drain(jms_connection_factory)
        assert found in ([["first", "next"]] if ended == "done" else [["first", "next"], ["next"], ["first"], []])

    assert each_moment(play, kind, PACKAGE) > 50


@pytest.mark.parametrize("mode", [CLIENT, TRANSACTED])
@pytest.mark.parametrize("kind", [TimeLimitError, KeyboardInterrupt])
def test_interrupted_receive_loses_nothing(jms_connection_factory, connection, mode, kind):
    """What the application has not got comes again: at once after an abort, otherwise when the session is closed."""

    def play(interruption: Interruption) -> None:
        fill(jms_connection_factory, "first", "second")
        with jms_connection_factory.create_connection() as own:
            session = own.create_session(**mode)
            consumer = session.create_consumer(QUEUE)
            with interruption.planted():
                outcome(consumer.receive, 0)
            if own.failure is None:
                in_background(session.close).result(PATIENCE)
            assert drain(jms_connection_factory) == ["first", "second"]
            assert_tells(own, lambda: own.create_session().create_consumer(QUEUE).receive(0))

    assert each_moment(play, kind, PACKAGE) > 50


@pytest.mark.parametrize(
    ("mode", "end"),
    [
        (TRANSACTED, Session.commit),
        (TRANSACTED, Session.rollback),
        (CLIENT, Session.acknowledge),
        (CLIENT, Session.recover),
        (CLIENT, Session.close),
        (TRANSACTED, Session.close),
        ({}, Session.close),
    ],
)
def test_interrupted_end_of_a_unit_keeps_no_message(jms_connection_factory, connection, mode, end):
    """The message is settled, or comes again once the session is closed."""

    def play(interruption: Interruption) -> None:
        fill(jms_connection_factory, "first", "second")
        with jms_connection_factory.create_connection() as own:
            session = own.create_session(**mode)
            assert session.create_consumer(QUEUE).receive(0).body == "first"
            with interruption.planted():
                ended = outcome(end, session)
            in_background(session.close).result(PATIENCE)
            assert session.closed
            found = drain(jms_connection_factory)
            assert_tells(own, own.create_session)
        settled, redelivered = ["second"], ["first", "second"]
        if end in {Session.commit, Session.acknowledge}:
            assert found in ([settled] if ended == "done" else [settled, redelivered])
        else:
            assert found == (redelivered if mode else settled)

    assert each_moment(play, TimeLimitError, PACKAGE) > 30


def test_interrupted_acknowledge_of_a_message_settles_it_or_not(jms_connection_factory, connection):
    def play(interruption: Interruption) -> None:
        fill(jms_connection_factory, "first", "second")
        with jms_connection_factory.create_connection() as own:
            message = own.create_session(**CLIENT).create_consumer(QUEUE).receive(0)
            with interruption.planted():
                ended = outcome(message.acknowledge)
        assert drain(jms_connection_factory) in ([["second"]] + [["first", "second"]] * (ended != "done"))

    assert each_moment(play, TimeLimitError, PACKAGE) > 20


@pytest.mark.parametrize("listens", [False, True])
def test_interrupted_close_of_a_consumer_can_be_repeated(jms_connection_factory, connection, listens):
    """Then it has released its messages, although the session is open, and has ended its threads."""

    def play(interruption: Interruption) -> None:
        fill(jms_connection_factory, "first", "second", "third")
        own = jms_connection_factory.create_connection()
        own.start()
        session, received, released = own.create_session(), [], threading.Event()
        consumer = session.create_consumer(QUEUE)
        if listens:
            consumer.set_message_listener(lambda message: (received.append(message.body), released.wait(PATIENCE)))
            until(lambda: received)
        else:
            received.append(consumer.receive(0).body)
        with interruption.planted():
            released.set()
            outcome(consumer.close)
        in_background(consumer.close).result(PATIENCE)
        until(lambda: not any("listener" in thread.name for thread in threading.enumerate()))
        found = drain(jms_connection_factory)
        bodies = ["first", "second", "third"]
        # Under AUTO the listener's message is acknowledged after its return, unless the connection was aborted before.
        assert found in ([bodies[len(received) :]] + [bodies[len(received) - 1 :]] * (listens and bool(own.failure)))
        assert_tells(own, session.close)

    assert each_moment(play, TimeLimitError, PACKAGE) > 30


@pytest.mark.parametrize("source", ["queue", "topic", "durable subscription"])
def test_interrupted_creation_of_a_consumer_leaves_none_at_the_broker(jms_broker_url, client, source):
    """Once the session is closed. A queue or subscription with a consumer could not be removed."""
    store = client._provider_connection._store
    client.create_session().create_durable_consumer(TOPIC, "s").close()  # each play has the same moments
    factory = ConnectionFactory(jms_broker_url, client_id="other")

    def play(interruption: Interruption) -> None:
        with factory.create_connection() as own:
            session = own.create_session()
            create = {
                "queue": lambda: session.create_consumer(QUEUE),
                "topic": lambda: session.create_consumer(TOPIC),
                "durable subscription": lambda: session.create_durable_consumer(TOPIC, "s"),
            }[source]
            with interruption.planted():
                outcome(create)
            in_background(session.close).result(PATIENCE)
            if own.failure is None:
                own.create_session().create_durable_consumer(TOPIC, "s").close()
        with store.read() as cursor:
            assert cursor.execute("SELECT count(*) FROM consumer").fetchone() == (0,)

    assert each_moment(play, TimeLimitError, PACKAGE) > 50


def test_interrupted_browser_says_so_or_goes_on(jms_connection_factory, connection):
    fill(jms_connection_factory, *"abc")

    def browse(session: Session) -> list[object]:
        return [message.body for message in session.create_browser(QUEUE)]

    def play(interruption: Interruption) -> None:
        with jms_connection_factory.create_connection() as own:
            session = own.create_session()
            with interruption.planted():
                outcome(browse, session)
            with connection.create_session() as another:
                assert in_background(browse, another).result(PATIENCE) == ["a", "b", "c"]
            assert_tells(own, lambda: browse(session))

    assert each_moment(play, TimeLimitError, PACKAGE) > 50


def test_interrupted_unsubscribe_can_be_repeated(jms_broker_url, client):
    factory = ConnectionFactory(jms_broker_url, client_id="other")

    def play(interruption: Interruption) -> None:
        with factory.create_connection() as own:
            session = own.create_session()
            session.create_durable_consumer(TOPIC, "s").close()
            with interruption.planted():
                outcome(session.unsubscribe, TOPIC, "s")
        with factory.create_connection() as own, own.create_session() as session:
            try:
                session.unsubscribe(TOPIC, "s")
            except InvalidDestinationError:  # it is deleted
                session.create_durable_consumer(TOPIC, "s").close()

    assert each_moment(play, TimeLimitError, PACKAGE) > 30


@pytest.mark.parametrize("act", ["send", "create_consumer", "create_temporary_queue", "close"])
def test_interrupted_context_says_so_and_closes_its_connection(tmp_path, act):
    """The process has a lock file while a connection to a file is open."""
    factory = ConnectionFactory(f"embedded://{tmp_path}/broker.db")

    def play(interruption: Interruption) -> None:
        context = factory.create_context()
        acts = {
            "send": lambda: context.create_producer().send(QUEUE, "a message"),
            "create_consumer": lambda: context.create_consumer(QUEUE),
        }
        with interruption.planted():
            outcome(acts.get(act) or getattr(context, act))
        in_background(context.close).result(PATIENCE)
        assert not list(tmp_path.glob("broker.db-owners/*"))

    assert each_moment(play, TimeLimitError, f"{PACKAGE}/outbound/") > 10


def test_another_thread_that_receives_over_an_aborted_connection_is_told(connection, monkeypatch):
    consumer = connection.create_session().create_consumer(QUEUE)
    waiting = in_background(consumer.receive)
    session = connection.create_session()
    producer = session.create_producer(QUEUE)
    monkeypatch.setattr(producer, "_send_in_unit", None)  # as a bug would
    with pytest.raises(TypeError):
        producer.send("a message")
    with pytest.raises(ConnectionLostError, match="interrupted"):
        waiting.result(PATIENCE)
