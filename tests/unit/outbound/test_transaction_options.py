"""The options that decide how sessions take part in transactions of a transaction manager."""

import pytest
import transaction

from jmsjca import ConnectionFactory, TextMessage
from jmsjca.errors import ArgumentTypeError, IllegalStateError, InvalidOptionError, TransactionInDoubtError
from jmsjca.outbound.pool import ConnectionPool
from jmsjca.transactions.locators import find_locator
from tests.unit.outbound.managed_sessions import (
    AUTO,
    IN,
    OUT,
    send,
)


class TestEmulation:
    """``JMSJCA.NoXA``: the second phase alone, and sessions that may end their work by themselves."""

    def test_the_transaction_commits_and_rolls_back(self, managed, manager, bodies):
        with managed("JMSJCA.NoXA=true").create_connection() as connection:
            session = connection.create_session()
            assert session.transacted
            for body, end in [("one", manager.commit), ("two", manager.abort), ("three", manager.commit)]:
                manager.begin()
                send(session, body)
                end()
        assert bodies() == ["one", "three"]

    def test_the_session_may_bypass_it(self, managed, manager, bodies):
        """JMSJCA: testNoXATransacted."""
        with managed("JMSJCA.NoXA=true").create_connection() as connection:
            session = connection.create_session(transacted=True)
            manager.begin()
            send(session, "rolled back")
            session.rollback()
            send(session, "committed")
            session.commit()
            assert bodies() == ["committed"]
            send(session, "with the transaction")
            manager.abort()
        assert bodies() == ["committed"]

    def test_the_commit_of_the_transaction_commits_what_is_left(self, managed, manager, bodies):
        manager.begin()
        with managed("JMSJCA.NoXA=true").create_connection() as connection:
            session = connection.create_session(transacted=True)
            send(session, "rolled back")
            session.rollback()
            send(session)
        manager.commit()
        assert bodies() == ["sent"]

    def test_nothing_else_is_in_the_transaction(self, managed, manager, bodies):
        """JMSJCA: testNoXANonTransacted."""
        options = "JMSJCA.sep=,JMSJCA.NoXA=true,JMSJCA.IgnoreTx=false"
        with managed(options).create_connection() as connection:
            session = connection.create_session(False, AUTO)
            assert not session.transacted
            manager.begin()
            send(session)
            manager.abort()
            assert bodies() == ["sent"]
            with pytest.raises(IllegalStateError, match="not transacted"):
                session.commit()
            with manager:
                send(connection.create_session(True), "transacted")
                assert bodies() == ["sent"]
            assert bodies() == ["sent", "transacted"]

    def test_outside_every_session_has_to_commit(self, managed, bodies):
        with managed("JMSJCA.NoXA=true").create_connection() as connection:
            session = connection.create_session()
            send(session)
            assert bodies() == []
            session.commit()
        assert bodies() == ["sent"]

    def test_a_broker_that_fails_leaves_the_others_committed(self, managed, manager, bodies, monkeypatch, caplog):
        finished = []

        class Witness:
            transaction_manager = None

            def sortKey(self):  # noqa: N802
                return "a"

            def tpc_finish(self, _transaction):
                finished.append("committed")

            def ignore(self, _transaction):
                pass

            tpc_begin = commit = tpc_vote = tpc_abort = abort = ignore

        with managed("JMSJCA.NoXA=true").create_connection() as connection:
            session = connection.create_session()
            current = manager.begin()
            current.join(Witness())
            send(session)
            unit = type(connection._provider_connection.unit())
            monkeypatch.setattr(unit, "commit", _fail)
            with pytest.raises(TransactionInDoubtError):
                manager.commit()
            manager.abort()
        assert (finished, bodies()) == (["committed"], [])
        assert "inconsistent state" in caplog.text


def _fail(*_args, **_named):
    raise TransactionInDoubtError("The reply was lost.")


class TestStrict:
    def test_it_refuses_what_jakarta_ee_forbids(self, managed):
        with managed("JMSJCA.Strict=true").create_connection() as connection:
            session = connection.create_session()
            consumer = session.create_consumer(IN)
            for act in (
                connection.stop,
                connection.create_session,
                lambda: setattr(connection, "exception_listener", print),
                lambda: consumer.set_message_listener(print),
                lambda: session.create_producer(OUT).send_async(TextMessage("x")),
            ):
                with pytest.raises(IllegalStateError, match=r"JMSJCA\.Strict"):
                    act()
            session.close()
            connection.create_session()

    def test_a_pool_serves_it(self, managed, manager, bodies):
        with ConnectionPool(managed("JMSJCA.Strict=true"), max_size=1) as pool:
            for body in ("one", "two"):
                with manager, pool.session() as session:
                    send(session, body)
        assert bodies() == ["one", "two"]


class TestOptions:
    @pytest.mark.parametrize(
        ("options", "sent"),
        [
            ("", ["at once"]),  # no transaction manager
            ("JMSJCA.ACC=false", []),
            ("JMSJCA.LocatorClass=thread", []),
            ("JMSJCA.sep=,JMSJCA.LocatorClass=thread,JMSJCA.ACC=true", ["at once"]),
            ("JMSJCA.sep=,JMSJCA.LocatorClass=thread,JMSJCA.BypassRA=true", ["at once"]),
            ("JMSJCA.sep=,JMSJCA.LocatorClass=thread,JMSJCA.BypassRA=true,JMSJCA.IgnoreTx=true", ["at once"]),
        ],
    )
    def test_they_say_whether_sessions_are_under_the_manager(self, jms_broker_url, bodies, options, sent):
        with ConnectionFactory(jms_broker_url, options=options).create_connection() as connection:
            transaction.begin()
            send(connection.create_session(), "at once")
            transaction.abort()
        assert bodies() == sent

    def test_a_client_commits_by_itself(self, managed, manager, bodies):
        with managed("JMSJCA.ACC=true").create_connection() as connection:
            session = connection.create_session(transacted=True)
            manager.begin()
            send(session)
            manager.commit()
            assert bodies() == []
            session.commit()
        assert bodies() == ["sent"]

    def test_an_unknown_locator_is_refused(self, jms_broker_url):
        with pytest.raises(InvalidOptionError, match=r"'thraed' \(did you mean thread\?\)"):
            ConnectionFactory(jms_broker_url, options="JMSJCA.LocatorClass=thraed")

    def test_a_locator_of_an_entry_point(self, jms_broker_url, bodies, tmp_path, monkeypatch):
        (tmp_path / "shop-1.dist-info").mkdir()
        (tmp_path / "shop-1.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: shop\nVersion: 1\n")
        (tmp_path / "shop-1.dist-info" / "entry_points.txt").write_text(
            "[jmsjca.transaction_locators]\nshop = shop_transactions:find\nbroken = shop_transactions:missing\n"
        )
        (tmp_path / "shop_transactions.py").write_text(
            "import transaction\nmanager = transaction.TransactionManager(explicit=True)\nfind = lambda: manager\n"
        )
        monkeypatch.syspath_prepend(str(tmp_path))
        find_locator.cache_clear()
        factory = ConnectionFactory(jms_broker_url, options="JMSJCA.LocatorClass=shop")
        import shop_transactions

        with factory.create_connection() as connection:
            with shop_transactions.manager:
                send(connection.create_session())
                assert bodies() == []
            assert bodies() == ["sent"]
        with pytest.raises(InvalidOptionError, match="cannot be loaded"):
            ConnectionFactory(jms_broker_url, options="JMSJCA.LocatorClass=broken")

    def test_a_locator_is_a_function(self, jms_broker_url):
        with pytest.raises(ArgumentTypeError, match="transaction_locator"):
            ConnectionFactory(jms_broker_url, transaction_locator="thread")


class TestUrlAsUserName:
    """The options in its query count before those of the factory, and those of the factory's URL do not count."""

    @pytest.mark.parametrize(
        ("query", "transacted"), [("JMSJCA.IgnoreTx=true", True), ("JMSJCA.IgnoreTx=false", False), ("", False)]
    )
    def test_ignore_tx_and_the_others_count(self, jms_broker_url, query, transacted):
        factory = ConnectionFactory("embedded://unused?JMSJCA.IgnoreTx=true")
        for owner in (factory, ConnectionPool(factory, min_size=0)):
            create = getattr(owner, "create_connection", None) or owner.connection
            with create(f"{jms_broker_url}?{query}") as connection:
                assert connection.create_session(False, AUTO).transacted is transacted
            owner.close()
        with factory.create_context(user_name=f"{jms_broker_url}?{query}") as context:
            assert context.transacted is transacted

    @pytest.mark.parametrize(
        ("options", "query", "sent"),
        [
            ("", "JMSJCA.ACC=true", ["at once"]),
            ("", "JMSJCA.BypassRA=true", ["at once"]),
            ("JMSJCA.ACC=true", "JMSJCA.ACC=false", []),
            ("", "", []),
        ],
    )
    def test_it_may_leave_the_transaction_manager_or_join_it(  # fixtures
        self, managed, manager, jms_broker_url, bodies, options, query, sent
    ):
        with managed(options).create_connection(f"{jms_broker_url}?{query}") as connection:
            manager.begin()
            send(connection.create_session(), "at once")
            manager.abort()
        assert bodies() == sent

    def test_no_xa_emulates(self, managed, manager, jms_broker_url, bodies):
        with managed().create_connection(f"{jms_broker_url}?JMSJCA.NoXA=true") as connection:
            session = connection.create_session(transacted=True)
            manager.begin()
            send(session)
            session.commit()  # refused without the emulation
            manager.abort()
        assert bodies() == ["sent"]

    def test_strict_and_the_locator_count(self, managed, jms_broker_url):
        with (
            managed().create_connection(f"{jms_broker_url}?JMSJCA.Strict=true") as connection,
            pytest.raises(IllegalStateError, match=r"JMSJCA\.Strict"),
        ):
            connection.stop()
        with pytest.raises(InvalidOptionError, match="thraed"):
            ConnectionFactory(jms_broker_url).create_connection(f"{jms_broker_url}?JMSJCA.LocatorClass=thraed")

    @pytest.mark.parametrize(("query", "same"), [("JMSJCA.producerpooling=true", True), ("", False)])
    def test_producers_are_pooled(self, jms_broker_url, query, same):
        factory, ids = ConnectionFactory(f"{jms_broker_url}?JMSJCA.producerpooling={not same}"), []
        with factory.create_connection(f"{jms_broker_url}?{query}") as connection:
            session = connection.create_session()
            for _ in range(2):
                with session.create_producer(OUT) as producer:
                    producer.send(message := TextMessage("a"))
                ids.append(message.message_id.rpartition("-")[0])
        assert (ids[0] == ids[1]) is same

    @pytest.mark.parametrize(
        "option", ["poolmaxsize=1", "poolminsize=1", "pooltimeout=1", "idletimeout=1000", "nocfcache=true"]
    )
    def test_options_of_pools_are_refused(self, jms_broker_url, option):
        with pytest.raises(InvalidOptionError, match=option.partition("=")[0]):
            ConnectionFactory(jms_broker_url).create_connection(f"{jms_broker_url}?JMSJCA.{option}")
