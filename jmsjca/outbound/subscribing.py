"""Making consumers and browsers, and ending subscriptions: what sessions and contexts have in common."""

from abc import ABC, abstractmethod

from jmsjca.destinations import Destination, Queue, Subscription, Topic
from jmsjca.errors import InvalidClientIDError, InvalidDestinationError
from jmsjca.outbound.browser import QueueBrowser
from jmsjca.outbound.checks import check_destination, require
from jmsjca.outbound.consumer import MessageConsumer
from jmsjca.outbound.gate import Gate
from jmsjca.outbound.ground import Ground

__all__ = ["Subscribing"]


class Subscribing(ABC):
    """Consumers of queues and of the four sorts of subscriptions (JMS 3.1, sections 8.2 and 8.3)."""

    _ground: Ground
    _gate: Gate

    @abstractmethod
    def _consume(
        self, source: Destination | Subscription, selector: str | None, *, no_local: bool = False
    ) -> MessageConsumer: ...

    def create_consumer(
        self, source: Destination, selector: str | None = None, *, no_local: bool = False
    ) -> MessageConsumer:
        """Make a consumer of a queue, or of a topic from now on (JMS 3.1, sections 8.2 and 8.3.1).

        Args:
            source: The queue or topic.
            selector: Only messages that match; needs the capability ``selectors``.
            no_local: True to be spared what this connection sends to the topic; needs the capability ``no_local``.

        Raises:
            InvalidDestinationError: It is no destination, or a temporary one of another connection.
            InvalidSelectorError: The selector is none.
            NotSupportedError: The broker lacks a capability.
        """
        if no_local and isinstance(source, Queue):
            raise InvalidDestinationError(f"no_local is for topics; {source} is a queue. Use a selector instead.")
        check_destination(source)
        return self._consume(source, selector, no_local=no_local)

    def create_shared_consumer(self, topic: Topic, name: str, selector: str | None = None) -> MessageConsumer:
        """Make one of several consumers that compete for the messages of a subscription (JMS 3.1, section 8.3.2).

        The subscription lives as long as it has consumers. Needs the capability ``shared``.

        Args:
            topic: What is subscribed to.
            name: The subscription's name, unique within the client id, if the connection has one.
            selector: Only messages that match.

        Raises:
            IllegalStateError: The subscription has consumers with another topic or selector.
            InvalidDestinationError: The name is empty, or the topic is none.
            NotSupportedError: The broker lacks a capability.
        """
        return self._subscribe(topic, name, selector, self._ground.client_id, shared=True, volatile=True)

    def create_durable_consumer(
        self, topic: Topic, name: str, selector: str | None = None, *, no_local: bool = False
    ) -> MessageConsumer:
        """Make the one consumer of a durable subscription, which keeps messages meanwhile (JMS 3.1, section 8.3.3).

        Needs the capability ``durable``. A subscription of that name with another topic, selector or ``no_local`` is
        replaced: what waits in it is gone.

        Args:
            topic: What is subscribed to.
            name: The subscription's name, unique within the client id.
            selector: Only messages that match.
            no_local: True to be spared what connections of this client id send.

        Raises:
            InvalidClientIDError: The connection has no client id.
            IllegalStateError: The subscription has a consumer, or is shared.
            InvalidDestinationError: The name is empty, or the topic is none or a temporary one.
            NotSupportedError: The broker lacks a capability.
        """
        return self._subscribe(topic, name, selector, self._needed_client_id(), no_local=no_local)

    def create_shared_durable_consumer(self, topic: Topic, name: str, selector: str | None = None) -> MessageConsumer:
        """Make one of several consumers that compete for a durable subscription (JMS 3.1, section 8.3.4).

        As `create_durable_consumer`, but that it needs no client id, and the capability ``shared`` as well.

        Args:
            topic: What is subscribed to.
            name: The subscription's name, unique within the client id, if the connection has one.
            selector: Only messages that match.

        Raises:
            IllegalStateError: The subscription has consumers with another topic or selector, or is not shared.
            InvalidDestinationError: The name is empty, or the topic is none or a temporary one.
            NotSupportedError: The broker lacks a capability.
        """
        return self._subscribe(topic, name, selector, self._ground.client_id, shared=True)

    def unsubscribe(self, topic: Topic, name: str) -> None:
        """Remove a durable subscription, shared or not, with what waits in it (JMS 3.1, section 8.3.3).

        Args:
            topic: What is subscribed to.
            name: The subscription's name.

        Raises:
            IllegalStateError: It has consumers.
            InvalidClientIDError: The connection has no client id, and the broker no shared subscriptions.
            InvalidDestinationError: There is no such subscription.
        """
        with self._gate:
            link = self._ground.link
            client_id = self._ground.client_id if link.capabilities.shared else self._needed_client_id()
            link.remove(Subscription(topic, name, client_id, shared=client_id is None))

    def create_browser(self, queue: Queue, selector: str | None = None) -> QueueBrowser:
        """Make a browser: iterate over it to look at what waits in a queue, without taking anything (section 4.1.6).

        Args:
            queue: What to look at.
            selector: Only messages that match; needs the capability ``selectors``.
        """
        with self._gate:
            require(self._ground.link, "browse", "queue browsers")
            require(self._ground.link, "selectors", "selectors", wanted=bool(selector))
            return QueueBrowser(self._ground.link, queue, selector, self._gate)

    def _subscribe(
        self,
        topic: Topic,
        name: str,
        selector: str | None,
        client_id: str | None,
        *,
        shared: bool = False,
        volatile: bool = False,
        no_local: bool = False,
    ) -> MessageConsumer:
        link = self._ground.link
        require(link, "durable", "durable subscriptions", wanted=not volatile)
        require(link, "shared", "shared subscriptions", wanted=shared)
        _check_named(topic, name, durable=not volatile)
        subscription = Subscription(topic, name, client_id, shared, volatile)
        return self._consume(subscription, selector, no_local=no_local)

    def _needed_client_id(self) -> str:
        if not self._ground.client_id:
            raise InvalidClientIDError(
                "A durable subscription that is not shared belongs to a client id: give one to the ConnectionFactory "
                "(client_id=…)."
            )
        return self._ground.client_id


def _check_named(topic: Destination, name: str, *, durable: bool) -> None:
    check_destination(topic)
    if not isinstance(topic, Topic) or (durable and topic.temporary):
        raise InvalidDestinationError(
            f"A {'durable' if durable else 'shared'} subscription of {topic} cannot be: it is of a topic that lasts."
        )
    if not name:
        raise InvalidDestinationError(f"A subscription of {topic} that is shared or durable needs a name; it is empty.")
