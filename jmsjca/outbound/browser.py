"""A queue browser."""

from collections.abc import Iterator
from itertools import chain

from jmsjca import spi
from jmsjca.destinations import Queue
from jmsjca.messages import Message

__all__ = ["QueueBrowser"]


class QueueBrowser:
    """Made by `Session.create_browser`. Each iteration looks at the queue anew.

    A message that cannot be decoded raises `MessageFormatError` in its turn; the iterator can go on after it.

    Args:
        link: The provider's connection.
        queue: What to look at.
        selector: Only messages that match; needs the capability ``selectors``.
    """

    def __init__(self, link: spi.Connection, queue: Queue, selector: str | None) -> None:
        self._link = link
        self.queue = queue
        self.selector = selector

    def __iter__(self) -> Iterator[Message]:
        # A map goes on after an exception: a message that cannot be decoded does not hide those behind it.
        return map(_message, chain.from_iterable(self._link.browse(self.queue, selector=self.selector)))


def _message(delivery: spi.Delivery) -> Message:
    return delivery.message
