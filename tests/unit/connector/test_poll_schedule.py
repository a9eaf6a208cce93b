"""When a connector polls: the window of the day, and the key of an operator."""

import io
import os
import threading
from datetime import UTC, datetime, time

import pytest

from jmsjca import Queue
from jmsjca.connector import Connector, ConnectorConfig, DeliveryOutcome, FolderEventStore, ReturnCode
from jmsjca.connector.data_handlers import data_handler
from jmsjca.connector.polling import in_window, timed_polls
from jmsjca.errors import ConfigurationError, JMSError

PATIENCE = 60
ORDER = '{"_type": "Order"}'


@pytest.mark.parametrize(
    ("now", "start", "end", "allowed"),
    [
        (time(8), time(8), time(17), True),
        (time(17), time(8), time(17), False),
        (time(7, 59), time(8), time(17), False),
        (time(23), time(22), time(6), True),
        (time(5, 59), time(22), time(6), True),
        (time(12), time(22), time(6), False),
        (time(3), time(8), None, True),
        (time(20), None, time(17), True),
        (time(3), time(8), time(8), True),
    ],
)
def test_the_window(now, start, end, allowed):
    assert in_window(now, start, end) is allowed


class StoppingClock:
    """A clock that goes on by an hour each time it is read, and stops the connector after a day."""

    def __init__(self, stopping):
        self.hours = -1
        self.stopping = stopping

    def now(self):
        self.hours += 1
        if self.hours == 23:
            self.stopping.set()
        return datetime(2026, 1, 1, self.hours).astimezone().timestamp()

    def monotonic(self):
        return 0.0


def test_polls_are_within_the_window():
    stopping = threading.Event()
    clock = StoppingClock(stopping)
    config = ConnectorConfig(
        connection_url="embedded://x", input_destination="in", poll_start_time="08:00", poll_end_time="11:00"
    )
    assert [clock.hours for _ in timed_polls(config, 0, stopping, clock)] == [8, 9, 10]
    assert datetime.now(UTC).tzinfo


class Waits(threading.Event):
    """A clock that only waits move on, and the event of a connector that stops after three days."""

    def __init__(self, hour, minute):
        super().__init__()
        self.begin = self.seconds = datetime(2026, 1, 1, hour, minute).astimezone().timestamp()

    def wait(self, timeout=None):
        assert timeout > 0, "it spins"
        self.seconds += timeout
        if self.seconds > self.begin + 3 * 86_400:
            self.set()

    def now(self):
        return self.seconds

    def monotonic(self):
        return self.seconds


@pytest.mark.parametrize(("hour", "minute", "pause"), [(7, 58, 0), (10, 0, 12 * 3600), (7, 0, 600)])
def test_the_first_poll_is_when_the_window_opens(hour, minute, pause):
    config = ConnectorConfig(
        connection_url="embedded://x", input_destination="in", poll_start_time="08:00", poll_end_time="08:05"
    )
    waits = Waits(hour, minute)
    next(timed_polls(config, pause, waits, waits))
    opened = datetime.fromtimestamp(waits.seconds).astimezone()
    assert time(8) <= opened.time() <= time(8, 1)


def test_each_p_polls_once_and_the_end_of_the_input_ends_it(connector, session):
    producer = session.create_producer(Queue("in"))
    for _ in range(3):
        producer.send(ORDER)
    seen = []
    connector(seen.append, poll_frequency="key").run(keyboard=io.StringIO("x\np\n\n P \n"))
    assert len(seen) == 2


def test_a_stop_ends_the_wait_for_a_key(connector, session):
    session.create_producer(Queue("in")).send(ORDER)
    called = threading.Event()
    polling: Connector = connector(lambda _: called.set(), poll_frequency="key")
    reading, writing = os.pipe()
    with os.fdopen(reading) as keyboard, os.fdopen(writing, "w") as operator:
        thread = threading.Thread(target=polling.run, kwargs={"keyboard": keyboard}, daemon=True)
        thread.start()
        operator.write("p\n")
        operator.flush()
        assert called.wait(PATIENCE)
        polling.stop()
        thread.join(PATIENCE)
        assert not thread.is_alive()
        operator.close()  # ends the thread that reads, before its file is closed
        for each in threading.enumerate():
            if each.name == "jmsjca-connector-keys":
                each.join(PATIENCE)


class Typed(io.StringIO):
    """An input of an operator that fails after its lines."""

    def __next__(self):
        try:
            return super().__next__()
        except StopIteration:
            raise UnicodeDecodeError("utf-8", b"\xe9", 0, 1, "unexpected end of data") from None


def test_an_input_that_cannot_be_read_ends_the_run_with_its_reason(connector, session):
    session.create_producer(Queue("in")).send(ORDER)
    seen = []
    with pytest.raises(JMSError, match=r"keyboard cannot be read: .*unexpected end of data"):
        connector(seen.append, poll_frequency="key").run(keyboard=Typed("p\n"))
    assert len(seen) == 1


def test_a_process_without_a_standard_input_is_refused(connector, monkeypatch):
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(ConfigurationError, match="there is no standard input"):
        connector(print, poll_frequency="key").run()


class Stopping(list):
    """A collaboration that stops its connector during an event."""

    def __init__(self):
        super().__init__()
        self.connector = None

    def __call__(self, order):
        self.append(order.get("id"))
        self.connector.stop()


@pytest.fixture
def store(tmp_path):
    """A store with two events."""
    made = FolderEventStore(tmp_path, data_handler("application/json"))
    for number in (1, 2):
        (tmp_path / "ready_for_poll" / f"{number}").write_text(f'{{"_type": "Order", "id": {number}}}')
    return made


def test_a_stop_ends_the_poll_of_a_store_after_its_event(tmp_path, url, store):
    orders = Stopping()
    config = ConnectorConfig(connection_url=url, poll_quantity=9)
    with Connector(config, orders, event_store=store) as orders.connector:
        assert orders.connector.poll_for_events() is ReturnCode.SUCCEED
    assert orders == [1]
    assert (tmp_path / "ready_for_poll" / "2").exists()


def test_a_stop_before_a_restart_leaves_the_store_as_it_is(tmp_path, url, store, caplog):
    """A restart would make the event in progress ready again."""
    config = ConnectorConfig(connection_url=url, poll_quantity=9, restart_retry_interval=1e6)
    polling = Connector(config, lambda _: DeliveryOutcome.CONNECTOR_NOT_ACTIVE, event_store=store)
    caplog.handler.addFilter(lambda record: "restarts in" not in record.msg or polling.stop() or True)
    polling.run()
    assert (tmp_path / "in_progress" / "1").exists()
    assert (tmp_path / "ready_for_poll" / "2").exists()


class Workday:
    """A clock that a collaboration turns on: 16:00, and 9:00 of the next day after it was read three times more."""

    def __init__(self):
        self.reads = 0
        self.evening = False

    def now(self):
        self.reads += self.evening
        day, hour = (6, 9) if self.reads > 3 else (5, 18) if self.evening else (5, 16)
        return datetime(2026, 1, day, hour).astimezone().timestamp()

    def monotonic(self):
        return 0.0


def test_a_restart_waits_for_the_window(url, session):
    session.create_producer(Queue("in")).send(ORDER)
    clock, seen = Workday(), []

    def collaboration(_):
        seen.append(datetime.fromtimestamp(clock.now()).astimezone().hour)
        clock.evening = True
        if len(seen) == 1:
            return DeliveryOutcome.CONNECTOR_NOT_ACTIVE
        return polling.stop()

    config = ConnectorConfig(
        connection_url=url,
        input_destination="in",
        poll_start_time="08:00",
        poll_end_time="17:00",
        poll_frequency=0,
        restart_retry_interval=0,
    )
    with Connector(config, collaboration, clock=clock) as polling:
        polling.run()
    assert seen == [16, 9]
