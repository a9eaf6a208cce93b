"""Precedence of outbound connections, and pools, held against the cases in the folder that JMSJCA_CONFORMANCE names.

These cases are told in words, so each has a test of its own; the numbers are their places in the file of options.
"""

import threading
import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest

from jmsjca import ActivationSpec, ConnectionFactory, ResourceAdapter, Session, TextMessage
from jmsjca.errors import ConnectionLostError, IllegalStateError, PoolTimeoutError
from jmsjca.outbound import ConnectionPool
from jmsjca.outbound.sender import Sender
from tests.unit.config.conformance_cases import place_of, rows_at
from tests.unit.outbound.pooling import LOST, ScriptedFactory, lose
from tests.unit.outbound.queues import PATIENCE, QUEUE, shown
from tests.unit.selectors.conformance_cases import rows

READ = set()  # the places of rows that a test of this file reads
ELSEWHERE = ("split_options", "multi_line_options")  # kinds of rows that test_options.py reads
BY_KIND = {*range(8, 13), 15, *range(19, 87), *range(101, 104)}  # places of rows that test_options_conformance.py reads
SHARED_IN_A_TRANSACTION = 100  # deviates: docs/reference/compatibility.md has the reason


def row_at(*places):
    """The rows at these places, as the parameters of a test."""
    READ.update(places)
    return pytest.mark.parametrize("row", rows_at(*places))


@pytest.fixture
def url():
    return f"embedded://conformance-{uuid.uuid4().hex}"


@pytest.fixture
def pool_of(url):
    """A function that makes a pool with the options of a row, and its factory."""
    pools = []

    def make(row, **changes):
        options = {**row["options"], **changes}
        factory = ScriptedFactory(url, options="\n".join(f"{name}={value}" for name, value in options.items()))
        pools.append(ConnectionPool(factory))
        return pools[-1], factory

    yield make
    for pool in pools:
        pool.close(0)


def received(url, queue=QUEUE):
    with ConnectionFactory(url).create_connection() as connection:
        return shown(connection, queue)


@row_at(87)
def test_precedence_of_urls(row):
    assert row["expect"].startswith("URL: (1) given in createConnection")
    adapter = ResourceAdapter("embedded://adapter")
    assert adapter.connection_factory().login.url == "embedded://adapter"
    factory = adapter.connection_factory("embedded://factory")
    assert factory.login.url == "embedded://factory"
    assert factory.login.override("embedded://call", None).url == "embedded://call"
    spec = ActivationSpec(destination="q", connection_url="embedded://spec")
    assert adapter.activate(spec, print).spec.connection_url == "embedded://spec"


@row_at(88)
def test_precedence_of_options(row):
    assert "resource adapter's Options <" in row["expect"]
    name = "JMSJCA.poolmaxsize"
    adapter = ResourceAdapter("embedded://adapter", options={name: "1"})
    assert adapter.connection_factory().options.pool_max_size == 1
    assert adapter.connection_factory(options={name: "2"}).options.pool_max_size == 2
    in_url = adapter.connection_factory(f"embedded://adapter?{name}=3", options={name: "2"})
    assert in_url.options.pool_max_size == 3


@row_at(89)
def test_redelivery_handling_is_an_option_or_a_field(row):
    assert "JMSJCA.redeliveryhandling" in row["expect"]
    adapter, handling = ResourceAdapter("embedded://adapter"), "3:move(queue:dlq)"
    for fields in (
        {"redelivery_handling": handling},
        {"options": {"JMSJCA.redeliveryhandling": handling}},
        {"connection_url": "embedded://adapter?JMSJCA.redeliveryhandling=3:move(queue:dlq)"},
    ):
        spec = adapter.activate(ActivationSpec(destination="q", **fields), print).spec
        assert spec.redelivery_handling == handling


@row_at(90)
def test_url_as_user_name_overrides_the_url_and_is_pooled(row, url):
    assert "overrides the connection URL" in row["expect"]
    factory = ScriptedFactory(url)
    other = f"{url}-other?username=u"
    with ConnectionPool(factory, max_size=3) as pool:
        used = []
        for login in ((other, "p"), (other, "p"), (other, "another"), (None, None)):
            with pool.connection(*login) as connection:
                connection.create_session().create_producer(QUEUE).send(TextMessage("a"))
                used.append(connection.connection)
    assert used[0] is used[1]
    assert len(set(used)) == 3
    assert (received(url), received(f"{url}-other")) == (["a"], ["a"] * 3)


@row_at(91)
def test_credentials_of_the_call_override_those_of_the_adapter(row, url):
    """There is no subject of a container here."""
    assert "pooled connections are only reused with the same user and password" in row["expect"]
    factory = ResourceAdapter(url, "adapter", "a").connection_factory()
    assert factory.login.user_name == "adapter"
    called = factory.login.override("call", "c")
    assert (called.user_name, called.password) == ("call", "c")
    with ConnectionPool(factory) as pool:
        used = []
        for login in (("ann", "a"), ("ann", "a"), ("ann", "b"), ("bob", "a")):
            with pool.connection(*login) as connection:
                used.append(connection.connection)
    assert used[0] is used[1]
    assert len(set(used)) == 3


@row_at(92)
def test_third_request_fails_after_the_timeout(row, pool_of, url):
    pool, _ = pool_of(row)
    with pool.connection() as first, pool.connection() as second:
        with pytest.raises(PoolTimeoutError, match="All 2 connections"):
            pool.get_connection()
        for connection in (first, second):
            connection.create_session().create_producer(QUEUE).send(TextMessage("usable"))
    assert received(url) == ["usable"] * 2


@row_at(93)
def test_third_request_waits_and_gets_the_returned_connection(row, pool_of):
    pool, _ = pool_of(row)
    first, second = pool.get_connection(), pool.get_connection()
    returned = first.connection
    with ThreadPoolExecutor(1) as threads:
        third = threads.submit(pool.get_connection)
        wait_for_a_waiting_thread(pool)
        first.close()
        assert third.result(PATIENCE).connection is returned
    second.close()


def wait_for_a_waiting_thread(pool):
    waited = threading.Event()
    for _ in range(PATIENCE * 1000):
        if pool.get_stats()["requests_waiting"]:
            return
        waited.wait(0.001)
    pytest.fail("No thread waits for a connection.")


@row_at(94)
def test_stop_ends_the_waiting_request_and_nothing_is_sent(row, pool_of, url):
    pool, factory = pool_of(row)
    borrowed = [pool.get_connection(), pool.get_connection()]
    with ThreadPoolExecutor(1) as threads:
        third = threads.submit(Sender(pool).send, QUEUE, "never")
        wait_for_a_waiting_thread(pool)
        pool.close(0)
        with pytest.raises(IllegalStateError, match="closed"):
            third.result(PATIENCE)
    assert len(factory.open) == 2
    for connection in borrowed:
        connection.close()
    assert factory.open == []
    assert received(url) == []


@row_at(95)
def test_stop_empties_the_pool_and_later_requests_fail(row, pool_of, url):
    """The sender of an adapter that is used after the stop opens another pool."""
    pool, factory = pool_of(row)
    with pool.connection():
        pass
    pool.close()
    assert factory.open == []
    with pytest.raises(IllegalStateError, match="closed"):
        pool.get_connection()
    adapter = ResourceAdapter(url, options=row["options"])
    before = adapter.sender
    adapter.send(QUEUE, "before")
    adapter.stop()
    with pytest.raises(IllegalStateError, match="closed"):
        before.send(QUEUE, "never")
    adapter.send(QUEUE, "after")
    adapter.stop()
    assert received(url) == ["before", "after"]


@row_at(96, 97)
def test_failures_do_not_use_up_the_pool(row, pool_of, url):
    """A session joins no transaction when it is created (row 97): there is no enlistment that could fail."""
    pool, factory = pool_of(row)
    factory.failures = [LOST] * 5
    for _ in range(5):
        with pytest.raises(ConnectionLostError):
            pool.get_connection()
    with pool.session(transacted=True) as session:
        session.create_producer(QUEUE).send(TextMessage("later"))
        session.commit()
    assert received(url) == ["later"]
    assert pool.get_stats()["pool_size"] == 1


@row_at(98)
def test_invalid_connection_is_replaced(row, pool_of):
    pool, factory = pool_of(row)
    with pool.connection() as connection:
        invalid = connection.connection
    lose(invalid)
    with pool.connection() as connection:
        assert connection.connection is not invalid
    assert factory.open == [connection.connection]
    assert pool.get_stats()["pool_size"] == 1


@row_at(99)
def test_failing_clean_up_closes_the_connection_and_the_caller_sees_no_error(row, pool_of, url, monkeypatch):
    pool, factory = pool_of(row)
    close = Session.close

    def fail(session):
        close(session)
        raise LOST

    for number in range(5):
        with monkeypatch.context() as patch, pool.connection() as connection:
            session = connection.create_session(transacted=True)
            session.create_producer(QUEUE).send(TextMessage(f"{number}"))
            session.commit()
            patch.setattr(Session, "close", fail)
            connection.close()
        assert factory.open == []
    assert received(url) == [f"{number}" for number in range(5)]
    assert len(factory.opened) == 5


@row_at(SHARED_IN_A_TRANSACTION)
@pytest.mark.parametrize("size", ["1", "2"])
def test_transaction_is_that_of_one_session_and_ends_with_its_connection(row, pool_of, url, size):
    """In the original, the container's transaction spans several connections, and may end after they are closed."""
    pool, _ = pool_of(row, **{"JMSJCA.poolmaxsize": size})
    for commits in (True, False):
        with pool.session(transacted=True) as session:
            session.create_producer(QUEUE).send(TextMessage(f"commits: {commits}"))
            if commits:
                session.commit()
    assert received(url) == ["commits: True"]
    assert pool.get_stats()["connections_num"] == 1


@pytest.mark.parametrize("first", rows("options")[:1])
def test_every_row_is_read_by_a_test(first):
    places = {place_of(row) for row in rows("options") if row.values[0]["kind"] not in ELSEWHERE}
    assert places - BY_KIND == READ
