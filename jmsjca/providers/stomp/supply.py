"""The broker's subscriptions behind one consumer."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import count

from jmsjca.destinations import Destination, Subscription
from jmsjca.errors import JMSError
from jmsjca.providers.stomp.channel import WriteError
from jmsjca.providers.stomp.dialect import Dialect
from jmsjca.providers.stomp.frames import Frame
from jmsjca.providers.stomp.wire import Wire

__all__ = ["Subscriptions"]

_TOPIC_WINDOW = 1000
_RETURN = {"transaction": "return"}
_numbers = count(1)


class Subscriptions:
    """One subscription; more of them when a queue's consumer holds all that one may have, and asks for more.

    In STOMP a subscription's window is what may be *unsettled*, and nothing widens it. A second one of the same queue
    does, and the broker goes on in order. A topic's consumer competes with nobody, so its window is wide at once.

    Args:
        wire: The connection.
        dialect: What the broker calls things.
        source: What to subscribe to.
        arrive: Takes the frames.
        selector: Which messages.
        window: How many messages may be taken ahead.
    """

    def __init__(
        self,
        wire: Wire,
        dialect: Dialect,
        source: Destination | Subscription,
        arrive: Callable[[Sequence[Frame]], None],
        *,
        selector: str | None,
        window: int,
    ) -> None:
        self._wire = wire
        self._dialect = dialect
        self._source = source
        self._selector = dialect.selector(selector) if selector else {}
        self._arrive = arrive
        self._ids: list[str] = []
        self._window = 0
        self._widens = not isinstance(source, Subscription)
        self._subscribe(max(window, 1) if self._widens else max(window, _TOPIC_WINDOW))

    def short(self, held: int, size: int) -> bool:
        """True if the broker sends no more as long as so many messages, of so many bytes, are unsettled."""
        return self._widens and self._dialect.is_full(held, size, self._window)

    def extend(self, wanted: int) -> None:
        """Subscribe once more, with room for what is wanted."""
        self._subscribe(wanted)

    def barrier(self) -> None:
        """Wait for a receipt behind what was on its way."""
        with self._wire.turn(self._wire.reply_timeout):
            self._wire.tell("BEGIN", {"transaction": "barrier"})
            self._wire.request("ABORT", {"transaction": "barrier"})

    def stop(self, unsettled: Sequence[Frame]) -> None:
        """Unsubscribe: the broker takes back what is not settled."""
        for name in self._ids:
            self._wire.unlisten(name)
        with suppress(JMSError, WriteError):  # a lost connection has taken it back already
            if self._dialect.returns_by_nack:
                self._return(unsettled)
            for name in self._ids:
                self._wire.request("UNSUBSCRIBE", {"id": name})
            if self._dialect.returns_by_nack:
                self._wire.request("COMMIT", _RETURN)

    def _return(self, unsettled: Sequence[Frame]) -> None:
        """Return messages when the transaction commits: by then nobody is subscribed here who would get them again."""
        encode, nack = self._wire.encode, {**_RETURN, "requeue": "true"}
        frames = [encode("NACK", {**self._dialect.acknowledgement(frame), **nack}) for frame in unsettled]
        self._wire.write(b"".join([encode("BEGIN", _RETURN), *frames]))

    def _subscribe(self, window: int) -> None:
        name = f"s{next(_numbers)}"
        headers = {"id": name, "ack": "client-individual", **self._selector}
        self._wire.listen(name, self._arrive)
        try:
            self._wire.request("SUBSCRIBE", {**headers, **self._dialect.subscribe(self._source, window)})
        except JMSError:
            self._wire.unlisten(name)
            raise
        self._ids.append(name)
        self._window += window
