"""The times of a message after the send are those that it is received with, over every provider's codec."""

from datetime import timedelta

import pytest

from jmsjca import Hooks, TextMessage
from tests.unit.outbound.queues import PATIENCE, QUEUE
from tests.unit.providers.amqp import codec_helpers
from tests.unit.providers.stomp.test_codec import SERVERS, through


def times(message):
    return message.timestamp, message.expiration, message.delivery_time


@pytest.fixture
def sent(connection):
    """Send a message, received at once, and return it."""

    def send(**options):
        message = TextMessage("a")
        with connection.create_session() as session:
            session.create_producer(QUEUE).send(message, **options)
        return message

    return send


OPTIONS = [
    {"time_to_live": life, "delivery_delay": delay} for life in (0, 60, 60.0004, 1e8 / 3) for delay in (0, 0.0011, 30.7)
]


@pytest.mark.parametrize("options", OPTIONS)
def test_times_are_whole_milliseconds(sent, options):
    for _ in range(20):
        assert [moment.microsecond % 1000 for moment in times(sent(**options)) if moment is not None] == [0] * (
            1 + bool(options["time_to_live"]) + bool(options["delivery_delay"])
        )


@pytest.mark.parametrize("options", OPTIONS)
def test_times_are_the_same_over_amqp_and_stomp(sent, options):
    for _ in range(5):
        message = sent(**options)
        assert times(codec_helpers.through(message)) == times(message)
        assert [times(through(message, server)) for server in SERVERS] == [times(message)] * len(SERVERS)


@pytest.mark.parametrize("life", [0, 60, 60.0004, 1e8 / 3])
def test_times_are_the_same_after_the_embedded_broker(connection, session, sent, life):
    consumer = connection.create_session().create_consumer(QUEUE)
    for _ in range(20):
        message = sent(time_to_live=life, delivery_delay=0.001)
        assert times(consumer.receive(PATIENCE)) == times(message)


def test_life_of_less_than_a_millisecond_is_not_for_ever(sent):
    message = sent(time_to_live=0.0001)
    assert message.expiration == message.timestamp + timedelta(milliseconds=1)


def test_hooks_see_the_times_that_are_sent(jms_broker_url):
    from jmsjca import ConnectionFactory

    seen = []

    class Look(Hooks):
        def around_send(self, message, destination, call_next):
            seen.append(times(message))
            call_next()

    with ConnectionFactory(jms_broker_url, hooks=[Look()]).create_context() as context:
        context.create_producer(time_to_live=60).send(QUEUE, "a")
        assert times(context.create_consumer(QUEUE).receive(PATIENCE)) == seen[0]
