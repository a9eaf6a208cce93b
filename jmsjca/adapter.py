"""The resource adapter, the entry point for message-driven endpoints."""

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import AbstractContextManager
from datetime import timedelta
from types import NoneType
from typing import TYPE_CHECKING, Any, Self, TypeVar, Unpack
from weakref import WeakSet

from jmsjca.arguments import SECONDS, TEXT_OR_NONE, TIMEOUT, Constraint, check
from jmsjca.config.connection_url import ConnectionURL, CredentialSource, Login, absolute_url, is_url
from jmsjca.config.limits import FactoryKind, Limits
from jmsjca.config.naming import LOOKUP, NamingContext
from jmsjca.config.options import read_options
from jmsjca.destinations import Destination
from jmsjca.errors import ConfigurationError, IllegalStateError, InvalidActivationSpecError
from jmsjca.forking import reset_in_child
from jmsjca.hooks import HookChain, Hooks, declare_handler
from jmsjca.inbound.activation import (
    Activation,
    DistributedActivation,
    factory_of_spec,
    listener_settings,
)
from jmsjca.inbound.activation_state import StatusMonitor, have_all_failed, raise_failures, wait_until_up
from jmsjca.inbound.handler import HandlerLoop, loop_of_this_thread
from jmsjca.inbound.handler_arguments import callable_name
from jmsjca.inbound.health import INTERVAL, Health
from jmsjca.inbound.lifespan import Lifespan, LifespanFunction, Startable
from jmsjca.inbound.listener_unit import Inbox
from jmsjca.inbound.shutdown import StopReport, call_after_stop, serve, stop_all
from jmsjca.messages.converters import Converters
from jmsjca.outbound.delivery_sends import SendScope, outside_delivery
from jmsjca.outbound.factory import ARGUMENTS, FACTORIES, ConnectionFactory
from jmsjca.outbound.sender import DeclaresPublishers, Sender
from jmsjca.providers.registry import check_scheme
from jmsjca.reconnection import ConnectionSettings, LastResource
from jmsjca.selectors.template import check_built_selector

if TYPE_CHECKING:
    from pathlib import Path

    from jmsjca.config.activation_spec import ActivationSpec, ListenerFields
    from jmsjca.config.configuration_file import Configuration

__all__ = ["ResourceAdapter", "managed_adapters"]

H = TypeVar("H", bound=Callable[..., object])

_ARGUMENTS: dict[str, Constraint[Any]] = {
    **ARGUMENTS,
    "mbean_object_name": TEXT_OR_NONE,
    "mbean_server_domain": TEXT_OR_NONE,
    "executor": Constraint("a concurrent.futures.Executor or None", (Executor, NoneType)),
}

_managed: "WeakSet[ResourceAdapter]" = WeakSet()


def managed_adapters() -> "Sequence[ResourceAdapter]":
    """Return the adapters of this process, for management. They are not kept alive."""
    return tuple(_managed)


class ResourceAdapter(DeclaresPublishers, Startable):
    """Activates listeners and creates connection factories, with common defaults for one broker.

    Use it as a context manager (``with adapter:`` or ``async with adapter:``), or call `start` and `stop`, or call
    `run`, which serves until the process receives a signal.

    Args:
        connection_url: URL of the broker, for listeners and factories that do not name another one.
        user_name: User name; None for the one in the URL, if any.
        password: Password of ``user_name``; ignored without a user name. It appears in no text form.
        options: Options of JMSJCA for all listeners, and of the provider: a mapping, or text for `parse_options`.
        mbean_object_name: The name of the adapter's management bean (`jmsjca.management.beans`); None for no bean.
        mbean_server_domain: The registry in which the beans are found; None for the default one.
        hooks: Hooks around deliveries and sends, which are also notified of changes; the outermost first.
        executor: Runs the handlers of listeners in the concurrency mode "cc", unless a listener names another executor.
            None for threads of each listener. The adapter does not shut it down: its owner does, after `stop`.
        limits: Bounds of each connection; None for the defaults.
        credentials: Takes the place of user name and password, as for `ConnectionFactory`.
        converters: Converts bodies for listeners, replies and senders; None for `Converters.default`.
        map_messages: True to send replies and bodies that are mappings as map messages; else they are sent as JSON.
        lifespan: Called with the adapter; returns a context manager that surrounds its listeners in ``with``,
            ``async with`` and `run`. `start` and `stop` do not use it.
        retry_timeout: Seconds for which `send` and its siblings are repeated while the broker cannot be reached; 0
            never repeats them. The option ``JMSJCA.retrytimeout`` of the URL (milliseconds) overrides it.
        last_resource: A `jmsjca.transactions.LastResource`: where the broker can prepare (XA), the units of listeners
            with ``transaction="required"`` commit together with the database, or not at all.

    Raises:
        InvalidURLError: The URL is not a text, or cannot be parsed.
        InvalidOptionError: The options cannot be parsed, or an option of JMSJCA is unknown.
        ArgumentTypeError: Another argument has a wrong type.
    """

    def __init__(  # the design names the order
        self,
        connection_url: str | None = None,
        user_name: str | None = None,
        password: str | None = None,
        options: str | Mapping[str, str] | None = None,
        mbean_object_name: str | None = None,
        mbean_server_domain: str | None = None,
        *,
        hooks: Sequence[Hooks] = (),
        executor: Executor | None = None,
        limits: Limits | None = None,
        credentials: CredentialSource | None = None,
        converters: Converters | None = None,
        map_messages: bool = False,
        lifespan: "LifespanFunction[ResourceAdapter] | None" = None,
        retry_timeout: float | timedelta = 30.0,
        last_resource: LastResource | None = None,
    ) -> None:
        check(_ARGUMENTS, mbean_object_name=mbean_object_name, mbean_server_domain=mbean_server_domain)
        check(_ARGUMENTS, user_name=user_name, password=password, credentials=credentials)
        check(_ARGUMENTS, executor=executor, limits=limits, last_resource=last_resource)
        self._retry_timeout = SECONDS("retry_timeout", retry_timeout)
        HookChain(hooks)  # raises here what would be raised by the first listener
        self._url = ConnectionURL.parse(connection_url) if connection_url is not None else None
        connection_url = absolute_url(connection_url) if connection_url is not None else None
        self.mbean_object_name, self.mbean_server_domain = mbean_object_name, mbean_server_domain
        _managed.add(self)
        self._connection_url, self._user_name, self._password = connection_url, user_name, password
        self._hooks, self._executor = tuple(hooks), executor
        self._limits, self._credentials = limits or Limits(), credentials
        self._last_resource = last_resource
        self._converters = Converters(converters, map_messages=map_messages or None)
        self._sending_factory: ConnectionFactory | None = None
        self._deliveries = object()  # stands for the adapter: a reference to it would be a cycle
        self._naming, self._options = NamingContext(NamingContext.default()), read_options(options)
        self._activations, self._factories, self._loop = list[Activation](), WeakSet[ConnectionFactory](), HandlerLoop()
        self._lifespan = Lifespan(lifespan, self, self._loop)
        self._reset_after_fork()
        reset_in_child(self, ResourceAdapter._reset_after_fork)

    @property
    def connection_url(self) -> str | None:
        """The URL of the broker, as given, but with an absolute file; it may have a password."""
        return self._connection_url

    @property
    def activations(self) -> Sequence[Activation]:
        """The activations of this adapter, in order of their declaration."""
        return tuple(self._activations)

    @classmethod
    def from_config(cls, path: "str | Path", name: str | None = None) -> Self:
        """Create an adapter from a configuration file, with its naming context, factories and listeners.

        Listeners with a ``handler`` are activated; they start with the adapter.

        Args:
            path: A TOML file such as ``jmsjca.toml``, or ``pyproject.toml`` with the table ``[tool.jmsjca]``.
            name: The name of the adapter's section; None for the only one, or the one that is called "default".

        Raises:
            ConfigurationError: The file cannot be read, or is invalid; or a handler cannot be imported.
            JMSError: As the constructor and `activate`.
        """
        from jmsjca.config.configuration_file import read_configuration  # loads pydantic

        return cls.from_configuration(read_configuration(path), name)

    @classmethod
    def from_configuration(cls, configuration: "Configuration", name: str | None = None) -> Self:
        """Create an adapter from a configuration, as `from_config` does from a file.

        Args:
            configuration: The configuration, for instance of a `jmsjca.descriptors.Deployment`.
            name: As for `from_config`.

        Raises:
            JMSError: As `from_config`.
        """
        from jmsjca.config.configuration_file import declare_all, secret  # loads pydantic

        section = configuration.adapters[name := configuration.adapter_name(name)]
        beans = section.mbean_object_name, section.mbean_server_domain
        adapter = cls(section.connection_url, section.user_name, secret(section.password), section.options, *beans)
        declare_all(configuration, name, adapter.naming, adapter.connection_factory, adapter.activate)
        return adapter

    @property
    def naming(self) -> NamingContext:
        """The naming context of the adapter: destinations and connection factories by name, for ``lookup://``."""
        return self._naming

    def listener(
        self,
        destination: str | Destination,
        *,
        executor: Executor | None = None,
        inbox: Inbox | None = None,
        **spec: "Unpack[ListenerFields]",
    ) -> Callable[[H], H]:
        """Return a decorator that makes a function the handler of a destination.

        A listener that is declared before `start` starts with the adapter, a later one at once. The function itself is
        unchanged: it can be called and tested as before.

        Args:
            destination: A queue's name, ``queue:name`` or ``topic:name``, or a `Queue` or a `Topic`.
            executor: As in `activate`.
            inbox: As in `activate`.
            **spec: Further fields of `ActivationSpec`, which documents them; `ListenerFields` has their types.

        Raises:
            InvalidActivationSpecError: Fields are invalid; the message lists all of them.
            InvalidSelectorError: The selector does not parse.
            UnknownSchemeError: No provider has the scheme of the connection URL.
            ConfigurationError: The function has a parameter for which there is no argument.
        """
        from jmsjca.config.activation_spec import ActivationSpec, check_fields_are_used, resolve_spec  # loads pydantic

        if callable(destination):
            raise InvalidActivationSpecError(
                f"The listener {callable_name(destination)} has no destination: write @adapter.listener('orders')."
            )
        activation_spec = ActivationSpec(destination=destination, **spec)
        effective = resolve_spec(activation_spec, self._options, self._connection_url)
        check_fields_are_used(activation_spec, effective)
        if effective.selector:
            check_built_selector(effective.selector, activation_spec.selector_variables)
        if effective.connection_url and not effective.connection_url.startswith(LOOKUP):
            check_scheme(ConnectionURL.parse(absolute_url(effective.connection_url)).protocol)

        def declare(handler: H) -> H:
            """Activate the handler and return it unchanged."""
            activation = self.activate(activation_spec, handler, executor, inbox)
            if self._started:  # set before `start` reads the activations, so that it or this line starts each
                activation.start()
            return handler

        return declare

    def _check_is_not_listening(self, function: Callable[..., object]) -> None:
        if any(each.handler == function for each in self.activations):
            raise IllegalStateError(
                f"{callable_name(function)} is a listener already, which would not send: write @adapter.publishes "
                "below @adapter.listener."
            )

    def activate(
        self,
        spec: "ActivationSpec",
        handler: Callable[..., object],
        executor: Executor | None = None,
        inbox: Inbox | None = None,
    ) -> Activation:
        """Create an activation. It starts with the adapter, or when its own ``start()`` is called.

        Options are written back into the spec. Options of the URL take precedence over options of the spec, which take
        precedence over options of the adapter. All options take precedence over the fields of the spec.

        Args:
            spec: The activation spec.
            handler: Called with each message.
            executor: Runs the handlers in the concurrency mode "cc"; None for the adapter's executor, if any. When it
                rejects work, the messages are released, and the listener tries again later.
            inbox: A `SqlInbox`, which recognises messages with committed database work; None for no inbox.

        Raises:
            InvalidActivationSpecError: Fields of the spec are invalid with the options; or neither the spec nor the
                adapter has a connection URL.
            InvalidOptionError: An option is unknown, or its value is invalid.
            InvalidSelectorError: A placeholder of the selector is not closed.
            ConfigurationError: The function has a parameter for which there is no argument; or the spec does not allow
                the executor (another mode than "cc") or the inbox (a transaction that is not "required").
            ProviderNotInstalledError: ``transaction="required"`` needs packages that are not installed.
            ArgumentTypeError: The spec is not an `ActivationSpec`, or the executor is not an `Executor`.
        """
        from jmsjca.config.activation_spec import ActivationSpec, resolve_spec  # loads pydantic

        Constraint[ActivationSpec]("an ActivationSpec(…); the handler comes second", ActivationSpec)("spec", spec)
        check(_ARGUMENTS, executor=executor)
        factory = factory_of_spec(spec, self._naming)
        options = {**self._options, **(factory.own_options if factory else {})}
        found = spec.model_copy(update={"connection_url": factory.login.url}) if factory else spec
        effective = resolve_spec(found, options, self._connection_url)
        if executor is not None and effective.concurrency_mode != "cc":
            raise ConfigurationError(
                f"{effective.destination}: an executor is for concurrency_mode='cc', not "
                f"{effective.concurrency_mode!r}."
            )
        url = absolute_url(effective.connection_url or self._require_url())
        login = url, self._user_name, self._password
        defaults = ConnectionSettings(
            *login, limits=self._limits, source=self._credentials, last_resource=self._last_resource
        )
        kind = DistributedActivation if effective.distributed else Activation
        activation = kind(
            *(effective, handler, listener_settings(spec, factory, defaults)),
            HookChain([*self._hooks, *declare_handler(handler)]),
            loop=self._loop,
            executor=executor or self._executor,
            on_status=lambda: self._monitor.notify(),  # noqa: PLW0108  # another monitor after a fork
            naming=self._naming,
            converters=self._converters,
            inbox=inbox,
            adapter=self.mbean_object_name,
            scope=self._scope(url),
        )
        with self._lock:
            self._activations.append(activation)
        return activation

    def connection_factory(
        self,
        connection_url: str | None = None,
        user_name: str | None = None,
        password: str | None = None,
        options: str | Mapping[str, str] | None = None,
        *,
        kind: FactoryKind = "unified",
        credentials: CredentialSource | None = None,
        client_id: str | None = None,
        producer_pooling: bool = False,
        idle_timeout: float | timedelta = 30.0,
        transaction_locator: Callable[[], Any] | None = None,
    ) -> ConnectionFactory:
        """Create a factory of connections, with this adapter's values as defaults, its hooks and its naming context.

        In a handler of the adapter, `ConnectionFactory.send` of a factory without its own URL, user and kind joins the
        unit of the delivery, as `send` of the adapter does. Sessions of its connections do not.

        Args:
            connection_url: URL of the broker, or ``lookup://name`` for a bound factory; None for the adapter's.
            user_name: User name; None for the user name in the factory's URL, if any, or else the adapter's.
            password: Password of ``user_name``; ignored without a user name.
            options: Options, which override the adapter's options.
            kind: "unified", or "queue" or "topic" for a factory of one messaging domain.
            credentials: As for `ConnectionFactory`.
            client_id: Client id of the connections.
            producer_pooling: As for `ConnectionFactory`.
            idle_timeout: As for `ConnectionFactory`.
            transaction_locator: As for `ConnectionFactory`.

        Raises:
            InvalidActivationSpecError: Neither the adapter nor the factory has a connection URL.
            ConfigurationError: As `ConnectionFactory`.
        """
        joins = kind == "unified" and connection_url is None and user_name is None and credentials is None
        own = connection_url and (connection_url.startswith(LOOKUP) or ConnectionURL.parse(connection_url).user_name)
        if credentials is None and not own and not is_url(user_name):
            login = Login("", self._user_name, self._password, self._credentials).fill_in(user_name, password)
            user_name, password, credentials = login.user_name, login.password, login.source
        factory = FACTORIES[kind](
            connection_url or self._require_url(),
            user_name=user_name,
            password=password,
            credentials=credentials,
            client_id=client_id,
            options={**self._options, **read_options(options)},
            limits=self._limits,
            hooks=self._hooks,
            producer_pooling=producer_pooling,
            idle_timeout=idle_timeout,
            naming=self._naming,
            converters=self._converters,
            transaction_locator=transaction_locator,
            retry_timeout=self._retry_timeout,
            last_resource=self._last_resource,
        )
        if joins:
            factory.join_deliveries(self._scope(factory.login.url))
        with self._lock:
            self._factories.add(factory)
        return factory

    @property
    def connection_factories(self) -> "Sequence[ConnectionFactory]":
        """The connection factories that `connection_factory` has created and that are still referenced."""
        with self._lock:
            return tuple(self._factories)

    @property
    def sender(self) -> Sender:
        """The sender of the adapter, over a pool of connections that `stop` closes; the next use opens another one."""
        with self._lock:
            self._sending_factory = self._sending_factory or self.connection_factory()
            return self._sending_factory.sender

    def outside(self) -> AbstractContextManager[None]:
        """Send at once during the block, although the caller is a handler of this adapter.

        In a handler, `send` and its siblings join the unit of the delivery. In the block they do not: the broker has
        the messages when the call returns, and a rollback does not take them back. For instance to record a failure::

            with adapter.outside():
                adapter.send("failures", str(error))
            raise error

        The block applies to the coroutine or thread that enters it.
        """
        return outside_delivery(self._deliveries)

    def _scope(self, url: str) -> SendScope:
        return SendScope(self._deliveries, ConnectionURL.parse(url).broker)

    @property
    def limits(self) -> Limits:
        """The bounds of each connection."""
        return self._limits

    @property
    def prepared_units(self) -> int | None:
        """The prepared units that recovery found at the broker when it looked last; None without ``last_resource``."""
        return None if self._last_resource is None else self._last_resource.prepared

    def pool_stats(self) -> dict[str, int]:
        """Return the counters of the pool of `sender`, as `ConnectionPool.get_stats`; none before its first use."""
        factory = self._sending_factory
        return {} if factory is None else factory.pool_stats()

    def start(self, wait: float | timedelta | None = 0.0) -> None:
        """Start all activations. If the broker is down, they retry.

        After an error, activations that are up continue to run, and the others continue to retry, until `stop`.

        Args:
            wait: Seconds to wait until messages can flow, that is until all activations are up; 0 returns at once, None
                waits forever. The wait blocks: on an event loop, use `asyncio.to_thread`.

        Raises:
            InvalidArgumentError: The wait is not a number of seconds, or negative. Nothing was started.
            IllegalStateError: An activation is being stopped.
            ActivationFailedError: Activations stopped permanently during the wait. The message gives the reasons.
            ActivationTimeoutError: Activations are not up in time. The message gives their latest errors.
        """
        wait = TIMEOUT("wait", wait)
        with self._lock:
            self._started, activations = True, list(self._activations)
        for activation in activations:
            activation.start()
        if wait != 0:
            wait_until_up(activations, self._monitor, wait)

    def stop(self, timeout: float | timedelta | None = None) -> StopReport:
        """Stop all activations concurrently, and wait for active handlers.

        At the deadline the connections are closed even if handlers are active: their messages are redelivered. Called
        by a handler, or on the event loop of async handlers, it returns at once and completes when the handlers have
        returned.

        Args:
            timeout: Seconds until the deadline; None waits forever.

        Returns:
            The account of the messages; it is false if handlers are still active.

        Raises:
            InvalidArgumentError: The timeout is not a number of seconds, or negative.
        """
        timeout = TIMEOUT("timeout", timeout)
        with self._lock:
            self._started, activations = False, list(self._activations)
        try:
            return stop_all(activations, timeout)
        finally:  # not earlier, as active handlers may use it, and would open another one
            call_after_stop(activations, self._monitor, self._close_sender)

    def _close_sender(self) -> None:
        with self._lock:
            factory, self._sending_factory = self._sending_factory, None
        if factory is not None:
            factory.close()

    def health(self, interval: float | timedelta = 30.0) -> Health:
        """Return whether messages can flow, in each activation and in all of them.

        A check looks at handlers, settlements, threads and the event loop. If the broker has management, it also looks
        at the messages that wait at the broker. The check compares its figures with earlier checks: call it at least
        every ``interval`` / 5 seconds. It may wait for the broker: on an event loop, use `asyncio.to_thread`.

        Args:
            interval: Seconds that a handler, a settlement or an acknowledgement may take. An activation is "stuck" when
                something lasts longer.

        Raises:
            InvalidArgumentError: The interval is not a number above 0.
        """
        seconds = INTERVAL("interval", interval)
        return Health.of([health for each in self.activations for health in each.check_health(seconds)])

    def _reset_after_fork(self) -> None:
        """Reset the state after a fork: the parent's threads and connections do not exist in the child."""
        self._lock = threading.RLock()
        self._monitor, self._started = StatusMonitor(), False

    def run(self, timeout: float | timedelta | None = None) -> StopReport:
        """Serve until SIGINT or SIGTERM, then stop; a second signal ends the wait. For the main thread only.

        Args:
            timeout: Seconds from the first signal to the deadline; None waits for active handlers.

        Returns:
            The result of `stop`.

        Raises:
            IllegalStateError: The adapter has no listeners; or the caller is not the main thread, where you use `start`
                and `stop`; or it is a coroutine, which uses ``async with adapter:``.
            InvalidArgumentError: The timeout is not a number of seconds, or negative.
            ActivationFailedError: All activations have stopped permanently, so that nothing is served. The message
                gives the reason of each. A program that does not catch the error ends with exit status 1.
        """
        if loop_of_this_thread() is not None:
            raise IllegalStateError(
                "run() would block the event loop of this thread until a signal. In a coroutine, serve with 'async "
                "with adapter:' and 'await asyncio.Event().wait()' in its block; or call run() where no loop runs."
            )
        with self._lifespan.around():
            if not self._activations:
                raise IllegalStateError(
                    "The adapter has no listeners, so that run() would serve nothing: import the modules that declare "
                    "them, with @adapter.listener('orders'), before run()."
                )
            stopped = serve(self.start, self.stop, timeout, self._monitor, lambda: have_all_failed(self.activations))
        raise_failures(self.activations)
        return stopped

    def __repr__(self) -> str:
        return f"<ResourceAdapter {self._url} with {len(self._activations)} activations>"

    def _require_url(self) -> str:
        if self._connection_url is None:
            raise InvalidActivationSpecError(
                "No connection_url: give one to the ResourceAdapter or to the spec, for instance 'embedded://'."
            )
        return self._connection_url
