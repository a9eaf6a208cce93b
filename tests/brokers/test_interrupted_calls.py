"""Exceptions of signal handlers in calls over a network: no message is stuck, and no call waits for ever.

A connection may be lost by it (docs/reference/network.md). Some of the moments of a call, spread evenly; all of them
with JMSJCA_ALL_STEPS=1.
"""

import os
import uuid
from contextlib import suppress
from pathlib import Path

import pytest

import jmsjca
from jmsjca import ConnectionFactory, Queue
from jmsjca.errors import ConnectionLostError, TransactionInDoubtError, TransactionRolledBackError
from tests.support.interruptions import Interruption, TimeLimitError
from tests.unit.outbound.queues import PATIENCE, put
from tests.unit.providers.embedded.test_group_commit import in_background

PACKAGE = str(Path(jmsjca.__file__).parent)
SAMPLE = 12
NEVER = 1_000_000


def commit(session, queue):
    session.create_producer(queue).send("sent")
    session.commit()


def rollback(session, _):
    session.rollback()


def play(factory, act, moment):
    """Interrupt the end of a transaction with one received message; return the number of moments that passed."""
    queue, interruption = Queue(f"interrupted.{uuid.uuid4().hex}"), Interruption(moment, TimeLimitError, PACKAGE)
    with factory.create_connection() as connection:
        put(connection, "first", "second", to=queue)
        session = connection.create_session(transacted=True)
        assert session.create_consumer(queue).receive(PATIENCE).body == "first"
        ended = "done"
        with suppress(TimeLimitError, TransactionInDoubtError), interruption.planted():
            ended = "interrupted"
            act(session, queue)
            ended = "done"
        in_background(session.close).result(PATIENCE)
        awaited = {"first", "second"} if act is rollback else {"second", "sent"} if ended == "done" else {"second"}
        try:
            found = take_all(connection, queue, awaited)
        except (ConnectionLostError, TransactionRolledBackError):  # it ended a moment ago
            with factory.create_connection() as another:
                found = take_all(another, queue, awaited)
    assert len(found) == len(set(found))  # nothing twice
    assert "sent" not in found or "first" not in found  # committed together
    return moment - interruption.left


def take_all(connection, queue, awaited):
    """Take messages until the awaited ones have come, and what is there behind them."""
    found = []
    with connection.create_session(transacted=True) as session, session.create_consumer(queue) as consumer:
        while not awaited <= set(found):
            message = consumer.receive(PATIENCE)
            assert message is not None, f"{awaited} did not come, but {found}"
            found.append(message.body)
        found += [message.body for message in iter(lambda: consumer.receive(0), None)]
        session.commit()
    return found


@pytest.mark.parametrize("act", [commit, rollback])
@pytest.mark.parametrize("pair", ["artemis-amqp", "qpid-amqp", "activemq-stomp"])
def test_interrupted_end_of_a_transaction_keeps_no_message(broker_url, pair, act, capsys):
    factory = ConnectionFactory(broker_url(pair))
    total = play(factory, act, NEVER)
    moments = range(1, total, 1 if os.environ.get("JMSJCA_ALL_STEPS") else max(1, total // SAMPLE))
    for moment in moments:
        play(factory, act, moment)
    with capsys.disabled():
        print(f"\ninterruptions of a {act.__name__} over {pair}: {len(moments)} of {total} moments visited")
