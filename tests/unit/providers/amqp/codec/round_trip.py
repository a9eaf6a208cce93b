"""A message as it is sent, seen by proton, and as it is received from what proton has written."""

from jmsjca import Queue
from jmsjca.providers.amqp.codec.addresses import ReceiveContext
from jmsjca.providers.amqp.codec.decoder import decode
from jmsjca.providers.amqp.codec.encoder import encode
from tests.unit.providers.amqp.codec.proton_sections import read

NOW = 1_700_000_000.0
QUEUE = Queue("q")


def sent(message, to=QUEUE):
    """The sections of a message that is sent."""
    return read(encode(message, to, NOW))


def received(raw, source=QUEUE):
    """The message, with all of it decoded."""
    message = decode(raw, ReceiveContext(source), NOW)
    assert message.priority is not None
    return message
