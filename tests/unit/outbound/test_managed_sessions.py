"""Sessions under a transaction manager: they take part in the transaction in which the caller is."""

import threading

import pytest
import sqlalchemy as sa
import transaction
from transaction import TransactionManager

from jmsjca import ConnectionFactory, TextMessage
from jmsjca.errors import IllegalStateError, NotSupportedError, TransactionRolledBackError
from jmsjca.transactions import joined_session
from tests.unit.outbound.managed_sessions import AUTO, CLIENT, DUPS_OK, IN, INDIVIDUAL, OUT, PATIENCE, receive, send

ARGUMENTS = [(False, AUTO), (False, CLIENT), (False, DUPS_OK), (False, INDIVIDUAL), (True, AUTO)]


class TestInATransaction:
    """By default the arguments of ``create_session`` are ignored, and the transaction manager commits."""

    @pytest.mark.parametrize(("transacted", "mode"), ARGUMENTS)
    def test_the_commit_settles_and_sends_whatever_the_arguments(  # fixtures
        self, managed, manager, put, bodies, transacted, mode
    ):
        put("a")
        with managed().create_connection() as connection:
            session = connection.create_session(transacted, mode)
            manager.begin()
            receive(session)
            send(session)
            assert bodies() == []
            manager.commit()
            assert (bodies(IN), bodies(OUT)) == ([], ["sent"])

    def test_closed_producers_are_continued_by_the_next_ones(self, managed, manager):
        with managed("JMSJCA.producerpooling=true").create_connection() as connection, manager:
            session = connection.create_session()
            ids: list[str] = []
            for _ in range(2):
                with session.create_producer(OUT) as producer:
                    producer.send(message := TextMessage("a"))
                ids.append(message.message_id.rpartition("-")[0])
        assert ids[0] == ids[1]

    @pytest.mark.parametrize(("transacted", "mode"), ARGUMENTS)
    def test_the_rollback_redelivers_and_sends_nothing(  # fixtures
        self, managed, manager, put, bodies, transacted, mode
    ):
        put("a", "b")
        with managed().create_connection() as connection:
            session = connection.create_session(transacted, mode)
            consumer = session.create_consumer(IN)
            manager.begin()
            assert consumer.receive(PATIENCE).body == "a"
            send(session)
            manager.abort()
            with manager:
                redelivered = consumer.receive(PATIENCE)
                assert (redelivered.body, redelivered.redelivered) == ("a", True)
        assert (bodies(IN), bodies(OUT)) == (["b"], [])

    @pytest.mark.parametrize(("transacted", "mode"), ARGUMENTS)
    def test_the_session_cannot_end_it(self, managed, manager, bodies, transacted, mode):
        with managed().create_connection() as connection:
            session = connection.create_session(transacted, mode)
            with manager:
                send(session)
                for end in (session.commit, session.rollback, session.recover, session.transaction().__enter__):
                    with pytest.raises(IllegalStateError, match="transaction"):
                        end()
            assert bodies() == ["sent"]

    def test_the_database_and_the_broker_commit_together(self, managed, manager, bodies, tmp_path):
        engine = sa.create_engine(f"sqlite:///{tmp_path / 'rows.db'}")
        table = sa.Table("t", sa.MetaData(), sa.Column("id", sa.Integer, primary_key=True))
        table.create(engine)
        with managed().create_connection() as connection:
            for act in (manager.commit, manager.abort):
                manager.begin()
                send(connection.create_session())
                joined_session(engine, manager).execute(table.insert())
                act()
        with engine.connect() as sql:
            assert (bodies(), len(sql.execute(table.select()).all())) == (["sent"], 1)
        engine.dispose()

    def test_the_broker_votes_last(self, managed, manager, bodies):
        order = []

        class Voter:
            transaction_manager = None

            def sortKey(self):  # noqa: N802
                return "~~jms"

            def tpc_vote(self, _transaction):
                order.extend(bodies())  # nothing is sent before the others have voted
                order.append("vote")

            def ignore(self, _transaction):
                pass

            tpc_begin = commit = tpc_finish = tpc_abort = abort = ignore

        with managed().create_connection() as connection, manager as current:
            send(connection.create_session())
            current.join(Voter())
        assert (order, bodies()) == (["vote"], ["sent"])

    def test_sessions_of_one_connection_share_it(self, managed, manager, put, bodies):
        put("a")
        with managed().create_connection() as connection:
            with manager:
                send(connection.create_session(), "one")
                second = connection.create_session()
                receive(second)
                send(second, "two")
            assert (bodies(IN), bodies()) == ([], ["one", "two"])

    def test_a_second_connection_and_savepoints_are_refused(self, managed, manager, bodies):
        """JMSJCA: testSharedXAResources, testSharedLTResources (sendTo2And3CloseAtEnd), where XA joins them."""
        factory = managed()
        with factory.create_connection() as one, factory.create_connection() as two:
            second = two.create_session()
            with manager:
                send(one.create_session())
                with pytest.raises(IllegalStateError, match="one broker connection"):
                    send(second)
            assert bodies() == ["sent"]
            current = manager.begin()
            send(second)
            current.savepoint(optimistic=True)
            with pytest.raises(TypeError, match="Savepoints unsupported"):
                current.savepoint()
            manager.abort()

    def test_a_message_that_no_transaction_takes_is_redelivered(self, managed, manager, put, bodies):
        put("a", "b")
        factory = managed()
        with factory.create_connection() as one, factory.create_connection() as two:
            consumer = two.create_session().create_consumer(IN)
            with manager:
                send(one.create_session())
                with pytest.raises(IllegalStateError, match="one broker connection"):
                    consumer.receive(PATIENCE)
            with manager:
                assert consumer.receive(PATIENCE).body == "a"
        assert bodies(IN) == ["b"]

    def test_a_message_that_demands_a_rollback_rolls_all_back(self, managed, manager, put, bodies):
        put("a")
        with managed().create_connection() as connection:
            session = connection.create_session()
            manager.begin()
            receive(session).set_rollback_only()
            send(session)
            with pytest.raises(TransactionRolledBackError, match="set_rollback_only"):
                manager.commit()
            manager.abort()
        assert (bodies(IN), bodies()) == (["a"], [])

    def test_what_waits_for_its_own_end_keeps_the_session_out(self, managed, manager, put, bodies):
        put("a")
        with managed().create_connection() as connection:
            for transacted, mode, end in [
                (True, AUTO, "rollback"),
                (False, CLIENT, "recover"),
                (False, INDIVIDUAL, "recover"),
            ]:
                session = connection.create_session(transacted, mode)
                consumer = session.create_consumer(IN)
                assert consumer.receive(PATIENCE).body == "a"
                with manager, pytest.raises(IllegalStateError, match=end):
                    send(session)
                getattr(session, end)()
                with manager:
                    send(session, mode.name)
                session.close()
        assert bodies() == ["AUTO", "CLIENT", "INDIVIDUAL"]

    def test_a_session_stays_in_its_transaction_until_it_ends(self, managed, manager, bodies, jms_broker_url):
        current = [manager]
        factory = ConnectionFactory(jms_broker_url, transaction_locator=lambda: current[0])
        with factory.create_connection() as connection:
            session = connection.create_session()
            manager.begin()
            send(session)
            for other in (None, TransactionManager()):
                current[0] = other
                with pytest.raises(IllegalStateError, match="still open"):
                    send(session, "elsewhere")
            manager.commit()
            current[0] = None
            send(session, "outside")
        assert bodies() == ["sent", "outside"]

    def test_a_transaction_for_each_thread(self, managed, jms_broker_url, bodies):
        factory = ConnectionFactory(jms_broker_url, options="JMSJCA.LocatorClass=thread")
        begun, failures = threading.Barrier(4), []
        with factory.create_connection() as connection:

            def work(number):
                try:
                    session = connection.create_session()
                    transaction.begin()
                    send(session, str(number))
                    begun.wait(PATIENCE)  # all are open at the same time
                    (transaction.commit if number % 2 else transaction.abort)()
                except BaseException as error:
                    failures.append(error)
                    raise

            threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(PATIENCE)
        assert (failures, sorted(bodies())) == ([], ["1", "3"])

    def test_a_message_listener_works_outside(self, managed, manager, put, bodies):
        seen = threading.Event()
        put("a")
        with managed().create_connection() as connection:
            manager.begin()
            consumer = connection.create_session().create_consumer(IN)
            consumer.set_message_listener(lambda _: seen.set())
            assert seen.wait(PATIENCE)
            connection.close()
            manager.abort()
        assert bodies(IN) == []

    def test_an_asynchronous_send_is_sent_by_the_commit(self, managed, manager, bodies):
        with managed().create_connection() as connection:
            session = connection.create_session()
            with manager:
                sent = session.create_producer(OUT).send_async(TextMessage("later"))
                sent.result(PATIENCE)
                assert bodies() == []
            assert bodies() == ["later"]

    def test_a_context_takes_part(self, managed, manager, bodies):
        with managed().create_context() as context, manager:
            context.create_producer().send(OUT, "from a context")
            assert bodies() == []
        assert bodies() == ["from a context"]

    def test_a_broker_without_atomic_units_is_refused(self, managed, manager, lacking):
        lacking("atomic")
        with managed().create_connection() as connection:
            session = connection.create_session()
            with manager, pytest.raises(NotSupportedError, match="'atomic'"):
                send(session)


class TestOutsideOfATransaction:
    @pytest.mark.parametrize("mode", [AUTO, CLIENT, DUPS_OK, INDIVIDUAL])
    def test_it_is_a_session_as_its_arguments_say(self, managed, put, bodies, mode):
        """JMSJCA: testXASessionCommitAllocateOutsideOfTx."""
        put("a")
        with managed().create_connection() as connection:
            session = connection.create_session(False, mode)
            send(session)
            assert bodies() == ["sent"]
            receive(session)
            session.acknowledge()
            with pytest.raises(IllegalStateError, match="not transacted"):
                session.commit()
        assert bodies(IN) == []

    def test_a_transacted_session_commits_by_itself(self, managed, put, bodies):
        put("a")
        with managed().create_connection() as connection:
            session = connection.create_session(transacted=True)
            receive(session)
            send(session)
            assert bodies() == []
            session.commit()
            assert (bodies(IN), bodies()) == ([], ["sent"])

    def test_a_factory_sends_outside(self, managed, manager, bodies):
        factory = managed()
        with manager:
            factory.send(OUT, "at once")
            factory.send_many(OUT, ["all", "together"])
            assert bodies() == ["at once", "all", "together"]
        factory.close()
