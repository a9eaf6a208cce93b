"""What may be consumed from, and how it is asked for at the broker."""

from jmsjca.destinations import Destination, Queue, Subscription
from jmsjca.errors import InvalidClientIDError, InvalidDestinationError, NotSupportedError
from jmsjca.providers.amqp.addresses import Address, address_of
from jmsjca.providers.amqp.broker import AMQPBroker
from jmsjca.providers.amqp.consumers import Terms
from jmsjca.providers.amqp.source import Source
from jmsjca.providers.amqp.subscription import subscription_link
from jmsjca.providers.amqp.temporary import Temporaries

__all__ = ["Sources"]


class Sources:
    """Makes the sources of links.

    Args:
        broker: What is at the other end.
        temporaries: The temporary destinations of the connection.
        client_id: What durable subscriptions belong to; None if none was given.
    """

    def __init__(self, broker: AMQPBroker, temporaries: Temporaries, client_id: str | None) -> None:
        self._broker = broker
        self._temporaries = temporaries
        self._client_id = client_id

    def check(self, source: Destination | Subscription, *, no_local: bool) -> None:
        """See whether somebody may consume from there.

        Raises:
            NotSupportedError: The broker cannot do that.
            InvalidClientIDError: It is the subscription of another client id.
            InvalidDestinationError: It is a temporary one of another connection, or cannot be had so.
        """
        data = self._broker.data
        data.require("no_local", asked=no_local)
        if not isinstance(source, Subscription):
            if no_local and isinstance(source, Queue):
                raise InvalidDestinationError(f"Only subscribers of topics can be spared own messages, not {source}.")
            self._temporaries.check_own(source)
            return
        data.require("shared", asked=source.shared)
        data.require("durable", asked=source.durable)
        data.require("durable_no_local", asked=source.durable and not source.shared and no_local)
        if no_local and source.shared:
            raise NotSupportedError("A shared subscription cannot be spared what its own connection sends.")
        self.check_client(source)
        self._temporaries.check_own(source.topic)
        if source.durable and source.topic.temporary:
            raise InvalidDestinationError(f"A subscription of {source.topic} cannot outlive it.")

    def check_client(self, subscription: Subscription) -> None:
        """See whose a subscription is: a shared one may be everybody's.

        Raises:
            InvalidClientIDError: It is that of another client id.
        """
        if subscription.client_id is None and (subscription.shared or not subscription.durable):
            return
        if not self._client_id or subscription.client_id not in {None, self._client_id}:
            raise InvalidClientIDError(
                f"The durable subscription {subscription.name!r} belongs to the client id {subscription.client_id!r}, "
                f"and this connection has {self._client_id!r}."
            )

    def check_removable(self, what: Subscription) -> None:
        """See whether a subscription is one that can be ended.

        Raises:
            InvalidDestinationError: It ends by itself.
            InvalidClientIDError: It is that of another client id.
            NotSupportedError: It is everybody's, and the broker knows none of these.
        """
        if not what.durable:
            raise InvalidDestinationError(f"A subscription of {what.topic} that is not durable ends by itself.")
        self.check_client(what)
        self._broker.data.require("shared", asked=what.shared and what.client_id is None)

    def of(self, terms: Terms) -> Source:
        """What a consumer attaches to."""
        selector = self._filter(terms.selector)
        return Source(
            self._address(terms.topic),
            selector=f"({selector})" if selector and terms.no_local else selector,  # some put "AND …" behind it
            no_local=terms.no_local,
            subscription=subscription_link(terms.source, terms.number),
            in_use=self._broker.in_use,
            other_kind=self._broker.other_kind,
        )

    def of_copies(self, queue: Destination, selector: str | None) -> Source:
        """What a browser attaches to."""
        self._temporaries.check_own(queue)
        chosen, other_kind = self._filter(selector), self._broker.other_kind
        return Source(self._address(queue), selector=chosen, browse=True, other_kind=other_kind)

    def _address(self, what: Destination) -> Address:
        return address_of(self._temporaries.named(what), self._broker.naming)

    def _filter(self, selector: str | None) -> str | None:
        self._broker.data.require("selectors", asked=bool(selector))
        return self._broker.filter_of(selector) if selector else None
