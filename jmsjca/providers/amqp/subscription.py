"""What the links of named subscriptions are called, by the conventions of Java's JMS clients."""

from jmsjca.destinations import Destination, Subscription
from jmsjca.errors import InvalidDestinationError
from jmsjca.providers.amqp.source import SubscriptionLink

__all__ = ["subscription_link"]

_DELIMITER = "|"
_COMMON = ("shared", "global")


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
        capabilities=_COMMON if common else _COMMON[:1],
    )


def _suffix(number: int, *, common: bool, durable: bool) -> str:
    scope = "global" if common else ""
    if not durable:
        return f"{_DELIMITER}{scope}{'-' if common else ''}volatile{number}"
    which = "" if number == 1 else str(number)
    return f"{_DELIMITER}{scope}{which}" if common or which else ""
