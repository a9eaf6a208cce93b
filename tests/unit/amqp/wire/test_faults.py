"""A step on the engine's thread that fails, for want of memory, say: everybody learns that the connection ended."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from amqp_peer import SECONDS, Broker

from jmsjca.destinations import Queue
from jmsjca.errors import JMSError, TransactionInDoubtError
from jmsjca.messages import TextMessage
from jmsjca.providers.amqp.links.coordinator import PredeclaredTransaction


def commit(connection):
    unit = connection.unit()
    unit.send(TextMessage("x"), Queue("out"))
    unit.commit()


def test_behind_a_discharge_that_is_written(stage, monkeypatch):
    def fail(*_):
        raise MemoryError

    here = stage(Broker())
    connection = here.connect()
    consumers = [connection.consumer(Queue(str(number))) for number in range(6)]
    commit(connection)
    with ThreadPoolExecutor() as pool, monkeypatch.context() as patch:
        waiting = [pool.submit(consumer.receive, 1, SECONDS) for consumer in consumers]
        patch.setattr(PredeclaredTransaction, "store", fail)
        with pytest.raises(TransactionInDoubtError):
            commit(connection)
        for each in waiting:
            with pytest.raises(JMSError, match="aborted"):
                each.result(SECONDS)
    assert here.lost.wait(SECONDS)
