"""Durable subscriptions: one consumer and one topic for each name, and their removal."""

from collections.abc import Callable
from typing import Protocol

from jmsjca.config.text import check_text
from jmsjca.destinations import Destination, Subscription, Topic
from jmsjca.errors import IllegalStateError, InvalidDestinationError
from jmsjca.providers.common.broker_profile import BrokerProfile
from jmsjca.providers.common.subscriptions import foreign_subscription_error
from jmsjca.providers.stomp.brokers.dialect import Dialect
from jmsjca.providers.stomp.protocol.session import STOMPSession

__all__ = ["DurableSubscriptions", "check_subscription"]


class _Consumer(Protocol):
    @property
    def is_finished(self) -> bool:
        """True if it is closed and no unit holds anything of it."""
        ...


class DurableSubscriptions:
    """The durable subscriptions that this connection has used; no broker lists them over STOMP.

    Args:
        session: The session.
        dialect: The dialect of the broker.
        open_side_session: Opens another session, for requests that may end it.
    """

    def __init__(self, session: STOMPSession, dialect: Dialect, open_side_session: Callable[[], STOMPSession]) -> None:
        self._session = session
        self._dialect = dialect
        self._open_side_session = open_side_session
        self._topics: dict[str, Topic] = {}
        self._consumers: dict[str, _Consumer] = {}

    def reserve(self, source: Destination | Subscription) -> None:
        """Reserve the name of a subscription for its topic, before a consumer is opened.

        Raises:
            IllegalStateError: It has a consumer on this connection, or units that hold messages of an earlier one.
            InvalidDestinationError: The name belongs to another topic on this connection. The broker would move it.
        """
        if not isinstance(source, Subscription) or source.name is None:
            return
        self._check_unused(source.name)
        if self._dialect.recreates_moved_subscriptions:
            self._topics[source.name] = source.topic
        topic = self._topics.setdefault(source.name, source.topic)
        if topic != source.topic:
            raise InvalidDestinationError(
                f"The durable subscription {source.name!r} of {source.client_id!r} belongs to {topic}, not to"
                f" {source.topic}. Remove it first, or use another name."
            )

    def register_consumer(self, source: Destination | Subscription, consumer: _Consumer) -> None:
        """Register the consumer of a subscription."""
        if isinstance(source, Subscription) and source.name is not None:
            self._consumers[source.name] = consumer

    def remove(self, source: Subscription) -> None:
        """Remove a subscription from the broker.

        Raises:
            IllegalStateError: It is in use on this connection.
            InvalidDestinationError: It does not exist, as far as this connection can know.
        """
        self._check_unused(source.name or "")
        if self._dialect.confirms_unknown_unsubscribe and source.name not in self._topics:
            raise InvalidDestinationError(
                f"This connection has had no consumer of the durable subscription {source.name!r}, and over STOMP"
                f" {self._dialect.broker.name} does not report whether it exists. Open a consumer of it first."
            )
        self._dialect.remove_subscription(self._session, source, self._open_side_session)
        self._topics.pop(source.name or "", None)

    def _check_unused(self, name: str) -> None:
        consumer = self._consumers.get(name)
        if consumer is not None and not consumer.is_finished:
            raise IllegalStateError(
                f"The durable subscription {name!r} is in use: close its consumer, and end the units that hold"
                " messages of it."
            )


def check_subscription(broker: BrokerProfile, source: Destination | Subscription, client_id: str | None) -> None:
    """Raise an error for a subscription that the broker does not support, or of another client id.

    Raises:
        NotSupportedError: It is shared or durable, and the broker does not support that.
        InvalidClientIDError: Its client id is not that of the connection.
        InvalidDestinationError: Its name holds NUL or half of a surrogate pair.
    """
    if not isinstance(source, Subscription):
        return
    check_text(source.name, f"The name {source.name!a:.200}", InvalidDestinationError)
    broker.require("shared", requested=source.shared)
    if not source.durable:
        return
    broker.require("durable")
    if not source.client_id or source.client_id != client_id:
        raise foreign_subscription_error(source, client_id)
