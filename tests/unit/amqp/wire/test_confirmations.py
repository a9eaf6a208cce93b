"""Confirmed acknowledgement at a broker that answers each change of credit."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import count

import pytest
from amqp_peer import SECONDS, Broker
from amqp_peer.performatives import Disposition, Flow

from jmsjca.config import Limits
from jmsjca.destinations import Queue
from jmsjca.errors import ConnectionLostError, TransactionInDoubtError
from tests.unit.amqp.wire.account import body_of, encoded

_MANY = 1200  # more than may come unasked
_UNITS = 4
_FRAMES = 2 * _UNITS  # in which they end, at most: an acknowledgement and a question each


def test_what_confirmations_ask_for_is_not_unasked(stage):
    broker = Broker("RabbitMQ")
    for number in range(_MANY):
        broker.store.put("/queue/q", encoded(str(number)))
    connection = stage(broker).connect(limits=Limits(prefetch_messages=1))
    consumer = connection.consumer(Queue("q"), window=1)
    for _ in range(_MANY):
        unit = connection.unit(atomic=False)
        unit.take(consumer.receive(1, SECONDS))
        unit.commit()
    assert not broker.store.queues["/queue/q"]


def test_units_that_end_at_one_time_do_not_wait_for_each_other(stage):
    """The broker answers nobody before it has the acknowledgements of all."""
    broker, held = Broker("RabbitMQ"), []
    for number in range(_UNITS):
        broker.store.put("/queue/q", encoded(str(number)))
    connection = stage(broker).connect()
    consumer = connection.consumer(Queue("q"), window=2 * _UNITS)
    units = [connection.unit(atomic=False) for _ in range(_UNITS)]
    for unit in units:
        unit.take(consumer.receive(1, SECONDS))

    def settle(service, frame):
        service.carry_out(frame)
        if not service._unsettled:
            del broker.instead[Flow]
            while held:
                service.carry_out(held.pop())

    broker.instead.update({Flow: lambda _, frame: held.append(frame), Disposition: settle})
    with ThreadPoolExecutor(_UNITS) as pool:
        for ended in [pool.submit(unit.commit, timeout=SECONDS) for unit in units]:
            assert ended.result(SECONDS) is None


@pytest.mark.parametrize("frame", range(1, _FRAMES))
def test_what_was_confirmed_at_one_time_does_not_come_again(stage, frame):
    """The connection is cut at one of the frames in which several units end."""
    broker, frames = Broker("RabbitMQ"), count(1)
    for number in range(_UNITS):
        broker.store.put("/queue/q", encoded(str(number)))
    here = stage(broker)
    connection = here.connect()
    consumer = connection.consumer(Queue("q"), window=2 * _UNITS)
    known, units = [], [connection.unit(atomic=False) for _ in range(_UNITS)]
    for unit in units:
        unit.take(consumer.receive(1, SECONDS))

    def cut(service, what):
        if next(frames) == frame:
            service.line.end()
        service.carry_out(what)

    def end(number):
        with suppress(ConnectionLostError, TransactionInDoubtError):
            units[number].commit()
            known.append(str(number))

    broker.instead = {Disposition: cut, Flow: cut}
    with ThreadPoolExecutor(_UNITS) as pool:
        list(pool.map(end, range(_UNITS)))
    connection.close(timeout=0)
    here.connect()  # so the broker has noticed the end of the first one
    left = {body_of(kept.payload) for kept in broker.store.queues["/queue/q"]}
    assert left.isdisjoint(known)
    assert left or frame > 1
