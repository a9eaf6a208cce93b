"""Who receives, as a link sees it."""

from collections.abc import Sequence
from typing import Protocol

from jmsjca.errors import JMSError

__all__ = ["Arrivals"]


class Arrivals(Protocol):
    """Who is given what arrives. Called on the engine's thread."""

    def arrived(self, first: int, messages: Sequence[bytes]) -> None:
        """Messages are complete: the handle of the first, those behind it follow; and the encoded messages."""
        ...

    def credited(self, more: int) -> None:
        """The credit changed by so much, otherwise than by `ReceivingLink.grant` and what arrived."""
        ...

    def missed(self) -> None:
        """Less comes than was asked for; that was told by `credited`."""
        ...

    def broken(self, error: JMSError) -> None:
        """Nothing more will come."""
        ...
