"""The outbox and its relay: messages that commit with the database, and are sent in order afterwards."""

import asyncio
import itertools
import threading

import pytest
import sqlalchemy as sa
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.orm import Session

from jmsjca import ConnectionFactory, DeliveryMode, Hooks, Queue, Short, TextMessage, Topic
from jmsjca.destinations import TemporaryQueue
from jmsjca.errors import ConfigurationError, ConnectionLostError, InvalidArgumentError, JMSError, MessageFormatError
from jmsjca.transactions import Outbox, Relay
from jmsjca.transactions.outbox import PARTITIONS

_numbers = itertools.count()
LEASE = 30.0


class Clock:
    """Seconds since the epoch, as a test sets them."""

    def __init__(self):
        self.now = 1_000_000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def engine(tmp_path):
    engine = sa.create_engine(f"sqlite:///{tmp_path}/application.db")
    yield engine
    engine.dispose()


@pytest.fixture
def outbox(engine):
    metadata = sa.MetaData()
    outbox = Outbox(metadata, engine=engine)
    metadata.create_all(engine)
    return outbox


@pytest.fixture
def factory():
    return ConnectionFactory(f"embedded://outbox-{next(_numbers)}")


@pytest.fixture
def broker(factory):
    """Keeps the broker in memory alive, and reads its queues."""
    with factory.create_connection() as connection:
        yield connection


@pytest.fixture
def relay(outbox, factory, clock):
    relay = Relay(outbox, factory, clock=clock, lease=LEASE)
    yield relay
    relay.close()


def add(engine, outbox, *bodies, **options):
    with Session(engine) as session, session.begin():
        return [outbox.add(session, "orders", body, **options) for body in bodies]


def set_added(engine, outbox, *times):
    columns = outbox.table.c
    with engine.begin() as connection:
        rows = connection.scalars(sa.select(columns.id).order_by(columns.id)).all()
        for row, added in zip(rows, times, strict=True):
            connection.execute(sa.update(outbox.table).where(columns.id == row).values(added=added))


def received(connection, queue="orders"):
    with connection.create_session() as session:
        return list(session.create_browser(Queue(queue)))


def texts(connection, queue="orders"):
    return [message.body for message in received(connection, queue)]


class TestAdd:
    def test_a_message_is_sent_after_the_commit(self, engine, outbox, relay, broker):
        with Session(engine) as session, session.begin():
            outbox.add(session, "orders", "a pear")
            assert relay.get_stats().depth == 0
        assert relay.run_once() == 1
        assert texts(broker) == ["a pear"]
        assert relay.run_once() == 0

    def test_a_rollback_takes_the_message_back(self, engine, outbox, relay, broker):
        with Session(engine) as session:
            outbox.add(session, "orders", "a pear")
            session.rollback()
        assert (relay.run_once(), texts(broker)) == (0, [])

    def test_headers_properties_and_options_arrive(self, engine, outbox, relay, broker):
        message = TextMessage("a pear")
        message.correlation_id, message.reply_to, message.type = "c", Topic("answers"), "order"
        message.set_object_property("weight", Short(3))
        with engine.begin() as connection:
            duplicate_id = outbox.add(
                connection,
                Queue("orders"),
                message,
                priority=7,
                time_to_live=60,
                delivery_mode=DeliveryMode.NON_PERSISTENT,
            )
        relay.run_once()
        (sent,) = received(broker)
        assert (sent.body, sent.correlation_id, sent.reply_to, sent.type) == ("a pear", "c", Topic("answers"), "order")
        assert (sent.priority, sent.delivery_mode) == (7, DeliveryMode.NON_PERSISTENT)
        assert (sent.expiration - sent.timestamp).total_seconds() == 60
        assert dict(sent.properties) == {"weight": Short(3), "_AMQ_DUPL_ID": duplicate_id}

    def test_a_delay_counts_from_the_send(self, engine, outbox, relay, broker):
        add(engine, outbox, "later", delivery_delay=3600)
        relay.run_once()
        assert texts(broker) == []
        assert broker.admin.depth(Queue("orders")).total == 1

    def test_a_topic(self, engine, outbox, relay, broker):
        with broker.create_session() as session:
            consumer = session.create_consumer(Topic("news"))
            with engine.begin() as connection:
                outbox.add(connection, Topic("news"), {"id": 1})
            relay.run_once()
            assert consumer.receive(timeout=60).body == '{"id":1}'

    def test_an_asynchronous_session(self, tmp_path, engine, outbox, relay, broker):
        async def add_and_commit():
            asynchronous = create_async_engine(f"sqlite+aiosqlite:///{tmp_path}/application.db")
            async with asynchronous.begin() as connection:
                await outbox.add(connection, "orders", "a pear")
            await asynchronous.dispose()

        asyncio.run(add_and_commit())
        relay.run_once()
        assert texts(broker) == ["a pear"]

    @pytest.mark.parametrize(
        ("arguments", "options", "error"),
        [
            ((TemporaryQueue("x"), "a"), {}, InvalidArgumentError),
            ((5, "a"), {}, JMSError),
            (("orders", object()), {}, MessageFormatError),
            (("orders", TextMessage("\ud800")), {}, MessageFormatError),
            (("orders", "a"), {"key": ""}, InvalidArgumentError),
            (("orders", "a"), {"key": "k" * 256}, InvalidArgumentError),
            (("orders", "a"), {"key": "k\0"}, InvalidArgumentError),
            (("q" * 1025, "a"), {}, InvalidArgumentError),
            (("orders", TextMessage("a", properties={"_AMQ_DUPL_ID": "a\0b"})), {}, InvalidArgumentError),
            (("orders", "a"), {"priority": 10}, InvalidArgumentError),
            (("orders", "a"), {"time_to_live": -1}, InvalidArgumentError),
            (("orders", "a"), {"delivery_delay": "1"}, InvalidArgumentError),
        ],
    )
    def test_a_mistake_is_an_error_and_adds_nothing(self, engine, outbox, relay, arguments, options, error):
        with engine.begin() as connection, pytest.raises(error):
            outbox.add(connection, *arguments, **options)
        assert relay.get_stats().depth == 0

    def test_a_duplicate_id_of_the_application_is_kept_or_refused(self, engine, outbox):
        message = TextMessage("a")
        message.set_string_property("_AMQ_DUPL_ID", "d" * 255)
        with engine.begin() as connection:
            assert outbox.add(connection, "orders", message) == "d" * 255
            message.set_string_property("_AMQ_DUPL_ID", "d" * 256)
            with pytest.raises(InvalidArgumentError, match="_AMQ_DUPL_ID"):
                outbox.add(connection, "orders", message)

    @pytest.mark.parametrize("known_by", ["create_all", "session", "connection"])
    def test_a_relay_takes_the_engine_of_the_application(self, engine, factory, known_by):
        outbox = Outbox(metadata := sa.MetaData())
        if known_by == "create_all":
            metadata.create_all(engine)
        else:
            Outbox(other := sa.MetaData())
            other.create_all(engine)  # as a migration does, which this outbox does not notice
            with engine.begin() as connection, Session(connection) as session:
                outbox.add(session if known_by == "session" else connection, "orders", "a")
        with engine.begin() as connection:
            outbox.add(connection, "orders", "b")
        assert outbox.engine is engine
        assert Relay(outbox, factory).run_once() == (1 if known_by == "create_all" else 2)

    def test_a_relay_does_not_take_an_asynchronous_engine(self, tmp_path, factory):
        engine = create_async_engine(f"sqlite+aiosqlite:///{tmp_path}/asynchronous.db")
        outbox = Outbox(metadata := sa.MetaData())

        async def create_and_add():
            async with engine.begin() as connection:
                await connection.run_sync(metadata.create_all)
                await outbox.add(connection, "orders", "a")
            await engine.dispose()

        asyncio.run(create_and_add())
        with pytest.raises(ConfigurationError, match="engine"):
            Relay(outbox, factory)

    def test_other_mistakes(self, outbox, factory):
        with pytest.raises(InvalidArgumentError, match="session"):
            outbox.add(None, "orders", "a")
        with pytest.raises(InvalidArgumentError, match="MetaData"):
            Outbox("sqlite://")
        with pytest.raises(ConfigurationError, match="engine"):
            Relay(Outbox(sa.MetaData()), factory)
        for batch_size in (0, 1001, True, 2.5, "5", None):
            with pytest.raises(InvalidArgumentError, match="batch_size"):
                Relay(outbox, factory, batch_size=batch_size)
        with pytest.raises(InvalidArgumentError, match="lease"):
            Relay(outbox, factory, lease=0)


class TestRelay:
    def test_messages_of_a_key_are_sent_in_order(self, engine, outbox, relay, broker):
        for number in range(20):
            add(engine, outbox, f"{number}", key="customer")
        while relay.run_once():
            pass
        assert texts(broker) == [f"{number}" for number in range(20)]

    def test_a_refused_message_blocks_its_key_and_nothing_else(self, engine, outbox, relay, broker, clock):
        damaged = add(engine, outbox, "1", "2", key="a")[0]
        add(engine, outbox, "3", key="b")
        with engine.begin() as connection:
            where = outbox.table.c.duplicate_id == damaged
            headers = connection.execute(sa.select(outbox.table.c.headers).where(where)).scalar_one()
            connection.execute(sa.update(outbox.table).where(where).values(headers="{"))
        assert relay.run_once() == 1
        assert (texts(broker), relay.get_stats().depth, relay.get_stats().failing) == (["3"], 2, 1)
        assert relay.run_once() == 0
        with engine.begin() as connection:
            (error,) = connection.execute(sa.select(outbox.table.c.error).where(where)).scalars()
            assert "holds no message" in error
            connection.execute(sa.update(outbox.table).where(where).values(headers=headers))
        clock.now += 10
        assert relay.run_once() == 2
        assert texts(broker) == ["3", "1", "2"]

    @pytest.mark.parametrize("reason", ["a\0b", "\ud800"])
    def test_a_reason_that_no_database_stores_repeats_no_send(self, engine, outbox, factory, broker, clock, reason):
        class Refusing(Hooks):
            def around_send(self, message, destination, call_next):
                if message.body == "bad":
                    raise JMSError(reason)
                call_next()

        add(engine, outbox, "bad", "good")
        relay = Relay(outbox, ConnectionFactory(str(factory._url), hooks=[Refusing()]), clock=clock)
        assert (relay.run_once(), relay.get_stats().depth) == (1, 1)
        assert texts(broker) == ["good"]
        relay.close()

    def test_many_refused_messages_do_not_starve_the_others(self, engine, outbox, factory, broker, clock):
        add(engine, outbox, *"abc")
        with engine.begin() as connection:
            connection.execute(sa.update(outbox.table).values(headers="{"))
        add(engine, outbox, "good")
        relay = Relay(outbox, factory, clock=clock, batch_size=2)
        assert [relay.run_once() for _ in range(2)] == [0, 1]
        assert texts(broker) == ["good"]
        relay.close()

    def test_what_was_sent_before_the_death_of_a_relay_arrives_once(self, engine, outbox, factory, broker, clock):
        add(engine, outbox, *"abc", key="k")
        first = Relay(outbox, factory, clock=clock, lease=LEASE)
        first._record = lambda sending: None  # it dies after the send
        assert first.run_once() == 3
        second = Relay(outbox, factory, clock=clock, lease=LEASE)
        assert (second.run_once(), second.get_stats().depth) == (0, 3)
        clock.now += LEASE + 1
        assert second.run_once() == 3
        assert (texts(broker), second.get_stats().depth) == (list("abc"), 0)
        second.close()
        first.close()

    def test_a_relay_that_lost_its_lease_deletes_nothing(self, engine, outbox, factory, broker, clock):
        add(engine, outbox, "a")
        paused, other = (Relay(outbox, factory, clock=clock, lease=LEASE) for _ in range(2))
        send = paused._send

        def send_after_a_pause(sending):
            clock.now += LEASE + 1
            assert other.run_once() == 1
            with engine.begin() as connection:  # the same message once more, for the other relay
                outbox.add(connection, "orders", "b")
            send(sending)

        paused._send = send_after_a_pause
        paused.run_once()
        assert texts(broker) == ["a"]
        assert other.get_stats().depth == 1
        for relay in (paused, other):
            relay.close()

    def test_a_relay_renews_its_leases_while_it_sends(self, engine, outbox, clock):
        add(engine, outbox, *"abcdef", key="k")
        url, others = f"embedded://outbox-{next(_numbers)}", []

        class Slow(Hooks):
            def around_send(self, message, destination, call_next):
                call_next()
                clock.now += LEASE / 2
                others.append(other.run_once())

        slow = Relay(outbox, ConnectionFactory(url, hooks=[Slow()]), clock=clock, lease=LEASE)
        other = Relay(outbox, ConnectionFactory(url), clock=clock, lease=LEASE)
        assert (slow.run_once(), others, slow.get_stats().depth) == (6, [0] * 6, 0)
        for relay in (slow, other):
            relay.close()

    @pytest.mark.parametrize("as_unit", [False, True], ids=["one by one", "as a unit"])
    def test_a_relay_sends_nothing_once_another_one_has_its_part(self, engine, outbox, clock, as_unit):
        """Not even what the broker would drop as a duplicate: that of Artemis misses some that come together."""
        url, begun, sent_by_other = f"embedded://outbox-{next(_numbers)}", [], []

        class Paused(Hooks):
            def around_send(self, message, destination, call_next):
                begun.append(message.body)
                call_next()
                if message.body == "b":
                    clock.now += LEASE + 1
                    sent_by_other.append(other.run_once())

        paused = Relay(outbox, ConnectionFactory(url, hooks=[Paused()]), clock=clock, lease=LEASE)
        other = Relay(outbox, ConnectionFactory(url), clock=clock, lease=LEASE)
        if as_unit:
            assert paused.run_once() == 0  # an empty table: from now on units
        add(engine, outbox, *"abcd", key="k")
        with ConnectionFactory(url).create_connection() as broker:
            assert paused.run_once() == (0 if as_unit else 2)
            assert (begun, sent_by_other) == ([*"abcd"] if as_unit else [*"ab"], [4])
            assert (texts(broker), other.get_stats().depth) == ([*"abcd"], 0)
            for relay in (paused, other):
                relay.close()

    def test_a_renewal_that_took_too_long_ends_the_batch(self, engine, outbox, relay, broker, clock):
        def slow(connection):
            clock.now += LEASE * 0.7

        add(engine, outbox, *"ab", key="k")
        sa.event.listen(engine, "commit", slow)
        assert relay.run_once() == 0
        sa.event.remove(engine, "commit", slow)
        assert (relay.run_once(), texts(broker)) == (2, [*"ab"])

    def test_relays_share_the_parts_of_the_table(self, outbox, factory, engine, clock):
        relays = [Relay(outbox, factory, clock=clock, lease=LEASE) for _ in range(3)]
        for _ in range(4):
            for relay in relays:
                relay.run_once()
        shares = [set(relay._tokens) for relay in relays]
        assert sorted(map(len, shares)) == [4, 6, 6]
        assert set().union(*shares) == set(range(PARTITIONS))
        relays[0].close()
        for _ in range(2):
            for relay in relays[1:]:
                relay.run_once()
        assert set().union(*(set(relay._tokens) for relay in relays[1:])) == set(range(PARTITIONS))
        for relay in relays[1:]:
            relay.close()

    def test_a_lost_connection_is_replaced(self, engine, outbox, factory, broker, clock):
        add(engine, outbox, "a")

        class Flaky:
            failures = 1

            def create_connection(self):
                if self.failures:
                    self.failures -= 1
                    raise ConnectionLostError("The broker is down.")
                return factory.create_connection()

        relay = Relay(outbox, Flaky(), clock=clock)
        with pytest.raises(ConnectionLostError):
            relay.run_once()
        assert relay.run_once() == 1
        assert texts(broker) == ["a"]
        relay.close()

    def test_run_sends_until_it_is_stopped(self, engine, outbox, factory, broker):
        relay = Relay(outbox, factory, poll_interval=0.01)
        running = threading.Thread(target=relay.run)
        running.start()
        with broker.create_session() as session:
            consumer = session.create_consumer(Queue("orders"))
            add(engine, outbox, "a")
            assert consumer.receive(timeout=60).body == "a"
        relay.stop()
        running.join(60)
        assert not running.is_alive()

    def test_a_stop_before_the_run_is_kept(self, engine, outbox, relay, broker):
        add(engine, outbox, "a")
        relay.stop()
        running = threading.Thread(target=relay.run, daemon=True)
        running.start()
        running.join(60)
        assert not running.is_alive()
        assert texts(broker) == []

    def test_statistics_tell_the_depth_and_the_age(self, engine, outbox, relay, clock):
        assert relay.get_stats().oldest is None
        add(engine, outbox, *"ab")
        set_added(engine, outbox, clock.now - 5, clock.now - 1)
        stats = relay.get_stats()
        assert (stats.depth, stats.oldest, stats.failing, stats.lag) == (2, 5.0, 0, None)

    def test_statistics_tell_the_lag_of_what_was_sent_last(self, engine, outbox, relay, broker, clock):
        add(engine, outbox, *"abc", key="k")
        set_added(engine, outbox, clock.now - 9, clock.now - 7, clock.now)
        with engine.begin() as connection:
            connection.execute(sa.update(outbox.table).where(outbox.table.c.added == clock.now).values(headers="{"))
        assert relay.run_once() == 2
        assert (relay.get_stats().lag, relay.get_stats().depth) == (7.0, 1)
