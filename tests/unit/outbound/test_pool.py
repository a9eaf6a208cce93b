"""ConnectionPool: exhaustion, waiting, eviction, replacement of failed connections, and no leaks."""

import os
import random
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

from jmsjca import Session, TextMessage
from jmsjca.errors import (
    ConfigurationError,
    IllegalStateError,
    InvalidDestinationError,
    PoolTimeoutError,
    ResourceAllocationError,
)
from jmsjca.outbound.pool import ConnectionPool
from jmsjca.outbound.pooled_connection import PooledConnection
from tests.unit.clocks import HandClock
from tests.unit.outbound.pooling import LOST, ScriptedFactory, lose
from tests.unit.outbound.queues import PATIENCE, QUEUE, put, shown


@pytest.fixture
def clock():
    return HandClock()


@pytest.fixture
def factory(jms_broker_url):
    return ScriptedFactory(jms_broker_url)


@pytest.fixture
def pool(factory, clock):
    with ConnectionPool(factory, max_size=2, clock=clock) as pool:
        yield pool


def sizes(pool: ConnectionPool) -> tuple[int, int]:
    """The connections of a pool, and the idle ones among them."""
    stats = pool.get_stats()
    return stats["pool_size"], stats["pool_available"]


def use(pool: ConnectionPool) -> object:
    """Borrow and return a connection: the one that was borrowed."""
    with pool.connection() as connection:
        return connection.connection


def wait_for_waiting(pool: ConnectionPool, count: int) -> None:
    """Return when so many threads wait for a connection."""
    waited = threading.Event()
    for _ in range(PATIENCE * 1000):
        if pool.get_stats()["requests_waiting"] == count:
            return
        waited.wait(0.001)
    pytest.fail(f"{count} threads do not wait: {pool.get_stats()}")


def test_pool_opens_nothing_until_a_connection_is_borrowed(pool, factory):
    assert factory.opened == []
    with pool.connection():
        assert sizes(pool) == (1, 0)
    assert sizes(pool) == (1, 1)


def test_returned_connection_is_borrowed_again(pool, factory):
    assert use(pool) is use(pool)
    assert len(factory.opened) == 1


def test_exhausted_pool_fails_at_once_by_default(pool):
    with pool.connection(), pool.connection():
        with pytest.raises(PoolTimeoutError, match="All 2 connections"):
            pool.get_connection()
        assert pool.get_stats()["requests_errors"] == 1


def test_sizes_of_the_manual_are_the_defaults(factory):
    with ConnectionPool(factory) as pool:
        stats = pool.get_stats()
        borrowed = [pool.get_connection() for _ in range(32)]
        with pytest.raises(PoolTimeoutError):
            pool.get_connection()
        for connection in borrowed:
            connection.close()
    assert (stats["pool_min"], stats["pool_max"]) == (0, 32)


def test_options_of_the_factory_override_the_sizes_and_the_timeout(jms_broker_url, in_thread):
    options = "JMSJCA.poolminsize=1 JMSJCA.poolmaxsize=1 JMSJCA.pooltimeout=0"  # 0 waits forever
    options = "\n".join(options.split())
    with ConnectionPool(ScriptedFactory(jms_broker_url, options=options), max_size=7) as pool:
        assert (pool.get_stats()["pool_min"], pool.get_stats()["pool_max"]) == (1, 1)
        first = pool.get_connection()
        second = in_thread(pool.get_connection)
        wait_for_waiting(pool, 1)
        first.close()
        second.result().close()


def test_waiting_threads_are_served_in_the_order_of_arrival(pool, in_thread):
    served: list[int] = []

    def borrow(number: int) -> None:
        with pool.connection(timeout=PATIENCE):
            served.append(number)

    borrowed = [pool.get_connection(), pool.get_connection()]
    calls = []
    for number in range(4):
        calls.append(in_thread(lambda number=number: borrow(number)))
        wait_for_waiting(pool, number + 1)
    borrowed[0].close()
    for call in calls:
        call.result()
    borrowed[1].close()
    assert served == [0, 1, 2, 3]
    assert pool.get_stats()["requests_queued"] == 4


def test_wait_for_a_connection_ends_with_its_timeout(pool):
    with pool.connection(), pool.connection(), pytest.raises(PoolTimeoutError):
        pool.get_connection(timeout=0.001)
    assert pool.get_stats()["requests_waiting"] == 0


def test_no_more_than_max_waiting_threads_wait(factory, in_thread):
    with ConnectionPool(factory, max_size=1, timeout=None, max_waiting=1) as pool:
        first = pool.get_connection()
        second = in_thread(pool.get_connection)
        wait_for_waiting(pool, 1)
        with pytest.raises(ResourceAllocationError, match="max_waiting"):
            pool.get_connection()
        first.close()
        second.result().close()


def test_connection_above_the_minimum_is_closed_when_it_was_idle_too_long(factory, clock):
    with ConnectionPool(factory, min_size=1, max_size=3, max_idle=60, clock=clock) as pool:
        borrowed = [pool.get_connection() for _ in range(3)]
        clock.time += 100  # being borrowed is not being idle
        for connection in borrowed:
            connection.close()
        assert sizes(pool) == (3, 3)
        with pool.connection():
            clock.time += 61
        assert sizes(pool) == (1, 1)
        assert len(factory.open) == 1


def test_idle_connections_are_closed_although_the_pool_is_not_used_any_more(factory):
    closed = threading.Event()
    with ConnectionPool(factory, max_idle=0.01) as pool:
        use(pool)
        for _ in range(PATIENCE * 100):
            if sizes(pool) == (0, 0):
                break
            closed.wait(0.01)
        assert factory.open == []


def test_connection_is_closed_at_the_end_of_its_lifetime(factory, clock):
    with ConnectionPool(factory, max_lifetime=100, clock=clock) as pool:
        with pool.connection():
            clock.time += 100
        assert sizes(pool) == (0, 0)
        assert factory.open == []


def test_connection_without_a_success_for_idle_timeout_is_replaced(jms_broker_url, clock):
    factory = ScriptedFactory(jms_broker_url, idle_timeout=30)
    with ConnectionPool(factory, clock=clock) as pool:
        first = use(pool)
        clock.time += 20
        assert use(pool) is first
        clock.time += 20  # 40 seconds after it was opened, 20 after its last success
        assert use(pool) is first
        clock.time += 31
        assert use(pool) is not first
    assert factory.open == []


def test_failed_connection_is_not_handed_out_again(pool, clock):
    with pool.connection() as connection:
        lose(connection)
    assert sizes(pool) == (0, 0)
    assert pool.get_stats()["returns_bad"] == 1


def test_siblings_of_a_failed_connection_are_not_handed_out(pool, clock):
    with pool.connection() as failing:
        sibling = use(pool)
        clock.time += 1
        lose(failing)
    assert use(pool) is not sibling
    assert pool.get_stats()["connections_lost"] == 1


def test_siblings_of_a_connection_that_failed_while_it_was_idle_are_not_handed_out(pool, clock):
    with pool.connection() as first, pool.connection() as second:
        old = {first.connection, second.connection}
    lose(first)  # the idle one that is borrowed next
    clock.time += 1
    assert use(pool) not in old


def test_borrower_that_succeeds_after_a_failure_keeps_its_connection(pool, clock):
    with pool.connection() as good:
        with pool.connection() as failing:
            lose(failing)
        clock.time += 1
    assert use(pool) is good.connection


def test_pool_reconnects_after_the_broker_could_not_be_reached(pool, factory):
    factory.failures = [LOST]
    with pytest.raises(type(LOST)):
        pool.get_connection()
    assert sizes(pool) == (0, 0)
    with pool.connection() as connection:
        assert connection.failed is False
    assert pool.get_stats()["connections_errors"] == 1


def test_connection_that_fails_its_check_is_replaced(factory):
    bad: list[Exception] = []

    def check(_connection: object) -> None:
        if bad:
            raise bad.pop()

    with ConnectionPool(factory, max_size=1, check=check) as pool:
        first = use(pool)
        assert use(pool) is first
        for error in (LOST, OSError("no route")):
            bad.append(error)
            assert use(pool) is not first
            assert len(factory.open) == 1


def test_interrupted_check_loses_no_slot(factory):
    def check(_connection: object) -> None:
        raise KeyboardInterrupt

    with ConnectionPool(factory, max_size=1, check=check) as pool:
        use(pool)
        with pytest.raises(KeyboardInterrupt):
            pool.get_connection()
        assert sizes(pool) == (0, 0)
        assert factory.open == []


def test_interrupted_return_closes_the_connection(pool, factory, monkeypatch):
    def interrupted(_session: Session) -> None:
        raise KeyboardInterrupt

    connection = pool.get_connection()
    connection.create_session()
    with monkeypatch.context() as patch:
        patch.setattr(Session, "close", interrupted)
        with pytest.raises(KeyboardInterrupt):
            connection.close()
    assert sizes(pool)[1] == 0
    assert pool.get_stats()["pool_size"] == 0


def test_temporary_destinations_and_consumers_end_with_the_borrower(pool):
    with pool.session() as session:
        temporary = session.create_temporary_queue()
        consumer = session.create_consumer(QUEUE)
    with pytest.raises(IllegalStateError):
        consumer.receive_no_wait()
    with pool.session() as session, pytest.raises(InvalidDestinationError):
        session.create_producer(temporary).send(TextMessage("x"))


def test_open_transaction_is_rolled_back_on_return(pool, other):
    with pool.session(transacted=True) as session:
        session.create_producer(QUEUE).send(TextMessage("never"))
    assert shown(other) == []


def test_message_that_was_not_acknowledged_is_redelivered_to_others(pool, other):
    put(other, "a")
    with pool.session(transacted=True) as session:
        session.create_consumer(QUEUE).receive(PATIENCE)
    with pool.session(transacted=True) as session:
        assert session.create_consumer(QUEUE).receive(PATIENCE).body == "a"
        session.commit()


def test_returned_connection_is_stopped_and_refuses_use(pool):
    connection = pool.get_connection()
    connection.start()
    connection.exception_listener = print
    connection.close()
    connection.close()
    assert sizes(pool) == (1, 1)
    for call in (connection.start, connection.stop, connection.create_session):
        with pytest.raises(IllegalStateError, match="returned"):
            call()
    again = pool.get_connection()
    assert again.exception_listener is None
    assert not again.connection._state.started
    again.close()


def test_message_listener_that_returns_its_connection_is_refused(pool, other):
    """It would wait for itself; the connection stays borrowed."""
    refused: list[Exception] = []
    done = threading.Event()

    def listen(_message: object) -> None:
        try:
            connection.close()
        except IllegalStateError as error:
            refused.append(error)
        done.set()

    put(other, "a")
    with pool.connection() as connection:
        connection.create_session().create_consumer(QUEUE).set_message_listener(listen)
        assert done.wait(PATIENCE)
        assert sizes(pool) == (1, 0)
    assert len(refused) == 1
    assert sizes(pool) == (1, 1)


def test_exclusive_client_id_is_refused(jms_broker_url):
    with pytest.raises(ConfigurationError, match="client id 'me'"):
        ConnectionPool(ScriptedFactory(jms_broker_url, client_id="me"))


def test_connections_of_other_credentials_are_not_reused(pool, factory):
    with pool.connection("ann", "secret"):
        pass
    with pool.connection("bob", "secret"):
        pass
    with pool.connection("ann", "other"):
        pass
    assert factory.users == ["ann", "bob", "ann"]
    assert len(factory.open) == 2  # the one of ann that was idle the longest made room
    assert sizes(pool) == (2, 2)


def test_connection_to_the_url_of_a_user_name_is_in_the_same_pool(pool, factory):
    url = "embedded://overloaded?username=ann"
    with pool.connection(url, "secret") as first:
        pass
    with pool.connection(url, "secret") as again, pool.connection() as own:
        assert again.connection is first.connection
        with pytest.raises(PoolTimeoutError, match="All 2 connections"):
            pool.get_connection()
        own.create_session().create_producer(QUEUE).send(TextMessage("here"))
        assert again.create_session().create_consumer(QUEUE).receive_no_wait() is None
    assert factory.users == [url, None]


def test_close_waits_for_borrowers_and_refuses_new_ones(pool, factory, in_thread):
    use(pool)
    connection = pool.get_connection()
    closing = in_thread(lambda: pool.close(PATIENCE))
    assert not closing.ended()
    with pytest.raises(IllegalStateError, match="closed"):
        pool.get_connection()
    connection.create_session().create_producer(QUEUE).send(TextMessage("still works"))
    connection.close()
    closing.result()
    assert factory.open == []
    assert pool.closed


def test_close_tells_of_connections_that_are_still_borrowed(pool, factory, caplog):
    connection = pool.get_connection()
    pool.close(timeout=0)
    assert "still borrowed" in caplog.text
    connection.close()
    assert factory.open == []


def test_close_ends_the_wait_of_other_threads(pool, in_thread):
    borrowed = [pool.get_connection(), pool.get_connection()]
    waiting = in_thread(lambda: pool.get_connection(timeout=None))
    wait_for_waiting(pool, 1)
    pool.close(timeout=0)
    with pytest.raises(IllegalStateError):
        waiting.result()
    for connection in borrowed:
        connection.close()


def test_closed_pool_can_be_opened_again(pool):
    pool.close()
    pool.open()
    use(pool)
    assert not pool.closed


def test_resize_closes_connections_above_the_maximum(pool, factory):
    with pool.connection(), pool.connection():
        pass
    pool.resize(0, 1)
    assert sizes(pool) == (1, 1)
    assert len(factory.open) == 1
    with pool.connection(), pytest.raises(PoolTimeoutError):
        pool.get_connection()


def test_resize_lets_waiting_threads_proceed(pool, in_thread):
    with pool.connection(), pool.connection():
        waiting = in_thread(lambda: pool.get_connection(timeout=None))
        wait_for_waiting(pool, 1)
        pool.resize(0, 3)
        waiting.result().close()


@pytest.mark.parametrize("bad", [(-1, 2), (3, 2), (0, 0)])
def test_sizes_out_of_range_are_refused(pool, factory, bad):
    with pytest.raises(ConfigurationError, match="min_size is"):
        pool.resize(*bad)
    with pytest.raises(ConfigurationError, match="min_size is"):
        ConnectionPool(factory, min_size=bad[0], max_size=bad[1])


def test_drain_replaces_idle_and_borrowed_connections(pool, factory):
    with pool.connection() as borrowed:
        idle = use(pool)
        pool.drain()
        assert factory.open == [borrowed.connection]
        assert idle is not borrowed.connection
    assert factory.open == []
    use(pool)
    assert sizes(pool) == (1, 1)


def test_wait_opens_the_minimum(factory):
    with ConnectionPool(factory, min_size=2, open=False) as pool:
        pool.open(wait=True)
        assert sizes(pool) == (2, 2)


def test_wait_ends_with_its_timeout(factory, clock):
    with ConnectionPool(factory, min_size=1, clock=clock) as pool:
        with pytest.raises(PoolTimeoutError, match="less than 1"):
            pool.wait(0)
        assert sizes(pool) == (0, 0)


def test_pool_that_is_not_opened_refuses(factory):
    pool = ConnectionPool(factory, open=False)
    assert pool.closed
    with pytest.raises(IllegalStateError, match="open"):
        pool.get_connection()


def test_statistics_count_requests_connections_and_time(pool, clock):
    with pool.connection():
        clock.time += 2
    stats = pool.get_stats()
    assert (stats["requests_num"], stats["connections_num"], stats["usage_ms"]) == (1, 1, 2000)


def test_forked_child_begins_with_an_empty_pool(pool, factory):
    """The parent's borrowed and idle connections stay the parent's."""
    use(pool)
    borrowed = pool.get_connection()
    child = os.fork()
    if child == 0:
        try:
            borrowed.close()
            good = sizes(pool) == (0, 0)
        finally:
            os._exit(not good)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert sizes(pool) == (1, 0)
    borrowed.create_session().create_producer(QUEUE).send(TextMessage("x"))
    borrowed.close()


class Cycles:
    """Borrows and returns from four threads, with failures of every kind; then nothing may be missing."""

    def __init__(self, factory: ScriptedFactory, count: int, seed: int) -> None:
        self._factory, self._count, self._checks = factory, count, random.Random(seed)
        with ConnectionPool(factory, max_size=3, check=self._check) as self._pool, ThreadPoolExecutor(4) as threads:
            list(threads.map(self._work, range(seed, seed + 4)))
            factory.failures = []
            size, idle = sizes(self._pool)
            assert size == idle == len(factory.open) <= 3
            assert self._pool.get_stats()["requests_waiting"] == 0
        assert factory.open == []

    def _work(self, seed: int) -> None:
        chance = random.Random(seed)
        for _ in range(self._count // 4):
            with suppress(type(LOST), KeyboardInterrupt, ResourceAllocationError, OSError):
                self._disturb(chance)
                with self._pool.connection(timeout=chance.choice([0, 0.001, PATIENCE])) as connection:
                    self._use(connection, chance.random())

    def _disturb(self, chance: random.Random) -> None:
        draw = chance.random()
        if draw < 0.01:
            self._factory.failures.append(chance.choice([LOST, OSError("no memory"), KeyboardInterrupt()]))
        elif draw < 0.02:
            self._pool.drain()

    def _use(self, connection: PooledConnection, draw: float) -> None:
        if draw > 0.98:
            lose(connection)
        elif draw > 0.96:
            raise KeyboardInterrupt
        elif draw > 0.7:
            connection.create_session().create_producer(QUEUE)

    def _check(self, _connection: object) -> None:
        if self._checks.random() < 0.02:
            raise self._checks.choice([LOST, KeyboardInterrupt()])


def test_no_cycle_of_borrow_and_return_loses_a_slot(factory):
    """2,000 cycles; JMSJCA_POOL_CYCLES sets another number."""
    Cycles(factory, int(os.environ.get("JMSJCA_POOL_CYCLES", "2000")), seed=1)
