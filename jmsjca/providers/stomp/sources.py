"""What a connection may consume from."""

from jmsjca.config.texts import check_text
from jmsjca.destinations import Destination, Queue, Subscription
from jmsjca.errors import InvalidClientIDError, InvalidDestinationError
from jmsjca.providers.evidence import Broker

__all__ = ["check_no_local", "check_subscription"]


def check_no_local(broker: Broker, source: Destination | Subscription) -> None:
    """Refuse to spare a consumer its own connection's messages where that would not hold.

    Raises:
        NotSupportedError: The broker cannot, or not for durable subscriptions.
        InvalidDestinationError: It is a queue.
    """
    broker.require("no_local")
    if isinstance(source, Queue):
        raise InvalidDestinationError(f"no_local is for topics; consumers of {source} get all messages.")
    broker.require("durable_no_local", asked=isinstance(source, Subscription) and source.durable)


def check_subscription(broker: Broker, source: Destination | Subscription, client_id: str | None) -> None:
    """Refuse a subscription that the broker cannot keep, or that is another client's.

    Raises:
        NotSupportedError: It is shared, or durable, and the broker cannot.
        InvalidClientIDError: It belongs to another client id than the connection's.
        InvalidDestinationError: Its name cannot be written.
    """
    if not isinstance(source, Subscription):
        return
    check_text(source.name, f"The name {source.name!a:.200}", InvalidDestinationError)
    broker.require("shared", asked=source.shared)
    if not source.durable:
        return
    broker.require("durable")
    if not source.client_id or source.client_id != client_id:
        raise InvalidClientIDError(
            f"The durable subscription {source.name!r} belongs to the client id {source.client_id!r}, but this"
            f" connection has {client_id!r}."
        )
