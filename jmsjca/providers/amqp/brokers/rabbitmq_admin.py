"""The administration of a virtual host of RabbitMQ 4 over AMQP."""

from collections.abc import Callable, Sequence

from jmsjca.config import DestinationSettings
from jmsjca.destinations import Destination, Queue, Subscription
from jmsjca.errors import IllegalStateError, InvalidDestinationError, NotSupportedError
from jmsjca.providers.amqp.admin import creatable_name
from jmsjca.providers.amqp.brokers.rabbitmq_management import ManagementNode
from jmsjca.providers.amqp.codec.addresses import encoded_name
from jmsjca.providers.common.rabbitmq_http_admin import RabbitMQHTTPAdmin
from jmsjca.spi import Activity, Depth

__all__ = ["RabbitMQAdmin", "queue_name", "subscription_queue"]


class RabbitMQAdmin:
    """Administers the queues of a virtual host of RabbitMQ 4 over AMQP.

    Args:
        node: The broker's management.
        declare: Declares a queue, unless it exists.
        api: The administration over HTTP, which lists and counts what the node does not; None without it.
    """

    def __init__(
        self, node: ManagementNode, declare: Callable[[str], object], api: RabbitMQHTTPAdmin | None = None
    ) -> None:
        self._node = node
        self._declare = declare
        self._api = api

    def extended(self, api: RabbitMQHTTPAdmin) -> "RabbitMQAdmin":
        """Return the administration that asks the API over HTTP, too."""
        return RabbitMQAdmin(self._node, self._declare, api)

    def destinations(self) -> Sequence[Destination]:
        """Return the queues and topics.

        Raises:
            NotSupportedError: There is no API over HTTP: the node looks up single queues, and lists none.
        """
        if self._api is None:
            raise NotSupportedError(
                "RabbitMQ does not list its queues over AMQP (capability lists_destinations): add the option"
                " management_url with the URL of its management over HTTP."
            )
        return self._api.destinations()

    def clock(self) -> None:
        """Return None: the node does not report the time."""

    def depth(self, source: Destination | Subscription) -> Depth:
        """Count the messages of a queue or a named subscription. The API alone reports held ones."""
        found = self._node.find_queue(queue_name(source))
        held = self._api.depth(source).held if self._api else 0
        return Depth(found.number("message_count") if found else 0, held, 0)

    def activity(self, source: Destination | Subscription) -> Activity:
        """Count the consumers of a queue or a named subscription. The broker does not count its traffic."""
        found = self._node.find_queue(queue_name(source))
        return Activity(found.number("consumer_count") if found else 0)

    def create(self, queue: Destination) -> None:
        """Create a durable queue, of the type that the URL names; one that exists is no error.

        Raises:
            InvalidDestinationError: It is a topic, or temporary; or the broker refuses the name.
        """
        self._declare(creatable_name(queue))

    def purge(self, source: Destination | Subscription) -> int:
        """Delete the waiting messages; messages that a consumer holds stay."""
        name = queue_name(source)
        return self._node.purge_queue(name) if self._node.find_queue(name) else 0

    def remove(self, queue: Destination) -> None:
        """Delete a queue with its messages.

        Raises:
            InvalidDestinationError: The queue does not exist, or is temporary.
            IllegalStateError: The queue has consumers.
        """
        found = self._node.find_queue(queue.name) if isinstance(queue, Queue) else None
        if found is None or found.get("exclusive") is True:
            raise InvalidDestinationError(f"There is no {queue} to remove, or it is another connection's.")
        if found.number("consumer_count"):
            raise IllegalStateError(f"{queue} still has consumers; close them first.")
        self._node.delete_queue(queue.name)

    def configure(self, address: Destination | None, settings: DestinationSettings) -> None:
        """Raise `NotSupportedError`: settings are arguments of a queue's declaration, or policies of the broker."""
        del settings
        raise NotSupportedError(f"Settings of {address} are made by a policy in the broker.")

    def settings(self, address: Destination | None) -> DestinationSettings:
        """Raise `NotSupportedError`, as `configure` does."""
        raise NotSupportedError(f"Settings of {address} are policies in the broker.")


def queue_name(source: Destination | Subscription) -> str:
    """Return the name of the broker's queue of a queue or a named subscription.

    Raises:
        InvalidDestinationError: It is a topic.
    """
    if isinstance(source, Subscription):
        return subscription_queue(source)
    if not isinstance(source, Queue):
        raise InvalidDestinationError(f"{source} stores no messages itself; name one of its subscriptions.")
    return source.name


def subscription_queue(source: Subscription) -> str:
    """Return the name of the queue of a named subscription. Its owner is the client id, if it has one."""
    parts = "volatile" if source.volatile else "subscription", source.client_id or "", source.name or ""
    return ":".join(map(encoded_name, parts))
