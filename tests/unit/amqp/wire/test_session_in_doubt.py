"""A session whose commit is in doubt, and has given back what it took: it goes on with what comes again."""

import pytest
from amqp_peer import SECONDS, Broker
from amqp_peer.performatives import SENDER, Attach, Detach, Error

from jmsjca import ConnectionFactory, Queue
from jmsjca.errors import TransactionInDoubtError
from tests.unit.amqp.wire.account import encoded
from tests.unit.delivering.stage import until

SENT = list("abcdef")


def refuse_one(service, frame):
    if frame.body.role == SENDER and getattr(frame.body.target, "address", None) == "forbidden":
        service.agree(frame, target=None)
        error = Error(condition="amqp:not-found", description="no")
        service.line.write(Detach(handle=frame.body.handle, closed=True, error=error), frame.channel)
    else:
        service.carry_out(frame)


@pytest.fixture
def broker():
    broker = Broker()  # Artemis: what has a duplicate id is sent before the transaction
    broker.instead[Attach] = refuse_one
    broker.store.put("in", encoded("first"))
    return broker


@pytest.fixture
def session(stage, broker):
    with ConnectionFactory(f"amqp://{stage(broker).peer.address}").create_connection() as connection:
        connection.start()
        yield connection.create_session(transacted=True)


def test_nothing_that_was_taken_ahead_is_in_the_way(broker, session):
    consumer, producer = session.create_consumer(Queue("in")), session.create_producer()
    assert consumer.receive(SECONDS).body == "first"
    for body in SENT:
        broker.store.put("in", encoded(body))
    session.commit()
    until(lambda: len(consumer._receiver._consumer._buffer.ready) == len(SENT))  # they are taken ahead together
    assert consumer.receive(SECONDS).body == "a"
    producer.send(session.create_text_message("1", properties={"_AMQ_DUPL_ID": "x"}), Queue("out"))
    producer.send(session.create_text_message("2"), Queue("forbidden"))
    with pytest.raises(TransactionInDoubtError):
        session.commit()
    assert [consumer.receive(SECONDS).body for _ in SENT] == SENT
