"""Confirmed acknowledgement at a broker that answers each change of credit."""

from concurrent.futures import ThreadPoolExecutor

from amqp_peer import SECONDS, Broker
from amqp_peer.performatives import Disposition, Flow

from jmsjca.config import Limits
from jmsjca.destinations import Queue
from tests.unit.amqp.wire.account import encoded

_MANY = 1200  # more than may come unasked
_UNITS = 4


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
