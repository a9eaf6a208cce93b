"""One connection, consumer and several units used by many threads."""

import sys
import threading

import pytest

from jmsjca import Queue, TextMessage
from jmsjca.errors import IllegalStateError, JMSError
from jmsjca.spi import Order
from tests.unit.inbound.deliveries import until
from tests.unit.inbound.listeners import PATIENCE

ROUNDS, WORKERS, MESSAGES = 8, 4, 500


@pytest.fixture(autouse=True)
def switches_often():
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


class Workers:
    """Threads that take what one receives, and commit or roll back; what they raise is kept."""

    def __init__(self, link):
        self.link = link
        self.consumer = link.consumer(Queue("q"), order=Order.ANY)
        self.ready, self.lock, self.raised, self.committed = [], threading.Lock(), [], 0
        self.begun = threading.Barrier(WORKERS + 2)

    def work(self, act):
        self.begun.wait(PATIENCE)
        try:
            while act():
                pass
        except JMSError:
            pass  # the connection is closed
        except BaseException as error:  # noqa: BLE001
            self.raised.append(error)

    def receive(self):
        chunk = self.consumer.receive(500, 0.01)
        with self.lock:
            self.ready.extend(chunk)
        return not self.consumer.closed

    def settle(self):
        with self.lock:
            delivery = self.ready.pop() if self.ready else None
        unit = self.link.unit()
        if delivery is not None:
            unit.take([delivery])
        (unit.commit if delivery is None or delivery._row[0] % 3 else unit.rollback)()
        self.committed += 1
        return self.committed < 3 * MESSAGES

    def start(self):
        acts = [self.receive] + [self.settle] * WORKERS
        threads = [threading.Thread(target=self.work, args=(act,), daemon=True) for act in acts]
        for thread in threads:
            thread.start()
        self.begun.wait(PATIENCE)
        return threads


def test_a_connection_is_closed_over_units_that_end_at_the_same_time(connected):
    other = connected()
    raised = []
    for _ in range(ROUNDS):
        unit = other.unit()
        for number in range(MESSAGES):
            unit.send(TextMessage(str(number)), Queue("q"))
        unit.commit()
        workers = Workers(connected())
        threads = workers.start()
        until(lambda: workers.committed > 20 or workers.raised)  # noqa: B023
        try:
            workers.link.close()
        except BaseException as error:  # noqa: BLE001
            raised.append(error)
        for thread in threads:
            thread.join(PATIENCE)
        raised += workers.raised
        depth = other.admin().depth(Queue("q"))
        assert depth.held == 0
    assert raised == []


def test_no_unit_begins_once_the_connection_is_closed(connected):
    link = connected()
    link.close()
    with pytest.raises(IllegalStateError):
        link.unit()
