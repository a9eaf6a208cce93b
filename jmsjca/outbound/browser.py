"""A queue browser."""

from collections.abc import Iterator

from jmsjca import spi
from jmsjca.destinations import Queue
from jmsjca.messages import Message

__all__ = ["QueueBrowser"]


class QueueBrowser:
    """Made by `Session.create_browser`. Each iteration looks at the queue anew.

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
        for chunk in self._link.browse(self.queue, selector=self.selector):
            yield from chunk
