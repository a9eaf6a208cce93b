"""Exceptions of signal handlers in calls of a pool: it has all its places afterwards, for all threads."""

from collections.abc import Callable
from contextlib import ExitStack, closing, suppress
from pathlib import Path

import pytest

import jmsjca
from jmsjca import AcknowledgeMode, ConnectionFactory
from jmsjca.errors import ConnectionLostError, PoolTimeoutError
from jmsjca.outbound.pool import ConnectionPool
from tests.support.interruptions import Interruption, TimeLimitError, each_moment
from tests.unit.outbound.pooling import ScriptedFactory
from tests.unit.outbound.queues import QUEUE
from tests.unit.outbound.test_interrupted_calls import outcome
from tests.unit.providers.embedded.test_group_commit import PATIENCE, in_background

PACKAGE = str(Path(jmsjca.__file__).parent)
OUTBOUND = str(Path(jmsjca.outbound.__file__).parent)


def use(pool: ConnectionPool) -> None:
    """Send a message over a borrowed connection."""
    with pool.connection() as connection:
        connection.create_session().create_producer(QUEUE).send("a message")


def assert_whole(pool: ConnectionPool, factory: ScriptedFactory) -> None:
    """Other threads can use all of the pool and no more, and close it; then no connection and no session is open."""
    for _ in range(2):
        in_background(use, pool).result(PATIENCE)
    with ExitStack() as stack:
        for _ in range(pool.get_stats()["pool_max"]):
            stack.enter_context(pool.connection())
        with pytest.raises(PoolTimeoutError):
            pool.get_connection()
    assert not [session for connection in factory.open for session in connection._open_sessions()]
    in_background(pool.close).result(PATIENCE)
    assert pool.get_stats()["pool_size"] == 0
    assert not factory.open


@pytest.mark.parametrize("before", [0, 1])
def test_interrupted_borrower_leaves_the_pool_its_place(jms_broker_url, before):
    """The first borrower, or a later one, is interrupted while it borrows, uses or returns the only connection."""

    def play(interruption: Interruption) -> None:
        factory = ScriptedFactory(jms_broker_url)
        with ConnectionPool(factory, max_size=1) as pool:
            for _ in range(before):
                use(pool)
            with interruption.planted():
                outcome(use, pool)
            assert_whole(pool, factory)

    assert each_moment(play, TimeLimitError, OUTBOUND) > 100


def test_interrupted_send_of_a_factory_leaves_its_pool_the_place(jms_broker_url):
    """Sends of other threads share the connections of the factory's pool."""

    def play(interruption: Interruption) -> None:
        with closing(ConnectionFactory(jms_broker_url, options={"JMSJCA.poolmaxsize": "1"})) as factory:
            factory.send(QUEUE, "before")
            with interruption.planted():
                outcome(factory.send, QUEUE, "interrupted")
            for _ in range(2):
                in_background(factory.send, QUEUE, "after").result(PATIENCE)
            in_background(factory.close).result(PATIENCE)
            assert not factory.pool_stats()  # there is no pool any more

    assert each_moment(play, TimeLimitError, PACKAGE) > 100


def test_interrupted_wait_for_the_first_connections_leaves_the_pool_its_places(jms_broker_url):
    def play(interruption: Interruption) -> None:
        factory = ScriptedFactory(jms_broker_url)
        with ConnectionPool(factory, min_size=2, max_size=2) as pool:
            with interruption.planted():
                outcome(pool.wait)
            in_background(pool.wait).result(PATIENCE)
            assert_whole(pool, factory)

    assert each_moment(play, TimeLimitError, OUTBOUND) > 100


@pytest.mark.parametrize(
    "end",
    [ConnectionPool.close, ConnectionPool.drain, lambda pool: pool.resize(0, 1)],
    ids=["close", "drain", "resize"],
)
def test_interrupted_end_of_idle_connections_loses_none(jms_broker_url, end: Callable[[ConnectionPool], None]):
    """Two connections are idle, and closing them is interrupted. After it, none is open that the pool does not have."""

    def play(interruption: Interruption) -> None:
        factory = ScriptedFactory(jms_broker_url)
        with ConnectionPool(factory, max_size=2) as pool:
            with pool.connection():
                use(pool)
            with interruption.planted():
                outcome(end, pool)
            pool.open()
            assert_whole(pool, factory)

    assert each_moment(play, TimeLimitError, PACKAGE) > 30


@pytest.mark.parametrize("create", [ConnectionFactory.create_connection, ConnectionFactory.create_context])
def test_interrupted_opening_leaves_no_connection(tmp_path, create):
    """The process has a lock file while a connection to a file is open."""
    factory = ConnectionFactory(f"embedded://{tmp_path}/broker.db")

    def play(interruption: Interruption) -> None:
        with suppress(TimeLimitError):
            with interruption.planted():
                opened = create(factory)
            opened.close()
        assert not list(tmp_path.glob("broker.db-owners/*"))

    assert each_moment(play, TimeLimitError, OUTBOUND) > 5


def test_interrupted_close_ends_the_connection(tmp_path):
    """A second call has nothing to do, but that after an interruption before the first step."""
    factory = ConnectionFactory(f"embedded://{tmp_path}/broker.db")

    def play(interruption: Interruption) -> None:
        connection = factory.create_connection()
        connection.create_session().create_consumer(QUEUE)
        with suppress(TimeLimitError), interruption.planted():
            connection.close()
        connection.close()
        assert not list(tmp_path.glob("broker.db-owners/*"))

    assert each_moment(play, TimeLimitError, OUTBOUND) > 30


def test_interrupted_close_of_a_session_leaves_no_consumer_with_the_pool(jms_broker_url):
    """The connection that returns to the pool holds no message that its session had prefetched."""

    def play(interruption: Interruption) -> None:
        factory = ScriptedFactory(jms_broker_url)
        with ConnectionPool(factory, max_size=2) as pool, pool.session() as other:
            with pool.connection() as connection:
                session = connection.create_session(acknowledge_mode=AcknowledgeMode.CLIENT)
                for body in "abc":
                    session.create_producer(QUEUE).send(body)
                assert session.create_consumer(QUEUE).receive_body(str, timeout=PATIENCE) == "a"
                with interruption.planted():
                    outcome(session.close)
            consumer = other.create_consumer(QUEUE)
            assert [consumer.receive_body(str, timeout=PATIENCE) for _ in range(3)] == ["a", "b", "c"]

    assert each_moment(play, TimeLimitError, OUTBOUND) > 30


def test_interrupted_close_of_a_factory_closes_its_pool(tmp_path):
    """The process has a lock file while a connection to a file is open; a second call closes what the first left."""

    def play(interruption: Interruption) -> None:
        factory = ConnectionFactory(f"embedded://{tmp_path}/broker.db")
        factory.send(QUEUE, "a message")
        with interruption.planted():
            outcome(factory.close)
        in_background(factory.close).result(PATIENCE)
        assert not list(tmp_path.glob("broker.db-owners/*"))

    assert each_moment(play, TimeLimitError, OUTBOUND) > 30


def test_interrupted_second_borrower_in_a_transaction_leaves_the_pool_its_place(managed, manager):
    """It goes on with the connection that the transaction keeps; the place is free once the transaction is over."""

    def play(interruption: Interruption) -> None:
        with ConnectionPool(managed(), max_size=1) as pool:
            manager.begin()
            use(pool)
            with interruption.planted():
                outcome(use, pool)
            with suppress(ConnectionLostError):  # its connection was aborted
                manager.abort()
            for _ in range(2):
                in_background(use, pool).result(PATIENCE)

    assert each_moment(play, TimeLimitError, OUTBOUND) > 100
