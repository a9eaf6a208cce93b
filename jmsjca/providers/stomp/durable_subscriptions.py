"""Durable subscriptions: one consumer and one topic for each name, and their removal."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Protocol, TypeVar

from jmsjca.config.text import check_text
from jmsjca.destinations import Destination, Subscription, Topic
from jmsjca.errors import IllegalStateError, InvalidDestinationError
from jmsjca.providers.common.broker_profile import BrokerProfile
from jmsjca.providers.common.subscriptions import foreign_subscription_error
from jmsjca.providers.stomp.brokers.dialect import Dialect
from jmsjca.providers.stomp.protocol.session import STOMPSession

__all__ = ["DurableSubscriptions", "check_subscription"]


C = TypeVar("C", bound="_Consumer")


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
        self._changing: dict[str, object] = {}  # by name: a token of the call that opens a consumer, or removes

    def open(self, source: Destination | Subscription, open_consumer: Callable[[], C]) -> C:
        """Open a consumer; of a durable subscription only if it has none.

        Args:
            source: The queue, topic or subscription.
            open_consumer: Opens it.

        Raises:
            IllegalStateError: It has a consumer on this connection, or units that hold messages of an earlier one; or
                another thread opens one, or removes the subscription.
            InvalidDestinationError: The name belongs to another topic on this connection. The broker would move it.
        """
        if not isinstance(source, Subscription) or source.name is None:
            return open_consumer()
        with self._reserved(source.name):
            self._assign_topic(source, source.name)
            consumer = open_consumer()
            self._consumers[source.name] = consumer
        return consumer

    def remove(self, source: Subscription) -> None:
        """Remove a subscription from the broker.

        Raises:
            IllegalStateError: It is in use on this connection.
            InvalidDestinationError: It does not exist, as far as this connection can know.
        """
        with self._reserved(source.name or ""):
            self._remove(source)

    def _remove(self, source: Subscription) -> None:
        if self._dialect.confirms_unknown_unsubscribe and source.name not in self._topics:
            raise InvalidDestinationError(
                f"This connection has had no consumer of the durable subscription {source.name!r}, and over STOMP"
                f" {self._dialect.broker.name} does not report whether it exists. Open a consumer of it first."
            )
        self._dialect.remove_subscription(self._session, source, self._open_side_session)
        self._topics.pop(source.name or "", None)

    def _assign_topic(self, source: Subscription, name: str) -> None:
        if self._dialect.recreates_moved_subscriptions:
            self._topics[name] = source.topic
        topic = self._topics.setdefault(name, source.topic)
        if topic != source.topic:
            raise InvalidDestinationError(
                f"The durable subscription {name!r} of {source.client_id!r} belongs to {topic}, not to"
                f" {source.topic}. Remove it first, or use another name."
            )

    @contextmanager
    def _reserved(self, name: str) -> Generator[None]:
        """Reserve a subscription without a consumer for this thread, which opens one or removes the subscription."""
        token = object()
        try:
            if self._changing.setdefault(name, token) is not token:
                raise IllegalStateError(
                    f"The durable subscription {name!r} is in use: another thread opens its consumer, or removes it."
                )
            self._check_unused(name)
            yield
        finally:
            if self._changing.get(name) is token:
                del self._changing[name]

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
