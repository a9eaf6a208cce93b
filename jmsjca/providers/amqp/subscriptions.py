"""Sources of consumers: checks, source termini, and unsubscribing."""

import uuid
from dataclasses import dataclass, replace
from typing import Any

from jmsjca.destinations import Destination, Subscription
from jmsjca.errors import IllegalStateError, InvalidDestinationError, JMSError
from jmsjca.providers.amqp.brokers.profile import AMQPBrokerProfile
from jmsjca.providers.amqp.codec.addresses import Address, address_of
from jmsjca.providers.amqp.engine.engine import Engine
from jmsjca.providers.amqp.engine.proton_ffi import TERMINUS_UNSPECIFIED
from jmsjca.providers.amqp.errors import condition_text
from jmsjca.providers.amqp.links.link import Link
from jmsjca.providers.amqp.links.source import Source, SubscriptionLink, subscription_link
from jmsjca.providers.common.subscriptions import check_no_local, foreign_subscription_error
from jmsjca.providers.common.temporary_destinations import OwnedDestinations

__all__ = ["ConsumerSpec", "SourceFactory", "unsubscribe", "unsubscribe_global"]


def unsubscribe(engine: Engine, name: str, reply_timeout: float) -> None:
    """Remove a durable subscription of this client id: attach a link of its name without a source, and close it.

    Raises:
        InvalidDestinationError: The subscription does not exist.
        IllegalStateError: The subscription has consumers.
    """
    _attach_and_close(_LookupLink(engine, name, reply_timeout))


def unsubscribe_global(engine: Engine, source: Source, reply_timeout: float) -> None:
    """Remove a durable subscription that is shared between clients (without a client id).

    The consumers share the name of the subscription and not the link. So attach as a consumer does, but with another
    selector: for that the broker recreates the subscription, unless it has consumers. Whether the subscription existed
    before cannot be detected.

    Args:
        engine: The connection's engine.
        source: The subscription, with its topic.
        reply_timeout: Seconds to wait for each reply of the broker.

    Raises:
        IllegalStateError: The subscription has consumers.
    """
    nothing = f"jmsjca_ends = '{uuid.uuid4().hex}'"
    _attach_and_close(_SubscriptionLink(engine, replace(source, selector=nothing), reply_timeout))


def _attach_and_close(link: "_SubscriptionLink") -> None:
    link.attach()
    link.close()
    if link.close_error is not None:
        raise link.close_error


class _SubscriptionLink(Link):
    """A receiver link without credit, which attaches to a subscription to close it."""

    def __init__(self, engine: Engine, source: Source, reply_timeout: float) -> None:
        source.check()
        super().__init__(engine, f"the subscription at {source.address.name}", reply_timeout)
        self._source = source
        self.close_error: JMSError | None = None

    def on_closed(self, condition: Any) -> None:
        """Record the error with which the broker refuses to remove the subscription."""
        if condition is not None and self._attached.done():
            self.close_error = IllegalStateError(
                f"The broker does not end {self._purpose}: {condition_text(condition)}"
            )
        super().on_closed(condition)

    def _create(self, session: Any, name: str) -> Any:
        link = session.receiver(self._source.subscription.name if self._source.subscription else name)
        self._source.apply(link.source)
        link.target.address = name
        return link

    def _is_refused(self) -> bool:
        return self._link.remote_source.address is None

    def _refusal_error(self, condition: Any) -> JMSError:
        return self._source.refusal_error(condition) or super()._refusal_error(condition)


class _LookupLink(_SubscriptionLink):
    """A link that finds its subscription by the link name alone."""

    def __init__(self, engine: Engine, name: str, reply_timeout: float) -> None:
        super().__init__(engine, Source(Address(name, None), subscription=SubscriptionLink(name, True)), reply_timeout)

    def _create(self, session: Any, name: str) -> Any:
        link = super()._create(session, name)
        link.source.type = TERMINUS_UNSPECIFIED  # no source: the link name identifies the subscription
        return link

    def _refusal_error(self, condition: Any) -> JMSError:
        return InvalidDestinationError(f"There is nothing to remove as {self._purpose}: {condition_text(condition)}")


@dataclass(frozen=True, slots=True)
class ConsumerSpec:
    """The parameters of a consumer.

    Args:
        source: The destination or subscription.
        selector: The message selector; None for all messages.
        no_local: True to exclude messages that the same connection sent.
        ordinal: The number of the consumer among those of a shared subscription, from 1 on.
    """

    source: Destination | Subscription
    selector: str | None = None
    no_local: bool = False
    ordinal: int = 1

    @property
    def topic(self) -> Destination:
        """The queue, or the topic of the subscription."""
        return self.source.topic if isinstance(self.source, Subscription) else self.source


class SourceFactory:
    """Creates the source termini of a connection's receiver links.

    Args:
        broker: The profile of the broker.
        temporaries: The temporary destinations of the connection.
        client_id: The client id, the owner of durable subscriptions; None without one.
    """

    def __init__(self, broker: AMQPBrokerProfile, temporaries: OwnedDestinations[Any], client_id: str | None) -> None:
        self._broker = broker
        self._temporaries = temporaries
        self._client_id = client_id

    def check_consumable(self, source: Destination | Subscription, *, no_local: bool) -> None:
        """Check that this connection may consume from a source.

        Raises:
            NotSupportedError: The broker does not support such a consumer.
            InvalidClientIDError: The subscription belongs to another client id.
            InvalidDestinationError: The source is a temporary destination of another connection, or not valid for
                such a consumer.
        """
        broker = self._broker
        if no_local:
            check_no_local(broker, source)
        if not isinstance(source, Subscription):
            self._temporaries.check_owned(source)
            return
        broker.require("shared", requested=source.shared)
        broker.require("durable", requested=source.durable)
        self.check_client_id(source)
        self._temporaries.check_owned(source)

    def check_client_id(self, subscription: Subscription) -> None:
        """Check that a subscription belongs to this client id. A shared subscription may belong to all clients.

        Raises:
            InvalidClientIDError: The subscription belongs to another client id.
        """
        if subscription.client_id is None and (subscription.shared or not subscription.durable):
            return
        if not self._client_id or subscription.client_id not in {None, self._client_id}:
            raise foreign_subscription_error(subscription, self._client_id)

    def check_unsubscribable(self, what: Subscription) -> None:
        """Check that this connection can remove a subscription.

        Raises:
            InvalidDestinationError: The subscription is not durable, so it ends with its last consumer.
            InvalidClientIDError: The subscription belongs to another client id.
            NotSupportedError: The subscription is shared between clients, which the broker does not support.
        """
        if not what.durable:
            raise InvalidDestinationError(f"A subscription of {what.topic} that is not durable ends by itself.")
        self.check_client_id(what)
        self._broker.require("shared", requested=what.shared and what.client_id is None)

    def for_consumer(self, terms: ConsumerSpec) -> Source:
        """Return the source of a consumer."""
        selector = self._translate_selector(terms.selector)
        return Source(
            self._address(terms.topic),
            selector=f"({selector})" if selector and terms.no_local else selector,  # some brokers append "AND …"
            no_local=terms.no_local,
            subscription=subscription_link(terms.source, terms.ordinal),
            in_use=self._broker.in_use_texts,
            other_kind=self._broker.other_kind_texts,
        )

    def for_browser(self, queue: Destination, selector: str | None) -> Source:
        """Return the source of a browser."""
        self._temporaries.check_owned(queue)
        chosen, other_kind = self._translate_selector(selector), self._broker.other_kind_texts
        return Source(self._address(queue), selector=chosen, browse=True, other_kind=other_kind)

    def _address(self, what: Destination) -> Address:
        return address_of(self._temporaries.resolve(what), self._broker.naming)

    def _translate_selector(self, selector: str | None) -> str | None:
        self._broker.require("selectors", requested=bool(selector))
        return self._broker.translate_selector(selector) if selector else None
