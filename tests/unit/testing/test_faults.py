"""Faults between jmsjca and the broker."""

import pytest

from jmsjca import Queue
from jmsjca.errors import ConnectionLostError, InvalidArgumentError, JMSError, TransactionInDoubtError
from jmsjca.providers import find_provider
from jmsjca.testing.idle import wait_until_idle
from jmsjca.testing.recorder import MessageRecorder

ORDERS = Queue("orders")


def confirm(body: str) -> None:
    del body


def depth(factory):
    with factory.create_connection() as connection:
        return connection.admin.depth(ORDERS).total


def commit(factory):
    """Send one message in a transaction."""
    with factory.create_connection() as connection, connection.create_session(transacted=True) as session:
        session.create_producer(ORDERS).send(session.create_text_message("a pear"))
        session.commit()


@pytest.fixture
def listening(jms_faults, jms_adapter, jms_calls, jms_clock):
    return jms_adapter, jms_faults, jms_calls, jms_clock


class TestCuts:
    @pytest.mark.parametrize(
        ("when", "error", "sent"),
        [
            ("before", ConnectionLostError, 0),
            ("during", TransactionInDoubtError, 0),
            ("after", TransactionInDoubtError, 1),
        ],
    )
    def test_a_send(self, jms_faults, jms_connection_factory, when, error, sent):
        jms_faults.cut(when)
        with pytest.raises(error):
            commit(jms_connection_factory)
        assert depth(jms_connection_factory) == sent
        commit(jms_connection_factory)
        assert depth(jms_connection_factory) == sent + 1

    @pytest.mark.parametrize("mode", ["serial", "sync", "cc"])
    @pytest.mark.parametrize(("when", "calls"), [("before", 2), ("during", 2), ("after", 1)])
    def test_the_acknowledgement_of_a_listener(self, listening, mode, when, calls):
        adapter, faults, recorder, clock = listening

        @adapter.listener("orders", concurrency_mode=mode)
        def handle(body: str) -> None:
            if body == "a pear" and not recorder.of("orders"):
                faults.cut(when)  # the next commit is that of this delivery

        adapter.send("orders", "a pear")
        clock.advance_until(lambda: len(recorder.of("orders")) >= calls, step=0.5)
        adapter.send("orders", "a fig")
        clock.advance_until(lambda: recorder.of("orders")[-1].body == "a fig", step=0.5)
        wait_until_idle(adapter)
        pears = [call.message.redelivered for call in recorder.of("orders") if call.body == "a pear"]
        assert pears == [False, True][:calls]

    def test_a_pipelined_send(self, jms_faults, jms_adapter, jms_connection_factory):
        jms_faults.cut("after")
        with pytest.raises(TransactionInDoubtError):
            jms_adapter.send("orders", "a pear")
        assert depth(jms_connection_factory) == 1

    @pytest.mark.parametrize(("when", "times"), [("sometimes", 1), ("before", 0)])
    def test_wrong_arguments_are_refused(self, jms_faults, when, times):
        with pytest.raises(InvalidArgumentError):
            jms_faults.cut(when, times)


class TestRestart:
    @pytest.mark.parametrize("jms_broker", ["memory", "file"], indirect=True)
    def test_a_listener_goes_on_after_a_restart(self, jms_faults, jms_adapter, jms_calls, jms_clock):
        jms_adapter.listener("orders")(confirm)
        jms_adapter.send("orders", "before")
        jms_calls.wait_for("orders")
        jms_faults.restart_broker()
        jms_adapter.send("orders", "after")
        jms_clock.advance_until(lambda: len(jms_calls.of("orders")) == 2, step=1)

    @pytest.mark.usefixtures("jms_faults")
    def test_a_listener_checks_the_target_of_its_moves(self, jms_adapter, jms_recorder):
        dead = MessageRecorder()
        jms_adapter.listener("dead")(dead)
        jms_adapter.listener("orders", redelivery_handling="1:move(queue:dead)")(jms_recorder)
        jms_recorder.fail_next()
        jms_adapter.send("orders", "a pear")
        dead.assert_received("a pear")

    def test_a_broker_that_is_down_refuses_connections(self, jms_faults, jms_connection_factory):
        with jms_faults.broker_down(), pytest.raises(ConnectionLostError, match="stopped the broker"):
            jms_connection_factory.create_connection()
        jms_connection_factory.create_connection().close()

    def test_a_connection_that_is_being_opened_is_refused_as_well(
        self, jms_faults, jms_connection_factory, monkeypatch
    ):
        class Slow:
            """The broker is stopped while a connection is being opened."""

            def connect(self, *args, **options):
                connection = find_provider("embedded").connect(*args, **options)
                jms_faults.stop_broker()
                opened.append(connection)
                return connection

        opened = []
        monkeypatch.setattr("jmsjca.testing.faults.find_provider", lambda _: Slow())
        with pytest.raises(ConnectionLostError, match="stopped the broker"):
            jms_connection_factory.create_connection()
        with pytest.raises(JMSError, match="closed"):
            opened[0].unit()

    def test_an_open_connection_is_lost(self, jms_faults, jms_connection_factory):
        connection = jms_connection_factory.create_connection()
        connection.start()
        consumer = connection.create_session().create_consumer(ORDERS)
        jms_faults.restart_broker()
        with pytest.raises(ConnectionLostError):
            consumer.receive(timeout=60)
        connection.close()


class TestSlowDisk:
    def test_commits_wait(self, jms_faults, jms_connection_factory, monkeypatch):
        waits = []
        monkeypatch.setattr("jmsjca.testing.faults.Event.wait", lambda _, seconds: waits.append(seconds))
        jms_faults.slow_disk(0.5)
        commit(jms_connection_factory)
        jms_faults.slow_disk(0)
        commit(jms_connection_factory)
        assert waits == [0.5]
        with pytest.raises(InvalidArgumentError):
            jms_faults.slow_disk(-1)
