"""What tests of the codec share: a message as it is read, as it goes through, and as proton's users see it."""

from proton import Message as WireMessage

from jmsjca.destinations import Queue
from jmsjca.providers.amqp.codec.addresses import ReceiveContext
from jmsjca.providers.amqp.codec.decoder import decode
from jmsjca.providers.amqp.codec.encoder import encode

QUEUE = Queue("q")
NOW = 1_700_000_000.0


def read(encoded, source=QUEUE):
    message = decode(encoded, ReceiveContext(source))
    assert message.priority is not None  # its headers are decoded now, too
    return message


def through(message, to=QUEUE):
    return read(encode(message, to, NOW))


def wire(message, to=QUEUE):
    """What we send, as proton's own users see it."""
    read = WireMessage()
    read.decode(encode(message, to, NOW))
    return read
