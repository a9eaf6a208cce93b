"""The connection factory, the entry point for sending and receiving."""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from types import NoneType
from typing import Any, TypeVar

from jmsjca.arguments import (
    CALLABLE,
    FLAG,
    SECONDS,
    SECRET_OR_NONE,
    TEXT_OR_NONE,
    Constraint,
    GuardedAttributes,
    check,
    plain_text,
)
from jmsjca.config.connection_url import (
    CREDENTIALS,
    ConnectionURL,
    CredentialSource,
    Login,
    absolute_url,
    add_options,
    is_url,
)
from jmsjca.config.limits import AcknowledgeMode, FactoryKind, Limits
from jmsjca.config.naming import LOOKUP, NamingContext
from jmsjca.config.options import OutboundOptions, jmsjca_options, provider_options, read_options
from jmsjca.destinations import DestinationKind
from jmsjca.errors import ConfigurationError, InvalidOptionError, InvalidURLError, excerpt
from jmsjca.hooks import HookChain, Hooks
from jmsjca.messages.converters import Converters
from jmsjca.outbound.connection import Connection, SharedConnection
from jmsjca.outbound.context import JMSContext, create_context
from jmsjca.outbound.delivery_sends import SendScope
from jmsjca.outbound.pool import ConnectionPool
from jmsjca.outbound.sender import Sender, SendsMessages
from jmsjca.outbound.session import checked_acknowledge_mode
from jmsjca.providers import find_provider
from jmsjca.reconnection import ConnectionSettings, LastResource

__all__ = [
    "ARGUMENTS",
    "FACTORIES",
    "ConnectionFactory",
    "QueueConnectionFactory",
    "TopicConnectionFactory",
    "look_up_factory",
]

C = TypeVar("C", bound=Connection)

ARGUMENTS: dict[str, Constraint[Any]] = {
    "connection_url": Constraint(
        "a str, such as 'embedded:///var/lib/app/broker.db' or 'amqp://localhost:5672'",
        str,
        error=InvalidURLError,
        secret=True,
    ),
    "user_name": SECRET_OR_NONE,
    "password": SECRET_OR_NONE,
    "client_id": TEXT_OR_NONE,
    "limits": Constraint("a Limits(…) or None", (Limits, NoneType)),
    "producer_pooling": FLAG,
    "credentials": CREDENTIALS,
    "converters": Constraint("a Converters() or None", (Converters, NoneType)),
    "last_resource": Constraint("a LastResource(…) of jmsjca.transactions, or None", (LastResource, NoneType)),
}
"""The arguments of a factory; an adapter has some of them, too."""

_creating = threading.Lock()
_SENDERS = 8  # connections: of all brokers, one is busy with far more than eight threads send
_PATIENCE = 30.0  # seconds


@dataclass(frozen=True, slots=True, repr=False)
class _Given:
    """The arguments of a factory that name its broker. Without a text form: they may be secret."""

    connection_url: str
    user_name: str | None
    password: str | None
    credentials: CredentialSource | None
    options: dict[str, str]

    def resolve(self, naming: NamingContext | None) -> tuple[Login, dict[str, str]]:
        """Return the login and the options. The factory that is bound to the URL supplies the values that are missing.

        Raises:
            NameNotFoundError: The name of a ``lookup://`` URL is not bound.
            ConfigurationError: The object that is bound to it is not a connection factory.
            InvalidURLError: The user name is a URL that does not parse.
        """
        login, options = Login(self.connection_url), self.options
        if self.connection_url.startswith(LOOKUP):
            bound = look_up_factory(self.connection_url, naming)
            login, options = bound.login, {**bound.own_options, **options}
        if self.credentials is not None:
            return Login(login.url, self.user_name, source=self.credentials), options
        if is_url(self.user_name):
            return login.override(self.user_name, self.password), options
        return login.fill_in(self.user_name, self.password), options


_OF_POOLS = {"JMSJCA.poolminsize", "JMSJCA.poolmaxsize", "JMSJCA.pooltimeout", "JMSJCA.idletimeout", "JMSJCA.nocfcache"}


@dataclass(frozen=True, slots=True)
class _Conduct:
    """Settings of the sessions of a connection, derived from the options of JMSJCA."""

    options: OutboundOptions
    locator: Callable[[], Any] | None
    producer_pooling: bool

    @classmethod
    def of(
        cls, effective: Mapping[str, str], locator: Callable[[], Any] | None, *, producer_pooling: bool
    ) -> "_Conduct":
        """Return the conduct for effective options, and what the factory was given instead of them."""
        options = OutboundOptions.of(effective, has_locator=locator is not None)
        found = _locator(locator, options) if options.managed else None
        pooling = options.producer_pooling
        return cls(options, found, producer_pooling if pooling is None else pooling)


class ConnectionFactory(GuardedAttributes, SendsMessages):
    """Creates connections to one broker. It opens nothing by itself, and can be pickled if its hooks can.

    A pickled factory holds its password. With ``credentials`` as a reference (``env:NAME``, ``file:PATH``) or an
    importable function it holds none.

    Args:
        connection_url: URL of the broker, for example ``embedded:///var/lib/app/broker.db``; or ``lookup://name`` for
            the URL, the credentials and the options of the factory that is bound to a name. It is looked up once; with
            the option ``JMSJCA.nocfcache``, which a pickled factory does not follow, for each connection.
        user_name: User name; None for the one in the URL, if any. A connection URL here takes the place of
            ``connection_url`` (see `create_connection`).
        password: Password of ``user_name``; ignored without a user name. It appears in no text form.
        credentials: Takes the place of user name and password: a pair of both; a function that returns a pair, called
            at each new connection; or ``env:NAME`` or ``file:PATH``, read at each new connection, which hold
            ``user:password``, or only the password of ``user_name``.
        client_id: Client id of the connections, which one connection at a time can use; owns durable subscriptions.
        options: Options of JMSJCA for outbound connections, and of the provider: a mapping, or text for
            `parse_options`. Options in the URL take precedence.
        limits: Bounds of each connection; None for the defaults.
        hooks: Hooks around sends, the outermost first. They are pickled with the factory.
        producer_pooling: True if each session keeps closed producers for reuse (JMSJCA manual, "ProducerPooling");
            ``JMSJCA.producerpooling`` overrides it.
        idle_timeout: Seconds without a successful use after which a pooled connection is checked; the option
            ``JMSJCA.idletimeout`` overrides it.
        retry_timeout: Seconds for which `send` and its siblings are repeated while the broker cannot be reached; 0
            never repeats them; the option ``JMSJCA.retrytimeout`` (milliseconds) overrides it.
        naming: Where ``lookup://`` names are looked up; None for `NamingContext.default`. It is not pickled.
        converters: Converts the bodies that `send` and its siblings take; None for `Converters.default`.
        transaction_locator: Returns the transaction manager of the caller, such as ``lambda: transaction.manager``, or
            None: sessions take part in the caller's transaction. None leaves that to ``JMSJCA.LocatorClass`` and
            ``JMSJCA.ACC``. It is pickled with the factory. Messages of `send` and its siblings are never part of it.
        last_resource: A `jmsjca.transactions.LastResource`: where the broker can prepare (XA), units that are part of
            the caller's transaction commit together with the database, or not at all. It is not pickled.

    Raises:
        InvalidURLError: The URL is not a str, or cannot be parsed.
        InvalidArgumentError: Another argument has a wrong type or value.
        InvalidOptionError: An option of JMSJCA is unknown, or its value is invalid.
        NameNotFoundError: The name of a ``lookup://`` URL is not bound.
        ConfigurationError: ``credentials`` has an unknown form; or the object that is bound to the name is not a
            connection factory.
    """

    _domain: DestinationKind | None = None

    def __init__(
        self,
        connection_url: str,
        *,
        user_name: str | None = None,
        password: str | None = None,
        credentials: CredentialSource | None = None,
        client_id: str | None = None,
        options: str | Mapping[str, str] | None = None,
        limits: Limits | None = None,
        hooks: Sequence[Hooks] = (),
        producer_pooling: bool = False,
        idle_timeout: float | timedelta = 30.0,
        naming: NamingContext | None = None,
        converters: Converters | None = None,
        transaction_locator: Callable[[], Any] | None = None,
        retry_timeout: float | timedelta = 30.0,
        last_resource: LastResource | None = None,
    ) -> None:
        check(ARGUMENTS, connection_url=connection_url, user_name=user_name, password=password, client_id=client_id)
        check(ARGUMENTS, limits=limits, producer_pooling=producer_pooling)
        check(ARGUMENTS, credentials=credentials, converters=converters, last_resource=last_resource)
        idle_timeout, retry_timeout = SECONDS("idle_timeout", idle_timeout), SECONDS("retry_timeout", retry_timeout)
        self._naming = naming
        self._converters = converters
        self._pool: ConnectionPool | None = None
        self._receiving: ConnectionPool | None = None
        self._sender: Sender | None = None
        self._scope: SendScope | None = None
        self._last_resource = last_resource
        given = _Given(absolute_url(connection_url), user_name, password, credentials, read_options(options))
        self._login, self._own_options = given.resolve(naming)
        self._url = ConnectionURL.parse(self._login.url)
        self._limits = limits or Limits()
        self._client_id = None if client_id is None else plain_text(client_id)
        self._hooks = HookChain(hooks)
        effective = {**jmsjca_options(self._own_options), **jmsjca_options(self._url.query)}
        if transaction_locator is not None:
            CALLABLE("transaction_locator", transaction_locator)
        self._conduct_of = partial(_Conduct.of, locator=transaction_locator, producer_pooling=producer_pooling)
        self._conduct = self._conduct_of(effective)
        looks_up = connection_url.startswith(LOOKUP) and self.options.no_factory_cache
        self._lookup = given if looks_up else None
        idle = self.options.idle_timeout
        self._idle_timeout = idle_timeout if idle is None else idle
        repeated = self.options.retry_timeout
        self._retry_timeout = retry_timeout if repeated is None else repeated

    @property
    def login(self) -> Login:
        """The connection URL and the credentials; the password appears in no text form."""
        return self._login

    @property
    def own_options(self) -> dict[str, str]:
        """The options that were given to the factory, without the options of its URL."""
        return dict(self._own_options)

    @property
    def client_id(self) -> str | None:
        """The client id of the connections; None without one."""
        return self._client_id

    @property
    def options(self) -> OutboundOptions:
        """The options of JMSJCA, including the options of the URL."""
        return self._conduct.options

    @property
    def producer_pooling(self) -> bool:
        """True if each session keeps closed producers for reuse."""
        return self._conduct.producer_pooling

    @property
    def idle_timeout(self) -> float:
        """Seconds without a successful use after which a pooled connection is checked."""
        return self._idle_timeout

    def create_connection(self, user_name: str | None = None, password: str | None = None) -> Connection:
        """Open a connection. Consumers receive once it is started; entering it with ``with`` starts it.

        Args:
            user_name: User name; None for the factory's. A connection URL here is used instead of the factory's URL,
                with the ``username`` and ``password`` of its query, for instance
                ``amqp://other:5672?username=shop&password=…``; without them the factory's credentials are used
                (JMSJCA manual, "Overloaded username"). Options of JMSJCA in it take precedence over the factory's
                options. Options in the factory's URL have no effect.
            password: Password of ``user_name``; ignored without a user name.

        Raises:
            UnknownSchemeError: No provider is registered for the URL's scheme.
            ProviderNotInstalledError: The provider's client library is missing.
            InvalidClientIDError: Another connection has the client id.
            ArgumentTypeError: An argument has a wrong type.
            InvalidOptionError: An option in the URL is invalid, or is one of pools.
            JMSError: The broker cannot be reached, or refuses the connection.
        """
        return self._connect(Connection, self._settings_for(user_name, password), self._conduct_for(user_name))

    @property
    def sender(self) -> Sender:
        """A `Sender` over a pool of this factory's connections, which is created at the first use.

        `close` closes the pool. A pickled factory does not carry it.
        """
        with _creating:
            if self._sender is None:
                self._pool = ConnectionPool(_WithoutTransactions(self), max_size=_SENDERS, timeout=_PATIENCE)
                if self._client_id is None:  # otherwise the broker takes one connection
                    one_by_one = replace(self._limits, prefetch_messages=0)
                    receiving = _WithoutTransactions(self, one_by_one)
                    self._receiving = ConnectionPool(receiving, max_size=_SENDERS, timeout=_PATIENCE)
                self._sender = Sender(
                    self._pool,
                    retry_timeout=self._retry_timeout,
                    converters=self._converters,
                    scope=self._scope,
                    receiving=self._receiving,
                )
            return self._sender

    def join_deliveries(self, scope: SendScope) -> None:
        """Make the sends of `sender` join the units of a scope. The adapter calls it; unpickled factories join none."""
        self._scope = scope

    def close(self) -> None:
        """Close the pools of `sender`. The factory can be used again afterwards."""
        pools: list[ConnectionPool | None] = []
        closed = False
        try:
            with _creating:
                pools = [self._pool, self._receiving]
                self._pool = self._receiving = self._sender = None
            for pool in filter(None, pools):
                pool.close()
            closed = True
        finally:
            for pool in () if closed else filter(None, pools):  # the factory may not have the pools any more
                pool.close(0.0)

    def create_context(
        self,
        session_mode: AcknowledgeMode | str = AcknowledgeMode.AUTO,
        *,
        transacted: bool = False,
        user_name: str | None = None,
        password: str | None = None,
    ) -> JMSContext:
        """Open a connection with one session, for the simplified API (JMS 3.1, section 2.8).

        Args:
            session_mode: The acknowledgement of receipts, an `AcknowledgeMode` or its name; ignored if transacted.
            transacted: True to commit all receipts and sends together.
            user_name: User name, or a connection URL, as `create_connection`; None for the factory's.
            password: Password of ``user_name``; ignored without a user name.

        Raises:
            NotSupportedError: The broker has no transactions.
            InvalidArgumentError: An argument has a wrong type, or there is no such mode.
            JMSError: As `create_connection`.
        """
        mode = checked_acknowledge_mode("session_mode", session_mode, transacted)
        connection = self._connect(
            SharedConnection, self._settings_for(user_name, password), self._conduct_for(user_name)
        )
        context: JMSContext | None = None
        try:
            context = create_context(connection, mode, transacted=transacted)
            return context
        finally:
            if context is None:  # no other context uses the connection
                connection.close()

    def take_kept(self, key: object, record: Callable[[object], object] = lambda _: None) -> object | None:
        """Return the connection that the caller's transaction keeps under a key, or None; for a pool.

        Args:
            key: The key.
            record: Called with the connection before it is taken.
        """
        return _take_kept(self._conduct.locator, key, record)

    def _connect(self, kind: type[C], settings: ConnectionSettings, conduct: _Conduct) -> C:
        """Open a connection, under the transaction manager if there is one."""
        if conduct.locator is None:
            return self._open(kind, settings, conduct)
        from jmsjca.outbound.enlistment import ConnectionEnlistment  # an optional package

        no_xa = conduct.options.no_xa
        settings = replace(settings, last_resource=None if no_xa else self._last_resource)
        kept = _take_kept(conduct.locator, settings)
        return kind(
            settings,
            self._hooks,
            domain=self._domain,
            naming=self._naming,
            ignore_transacted=conduct.options.ignore_transacted and no_xa,
            enlist=partial(ConnectionEnlistment, locator=conduct.locator, emulates=no_xa),
            strict=conduct.options.strict,
            kept=kept if isinstance(kept, Connection) else None,
            producer_pooling=conduct.producer_pooling,
        )

    def _open(self, kind: type[C], settings: ConnectionSettings, conduct: _Conduct) -> C:
        return kind(
            settings,
            self._hooks,
            domain=self._domain,
            naming=self._naming,
            ignore_transacted=conduct.options.ignore_transacted,
            producer_pooling=conduct.producer_pooling,
        )

    def _settings_for(self, user_name: str | None, password: str | None) -> ConnectionSettings:
        check(ARGUMENTS, user_name=user_name, password=password)
        own, options = self._lookup.resolve(self._naming) if self._lookup else (self._login, self._own_options)
        login = own.override(user_name, password)
        if is_url(user_name):
            find_provider(ConnectionURL.parse(login.url).protocol)  # raises if the user name has :// but is invalid
        return ConnectionSettings(
            add_options(login.url, provider_options(options)),
            login.user_name,
            login.password,
            self._client_id,
            self._limits,
            source=login.source,
        )

    def _conduct_for(self, user_name: str | None) -> _Conduct:
        """Return the conduct of a connection. The options of a URL as user name replace those in the factory's URL."""
        if user_name is None or not is_url(user_name):
            return self._conduct
        given = jmsjca_options(ConnectionURL.parse(user_name).query)
        if useless := given.keys() & _OF_POOLS:
            raise InvalidOptionError(
                f"{min(useless)} belongs to the factory and its pool: it has no effect in the URL of one connection."
            )
        return self._conduct_of({**jmsjca_options(self._own_options), **given})

    def pool_stats(self) -> dict[str, int]:
        """Return the counters of the pool of `sender`, as `ConnectionPool.get_stats`; none before its first use."""
        pool = self._pool
        return {} if pool is None else pool.get_stats()

    def __getstate__(self) -> dict[str, object]:
        own = ("_naming", "_lookup", "_pool", "_receiving", "_sender", "_last_resource")
        return {**self.__dict__, **dict.fromkeys(own)}

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._url}>"


class QueueConnectionFactory(ConnectionFactory):
    """Creates connections for queues only: their sessions refuse topics (JMS 3.1, section 2.7)."""

    _domain = "queue"

    def create_queue_connection(self, user_name: str | None = None, password: str | None = None) -> Connection:
        """Open a connection, as `create_connection`."""
        return self.create_connection(user_name, password)


class TopicConnectionFactory(ConnectionFactory):
    """Creates connections for topics only: their sessions refuse queues (JMS 3.1, section 2.7)."""

    _domain = "topic"

    def create_topic_connection(self, user_name: str | None = None, password: str | None = None) -> Connection:
        """Open a connection, as `create_connection`."""
        return self.create_connection(user_name, password)


class _WithoutTransactions:
    """A factory for its sender. The sender's messages never take part in a transaction of a transaction manager.

    Args:
        factory: The factory.
        limits: The bounds of each connection; None for the factory's bounds.
    """

    def __init__(self, factory: ConnectionFactory, limits: Limits | None = None) -> None:
        self._factory = factory
        self._limits = limits
        self.client_id = factory.client_id
        self.options = factory.options
        self.idle_timeout = factory.idle_timeout

    def create_connection(self, user_name: str | None = None, password: str | None = None, /) -> Connection:
        """Open a connection that is not under a transaction manager."""
        settings = self._factory._settings_for(user_name, password)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        settings = settings if self._limits is None else replace(settings, limits=self._limits)
        conduct = self._factory._conduct_for(user_name)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        return self._factory._open(Connection, settings, conduct)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]

    def __repr__(self) -> str:
        return repr(self._factory)


FACTORIES: "Mapping[FactoryKind, type[ConnectionFactory]]" = {
    "unified": ConnectionFactory,
    "queue": QueueConnectionFactory,
    "topic": TopicConnectionFactory,
}
"""The classes of connection factories by kind."""


def look_up_factory(url: str, naming: NamingContext | None) -> ConnectionFactory:
    """Return the connection factory that is bound to the name of a ``lookup://`` URL.

    Args:
        url: The URL.
        naming: Where the name is looked up; None for `NamingContext.default`.

    Raises:
        NameNotFoundError: The name is not bound.
        ConfigurationError: The object is not a connection factory.
    """
    found = (naming or NamingContext.default()).lookup(url)
    if not isinstance(found, ConnectionFactory):
        raise ConfigurationError(f"{excerpt(url)!r} is a {type(found).__name__}: a ConnectionFactory is needed.")
    return found


def _take_kept(
    locator: Callable[[], Any] | None, key: object, record: Callable[[object], object] = lambda _: None
) -> object | None:
    if locator is None:
        return None
    from jmsjca.outbound.enlistment import kept_in_transaction  # an optional package

    return kept_in_transaction(locator, key, record)


def _locator(given: Callable[[], Any] | None, options: OutboundOptions) -> Callable[[], Any]:
    """Return the locator of a factory under a transaction manager.

    Raises:
        InvalidOptionError: ``JMSJCA.LocatorClass`` names none.
        ProviderNotInstalledError: The `transaction` package is not installed.
    """
    from jmsjca.outbound.enlistment import resolve_locator  # an optional package

    return resolve_locator(given or options.locator or "thread")
