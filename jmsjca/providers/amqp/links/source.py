"""The source of a receiving link, and the names of subscription links, as in Java's JMS clients."""

from dataclasses import dataclass
from typing import Any

from proton import Described, symbol

from jmsjca.config.text import check_unicode
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
    """How a named subscription is asked for, by the conventions of Java's JMS clients.

    Args:
        name: The name of the link, which names the subscription.
        durable: True if the subscription outlives the link.
        capabilities: What else its source asks for: to be shared, and that by all clients.
    """

    name: str
    durable: bool
    capabilities: tuple[str, ...] = ()

    def apply(self, terminus: Any) -> None:
        """Write it into a source of proton."""
        terminus.durability = DELIVERIES if self.durable else 0
        terminus.expiry_policy = EXPIRE_NEVER if self.durable else EXPIRE_WITH_LINK


@dataclass(frozen=True, slots=True)
class Source:
    """What to receive from.

    Args:
        address: Where from.
        selector: Which messages; None for all.
        no_local: True if what this connection sends is not wanted.
        browse: True to look at copies.
        subscription: The named subscription; None if there is none, or one without a name.
        in_use: What the broker says if the subscription has a consumer already, where no condition tells.
        other_kind: What it says if it has a queue where a topic is asked for, or the other way round.
    """

    address: Address
    selector: str | None = None
    no_local: bool = False
    browse: bool = False
    subscription: SubscriptionLink | None = None
    in_use: tuple[str, ...] = ()
    other_kind: tuple[str, ...] = ()

    def check(self) -> None:
        """Refuse texts that cannot be written, before anything is asked for.

        Raises:
            InvalidDestinationError: The address cannot be written, or the subscription's name.
            InvalidSelectorError: The selector is no Unicode text. NUL it may hold: proton counts the bytes of a filter.
        """
        self.address.check()
        if self.subscription is not None:
            Address(self.subscription.name, None).check()
        check_unicode(self.selector, f"The selector {self.selector!a:.200}", InvalidSelectorError)

    @property
    def is_durable(self) -> bool:
        """True if the broker shall keep it when its link detaches."""
        return self.subscription is not None and self.subscription.durable

    def apply(self, terminus: Any) -> None:
        """Write it into a source of proton."""
        more = self.subscription.capabilities if self.subscription else ()
        self.address.apply(terminus, more)
        if filters := self._filters():
            terminus.filter.put_object(filters)
        if self.browse:
            terminus.distribution_mode = COPY
        if self.subscription:
            self.subscription.apply(terminus)

    def attach_error(self, attached: Any) -> JMSError | None:
        """A broker that does not know a filter drops it: then everything would come.

        Args:
            attached: The source that the broker attached.
        """
        wanted = self._filters()
        if not wanted:
            return None
        heeded: Any = (attached.filter.next() and attached.filter.get_object()) or {}
        missing = [str(name) for name in wanted if name not in heeded]
        return NotSupportedError(f"The broker ignored {', '.join(missing)}.") if missing else None

    def refusal_error(self, condition: Any) -> JMSError | None:
        """What the broker's refusal means for this source; None if nothing in particular."""
        if condition is None:
            return None
        text = condition_text(condition)
        if self.selector and condition.name in _BAD_FILTER:
            return InvalidSelectorError(f"The broker refuses the selector: {text}")
        if any(words in text for words in self.other_kind):
            return InvalidDestinationError(
                f"{self.address.name} is there, but not as a {self.address.capability}; ask for the other kind, or for"
                f" another name: {text}"
            )
        if condition.name in _IN_USE or any(words in text for words in self.in_use):
            kind = IllegalStateError if self.subscription else InvalidDestinationError
            return kind(f"{self.address.name} is somebody else's, or in use: {text}")
        return None

    def _filters(self) -> dict[Any, Any]:
        filters: dict[Any, Any] = {}
        if self.selector:
            filters[_SELECTOR[0]] = Described(_SELECTOR[1], self.selector)
        if self.no_local:
            filters[_NO_LOCAL[0]] = Described(_NO_LOCAL[1], [])
        return filters


_DELIMITER = "|"
_GLOBAL_CAPABILITIES = ("shared", "global")


def subscription_link(source: Destination | Subscription, number: int = 1) -> SubscriptionLink | None:
    """Name the link of a consumer of a named subscription; None for any other source.

    Args:
        source: What is consumed from.
        number: Which of the consumers of a shared one, over this connection; from 1.

    Raises:
        InvalidDestinationError: The name cannot be told from what is added to it.
    """
    if not isinstance(source, Subscription) or source.name is None:
        return None
    name = source.name
    if not source.shared:
        return SubscriptionLink(name, durable=True)
    if _DELIMITER in name:
        raise InvalidDestinationError(f"The name of a shared subscription cannot contain {_DELIMITER!r}: {name!r}.")
    common = source.client_id is None
    return SubscriptionLink(
        name + _suffix(number, common=common, durable=source.durable),
        durable=source.durable,
        capabilities=_GLOBAL_CAPABILITIES if common else _GLOBAL_CAPABILITIES[:1],
    )


def _suffix(number: int, *, common: bool, durable: bool) -> str:
    scope = "global" if common else ""
    if not durable:
        return f"{_DELIMITER}{scope}{'-' if common else ''}volatile{number}"
    which = "" if number == 1 else str(number)
    return f"{_DELIMITER}{scope}{which}" if common or which else ""
