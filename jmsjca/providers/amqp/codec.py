"""Messages as AMQP: bytes and back."""

import struct

from jmsjca.destinations import Destination
from jmsjca.errors import MessageFormatError
from jmsjca.messages import Message
from jmsjca.providers.amqp.addresses import Naming
from jmsjca.providers.amqp.mapping.origin import Origin
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


def decode(raw: bytes, origin: Origin, arrived: float = 0.0, failures: int = 0) -> Message:
    """Make the message that bytes hold, read-only. Each header is decoded when it is asked for.

    Args:
        raw: The bytes.
        origin: Where it was received.
        arrived: When, in seconds since the epoch: from then its time to live counts if it tells no more.
        failures: How often it failed here, which the broker does not know.

    Raises:
        MessageFormatError: The bytes are no message; of damaged headers it is raised where they are asked for.
    """
    try:
        headers = ReceivedHeaders(raw, origin, arrived, failures)
        kind, body = received_body(headers)
        return kind.received(body, headers)
    except UNDECODABLE as error:
        raise undecodable(origin.source, error) from error
