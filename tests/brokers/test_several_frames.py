"""Messages that take one frame over AMQP among others that take more: whoever asks without waiting gets them all.

Artemis answers "no more" between the frames of a message, and sends the rest when it is asked for more.
"""

import random
import uuid

import pytest

from jmsjca import ConnectionFactory, Queue

COUNT, ROUNDS = 40, 5
SIZES = [0, 0, 1000, 100_000]


def received(session, queue):
    consumer = session.create_consumer(queue)
    return list(iter(lambda: consumer.receive(timeout=0), None))


def looked_at(session, queue):
    return list(session.create_browser(queue))


@pytest.mark.parametrize("take", [received, looked_at])
def test_all_are_found(broker_url, take):
    sizes = random.Random(take.__name__)
    factory = ConnectionFactory(f"{broker_url('artemis-amqp')}?reply_timeout=10")
    for _ in range(ROUNDS):
        queue = Queue(f"frames.{uuid.uuid4()}")
        with factory.create_connection() as connection, connection.create_session() as session:
            producer = session.create_producer(queue)
            for number in range(COUNT):
                producer.send(session.create_text_message(f"{number} {'x' * sizes.choice(SIZES)}"))
            found = take(session, queue)
            assert [int(message.body.split()[0]) for message in found] == list(range(COUNT))
            received(session, queue)
