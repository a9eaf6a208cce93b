"""The source terminus of a receiver link, and the link names of subscriptions, as in Java's JMS clients."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from proton import Described, symbol

from jmsjca.config.connection_url import check_unicode
from jmsjca.destinations import Destination, Subscription
from jmsjca.errors import IllegalStateError, InvalidDestinationError, InvalidSelectorError, JMSError, NotSupportedError
from jmsjca.providers.amqp.codec.addresses import Address
from jmsjca.providers.amqp.engine.proton_ffi import COPY, DELIVERIES, EXPIRE_NEVER, EXPIRE_WITH_LINK
from jmsjca.providers.amqp.errors import condition_text

__all__ = ["Source", "SubscriptionLink", "subscription_link"]

_SELECTOR = symbol("jms-selector"), symbol("apache.org:selector-filter:string")
_NO_LOCAL = symbol("no-local"), symbol("apache.org:no-local-filter:list")
_BAD_FILTER = {"amqp:invalid-field", "amqp:not-implemented"}
_IN_USE = {"amqp:illegal-state", "amqp:resource-locked"}


@dataclass(frozen=True, slots=True)
class SubscriptionLink:
    """How a named subscription is requested, by the conventions of Java's JMS clients.

    Args:
        name: The name of the link, which identifies the subscription.
        durable: True if the subscription outlives the link.
        capabilities: Further capabilities of its source: shared, and shared by all clients.
    """

    name: str
    durable: bool
    capabilities: tuple[str, ...] = ()

    def apply(self, terminus: Any) -> None:
        """Set the durability and expiry of proton's terminus."""
        terminus.durability = DELIVERIES if self.durable else 0
        terminus.expiry_policy = EXPIRE_NEVER if self.durable else EXPIRE_WITH_LINK


@dataclass(frozen=True, slots=True)
class Source:
    """The source of a receiver link.

    Args:
        address: The queue or topic.
        selector: Selects messages; None for all.
        no_local: True to exclude messages sent over this connection.
        browse: True to receive copies.
        subscription: The named subscription; None for a queue or an unnamed subscription.
        in_use: Texts by which the broker says that a subscription has a consumer, if its error condition does not.
        other_kind: Texts by which the broker says that an address is a queue where a topic was requested, or vice
            versa.
        filters: Further filters by their descriptors.

    Raises:
        InvalidDestinationError: The address or the name of the subscription cannot be encoded.
        InvalidSelectorError: The selector is not valid Unicode. It may contain NUL, since proton counts a filter's
            bytes.
    """

    address: Address
    selector: str | None = None
    no_local: bool = False
    browse: bool = False
    subscription: SubscriptionLink | None = None
    in_use: tuple[str, ...] = ()
    other_kind: tuple[str, ...] = ()
    filters: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def __post_init__(self) -> None:
        """Refuse texts that cannot be encoded, before a link is attached."""
        self.address.check()
        if self.subscription is not None:
            Address(self.subscription.name, None).check()
        check_unicode(self.selector, f"The selector {self.selector!a:.200}", InvalidSelectorError)

    @property
    def is_durable(self) -> bool:
        """Whether the broker keeps the source when the link detaches."""
        return self.subscription is not None and self.subscription.durable

    def apply(self, terminus: Any) -> None:
        """Write the source to proton's terminus."""
        more = self.subscription.capabilities if self.subscription else ()
        self.address.apply(terminus, more)
        if filters := self._filters():
            terminus.filter.put_object(filters)
        if self.browse:
            terminus.distribution_mode = COPY
        if self.subscription:
            self.subscription.apply(terminus)

    def attach_error(self, attached: Any) -> JMSError | None:
        """Return an error if the broker dropped a filter that it does not support: it would send all messages.

        Args:
            attached: The source that the broker attached.
        """
        wanted = self._filters()
        if not wanted:
            return None
        supported: Any = (attached.filter.next() and attached.filter.get_object()) or {}
        missing = [str(name) for name in wanted if name not in supported]
        return NotSupportedError(f"The broker does not support the filter {', '.join(missing)}.") if missing else None

    def refusal_error(self, condition: Any) -> JMSError | None:
        """Return the error for the broker's refusal of this source; None for a general one."""
        if condition is None:
            return None
        text = condition_text(condition)
        if self.selector and condition.name in _BAD_FILTER:
            return InvalidSelectorError(f"The broker refuses the selector: {text}")
        if any(words in text for words in self.other_kind):
            return InvalidDestinationError(
                f"{self.address.name} exists, but not as a {self.address.capability}; use the other kind of destination"
                f" or another name: {text}"
            )
        if condition.name in _IN_USE or any(words in text for words in self.in_use):
            kind = IllegalStateError if self.subscription else InvalidDestinationError
            return kind(f"{self.address.name} is in use, or belongs to another client: {text}")
        return None

    def _filters(self) -> dict[Any, Any]:
        filters: dict[Any, Any] = {symbol(name): Described(symbol(name), value) for name, value in self.filters.items()}
        if self.selector:
            filters[_SELECTOR[0]] = Described(_SELECTOR[1], self.selector)
        if self.no_local:
            filters[_NO_LOCAL[0]] = Described(_NO_LOCAL[1], [])
        return filters


_DELIMITER = "|"
_GLOBAL_CAPABILITIES = ("shared", "global")


def subscription_link(source: Destination | Subscription, number: int = 1) -> SubscriptionLink | None:
    """Return the subscription link of a consumer; None if the source is not a named subscription.

    Args:
        source: The source of the consumer.
        number: Number of the consumer among the consumers of a shared subscription on this connection, from 1.

    Raises:
        InvalidDestinationError: The name contains the delimiter of what is appended to it.
    """
    if not isinstance(source, Subscription) or source.name is None:
        return None
    name = source.name
    if not source.shared:
        return SubscriptionLink(name, durable=True)
    if _DELIMITER in name:
        raise InvalidDestinationError(f"The name of a shared subscription cannot contain {_DELIMITER!r}: {name!r}.")
    is_global = source.client_id is None
    return SubscriptionLink(
        name + _suffix(number, is_global=is_global, durable=source.durable),
        durable=source.durable,
        capabilities=_GLOBAL_CAPABILITIES if is_global else _GLOBAL_CAPABILITIES[:1],
    )


def _suffix(number: int, *, is_global: bool, durable: bool) -> str:
    scope = "global" if is_global else ""
    if not durable:
        return f"{_DELIMITER}{scope}{'-' if is_global else ''}volatile{number}"
    which = "" if number == 1 else str(number)
    return f"{_DELIMITER}{scope}{which}" if is_global or which else ""
