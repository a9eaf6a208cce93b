"""When a connector polls: the window of the day, and the key of an operator."""

import io
import os
import threading
from datetime import UTC, datetime, time

import pytest

from jmsjca import Queue
from jmsjca.connector import Connector, ConnectorConfig
from jmsjca.connector.poll_schedule import in_window, timed_polls

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
