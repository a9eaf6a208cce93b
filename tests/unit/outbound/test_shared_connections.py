"""Threads share the connections of a pool for single sends, and give them back to it."""

import os
from contextlib import contextmanager

import pytest

from jmsjca import ConnectionFactory, Hooks, TextMessage
from jmsjca.errors import PoolTimeoutError
from jmsjca.outbound.pool import ConnectionPool, SharedConnections, Use
from jmsjca.outbound.sender import Sender
from tests.unit.outbound.pooling import ScriptedFactory, lose
from tests.unit.outbound.queues import PATIENCE, QUEUE, shown
from tests.unit.outbound.test_pool import sizes, wait_for_waiting


@pytest.fixture
def pool(jms_broker_url):
    with ConnectionPool(ScriptedFactory(jms_broker_url), max_size=2) as pool:
        yield pool


@pytest.fixture
def shared(pool):
    return SharedConnections(pool)


@contextmanager
def using(shared):
    """Use a connection for the block, as a send does."""
    use = Use()
    try:
        yield shared.join_or_borrow(use)
    finally:
        shared.leave(use)


def test_connection_that_is_left_in_the_pool_is_preferred(pool, shared):
    for _ in range(2):  # the second time they are idle
        with using(shared) as first, using(shared) as second:
            assert first is not second
            assert sizes(pool) == (2, 0)
        assert sizes(pool) == (2, 2)


def test_connections_are_shared_evenly_while_the_pool_has_none_left(pool, shared):
    with using(shared) as first, using(shared) as second:
        with using(shared) as third, using(shared) as fourth:
            assert {third, fourth} == {first, second}
        assert sizes(pool) == (2, 0)
    assert pool.get_stats()["requests_errors"] == 0


def test_last_user_returns_the_connection(pool, shared):
    pool.resize(0, 1)
    first = using(shared)
    first.__enter__()
    with using(shared) as connection:
        first.__exit__(None, None, None)
        assert sizes(pool) == (1, 0)
        connection.create_session().create_producer(QUEUE).send(TextMessage("still borrowed"))
    assert sizes(pool) == (1, 1)


def test_failed_connection_is_not_shared(pool, shared):
    pool.resize(0, 1)
    with using(shared) as connection:
        lose(connection)
        with pytest.raises(PoolTimeoutError), using(shared):
            pytest.fail("A lost connection was lent.")
    with using(shared) as another:
        assert another.connection is not connection.connection


def test_connection_returns_to_the_pool_after_a_hundred_uses(pool, shared):
    pool.resize(0, 1)
    with using(shared):
        for _ in range(99):
            with using(shared):
                pass
        with pytest.raises(PoolTimeoutError), using(shared):
            pytest.fail("It was lent a hundred times.")
    with using(shared):
        assert sizes(pool) == (1, 0)


def test_connection_is_not_shared_while_others_wait_for_the_pool(pool, shared, in_thread):
    """Those who need a connection for themselves get one although many threads send."""
    pool.resize(0, 1)
    with using(shared):
        waiting = in_thread(lambda: pool.get_connection(timeout=None))
        wait_for_waiting(pool, 1)
        with pytest.raises(PoolTimeoutError), using(shared):
            pytest.fail("It was shared before the waiting thread had it.")
    waiting.result().close()


def test_forked_child_shares_nothing_with_its_parent(pool, shared):
    pool.resize(0, 1)
    with using(shared) as connection:
        child = os.fork()
        if child == 0:
            good = False
            try:
                with using(shared) as own, using(shared) as joined:
                    good = own is joined and own is not connection
            finally:
                os._exit(not good)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert sizes(pool) == (1, 0)


class Paused(Hooks):
    """Hooks that let the first send wait until a second one has ended."""

    def __init__(self, in_thread):
        self._in_thread, self.second = in_thread, False

    def around_send(self, message, destination, call_next):
        if not self.second:
            self.second = True
            self._in_thread(lambda: self.sender.send(QUEUE, "second")).result()
        call_next()


def test_send_does_not_wait_for_the_send_of_another_thread(jms_broker_url, in_thread, connection):
    """The pool has one connection, and the first send ends after the second one."""
    hooks = Paused(in_thread)
    with ConnectionPool(ConnectionFactory(jms_broker_url, hooks=[hooks]), max_size=1, timeout=PATIENCE) as pool:
        hooks.sender = Sender(pool)
        hooks.sender.send(QUEUE, "first")
        assert pool.get_stats()["connections_num"] == 1
    assert shown(connection) == ["second", "first"]
