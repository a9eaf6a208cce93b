"""Messages as AMQP: bytes and back."""

import struct

from jmsjca.destinations import Destination
from jmsjca.errors import MessageFormatError
from jmsjca.messages import Message
from jmsjca.providers.amqp.addresses import Naming
from jmsjca.providers.amqp.mapping.incoming import Incoming
from jmsjca.providers.amqp.mapping.outgoing import sections_of
from jmsjca.providers.amqp.mapping.received_bodies import received_body
from jmsjca.providers.amqp.mapping.received_headers import UNDECODABLE, ReceivedHeaders, undecodable

__all__ = ["decode", "encode"]

_UNENCODABLE = (ArithmeticError, TypeError, ValueError, struct.error)


def encode(message: Message, to: Destination, now: float, naming: Naming = "capability") -> bytes:
    """Encode a message whose headers the producer has set.

    Args:
        message: What to send.
        to: Where to.
        now: Seconds since the epoch, from which the time to live is counted.
        naming: How the broker names destinations, those in the message too.

    Raises:
        MessageFormatError: Something in it cannot be encoded.
    """
    try:
        return sections_of(message, to, now, naming)
    except _UNENCODABLE as error:
        raise MessageFormatError(f"The message to {to} cannot be encoded: {error}.") from error


def decode(raw: bytes, source: Destination | None, arrived: float = 0.0, naming: Naming = "capability") -> Message:
    """Make the message that bytes hold, read-only. Each header is decoded when it is asked for.

    Args:
        raw: The bytes.
        source: Where it was received, should it not say where it was sent to.
        arrived: When, in seconds since the epoch: from then its time to live counts if it tells no more.
        naming: How the broker names destinations.

    Raises:
        MessageFormatError: The bytes are no message; of damaged headers it is raised where they are asked for.
    """
    try:
        incoming = Incoming(raw, source, arrived, naming)
        kind, body = received_body(incoming)
        return kind.received(body, ReceivedHeaders(incoming))
    except UNDECODABLE as error:
        raise undecodable(source, error) from error
