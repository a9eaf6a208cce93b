"""Rules for subscriptions that hold over every network protocol (JMS 3.1, sections 6.1.2 and 8.3)."""

from jmsjca.destinations import Destination, Queue, Subscription
from jmsjca.errors import InvalidClientIDError, InvalidDestinationError, NotSupportedError
from jmsjca.providers.common.broker_profile import BrokerProfile

__all__ = ["check_no_local", "foreign_subscription_error"]


def check_no_local(broker: BrokerProfile, source: Destination | Subscription) -> None:
    """Check that a consumer can exclude the messages of its own connection.

    Raises:
        NotSupportedError: The broker does not support it for this kind of subscription, or the subscription is shared.
        InvalidDestinationError: The source is a queue.
    """
    broker.require("no_local")
    if isinstance(source, Queue):
        raise InvalidDestinationError(f"no_local applies to subscribers of topics, not to {source}.")
    if isinstance(source, Subscription):
        if source.shared:
            raise NotSupportedError("A shared subscription cannot use no_local; use one that is not shared.")
        broker.require("durable_no_local", requested=source.durable)


def foreign_subscription_error(subscription: Subscription, client_id: str | None) -> InvalidClientIDError:
    """Return the error for a durable subscription that belongs to another client id than the connection's."""
    return InvalidClientIDError(
        f"The durable subscription {subscription.name!r} belongs to the client id {subscription.client_id!r}, and this"
        f" connection has {client_id!r}."
    )
