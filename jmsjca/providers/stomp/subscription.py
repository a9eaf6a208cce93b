"""The broker's subscriptions behind one consumer."""

from collections.abc import Callable, Mapping, Sequence
from itertools import count

from jmsjca.destinations import Destination, Subscription
from jmsjca.errors import ConnectionLostError, JMSError
from jmsjca.providers.stomp.dialect import INDIVIDUALLY, Dialect
from jmsjca.providers.stomp.frames import Frame
from jmsjca.providers.stomp.returns import return_by_nack, round_trip
from jmsjca.providers.stomp.wire import Wire
from jmsjca.spi import Order

__all__ = ["Subscriptions", "taken_ahead"]

_TOPIC_WINDOW = 1000
_ORDERED_WINDOW = 1000
_numbers = count(1)


class Subscriptions:
    """One subscription; more of them when a queue's consumer holds all that one may have, and asks for more.

    In STOMP a subscription's window is what may be *unsettled*, and nothing widens it. A second one of the same queue
    does, and the broker goes on in order. A topic's consumer competes with nobody, so its window is wide at once.

    Args:
        wire: The connection.
        dialect: What the broker calls things.
        source: What to subscribe to.
        chosen: The headers that say which messages.
        arrive: Takes the frames.
        ack: How they are acknowledged.
        window: How many messages may be taken ahead.
    """

    def __init__(
        self,
        wire: Wire,
        dialect: Dialect,
        source: Destination | Subscription,
        chosen: Mapping[str, str],
        arrive: Callable[[Sequence[Frame]], None],
        *,
        ack: str,
        window: int,
    ) -> None:
        self._wire = wire
        self._dialect = dialect
        self._source = source
        self._chosen = chosen
        self._ack = ack
        self._arrive = arrive
        self._ids: list[str] = []
        self._window = 0
        self._widens = not isinstance(source, Subscription)
        self._subscribe(max(window, 1) if self._widens else max(window, _TOPIC_WINDOW))

    def short(self, held: int, size: int) -> bool:
        """True if the broker sends no more as long as so many messages, of so many bytes, are unsettled."""
        return self._widens and self._dialect.is_full(held, size, self._window)

    def overdue(self) -> bool:
        """True if the broker should have sent something by now."""
        return False

    def patience(self, remaining: float | None) -> float | None:
        """How long a consumer may wait before it asks again, of the seconds that remain."""
        return remaining

    def extend(self, wanted: int) -> None:
        """Subscribe once more, with room for what is wanted."""
        self._subscribe(wanted)

    def barrier(self) -> None:
        """Wait for a receipt behind what was on its way."""
        with self._wire.turn(self._wire.reply_timeout):
            round_trip(self._wire)

    def stop(self, unsettled: Callable[[], Sequence[Frame]]) -> None:
        """Unsubscribe: the broker takes back what is not settled, or loses the connection, which gives it back too."""
        try:
            if self._dialect.returns_by_nack:
                return_by_nack(self._wire, self._dialect, self._ids, unsettled)
            else:
                self._unsubscribe()
        except JMSError as error:
            self._wire.end(ConnectionLostError(f"What a consumer had could not be given back: {error}"))
        finally:
            self._unlisten()

    def _unsubscribe(self) -> None:
        self._unlisten()
        for name in self._ids:
            self._wire.request("UNSUBSCRIBE", {"id": name})

    def _unlisten(self) -> None:
        for name in self._ids:
            self._wire.incoming.unlisten(name)

    def _subscribe(self, window: int) -> None:
        name = f"{'s' if self._ack == 'client' else INDIVIDUALLY}{next(_numbers)}"
        headers = {"id": name, "ack": self._ack, **self._chosen}
        self._wire.incoming.listen(name, self._arrive)
        try:
            self._wire.request("SUBSCRIBE", {**headers, **self._dialect.subscribe(self._source, window)})
        except JMSError:
            self._wire.incoming.unlisten(name)
            raise
        self._ids.append(name)
        self._window += window


def taken_ahead(order: Order, few: int) -> int:
    """How many messages are taken ahead unless somebody says so.

    What must stay in order comes over one subscription, whose window is all that may be unsettled; so it is wide.
    """
    return few if order is Order.ANY else max(few, _ORDERED_WINDOW)
