"""Map, stream and object messages are refused where they would arrive without their bodies."""

import pytest

from jmsjca import MapMessage, ObjectMessage, Queue, StreamMessage
from jmsjca.errors import NotSupportedError
from jmsjca.providers.amqp import codec as amqp

MESSAGES = [MapMessage({"a": 1}), MapMessage(), StreamMessage([1]), ObjectMessage({"a": 1}), ObjectMessage()]


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: type(message).__name__)
def test_over_amqp(message):
    with pytest.raises(NotSupportedError, match=f"{type(message).__name__} cannot be sent over AMQP"):
        amqp.encode(message, Queue("q"), 0.0)
