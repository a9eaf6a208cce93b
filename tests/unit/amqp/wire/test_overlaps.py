"""Units of several threads over one connection: a transaction is written from its first frame to its end, alone."""

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

from amqp_peer import SECONDS, Broker
from amqp_peer.answers import command_of
from amqp_peer.performatives import Declare, Discharge, Disposition, Transactional, Transfer

from jmsjca.destinations import Queue
from jmsjca.messages import TextMessage
from tests.unit.amqp.wire.account import body_of, encoded

THREADS = 4
UNITS = 25  # of each thread
OUT = Queue("out")


class Witness:
    """Sees each frame of a transaction when it comes to the broker, and notes what is out of turn.

    Attributes:
        wrong: What was out of turn.
        committed: How many transactions ended so.
        most: How many were open at a time, at most; the one that is declared ahead is one of them.
    """

    def __init__(self, broker):
        self.broker, self.wrong, self.committed, self.most = broker, [], 0, 0
        self._written = None  # the transaction that is not yet all here
        broker.instead.update(
            {Declare: self._declared, Discharge: self._discharged, Transfer: self._part, Disposition: self._part}
        )

    def _declared(self, service, frame):
        service.carry_out(frame)
        self.most = max(self.most, len(self.broker.store.transactions))

    def _part(self, service, frame):
        if isinstance(frame.body.state, Transactional):
            self._see(frame, frame.body.state.txn_id)
        else:
            self.wrong.append(f"in no transaction: {frame}")
        service.carry_out(frame)

    def _discharged(self, service, frame):
        command = command_of(frame)
        self._see(frame, command.txn_id)
        self._written = None
        self.committed += not command.fail
        service.carry_out(frame)

    def _see(self, frame, transaction):
        if self._written not in {None, transaction}:
            self.wrong.append(f"within {self._written}: {frame}")
        self._written = transaction


def move(connection, name, start):
    """Move each message of a queue in a unit of its own."""
    consumer = connection.consumer(Queue(name), window=UNITS)
    start.wait(SECONDS)
    for _ in range(UNITS):
        unit = connection.unit(atomic=True)
        (delivery,) = consumer.receive(1, SECONDS)
        unit.take([delivery])
        unit.send(TextMessage(delivery.message.body), OUT)
        unit.commit()


def test_no_two_transactions_are_written_at_a_time(stage):
    broker, start = Broker(), threading.Barrier(THREADS)
    names = [f"in {number}" for number in range(THREADS)]
    sent = [f"{number} of {name}" for name in names for number in range(UNITS)]
    for body in sent:
        broker.store.put(body.partition(" of ")[2], encoded(body))
    witness, connection = Witness(broker), stage(broker).connect()
    with ThreadPoolExecutor(THREADS) as pool:
        for moved in [pool.submit(move, connection, name, start) for name in names]:
            moved.result(SECONDS)
    assert not witness.wrong
    assert witness.committed == THREADS * UNITS
    assert witness.most <= 2
    assert Counter(body_of(kept.payload) for kept in broker.store.queues["out"]) == Counter(sent)
    assert not any(broker.store.queues[name] for name in names)
