"""The provider of ``java+…://`` URLs, and its connections: brokers that are reached by their own client of Java."""

import struct
import sys
import threading
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from contextlib import suppress
from itertools import count
from typing import Any, Literal, cast
from weakref import WeakSet

from jmsjca.config import Clock, ConnectionURL, Credentials, Limits
from jmsjca.config.connection_url import check_text
from jmsjca.destinations import Destination, Queue, Subscription, Topic, destination
from jmsjca.errors import (
    ConnectionLostError,
    IllegalStateError,
    InvalidDestinationError,
    InvalidSelectorError,
    JMSError,
    JMSSecurityError,
    NotSupportedError,
    TransactionInDoubtError,
    TransactionRolledBackError,
    excerpt,
)
from jmsjca.forking import ForkGuard
from jmsjca.providers.common.network import OwnedDestinations
from jmsjca.providers.java.bridge import (
    BridgeReplyError,
    Channel,
    FrameReader,
    pack_bytes,
    pack_text,
    parts_of_bridge,
    shared_bridge,
)
from jmsjca.providers.java.clients import Client, JavaOptions, Recipe, find_jars, namespace_of, recipe_of, translated
from jmsjca.providers.java.codec import pack_destination
from jmsjca.providers.java.consumer import JavaConsumer, JavaDelivery, JavaUnit, read_deliveries
from jmsjca.spi import Admin, Capabilities, Order, Xid

__all__ = ["JavaConnection", "JavaProvider"]

_CONNECT, _CLOSE, _CONSUMER = 1, 2, 3
_ROLLBACK = 8
_BROWSE, _BROWSE_NEXT, _BROWSE_CLOSE, _TEMPORARY, _DELETE, _UNSUBSCRIBE, _CHECK = range(9, 16)
_END, _RECOVER = 17, 18
_HEURISTIC_ROLLBACK = 6
_HEURISTICS = {5: "mixed", 6: "rolled back", 7: "committed", 8: "unknown, or in part"}
_U32 = struct.Struct(">I")
_BROWSED = 100  # messages in one chunk


class JavaConnection:
    """A connection: opens consumers and units. It never reconnects.

    Args:
        channel: The requests to the bridge.
        client: The client.
        about: The product and version, as the client names them.
        client_id: The client id that durable subscriptions belong to; None for none.
        limits: The limits of memory and prefetching.
        timeout: Seconds to wait for each reply.
        qualifier: The qualifier of the branches of XA; None without them.
    """

    def __init__(
        self,
        channel: Channel,
        client: Client,
        about: str,
        *,
        client_id: str | None,
        limits: Limits,
        timeout: float,
        qualifier: bytes | None = None,
    ) -> None:
        self._channel = channel
        self._client = client
        self._client_id = client_id
        self._limits = limits
        self._timeout = timeout
        self._home = ForkGuard()
        self._lock = threading.Lock()
        self._numbers = count(1)
        self._units: WeakSet[JavaUnit] = WeakSet()
        self._consumers: WeakSet[JavaConsumer] = WeakSet()
        self._temporaries = _Temporaries()
        self._closed = False
        self._loss: JMSError | None = None
        self.broker = about
        self.qualifier = qualifier
        self.decider: Any = None

    @property
    def capabilities(self) -> Capabilities:
        """The capabilities of the broker with this client."""
        return self._client.profile.capabilities

    def consumer(
        self,
        source: Destination | Subscription,
        *,
        selector: str | None = None,
        no_local: bool = False,
        order: Order = Order.PREFIX,
        window: int | None = None,
        together: int = 1,
    ) -> JavaConsumer:
        """Open a consumer of a queue, a topic or a subscription. Nothing is prefetched, whatever the window.

        A unit is the transaction of one JMS session: all that is outstanding with `Order.PREFIX`, one message
        otherwise, or the messages of one `JavaConsumer.receive` that gets more ``together``. A subscription that is not
        shared has one session only: its next messages come once the earlier ones are settled.
        """
        del window
        self._check_open()
        self._check_source(source, selector, no_local=no_local)
        subscription = source if isinstance(source, Subscription) else Subscription(cast("Topic", source))
        target = source.topic if isinstance(source, Subscription) else source
        name = next(self._numbers)
        flags = bytes([subscription.shared, subscription.durable, no_local])
        self.ask(
            f"consume from {target}",
            _CONSUMER,
            _U32.pack(name),
            pack_destination(target),
            pack_text(subscription.name),
            flags,
            pack_text(self._client.selector(selector)),
            bytes([order is Order.PREFIX]),
            _U32.pack(together),
        )
        made = JavaConsumer(self, name, target, order=order, max_bytes=self._limits.prefetch_bytes)
        with self._lock:
            self._consumers.add(made)
        if self._loss is not None:
            made.on_connection_lost(self._loss)
        return made

    def browse(
        self, queue: Destination, *, selector: str | None = None, limit: int | None = None
    ) -> Iterator[Sequence[JavaDelivery]]:
        """Browse a queue in chunks."""
        self._check_open()
        if not isinstance(queue, Queue):
            raise InvalidDestinationError(f"Only a queue can be browsed, not {queue}.")
        self._client.profile.require("browse")
        self._client.check_name(queue)
        check_text(selector, f"The selector {selector!a:.200}", InvalidSelectorError)
        return self._browse(queue, selector, limit)

    def unit(self, *, atomic: bool = True) -> JavaUnit:
        """Open a unit of work; it is always atomic."""
        del atomic
        self._check_open()
        unit = JavaUnit(
            self,
            self._client,
            self._limits.message_bytes,
            self._timeout,
            end=self.end,
            check_target=self._check_target,
            qualifier=self.qualifier,
        )
        with self._lock:
            self._units.add(unit)
        return unit

    def check(self, target: Destination) -> None:
        """Ask the client for a producer, which creates the destination on some brokers.

        Raises:
            InvalidDestinationError: It cannot be used.
        """
        self._check_open()
        self._check_target(target)
        try:
            self.ask(f"send to {target}", _CHECK, pack_destination(target))
        except JMSError as error:
            if isinstance(error, ConnectionLostError):
                raise
            raise InvalidDestinationError(str(error)) from error

    def temporary(self, kind: Literal["queue", "topic"]) -> Destination:
        """Create a temporary destination, which the broker removes with this connection."""
        self._check_open()
        self._client.profile.require("temporary")
        name = self.ask(f"make a temporary {kind}", _TEMPORARY, b"\1" if kind == "queue" else b"\2").text()
        made = destination(name or "", kind, temporary=True)
        self._temporaries.add(made)
        return made

    def remove(self, what: Destination | Subscription) -> None:
        """Remove a durable subscription and its backlog, or a temporary destination.

        Raises:
            NotSupportedError: It is a permanent destination: JMS cannot remove it.
            InvalidDestinationError: It does not exist.
            IllegalStateError: It has consumers.
        """
        self._check_open()
        if isinstance(what, Subscription) and what.durable:
            self._check_source(what, None, no_local=False)
            self.ask(f"remove the subscription {what.name}", _UNSUBSCRIBE, pack_text(what.name))
        elif isinstance(what, Destination) and what.temporary:
            self._check_free(what)
            self._temporaries.discard(what)
            kind = b"\1" if what.kind == "queue" else b"\2"
            self.ask(f"remove {what}", _DELETE, kind, pack_text(what.name))
        else:
            raise NotSupportedError(f"{what} cannot be removed by a client of JMS: use the broker's administration.")

    def admin(self) -> Admin | None:
        """Return None: JMS has no administration."""
        self._check_open()
        return None

    def close(self, timeout: float | None = None) -> None:
        """Close the connection. The deliveries of open units are redelivered. A close that hangs is abandoned."""
        if self._home.in_child:
            return  # its parent closes it
        with self._lock:
            if self._closed:
                return
            self._closed = True
        reply = self._start_close() if self._loss is None else None
        self._lose(ConnectionLostError("This connection was closed."))
        if reply is not None:
            with suppress(BridgeReplyError, FutureTimeoutError, JMSError):
                reply.result(self._timeout if timeout is None else timeout)
        self._channel.close()

    def lost(self, error: JMSError) -> None:
        """Fail all units and consumers: the connection broke."""
        self._loss = error if self._loss is None else self._loss
        self._lose(error)

    def end(self, error: JMSError) -> None:
        """End the connection: a commit is in doubt, or a call was interrupted."""
        if self._closed or self._loss is not None:
            return
        self._loss = error
        self._start_close()
        self._channel.lost(error)

    def ask(self, doing: str, operation: int, *body: bytes) -> FrameReader:
        """Send a request, and wait for its reply."""
        return self.wait(doing, self.start(operation, *body), self._timeout)

    def start(self, operation: int, *body: bytes) -> "Future[FrameReader]":
        """Send a request."""
        self._home.check()
        return self._channel.start(operation, *body)

    def wait(self, doing: str, reply: "Future[FrameReader]", timeout: float | None = None) -> FrameReader:
        """Wait for a reply."""
        try:
            return reply.result(timeout)
        except BridgeReplyError as error:
            if self._loss is not None:
                raise ConnectionLostError(str(self._loss)) from error
            raise translated(error, self._client, doing, JMSError) from error
        except FutureTimeoutError as error:
            reason = ConnectionLostError(f"The broker has not answered within {timeout:g} seconds: cannot {doing}.")
            self.end(reason)
            raise reason from error

    def roll_back(self, transactions: Sequence[int]) -> None:
        """Roll back transactions, which are in the order of receipt, so that the broker has the messages in order."""
        in_order = transactions if self._client.appends_returned else reversed(transactions)
        names = (name.to_bytes(8, "big") for name in in_order)
        self.ask("roll back", _ROLLBACK, _U32.pack(len(transactions)), *names)

    def prepared(self) -> Sequence[Xid]:
        """Return the prepared branches of the broker that this library has made."""
        self._check_open()
        found = self.ask("list prepared branches", _RECOVER)
        return [Xid(found.bytes() or b"", found.bytes() or b"") for _ in range(found.count())]

    def end_prepared(self, xid: Xid, *, commits: bool, transaction: int = 0) -> None:
        """Commit or roll back a prepared branch. No effect if recovery has ended it.

        Args:
            xid: Its name.
            commits: True to commit it.
            transaction: The number of the JMS transaction of its deliveries; 0 if it has none in this connection.

        Raises:
            TransactionRolledBackError: The broker has rolled it back, by a heuristic decision or after a failure.
            TransactionInDoubtError: The broker has ended it in part, or has committed what should be rolled back.
            ConnectionLostError: The connection is lost.
        """
        self._check_open()
        doing = f"{'commit' if commits else 'roll back'} the prepared branch {xid}"
        body = (transaction.to_bytes(8, "big"), pack_bytes(xid.number), pack_bytes(xid.qualifier), bytes([commits]))
        code = self.ask(doing, _END, *body).u8()
        if not code:
            return
        kind = TransactionRolledBackError if commits and code == _HEURISTIC_ROLLBACK else TransactionInDoubtError
        raise kind(
            f"Cannot {doing}: the broker has already ended it otherwise, by a heuristic decision (code {code} of XA: "
            f"{_HEURISTICS.get(code, 'unknown')}). Compare the database with the queues by hand."
        )

    def _start_close(self) -> "Future[FrameReader] | None":
        try:
            return self.start(_CLOSE)
        except ConnectionLostError:
            return None

    def _browse(self, queue: Queue, selector: str | None, limit: int | None) -> Iterator[Sequence[JavaDelivery]]:
        name, doing, sequence = _U32.pack(next(self._numbers)), f"browse {queue}", count()
        self.ask(doing, _BROWSE, name, pack_destination(queue), pack_text(self._client.selector(selector)))
        left = sys.maxsize if limit is None else limit
        try:
            while left > 0:
                wanted = _U32.pack(min(left, _BROWSED))
                chunk = read_deliveries(self.ask(doing, _BROWSE_NEXT, name, wanted), sequence, None)
                if not chunk:
                    return
                left -= len(chunk)
                yield chunk
        finally:
            if self._loss is None and not self._closed:
                self.ask(doing, _BROWSE_CLOSE, name)

    def _lose(self, error: JMSError) -> None:
        with self._lock:
            units, consumers = list(self._units), list(self._consumers)
        for unit in units:
            unit.lost = True
        for consumer in consumers:
            consumer.on_connection_lost(error)

    def _check_open(self) -> None:
        self._home.check()
        if self._closed:
            raise IllegalStateError("This connection is closed.")
        if self._loss is not None:
            raise ConnectionLostError(str(self._loss)) from self._loss

    def _check_target(self, to: Destination) -> None:
        self._client.check_name(to)
        self._temporaries.check_not_removed(to)

    def _check_free(self, what: Destination) -> None:
        if any(c.source == what and not c.closed for c in list(self._consumers)):
            raise IllegalStateError(f"{what} has consumers.")

    def _check_source(self, source: Destination | Subscription, selector: str | None, *, no_local: bool) -> None:
        self._client.profile.require("selectors", requested=bool(selector))
        check_text(selector, f"The selector {selector!a:.200}", InvalidSelectorError)
        self._client.profile.require_source(source, self._client_id, no_local=no_local)
        self._temporaries.check_owned(source)
        self._client.check_name(source.topic if isinstance(source, Subscription) else source)
        if isinstance(source, Subscription):
            check_text(source.name, f"The name {source.name!a:.200}", InvalidDestinationError)


class _Temporaries(OwnedDestinations[None]):
    """The temporary destinations of a connection."""

    def add(self, made: Destination) -> None:
        """Record one that was made."""
        self._add(made, None)

    def discard(self, what: Destination) -> None:
        """Forget one that is removed."""
        self._discard(what)


class JavaProvider:
    """Connects by a vendor's own client of Java, in a Java process beside this one."""

    @staticmethod
    def check_url(url: ConnectionURL) -> JavaOptions:
        """Check a URL without a connection; return its options.

        Raises:
            ConfigurationError: An option is unknown, or its value is invalid.
        """
        return recipe_of(url).options

    @staticmethod
    def inspect(url: ConnectionURL) -> Iterator[tuple[str, str]]:
        """Yield what a connection needs on this machine, as name and detail, and check it without a broker.

        Raises:
            JMSError: Something is missing. Its text says how to add it.
        """
        recipe = recipe_of(url)
        yield from parts_of_bridge()
        jars = find_jars(recipe.options, url)
        yield "client's jars", f"{len(jars)} with the API {namespace_of(jars)}.jms, from {excerpt(jars[0])}"

    def connect(
        self,
        url: ConnectionURL,
        credentials: Credentials | None,
        *,
        client_id: str | None,
        limits: Limits,
        clock: Clock,
        on_lost: Callable[[JMSError], None],
    ) -> JavaConnection:
        """Connect and log in.

        Raises:
            ConfigurationError: The URL or an option in it cannot be used.
            ProviderNotInstalledError: There is no Java, or no jar of the bridge.
            JMSSecurityError: The broker refuses the user, or the password would go in the clear.
            ConnectionLostError: The broker cannot be reached.
        """
        del clock
        return self._connect(url, credentials, client_id, limits, on_lost, None)

    def connect_two_phase(
        self,
        url: ConnectionURL,
        credentials: Credentials | None,
        *,
        client_id: str | None,
        limits: Limits,
        clock: Clock,
        on_lost: Callable[[JMSError], None],
        decider: bytes,
    ) -> JavaConnection:
        """Connect as `connect` does, so that each unit is a branch of XA, where the client and the URL permit it.

        Args:
            url: As for `connect`.
            credentials: As for `connect`.
            client_id: As for `connect`.
            limits: As for `connect`.
            clock: As for `connect`.
            on_lost: As for `connect`.
            decider: The identity of the database that decides the units.
        """
        del clock
        broker = ",".join(sorted(map(str, url.addresses))).encode()
        qualifier = decider + zlib.crc32(broker).to_bytes(4, "big") if recipe_of(url).xa_factory else None
        return self._connect(url, credentials, client_id, limits, on_lost, qualifier)

    @staticmethod
    def _connect(
        url: ConnectionURL,
        credentials: Credentials | None,
        client_id: str | None,
        limits: Limits,
        on_lost: Callable[[JMSError], None],
        qualifier: bytes | None,
    ) -> JavaConnection:
        recipe = recipe_of(url)
        options = recipe.options
        if credentials and credentials.password and not (recipe.encrypted or options.allow_insecure_login):
            raise JMSSecurityError(
                f"{url} would send the password of {credentials.user_name!r} in the clear, as far as this URL shows."
                " Use TLS (the option tls=true; for IBM MQ SSLCipherSuite). On a network that you trust, or if the"
                " factory itself uses TLS, use the option allow_insecure_login=true."
            )
        jars = find_jars(options, url)
        user = credentials.user_name if credentials else None
        password = credentials.password if credentials else None
        made: list[JavaConnection] = []

        def ended(reason: JMSError) -> None:
            """Report the loss to the connection's consumers and units first, then to the caller, who may reconnect."""
            for connection in made:
                connection.lost(reason)
            on_lost(reason)

        channel = shared_bridge().channel(ended, *filter(None, (password, *recipe.secrets)))
        body = _connect_body(recipe, jars, (user, password, client_id), qualifier if options.xa else None)
        asked = channel.start(_CONNECT, *body)
        try:
            reply = asked.result(options.connect_timeout)
        except BridgeReplyError as error:
            channel.close()
            named = f" with the client id {client_id!r}" if client_id else ""
            raise translated(error, recipe.clients[0], f"connect to {url}{named}") from error
        except FutureTimeoutError as error:
            asked.add_done_callback(lambda _: channel.start(_CLOSE))
            raise ConnectionLostError(f"No answer of {url} in {options.connect_timeout:g} seconds.") from error
        about, client = f"{reply.text()}/{reply.text()}", recipe.clients[reply.u8()]
        made.append(
            JavaConnection(
                channel,
                client,
                about,
                client_id=client_id,
                limits=limits,
                timeout=options.reply_timeout,
                qualifier=reply.bytes(),
            )
        )
        return made[0]


def _connect_body(
    recipe: Recipe, jars: Sequence[str], login: Sequence[str | None], qualifier: bytes | None
) -> tuple[bytes, ...]:
    """Return the request for a connection."""
    namespace = namespace_of(tuple(jars))
    in_jakarta = {"jakarta": "jakarta." if namespace == "jakarta" else ""}
    timeout = round(recipe.options.reply_timeout * 1000)
    factory = ((qualifier and recipe.xa_factory) or recipe.factory).format(**in_jakarta)
    texts = (namespace, "\n".join(jars), factory, recipe.lookup, recipe.url)
    body = [*map(pack_text, texts), _pack_pairs(recipe.settings), _pack_pairs(recipe.destinations)]
    body += map(pack_text, (*login, *recipe.tls_files))
    body.append(_U32.pack(len(recipe.clients)))
    for client in recipe.clients:
        beans = {name: value.format(timeout=timeout) for name, value in client.beans.items()}
        body += [pack_text(client.factory.format(**in_jakarta)), _pack_pairs(beans), pack_text(client.address)]
        body += [bytes([client.flags]), pack_text("\n".join(client.changed))]
    return (*body, pack_bytes(qualifier))


def _pack_pairs(pairs: Mapping[str, str]) -> bytes:
    return _U32.pack(len(pairs)) + b"".join(pack_text(text) for pair in pairs.items() for text in pair)
