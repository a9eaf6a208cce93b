"""What a relay survives: rows that cannot be sent, options that no broker takes, and clocks that are set back."""

import itertools
import sys
import threading

import pytest
import sqlalchemy as sa
from sqlalchemy.exc import OperationalError

from jmsjca import ConnectionFactory, DeliveryMode
from jmsjca.errors import InvalidArgumentError
from jmsjca.transactions import Outbox, Relay
from jmsjca.transactions.outbox import StopRequest
from tests.unit.transactions.test_outbox import LEASE, Clock, add, received, texts

_numbers = itertools.count()
DAY = 86400.0
PATIENCE = 20


class Waits(StopRequest):
    """Waits that end at once, and are noted: the last one stops the relay, or something happens before it."""

    def __init__(self, last, **before):
        super().__init__()
        self.seconds, self.last, self.before = [], last, before

    def wait(self, timeout):
        self.seconds.append(timeout)
        if (act := self.before.get(f"wait_{len(self.seconds)}")) is not None:
            act()
        if len(self.seconds) >= self.last:
            self.set()


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
    outbox = Outbox(metadata := sa.MetaData(), engine=engine)
    metadata.create_all(engine)
    return outbox


@pytest.fixture
def factory():
    return ConnectionFactory(f"embedded://survival-{next(_numbers)}")


@pytest.fixture
def broker(factory):
    with factory.create_connection() as connection:
        yield connection


@pytest.fixture
def relay(outbox, factory, clock):
    relay = Relay(outbox, factory, clock=clock, lease=LEASE)
    yield relay
    relay.close()


def change_first(engine, outbox, **values):
    with engine.begin() as connection:
        first = connection.scalar(sa.select(sa.func.min(outbox.table.c.id)))
        connection.execute(sa.update(outbox.table).where(outbox.table.c.id == first).values(values))


def errors(engine, outbox):
    with engine.connect() as connection:
        return connection.scalars(sa.select(outbox.table.c.error)).all()


class TestOptions:
    @pytest.mark.parametrize(
        "wrong",
        [
            {"delivery_mode": 5},
            {"delivery_mode": "LASTING"},
            {"priority": True},
            {"priority": 4.0},
            {"time_to_live": 1e11},
            {"time_to_live": True},
            {"delivery_delay": 1e300},
            {"delivery_delay": float("nan")},
            {"key": 7},
            {"key": b"customer"},
            {"key": "\ud800"},
        ],
        ids=str,
    )
    def test_what_no_broker_takes_is_refused_when_it_is_added(self, engine, outbox, relay, wrong):
        with pytest.raises(InvalidArgumentError, match=next(iter(wrong))):
            add(engine, outbox, "a", **wrong)
        assert relay.get_stats().depth == 0

    def test_a_delivery_mode_is_given_by_its_name_too(self, engine, outbox, relay, broker):
        add(engine, outbox, "a", delivery_mode="NON_PERSISTENT")
        assert relay.run_once() == 1
        assert [message.delivery_mode for message in received(broker)] == [DeliveryMode.NON_PERSISTENT]

    def test_a_relay_that_would_never_poll_again_is_refused(self, outbox, factory):
        for name in ("poll_interval", "lease"):
            with pytest.raises(InvalidArgumentError, match=name):
                Relay(outbox, factory, **{name: None})


class TestRowsThatCannotBeSent:
    @pytest.mark.parametrize("as_unit", [False, True], ids=["one by one", "as a unit"])
    @pytest.mark.parametrize("options", ['{"delivery_mode": 5}', "{", '{"color": "red", "delivery_mode": 2}', "{}"])
    def test_one_is_refused_and_the_others_are_sent(self, engine, outbox, relay, broker, options, as_unit):
        """An earlier release, or another program, may have written the row."""
        if as_unit:
            assert relay.run_once() == 0  # an empty table: from now on units
        add(engine, outbox, "bad", "behind it", key="k")
        add(engine, outbox, "good")
        change_first(engine, outbox, options=options)
        assert relay.run_once() == 1
        assert (texts(broker), relay.get_stats().failing) == (["good"], 1)
        assert [error is None for error in errors(engine, outbox)] == [False, True]

    def test_the_database_is_no_reason_to_refuse_one(self, engine, outbox, relay, broker, clock):
        def fail(connection, clause, *_):
            if clause.is_update and clock.now > begun:  # the renewal of the leases within the batch
                raise OperationalError("UPDATE", {}, Exception("The server is gone."))

        begun = clock.now
        assert relay.run_once() == 0  # an empty table: from now on units
        add(engine, outbox, "a")
        real = relay._connected

        def connected_late():
            clock.now += LEASE / 2
            return real()

        relay._connected = connected_late
        relay._record = lambda sending: None
        sa.event.listen(engine, "before_execute", fail)
        with pytest.raises(OperationalError):
            relay.run_once()
        sa.event.remove(engine, "before_execute", fail)
        assert (texts(broker), errors(engine, outbox)) == ([], [None])


class TestClocks:
    def test_leases_of_a_clock_that_was_ahead_are_taken_over(self, engine, outbox, factory, broker, clock, caplog):
        clock.now += DAY
        Relay(outbox, factory, clock=clock, lease=LEASE).run_once()  # it dies
        clock.now -= DAY
        add(engine, outbox, *"abcdefgh")
        relay = Relay(outbox, factory, clock=clock, lease=LEASE)
        assert relay.run_once() == 8
        (record,) = [record for record in caplog.records if "clock" in record.getMessage()]
        assert record.levelname == "WARNING"
        relay.run_once()
        assert len([record for record in caplog.records if "clock" in record.getMessage()]) == 1
        relay.close()

    def test_leases_of_a_relay_with_longer_ones_are_left_to_it(self, outbox, factory, broker, clock, caplog):
        other = Relay(outbox, factory, clock=clock, lease=9 * LEASE)
        other.run_once()
        relay = Relay(outbox, factory, clock=clock, lease=LEASE)
        assert (relay.run_once(), relay._tokens) == (0, {})
        assert caplog.messages == []
        relay.close()
        other.close()

    def test_a_refused_message_does_not_wait_for_a_clock_that_was_set_back(self, engine, outbox, relay, broker, clock):
        add(engine, outbox, "a", "b", key="k")
        change_first(engine, outbox, retry_at=clock.now + 300)
        assert relay.run_once() == 0
        change_first(engine, outbox, retry_at=clock.now + DAY)
        assert relay.run_once() == 2
        assert texts(broker) == ["a", "b"]


class TestDrain:
    def test_messages_in_the_parts_of_another_relay_are_counted(self, engine, outbox, relay, factory, broker, clock):
        dead = Relay(outbox, factory, clock=clock, lease=LEASE)
        dead.run_once()
        add(engine, outbox, "a", "b", key="k")
        assert (relay.drain(), relay.get_stats().held) == (0, 2)
        clock.now += LEASE
        assert (relay.drain(), relay.get_stats().held, texts(broker)) == (2, 0, ["a", "b"])
        dead.close()

    def test_messages_that_are_added_meanwhile_are_no_task_of_it(self, engine, outbox, relay, factory, clock):
        later = ["later"]

        def add_another(connection, cursor, statement, *_):
            if later and statement.startswith("UPDATE"):  # of the leases: the drain has begun, and has written nothing
                add(engine, outbox, later.pop(), key="k")

        dead = Relay(outbox, factory, clock=clock, lease=LEASE)
        dead.run_once()
        sa.event.listen(engine, "before_cursor_execute", add_another)
        assert (relay.drain(), relay.get_stats().depth, relay.get_stats().held) == (0, 1, 0)
        sa.event.remove(engine, "before_cursor_execute", add_another)
        dead.close()

    def test_messages_of_a_renewal_that_took_too_long_are_counted(self, engine, outbox, relay, broker, clock):
        def slow(connection):
            clock.now += LEASE * 0.7

        add(engine, outbox, *"ab", key="k")
        sa.event.listen(engine, "commit", slow)
        assert (relay.drain(), relay.get_stats().held) == (0, 2)
        sa.event.remove(engine, "commit", slow)
        assert (relay.drain(), relay.get_stats().held, texts(broker)) == (2, 0, [*"ab"])

    def test_refused_messages_and_those_behind_them_are_not_held(self, engine, outbox, relay, factory, clock):
        other = Relay(outbox, factory, clock=clock, lease=LEASE)
        other.run_once()
        add(engine, outbox, "a", "b", key="k")
        change_first(engine, outbox, retry_at=clock.now + 1)
        assert (relay.drain(), relay.get_stats().held) == (0, 0)
        other.close()


MOMENTS = 60  # of the wait of a relay, at which Python may run a signal handler


def test_a_signal_handler_may_stop_a_relay_at_each_moment(outbox, factory):
    def run(relay, moment):
        left = moment

        def interrupt(frame, event, _):
            nonlocal left
            place, name = frame.f_code.co_filename, frame.f_code.co_name
            waits = place.endswith(("/threading.py", "/notifications.py")) or name == "run"
            if event in {"call", "c_return"} and waits:
                left -= 1
                if not left:
                    relay.stop()

        sys.setprofile(interrupt)  # of this thread
        relay.run()

    for moment in range(1, MOMENTS):
        relay = Relay(outbox, factory, poll_interval=0)
        running = threading.Thread(target=run, args=(relay, moment), daemon=True)
        running.start()
        running.join(PATIENCE)
        assert not running.is_alive(), f"stopped at moment {moment}, it does not end"


def failures_logged(caplog):
    return [r.getMessage() for r in caplog.records if r.name == "jmsjca.transactions" and r.levelname == "WARNING"]


def test_relay_waits_longer_and_logs_less_while_the_broker_is_away(outbox, engine, caplog):
    """Ten minutes: as the listeners, it does not ask twice a second, nor fill the log."""
    add(engine, outbox, "a")
    relay = Relay(outbox, ConnectionFactory("amqp://127.0.0.1:1"))
    relay._stopping = waits = Waits(last=66)
    relay.run()
    assert all(
        0.8 * each <= wait <= 1.2 * each for each, wait in zip([0.5, 1, 2, 4, 8, 10, 10], waits.seconds, strict=False)
    )
    assert min(waits.seconds[5:]) >= 8
    logged = failures_logged(caplog)
    assert len(logged) <= 5 + 61 * 10 / 60
    assert logged[0].startswith(f"The relay of {outbox.table} tries again in 0.5 s: ")
    assert "(6 failures before were not logged)" in logged[-1]


def test_relay_that_works_again_says_so_and_begins_anew(outbox, engine, caplog, tmp_path):
    caplog.set_level("INFO")
    add(engine, outbox, "a")
    folder = tmp_path / "later"
    relay = Relay(outbox, ConnectionFactory(f"embedded://{folder}/broker.db"))
    relay._stopping = waits = Waits(last=9, wait_3=folder.mkdir, wait_5=lambda: None)
    relay.run()
    assert f"The relay of {outbox.table} works again, after 3 failures." in caplog.text
    assert len(failures_logged(caplog)) == 3
    assert waits.seconds[3:] == [0.5] * 6  # the table is empty


@pytest.mark.parametrize(("poll_interval", "expected"), [(0, [0.1, 0.2, 0.4]), (60, [60, 60, 60])])
def test_relay_with_another_interval(outbox, engine, poll_interval, expected):
    add(engine, outbox, "a")
    relay = Relay(outbox, ConnectionFactory("amqp://127.0.0.1:1"), poll_interval=poll_interval)
    relay._stopping = waits = Waits(last=3)
    relay.run()
    assert all(0.8 * each <= wait <= 1.2 * each for each, wait in zip(expected, waits.seconds, strict=True))
