"""Cases for pools of connections: what a return ends, and what threads share."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from jmsjca.outbound import ConnectionFactory, ConnectionPool
from jmsjca.testing.contract.harness import PATIENCE, Contract, Harness

__all__ = ["TestPools"]

_THREADS, _SENDS = 4, 25


class TestPools(Contract):
    """`ConnectionPool`: a borrower leaves nothing behind for the next one."""

    @pytest.fixture
    def pool(self, jms_broker_url: str) -> Iterator[ConnectionPool]:
        """Provide a pool of two connections at most.

        Args:
            jms_broker_url: The URL of the broker.

        Yields:
            The pool, which is closed after the case.
        """
        with ConnectionPool(ConnectionFactory(jms_broker_url), max_size=2, timeout=PATIENCE) as pool:
            yield pool

    def test_one_borrower_after_the_other_has_the_same_connection(self, harness: Harness, pool: ConnectionPool) -> None:
        """The broker sees one connection, whichever session is used."""
        queue = harness.queue()
        for body in "abc":
            with pool.session() as session:
                session.create_producer(queue).send(session.create_text_message(body))
        assert pool.get_stats()["connections_num"] == 1
        harness.expect(queue, *"abc")

    def test_threads_share_the_connections(self, harness: Harness, pool: ConnectionPool) -> None:
        """Each send of each thread arrives, over no more connections than the pool may have."""
        queue = harness.queue()

        def send(number: int) -> None:
            """Send one message over a borrowed connection."""
            with pool.session() as session:
                session.create_producer(queue).send(session.create_text_message(f"{number}"))

        with ThreadPoolExecutor(_THREADS) as threads:
            list(threads.map(send, range(_THREADS * _SENDS)))
        assert pool.get_stats()["connections_num"] <= 2
        received = harness.gather(harness.connection.consumer(queue), _THREADS * _SENDS)
        assert {delivery.message.body for delivery in received} == {f"{n}" for n in range(_THREADS * _SENDS)}

    def test_open_transaction_is_rolled_back_on_return(self, harness: Harness, pool: ConnectionPool) -> None:
        """The next borrower does not commit what the last one left (JMS 3.1, section 6.2.7)."""
        harness.require("atomic")
        queue = harness.queue()
        with pool.session(transacted=True) as session:
            session.create_producer(queue).send(session.create_text_message("left"))
        with pool.session(transacted=True) as session:
            session.create_producer(queue).send(session.create_text_message("committed"))
            session.commit()
        harness.expect(queue, "committed")

    def test_message_that_was_not_committed_is_redelivered(self, harness: Harness, pool: ConnectionPool) -> None:
        """It is there for any consumer, not only for the next borrower."""
        harness.require("atomic")
        queue = harness.queue()
        harness.send(queue, "a")
        with pool.session(transacted=True) as session:
            message = session.create_consumer(queue).receive(timeout=PATIENCE)
            assert message is not None
        harness.expect(queue, "a")

    def test_consumer_of_a_borrower_ends_with_the_return(self, harness: Harness, pool: ConnectionPool) -> None:
        """It receives no messages any more, although the connection stays open."""
        queue = harness.queue()
        with pool.session() as session:
            session.create_consumer(queue)
        harness.send(queue, *"ab")
        assert pool.get_stats()["pool_size"] == 1
        harness.expect(queue, *"ab")
