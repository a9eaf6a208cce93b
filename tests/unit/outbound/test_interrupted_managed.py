"""Exceptions of signal handlers in transactions of a transaction manager: the connection keeps no message after it."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from transaction.interfaces import NoTransaction

import jmsjca
from jmsjca import Queue
from jmsjca.errors import ConnectionLostError, TransactionInDoubtError
from tests.support.interruptions import Interruption, TimeLimitError, each_moment
from tests.unit.outbound.managed_sessions import IN, OUT, receive, send
from tests.unit.providers.embedded.test_group_commit import PATIENCE, in_background

PACKAGE = str(Path(jmsjca.__file__).parent)


@pytest.fixture
def take(jms_connection_factory) -> Callable[[Queue], list[object]]:
    """Takes the messages of a queue, as another client."""

    def take(queue: Queue) -> list[object]:
        with jms_connection_factory.create_connection() as connection, connection.create_session() as session:
            consumer = session.create_consumer(queue)
            return [message.body for message in iter(lambda: consumer.receive(0), None)]

    return take


@pytest.mark.parametrize("end", ["abort", "commit"])
def test_interrupted_end_of_a_transaction_leaves_nothing_with_the_connection(managed, manager, put, take, end):
    """What was received is settled together with what was sent, or comes again as soon as the connection is closed."""

    def play(interruption: Interruption) -> None:
        put("a")
        connection = managed().create_connection()
        connection.start()
        session = connection.create_session()
        manager.begin()
        receive(session)
        send(session)
        with suppress(TimeLimitError, TransactionInDoubtError), interruption.planted():
            getattr(manager, end)()
        with suppress(NoTransaction):  # it is over
            manager.abort()
        in_background(connection.close).result(PATIENCE)
        assert (take(IN), take(OUT)) in [(["a"], []), ([], ["sent"])][: 1 + (end == "commit")]

    assert each_moment(play, TimeLimitError, PACKAGE) > 20


def test_next_transaction_works_or_says_why_not_after_an_interrupted_abort(managed, manager, put, take):
    """The message is released, at the latest once the connection is closed."""

    def play(interruption: Interruption) -> None:
        put("a")
        with managed().create_connection() as connection:
            session = connection.create_session()
            manager.begin()
            receive(session)
            with suppress(TimeLimitError, TransactionInDoubtError), interruption.planted():
                manager.abort()
            manager.begin()
            sent = []
            try:
                send(session, to=IN)
                manager.commit()
                sent.append("sent")
            except ConnectionLostError:
                manager.abort()
        assert sorted(take(IN)) == ["a", *sent]

    assert each_moment(play, TimeLimitError, PACKAGE) > 20
