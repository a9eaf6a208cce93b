"""Helpers of the tests of sessions under a transaction manager."""

from jmsjca import AcknowledgeMode, Queue

IN, OUT, THIRD = Queue("in"), Queue("out"), Queue("third")
AUTO, CLIENT, DUPS_OK, INDIVIDUAL = (AcknowledgeMode[name] for name in ("AUTO", "CLIENT", "DUPS_OK", "INDIVIDUAL"))
PATIENCE = 60


def send(session, body="sent", to=OUT):
    session.create_producer(to).send(session.create_text_message(body))


def receive(session):
    message = session.create_consumer(IN).receive(PATIENCE)
    assert message is not None
    return message
