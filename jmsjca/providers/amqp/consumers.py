"""The consumers of a connection: who has a subscription, and who may not have it as well."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from jmsjca.destinations import Destination, Subscription
from jmsjca.errors import IllegalStateError
from jmsjca.providers.amqp.consumer import AMQPConsumer

__all__ = ["Consumers", "Terms"]


@dataclass(frozen=True, slots=True)
class Terms:
    """What a consumer asked for.

    Args:
        source: What it consumes from.
        selector: What it selects.
        no_local: True if it is spared what its own connection sends.
        number: Which of the consumers of a shared subscription it is.
    """

    source: Destination | Subscription
    selector: str | None = None
    no_local: bool = False
    number: int = 1

    @property
    def topic(self) -> Destination:
        """The queue or topic itself."""
        return self.source.topic if isinstance(self.source, Subscription) else self.source


class Consumers:
    """Brokers differ in what they do about two consumers of one subscription, so what is wrong is refused here."""

    def __init__(self) -> None:
        self._active: dict[AMQPConsumer, Terms] = {}

    def __iter__(self) -> Iterator[AMQPConsumer]:
        """Go through all that are not done."""
        return iter(tuple(self._active))

    def admit(self, terms: Terms) -> Terms:
        """Find the number for one more consumer.

        Raises:
            IllegalStateError: Another consumer of this connection has the subscription (JMS 3.1, section 8.3).
        """
        source = terms.source
        if not isinstance(source, Subscription) or source.name is None:
            return terms
        others = [self._active[consumer] for consumer in self._of(source)]
        if others and not all(source.shared and _alike(terms, other) for other in others):
            raise IllegalStateError(
                f"The subscription {source.name!r} has a consumer of this connection already, on other terms or not"
                " shared; or a unit still holds messages of a closed one: end that first."
            )
        taken = {other.number for other in others}
        return replace(terms, number=next(n for n in range(1, len(taken) + 2) if n not in taken))

    def add(self, consumer: AMQPConsumer, terms: Terms) -> None:
        """Note a consumer, and forget those that are done."""
        self._active = {c: t for c, t in self._active.items() if not c.done} | {consumer: terms}

    def check_free(self, what: Destination | Subscription) -> None:
        """See whether something can be removed.

        Raises:
            IllegalStateError: A consumer of this connection has it.
        """
        if self._of(what) if isinstance(what, Subscription) else self._open_on(what):
            raise IllegalStateError(f"{what} still has consumers; close them first.")

    def _open_on(self, what: Destination) -> list[AMQPConsumer]:
        return [c for c, terms in self._active.items() if terms.topic == what and not c.closed]

    def _of(self, source: Subscription) -> list[AMQPConsumer]:
        return [c for c, t in self._active.items() if not c.done and _same(t.source, source)]


def _same(one: Destination | Subscription, other: Subscription) -> bool:
    """True if they are one subscription: by its name, its client, and whether it lasts."""
    return isinstance(one, Subscription) and (one.name, one.client_id, one.volatile) == (
        other.name,
        other.client_id,
        other.volatile,
    )


def _alike(one: Terms, other: Terms) -> bool:
    return (one.source, one.selector, one.no_local) == (other.source, other.selector, other.no_local)
