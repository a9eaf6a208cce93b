"""A queue browser."""

from collections.abc import Iterator
from itertools import chain

from jmsjca import spi
from jmsjca.destinations import Queue
from jmsjca.messages import Message
from jmsjca.outbound.gate import Gate

__all__ = ["QueueBrowser"]


class QueueBrowser:
    """Made by `Session.create_browser`. Each iteration looks at the queue anew.

    A message that cannot be decoded raises `MessageFormatError` in its turn; the iterator can go on after it.

    Args:
        link: The provider's connection.
        queue: What to look at.
        selector: Only messages that match; needs the capability ``selectors``.
        gate: The session's.
    """

    def __init__(self, link: spi.Connection, queue: Queue, selector: str | None, gate: Gate) -> None:
        self._link = link
        self._gate = gate
        self.queue = queue
        self.selector = selector

    def __iter__(self) -> Iterator[Message]:
        with self._gate:
            found = self._link.browse(self.queue, selector=self.selector)
        # A map goes on after an exception: a message that cannot be decoded does not hide those behind it.
        return map(_message, chain.from_iterable(found))


def _message(delivery: spi.Delivery) -> Message:
    return delivery.message
