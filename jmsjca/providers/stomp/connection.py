"""A STOMP connection: its consumers, durable subscriptions and temporary destinations."""

import threading
import uuid
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from contextlib import contextmanager
from functools import partial
from typing import Literal
from weakref import WeakSet

from jmsjca.config import Clock, Limits
from jmsjca.config.connection_url import check_text
from jmsjca.destinations import Destination, DestinationKind, Queue, Subscription, Topic
from jmsjca.errors import (
    ConnectionLostError,
    IllegalStateError,
    InvalidDestinationError,
    InvalidSelectorError,
    JMSError,
    NotSupportedError,
)
from jmsjca.providers.brokers.profile import foreign_subscription_error
from jmsjca.providers.common.network import OwnedDestinations
from jmsjca.providers.stomp.consumer import (
    RenewingSubscription,
    STOMPConsumer,
    STOMPDelivery,
    SubscriptionSet,
    default_window,
)
from jmsjca.providers.stomp.dialect import Dialect, destination_of
from jmsjca.providers.stomp.errors import translating_errors
from jmsjca.providers.stomp.protocol.frames import Frame
from jmsjca.providers.stomp.protocol.session import STOMPSession
from jmsjca.providers.stomp.unit import STOMPUnit
from jmsjca.spi import Admin, Capabilities, Connection, Order

__all__ = [
    "DurableSubscriptions",
    "STOMPConnection",
    "TemporaryDestinations",
    "_ConsumerRegistry",
]


class STOMPConnection:
    """A connection: opens consumers and units. It never reconnects.

    Args:
        session: The session, logged in.
        dialect: The dialect of the broker.
        open_side_session: Opens another session, for requests that may end it.
        client_id: The client id that durable subscriptions belong to; None for none.
        limits: The limits of memory and prefetching.
        clock: Source of time.
        create_admin: Creates the administration over HTTP; None without it.
    """

    def __init__(
        self,
        session: STOMPSession,
        dialect: Dialect,
        open_side_session: Callable[[], STOMPSession],
        *,
        client_id: str | None,
        limits: Limits,
        clock: Clock,
        create_admin: Callable[[Connection], Admin] | None = None,
    ) -> None:
        self._session = session
        self._open_side_session = open_side_session
        session.dispatcher.receipt_confirmed_by = dialect.receipt_confirmed_by
        self._durables = DurableSubscriptions(session, dialect, open_side_session)
        self._temporaries = TemporaryDestinations(session, dialect, open_side_session)
        self._consumers = _ConsumerRegistry(session, dialect, limits, clock)
        self._dialect = dialect
        self._broker = dialect.broker
        self._client_id = client_id
        self._limits = limits
        self._lock = threading.Lock()
        self._units: WeakSet[STOMPUnit] = WeakSet()
        self._closed = False
        self._lost: JMSError | None = None
        self._create_admin = create_admin

    @property
    def capabilities(self) -> Capabilities:
        """The capabilities of the broker over STOMP."""
        return self._broker.capabilities

    @property
    def broker(self) -> str:
        """The product and the version in the header ``server`` of the login response."""
        return self._dialect.server

    def consumer(
        self,
        source: Destination | Subscription,
        *,
        selector: str | None = None,
        no_local: bool = False,
        order: Order = Order.PREFIX,
        window: int | None = None,
        together: int = 1,
    ) -> STOMPConsumer:
        """Open a consumer of a queue, a topic or a durable subscription."""
        del together  # a unit takes any delivery
        self._check_open()
        self._broker.require("selectors", requested=bool(selector))
        source = Subscription(source) if isinstance(source, Topic) else source
        self._require(source, no_local=no_local)
        self._temporaries.check_owned(source)
        self._dialect.look_up(destination_of(source), self._open_side_session)
        open_consumer = partial(
            self._consumers.open, source, selector=selector, no_local=no_local, order=order, window=window
        )
        return self._durables.open(source, selector or None, open_consumer)

    def browse(
        self, queue: Destination, *, selector: str | None = None, limit: int | None = None
    ) -> Iterator[Sequence[STOMPDelivery]]:
        """Raise an error: no broker lets a queue be browsed over STOMP as JMS requires it."""
        self._check_open()
        del selector, limit
        if not isinstance(queue, Queue):
            raise InvalidDestinationError(f"Only a queue can be browsed, not {queue}.")
        raise NotSupportedError(f"{self._dialect.broker.name} cannot be browsed over STOMP.")

    def unit(self, *, atomic: bool = True) -> STOMPUnit:
        """Open a unit of work. Without `atomic`, sends are confirmed before deliveries are acknowledged.

        Raises:
            NotSupportedError: `atomic` is requested, and the broker cannot acknowledge and send in one transaction.
        """
        self._check_open()
        self._broker.require("atomic", requested=atomic)
        unit = STOMPUnit(self._session, self._dialect, self._limits.message_bytes, self._prepare_target)
        with self._lock:
            self._units.add(unit)
        return unit

    def check(self, target: Destination) -> None:
        """Check the name of a destination. Over STOMP a broker reports only at a SEND whether it accepts messages.

        Raises:
            InvalidDestinationError: The broker would interpret the name.
        """
        self._check_open()
        self._dialect.address(target)

    def temporary(self, kind: Literal["queue", "topic"]) -> Destination:
        """Create a temporary destination, which the broker removes with this connection."""
        self._check_open()
        self._broker.require("temporary")
        with translating_errors(f"make a temporary {kind}"):
            return self._temporaries.create(kind)

    def remove(self, what: Destination | Subscription) -> None:
        """Remove a durable subscription and its backlog, or give up a temporary destination.

        Raises:
            NotSupportedError: It is a permanent destination, or the broker cannot remove it.
            InvalidDestinationError: It does not exist.
            IllegalStateError: It has consumers.
        """
        self._check_open()
        if isinstance(what, Subscription) and what.durable:
            self._require(what)
            with translating_errors(f"remove the subscription {what.name}"):
                self._durables.remove(what)
            return
        keeper = None if isinstance(what, Subscription) else self._temporaries if what.temporary else self.admin()
        if isinstance(what, Subscription) or keeper is None:
            raise NotSupportedError(f"{self._dialect.broker.name} removes no destinations over STOMP.")
        if self._consumers.use(what):
            raise IllegalStateError(f"{what} has consumers.")
        keeper.remove(what)

    def admin(self) -> Admin | None:
        """Return the administration over HTTP; None without it: STOMP has no management operations."""
        self._check_open()
        return None if self._create_admin is None else self._create_admin(self)

    def close(self, timeout: float | None = None) -> None:
        """Disconnect and wait for the receipt. The deliveries of open units are redelivered.

        With 0 the connection is aborted, also while it is being closed.
        """
        if self._session.home.in_child:
            return  # a forked child: its parent closes it
        with self._lock:
            if self._closed and timeout != 0:
                return
            self._closed = True
        if timeout == 0:
            self._session.abort()
        self._lose(ConnectionLostError("This connection was closed."))
        if timeout != 0:
            self._session.close(self._session.reply_timeout if timeout is None else timeout)

    def lost(self, error: JMSError) -> None:
        """Fail all units and consumers: the connection broke."""
        self._lost = error
        self._lose(error)

    def _prepare_target(self, to: Destination) -> None:
        """Check that a target was not removed, and find out how it is addressed."""
        self._temporaries.check_not_removed(to)
        self._dialect.look_up(to, self._open_side_session)

    def _require(self, source: Destination | Subscription, *, no_local: bool = False) -> None:
        """Raise an error for a source that the broker does not support, or that belongs to another client id."""
        self._broker.require_source(source, self._client_id, no_local=no_local)
        if isinstance(source, Subscription):
            check_text(source.name, f"The name {source.name!a:.200}", InvalidDestinationError)
            if source.durable and source.client_id is None:
                raise foreign_subscription_error(source, self._client_id)

    def _lose(self, error: JMSError) -> None:
        with self._lock:
            units = list(self._units)
        for unit in units:
            unit.lost = True
        self._consumers.broken(error)

    def _check_open(self) -> None:
        if self._closed:
            raise IllegalStateError("This connection is closed.")
        if self._lost is not None:
            raise ConnectionLostError(str(self._lost)) from self._lost


class _ConsumerRegistry:
    """The consumers of one connection.

    Args:
        session: The session.
        dialect: The dialect of the broker.
        limits: The limits of memory and prefetching.
        clock: Source of time.
    """

    def __init__(self, session: STOMPSession, dialect: Dialect, limits: Limits, clock: Clock) -> None:
        self._session = session
        self._dialect = dialect
        self._limits = limits
        self._clock = clock
        self._lock = threading.Lock()
        self._open: set[STOMPConsumer] = set()
        self._broken: JMSError | None = None

    def open(
        self,
        source: Destination | Subscription,
        *,
        selector: str | None,
        no_local: bool,
        order: Order,
        window: int | None,
    ) -> STOMPConsumer:
        """Open a consumer and subscribe.

        Raises:
            InvalidSelectorError: The selector holds NUL or half of a surrogate pair.
            JMSError: The broker refuses.
        """
        check_text(selector, f"The selector {selector!a:.200}", InvalidSelectorError)
        ahead = default_window(order, self._limits.prefetch_messages) if window is None else window
        ack = "client" if self._dialect.acks_cumulatively and order is Order.PREFIX else "client-individual"
        chosen = self._filter_headers(selector, no_local=no_local)
        supply = partial(
            self._subscription_class(source), self._session, self._dialect, source, chosen, ack=ack, window=ahead
        )
        target, size = destination_of(source), self._limits.prefetch_bytes
        with translating_errors(f"consume from {target}"):
            consumer = STOMPConsumer(target, self._dialect, supply, order=order, max_bytes=size, clock=self._clock)
        self._register(consumer)
        return consumer

    def use(self, what: Destination) -> bool:
        """Return True if this connection has an open consumer of a destination."""
        return any(c.source == what and not c.is_finished for c in list(self._open))

    def broken(self, error: JMSError) -> None:
        """Fail all consumers, also those that are opened later: the connection broke."""
        with self._lock:
            self._broken = error
            told = list(self._open)
        for consumer in told:
            consumer.on_connection_lost(error)

    def _subscription_class(self, source: Destination | Subscription) -> Callable[..., SubscriptionSet]:
        lasting = source.durable if isinstance(source, Subscription) else True
        if lasting and self._dialect.may_withhold_first_message:
            return partial(RenewingSubscription, clock=self._clock)
        return SubscriptionSet

    def _filter_headers(self, selector: str | None, *, no_local: bool) -> Mapping[str, str]:
        selected = self._dialect.selector(selector) if selector else {}
        return {**selected, **self._dialect.no_local} if no_local else selected

    def _register(self, consumer: STOMPConsumer) -> None:
        with self._lock:
            self._open = {c for c in self._open if not c.is_finished} | {consumer}
            broken = self._broken
        if broken is not None:  # the connection broke while the consumer was opened
            consumer.on_connection_lost(broken)


_NAMES = {"destination": "/topic/jmsjca.temporaries"}
"""Topic over which a side session learns the name of a new temporary destination."""


class TemporaryDestinations(OwnedDestinations[None]):
    """The temporary destinations of a connection.

    The broker creates one when a frame names it, and shows its real name to other sessions only.

    Args:
        session: The session.
        dialect: The dialect of the broker.
        open_side_session: Opens another session.
    """

    def __init__(self, session: STOMPSession, dialect: Dialect, open_side_session: Callable[[], STOMPSession]) -> None:
        super().__init__()
        self._session = session
        self._dialect = dialect
        self._open_side_session = open_side_session

    def create(self, kind: DestinationKind) -> Destination:
        """Create a temporary destination.

        Raises:
            BrokerRefusedError: The broker refuses it.
            ConnectionLostError: The broker does not report its name.
        """
        mark = uuid.uuid4().hex
        told = self._ask(mark, {"correlation-id": mark, "reply-to": f"/temp-{kind}/{mark}"})
        made = self._dialect.read_address(told)
        if made is None or not made.temporary:
            raise ConnectionLostError(f"The broker gave a temporary {kind} no name, but {told[:100]!r}.")
        self._add(made, None)
        return made

    def remove(self, what: Destination) -> None:
        """Stop using a temporary destination; the broker keeps it until the connection ends.

        Raises:
            InvalidDestinationError: It does not belong to this connection.
        """
        self._discard(what)

    def _ask(self, mark: str, headers: dict[str, str]) -> str:
        heard: Future[str] = Future()

        def on_frames(frames: Sequence[Frame]) -> None:
            """Find the message of this connection among the messages of other connections."""
            for frame in frames:
                if frame.headers.get("correlation-id") == mark and not heard.done():
                    heard.set_result(frame.headers.get("reply-to", ""))

        session = self._open_side_session()
        try:
            session.dispatcher.add_listener("names", on_frames)
            session.request("SUBSCRIBE", {"id": "names", "ack": "auto", **_NAMES})
            self._session.request("SEND", {**_NAMES, **headers})
            return heard.result(self._session.reply_timeout)
        except FutureTimeoutError as error:
            raise ConnectionLostError("The broker did not report the name of a temporary destination.") from error
        finally:
            session.close(session.reply_timeout)


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
        self._known: dict[str, tuple[Topic, str | None]] = {}  # topic and selector by name
        self._consumers: dict[str, STOMPConsumer] = {}
        self._changing: dict[str, object] = {}  # by name: a token of the call that opens a consumer, or removes

    def open(
        self, source: Destination | Subscription, selector: str | None, open_consumer: Callable[[], STOMPConsumer]
    ) -> STOMPConsumer:
        """Open a consumer; of a durable subscription only if it has none.

        Args:
            source: The queue, topic or subscription.
            selector: The selector of the consumer.
            open_consumer: Opens it.

        Raises:
            IllegalStateError: It has a consumer on this connection, or units that hold messages of an earlier one; or
                another thread opens one, or removes the subscription.
            InvalidDestinationError: The name belongs to another topic or selector on this connection, and the broker
                does not recreate the subscription.
        """
        if not isinstance(source, Subscription) or source.name is None:
            return open_consumer()
        with self._reserved(source.name):
            wanted = source.topic, selector
            known = self._known.get(source.name, wanted)
            if not self._dialect.recreates_changed(source, selector, self._open_side_session) and known != wanted:
                raise InvalidDestinationError(
                    f"The durable subscription {source.name!r} of {source.client_id!r} exists with {known[0]} and the"
                    f" selector {known[1]!r:.200}, not with {source.topic} and {selector!r:.200}. Remove it first, or"
                    " use another name."
                )
            consumer = open_consumer()
            self._consumers[source.name] = consumer
            self._known[source.name] = wanted
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
        if self._dialect.confirms_unknown_unsubscribe and source.name not in self._known:
            raise InvalidDestinationError(
                f"This connection has had no consumer of the durable subscription {source.name!r}, and over STOMP"
                f" {self._dialect.broker.name} does not report whether it exists. Open a consumer of it first."
            )
        self._dialect.remove_subscription(self._session, source, self._open_side_session)
        self._known.pop(source.name or "", None)

    @contextmanager
    def _reserved(self, name: str) -> Generator[None]:
        """Reserve a subscription without a consumer for this thread, which opens one or removes the subscription."""
        token = object()
        try:
            if self._changing.setdefault(name, token) is not token:
                raise IllegalStateError(
                    f"The durable subscription {name!r} is in use: another thread opens its consumer, or removes it."
                )
            consumer = self._consumers.get(name)
            if consumer is not None and not consumer.is_finished:
                raise IllegalStateError(
                    f"The durable subscription {name!r} is in use: close its consumer, and end the units that hold"
                    " messages of it."
                )
            yield
        finally:
            if self._changing.get(name) is token:
                del self._changing[name]
