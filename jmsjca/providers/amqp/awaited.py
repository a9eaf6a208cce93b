"""What went back to the broker, and should be the next to come."""

from collections.abc import Sequence
from typing import NamedTuple

from jmsjca.providers.amqp.delivery import AMQPDelivery
from jmsjca.providers.amqp.sections import bare

__all__ = ["Awaited"]

_MOST_RETURNS = 3


class Awaited(NamedTuple):
    """The first of the messages that went back in order.

    Args:
        encoded: The message.
        returns: How often what comes instead is returned.
    """

    encoded: bytes
    returns: int = _MOST_RETURNS

    def after(self, chunk: Sequence[AMQPDelivery]) -> "Awaited | None":
        """What is still awaited because something else came before it; None if all is well.

        Artemis may have chosen the next message before it takes back what is before that one, and send it at the next
        credit. But if that happens again and again, somebody else has got what went back.
        """
        if not self.returns or bare(chunk[0].encoded) == bare(self.encoded):
            return None
        return Awaited(self.encoded, self.returns - 1)
