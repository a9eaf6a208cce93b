"""Sources of consumers: what may be consumed from, how it is requested, and unsubscribing."""

import uuid
from dataclasses import dataclass, replace
from typing import Any

from jmsjca.destinations import Destination, Queue, Subscription
from jmsjca.errors import IllegalStateError, InvalidClientIDError, InvalidDestinationError, JMSError, NotSupportedError
from jmsjca.providers.amqp.brokers.profile import AMQPBrokerProfile
from jmsjca.providers.amqp.codec.addresses import Address, address_of
from jmsjca.providers.amqp.engine.engine import Engine
from jmsjca.providers.amqp.engine.proton_ffi import TERMINUS_UNSPECIFIED
from jmsjca.providers.amqp.errors import condition_text
from jmsjca.providers.amqp.links.link import Link
from jmsjca.providers.amqp.links.source import Source, SubscriptionLink, subscription_link
from jmsjca.providers.amqp.temporary_destinations import Temporaries

__all__ = ["ConsumerSpec", "SourceFactory", "unsubscribe", "unsubscribe_global"]


def unsubscribe(engine: Engine, name: str, reply_timeout: float) -> None:
    """End the durable subscription of this name and of this client: attach to it by its name alone, and close.

    Raises:
        InvalidDestinationError: There is none.
        IllegalStateError: It has consumers.
    """
    _attach_and_close(_LookupLink(engine, name, reply_timeout))


def unsubscribe_global(engine: Engine, source: Source, reply_timeout: float) -> None:
    """End a durable subscription of all clients.

    They share its name and not its link, so attach to it as a consumer does, but with another selector: a broker makes
    the subscription anew for that, unless it has consumers. Whether there was one before cannot be seen.

    Args:
        engine: The connection.
        source: The subscription, with its topic.
        reply_timeout: Seconds to wait for the broker's answers.

    Raises:
        IllegalStateError: It has consumers.
    """
    nothing = f"jmsjca_ends = '{uuid.uuid4().hex}'"
    _attach_and_close(_SubscriptionLink(engine, replace(source, selector=nothing), reply_timeout))


def _attach_and_close(link: "_SubscriptionLink") -> None:
    link.attach()
    link.close()
    if link.close_error is not None:
        raise link.close_error


class _SubscriptionLink(Link):
    """A consumer that asks for nothing."""

    def __init__(self, engine: Engine, source: Source, reply_timeout: float) -> None:
        source.check()
        super().__init__(engine, f"the subscription at {source.address.name}", reply_timeout)
        self._source = source
        self.close_error: JMSError | None = None

    def on_closed(self, condition: Any) -> None:
        """The broker may object to the end."""
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
    """A consumer that knows nothing but the name of its link."""

    def __init__(self, engine: Engine, name: str, reply_timeout: float) -> None:
        super().__init__(engine, Source(Address(name, None), subscription=SubscriptionLink(name, True)), reply_timeout)

    def _create(self, session: Any, name: str) -> Any:
        link = super()._create(session, name)
        link.source.type = TERMINUS_UNSPECIFIED  # none: the name alone says which
        return link

    def _refusal_error(self, condition: Any) -> JMSError:
        return InvalidDestinationError(f"There is nothing to remove as {self._purpose}: {condition_text(condition)}")


@dataclass(frozen=True, slots=True)
class ConsumerSpec:
    """What a consumer asked for.

    Args:
        source: What it consumes from.
        selector: What it selects.
        no_local: True if it is spared what its own connection sends.
        number: Which of the consumers of a shared subscription it is.
    """

    source: Destination | Subscription
    selector: str | None = None
    no_local: bool = False
    ordinal: int = 1

    @property
    def topic(self) -> Destination:
        """The queue or topic itself."""
        return self.source.topic if isinstance(self.source, Subscription) else self.source


class SourceFactory:
    """Makes the sources of links.

    Args:
        broker: What is at the other end.
        temporaries: The temporary destinations of the connection.
        client_id: What durable subscriptions belong to; None if none was given.
    """

    def __init__(self, broker: AMQPBrokerProfile, temporaries: Temporaries, client_id: str | None) -> None:
        self._broker = broker
        self._temporaries = temporaries
        self._client_id = client_id

    def check_consumable(self, source: Destination | Subscription, *, no_local: bool) -> None:
        """See whether somebody may consume from there.

        Raises:
            NotSupportedError: The broker cannot do that.
            InvalidClientIDError: It is the subscription of another client id.
            InvalidDestinationError: It is a temporary one of another connection, or cannot be had so.
        """
        data = self._broker.data
        data.require("no_local", requested=no_local)
        if not isinstance(source, Subscription):
            if no_local and isinstance(source, Queue):
                raise InvalidDestinationError(f"Only subscribers of topics can be spared own messages, not {source}.")
            self._temporaries.check_own(source)
            return
        data.require("shared", requested=source.shared)
        data.require("durable", requested=source.durable)
        data.require("durable_no_local", requested=source.durable and not source.shared and no_local)
        if no_local and source.shared:
            raise NotSupportedError("A shared subscription cannot be spared what its own connection sends.")
        self.check_client_id(source)
        self._temporaries.check_own(source.topic)
        if source.durable and source.topic.temporary:
            raise InvalidDestinationError(f"A subscription of {source.topic} cannot outlive it.")

    def check_client_id(self, subscription: Subscription) -> None:
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

    def check_unsubscribable(self, what: Subscription) -> None:
        """See whether a subscription is one that can be ended.

        Raises:
            InvalidDestinationError: It ends by itself.
            InvalidClientIDError: It is that of another client id.
            NotSupportedError: It is everybody's, and the broker knows none of these.
        """
        if not what.durable:
            raise InvalidDestinationError(f"A subscription of {what.topic} that is not durable ends by itself.")
        self.check_client_id(what)
        self._broker.data.require("shared", requested=what.shared and what.client_id is None)

    def for_consumer(self, terms: ConsumerSpec) -> Source:
        """What a consumer attaches to."""
        selector = self._translate_selector(terms.selector)
        return Source(
            self._address(terms.topic),
            selector=f"({selector})" if selector and terms.no_local else selector,  # some put "AND …" behind it
            no_local=terms.no_local,
            subscription=subscription_link(terms.source, terms.ordinal),
            in_use=self._broker.in_use_texts,
            other_kind=self._broker.other_kind_texts,
        )

    def for_browser(self, queue: Destination, selector: str | None) -> Source:
        """What a browser attaches to."""
        self._temporaries.check_own(queue)
        chosen, other_kind = self._translate_selector(selector), self._broker.other_kind_texts
        return Source(self._address(queue), selector=chosen, browse=True, other_kind=other_kind)

    def _address(self, what: Destination) -> Address:
        return address_of(self._temporaries.named(what), self._broker.naming)

    def _translate_selector(self, selector: str | None) -> str | None:
        self._broker.data.require("selectors", requested=bool(selector))
        return self._broker.translate_selector(selector) if selector else None
