"""Connections that are closed in a transaction of a transaction manager; names of JMSJCA's tests at each case."""

import pytest
from transaction import TransactionManager

from jmsjca import ConnectionFactory
from jmsjca.errors import IllegalStateError
from jmsjca.outbound.pool import ConnectionPool
from tests.unit.outbound.managed_sessions import (
    IN,
    OUT,
    PATIENCE,
    THIRD,
    receive,
    send,
)


class TestCloseInATransaction:
    """The names of JMSJCA's own tests are at each case."""

    @pytest.mark.parametrize("is_closed_inside", [True, False])
    def test_its_commit_sends_wherever_the_connection_is_closed(self, managed, manager, bodies, is_closed_inside):
        """JMSJCA: testCloseInTranactionXA, testCloseInTransactionLT (testQQBM1), testBeanManaged (testQQBM2)."""
        connection = managed().create_connection()
        manager.begin()
        send(connection.create_session(transacted=True))
        if is_closed_inside:
            connection.close()
        manager.commit()
        assert bodies() == ["sent"]
        connection.close()
        assert bodies() == ["sent"]

    def test_its_commit_settles_what_closed_consumers_received(self, managed, manager, put, bodies):
        put("a", "b", "c")
        for end, left in [(manager.abort, ["a", "b", "c"]), (manager.commit, ["b", "c"])]:
            manager.begin()
            with managed().create_connection() as connection:
                receive(connection.create_session())
            end()
            assert bodies(IN) == left

    @pytest.mark.parametrize("end", ["commit", "abort"])
    def test_temporary_destinations_are_deleted_after_it(self, managed, manager, exists, end):
        """JMSJCA: testTempDestClosed, requestReplyN2."""
        connection = managed().create_connection()
        manager.begin()
        session = connection.create_session()
        temporary = session.create_temporary_queue()
        send(session, to=temporary)
        connection.close()
        assert exists(temporary)
        getattr(manager, end)()
        assert not exists(temporary)

    @pytest.mark.parametrize("end", ["commit", "abort"])
    def test_temporary_destinations_are_there_until_the_connection_closes(self, managed, manager, exists, end):
        """JMSJCA: testTempDestClosed, requestReplyN3."""
        with managed().create_connection() as connection:
            manager.begin()
            session = connection.create_session()
            temporary = session.create_temporary_queue()
            send(session, to=temporary)
            getattr(manager, end)()
            received = session.create_consumer(temporary).receive(PATIENCE if end == "commit" else 0)
            assert (received is not None) is (end == "commit")
            assert exists(temporary)
        assert not exists(temporary)

    def test_another_connection_goes_on_with_it(self, managed, manager, bodies):
        """JMSJCA: testReuseXAResources, testReuseLTResources (sendTo2And3CloseImmediately)."""
        factory = managed()
        manager.begin()
        for to in (OUT, THIRD, OUT):
            with factory.create_connection() as connection:
                send(connection.create_session(transacted=True), to=to)
        assert (bodies(OUT), bodies(THIRD)) == ([], [])
        manager.commit()
        assert (bodies(OUT), bodies(THIRD)) == (["sent", "sent"], ["sent"])

    def test_a_connection_that_went_on_is_closed_by_its_own_close(self, managed, manager, bodies):
        factory = managed()
        manager.begin()
        with factory.create_connection() as first:
            send(first.create_session(), "first")
        second = factory.create_connection()
        manager.commit()
        session = second.create_session()
        send(session, "second")
        second.close()
        assert bodies() == ["first", "second"]
        with pytest.raises(IllegalStateError):
            send(session)

    def test_connections_of_other_credentials_do_not(self, managed, manager):
        with manager:
            with managed().create_connection() as connection:
                send(connection.create_session())
            with managed().create_connection("someone", "else") as other:
                session = other.create_session()
                with pytest.raises(IllegalStateError, match="one broker connection"):
                    send(session)

    def test_a_connection_of_another_factory_goes_on_with_it(self, managed, manager, bodies):
        """JMSJCA: testMultiXA (sendTo2And3PreventSharing), testMultiNonSharedResources (sendTo2And3Mix)."""
        manager.begin()
        for to in (OUT, THIRD):
            with managed().create_connection() as connection:
                send(connection.create_session(), to=to)
        assert (bodies(OUT), bodies(THIRD)) == ([], [])
        manager.commit()
        assert (bodies(OUT), bodies(THIRD)) == (["sent"], ["sent"])

    def test_each_transaction_of_an_open_connection_ends_alone(self, managed, manager, bodies):
        """JMSJCA: testBeanManagedRBAllocateOutsideOfTx, …InTx, testXASessionRBAllocateOutsideOfTx."""
        with managed().create_connection() as connection:
            session = connection.create_session()
            manager.begin()
            send(session, "Should not have been sent")
            manager.abort()
            manager.begin()
            send(session)
            manager.commit()
            session.close()
            manager.begin()
            later = connection.create_session()
            send(later, "Should not have been sent")
            manager.abort()
        assert bodies() == ["sent"]

    def test_a_session_closed_in_a_transaction_that_never_commits_sends_nothing(self, managed, manager, bodies):
        """JMSJCA: testBeanManagedAutoCommitAllocateOutsideOfTx."""
        with managed().create_connection() as connection:
            session = connection.create_session()
            manager.begin()
            send(session)
            session.close()
        assert bodies() == []
        manager.abort()
        assert bodies() == []

    def test_one_factory_in_the_transaction_and_one_outside(self, managed, manager, jms_connection_factory, bodies):
        """JMSJCA: Q2XAAndQ3NoTrans."""
        manager.begin()
        with managed().create_connection() as inside, jms_connection_factory.create_connection() as outside:
            send(inside.create_session(), to=OUT)
            send(outside.create_session(), to=THIRD)
        manager.abort()
        assert (bodies(OUT), bodies(THIRD)) == ([], ["sent"])


def sizes(pool):
    stats = pool.get_stats()
    return stats["pool_size"], stats["pool_available"]


class TestPools:
    def test_a_returned_connection_stays_with_its_transaction(self, managed, manager, bodies, exists):
        with ConnectionPool(managed(), max_size=2) as pool:
            manager.begin()
            temporaries = []
            for body in ("one", "two"):
                with pool.session() as session:
                    temporaries.append(session.create_temporary_queue())
                    send(session, body)
            assert (bodies(), sizes(pool)) == ([], (1, 0))
            assert all(map(exists, temporaries))
            manager.commit()
            assert (bodies(), sizes(pool)) == (["one", "two"], (1, 1))
            assert not any(map(exists, temporaries))

    def test_another_transaction_does_not_get_it(self, managed, manager, bodies, jms_broker_url):
        second, current = TransactionManager(explicit=True), [manager]
        factory = ConnectionFactory(jms_broker_url, transaction_locator=lambda: current[0])
        with ConnectionPool(factory, max_size=2) as pool:
            for body, current[0] in (("one", manager), ("two", second)):
                current[0].begin()
                with pool.session() as session:
                    send(session, body)
            assert pool.get_stats()["pool_size"] == 2
            second.commit()
            manager.abort()
            assert (bodies(), pool.get_stats()["pool_available"]) == (["two"], 2)
