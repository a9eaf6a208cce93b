"""What a receiving link reads from, as it is written into an attach frame."""

from typing import Any

from proton import Described, symbol

from jmsjca.providers.amqp.addresses import Address
from jmsjca.providers.amqp.constants import COPY, DELIVERIES, EXPIRE_NEVER

__all__ = ["Source"]

_SELECTOR = symbol("apache.org:selector-filter:string")


class Source:
    """What to receive from.

    Args:
        address: Where from.
        selector: Which messages; None for all.
        browse: True to look at copies.
        durable: The name of a durable subscription; None if it ends with the link.
    """

    def __init__(
        self, address: Address, *, selector: str | None = None, browse: bool = False, durable: str | None = None
    ) -> None:
        self.address = address
        self.selector = selector
        self.browse = browse
        self.durable = durable

    def apply(self, terminus: Any) -> None:
        """Write it into a source of proton."""
        self.address.apply(terminus)
        if self.selector:
            terminus.filter.put_object({symbol("jms-selector"): Described(_SELECTOR, self.selector)})
        if self.browse:
            terminus.distribution_mode = COPY
        if self.durable:
            terminus.durability = DELIVERIES
            terminus.expiry_policy = EXPIRE_NEVER
