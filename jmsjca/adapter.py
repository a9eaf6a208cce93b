"""The resource adapter: the entry point for message-driven endpoints."""

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from jmsjca.config import ConnectionURL, Limits, add_options, provider_options, read_options
from jmsjca.destinations import Destination
from jmsjca.errors import ConfigurationError, InvalidActivationSpecError, NotSupportedError
from jmsjca.forking import reset_in_child
from jmsjca.hooks import HookChain, Hooks
from jmsjca.inbound import Activation, DistributedActivation, HandlerLoop
from jmsjca.inbound.shutdown import serve, stop_all
from jmsjca.outbound import ConnectionFactory
from jmsjca.reconnection import ConnectionSettings

if TYPE_CHECKING:
    from jmsjca.config import ActivationSpec

__all__ = ["ResourceAdapter"]

H = TypeVar("H", bound=Callable[..., object])


class ResourceAdapter:
    """Holds the defaults of a broker, and the endpoints that listen to it.

    Use it as a context manager (``with adapter:`` or ``async with adapter:``), or call `start` and `stop`, or let
    `run` serve until the process is told to end.

    Args:
        connection_url: The broker that endpoints and factories use unless they name another.
        user_name: Who connects; None for the user name in the URL, if any.
        password: The password of ``user_name``; ignored without one. It never shows.
        options: JMSJCA's options for all endpoints, and the provider's: a mapping, or text as `parse_options` reads it.
        mbean_object_name: Refused in this release unless None.
        mbean_server_domain: Refused in this release unless None.
        hooks: What surrounds deliveries and sends, and hears of changes, the outermost first.
        executor: What handlers of the concurrency mode "cc" run on, unless their listener has one of its own; None
            for threads of each listener's own. It is not shut down: that is for whoever made it, after `stop`.
        limits: Bounds of each connection; None for the defaults.

    Raises:
        InvalidURLError: The URL does not parse.
        InvalidOptionError: The options cannot be read, or JMSJCA has no such option.
        NotSupportedError: Something is given that this release does not have.
    """

    def __init__(  # noqa: PLR0917  # the design names the order
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
    ) -> None:
        later = {
            "mbean_object_name": mbean_object_name,
            "mbean_server_domain": mbean_server_domain,
        }
        for name, value in later.items():
            if value is not None:
                raise NotSupportedError(f"ResourceAdapter({name}=…) is not available in this release; leave it out.")
        self._url = ConnectionURL.parse(connection_url) if connection_url is not None else None
        self._connection_url = connection_url
        self._options = read_options(options)
        self._user_name = user_name
        self._password = password
        self._hooks = tuple(hooks)
        self._executor = executor
        self._limits = limits or Limits()
        self._activations: list[Activation] = []
        self._loop = HandlerLoop()
        self._reset_after_fork()
        reset_in_child(self, ResourceAdapter._reset_after_fork)

    @property
    def activations(self) -> Sequence[Activation]:
        """The activations of this adapter, in order of their declaration."""
        return tuple(self._activations)

    def listener(
        self, destination: str | Destination, *, executor: Executor | None = None, **spec: Any
    ) -> Callable[[H], H]:
        """Decorate a function to make it the handler of a destination.

        A listener that is declared before `start` begins with it, a later one at once. The function stays what it
        is: it can be called and tested as before.

        Args:
            destination: The name of a queue, or a `Queue` or a `Topic`.
            executor: As of `activate`.
            **spec: Further fields of `ActivationSpec`.

        Raises:
            InvalidActivationSpecError: Fields are wrong; every one is listed.
            ConfigurationError: The function asks for something that it cannot be given.
        """
        from jmsjca.config import ActivationSpec  # noqa: PLC0415  # loads pydantic

        made = ActivationSpec(destination=destination, **spec)

        def declare(handler: H) -> H:
            """Activate the handler, and leave it as it is."""
            activation = self.activate(made, handler, executor)
            with self._lock:
                started = self._started
            if started:
                activation.start()
            return handler

        return declare

    def activate(
        self, spec: "ActivationSpec", handler: Callable[..., object], executor: Executor | None = None
    ) -> Activation:
        """Make an activation. It starts with the adapter, or when its own ``start()`` is called.

        Options are written back into the spec: those of the URL count rather than the spec's, these rather than the
        adapter's, and all of them rather than the spec's fields.

        Args:
            spec: What to listen to.
            handler: Called with each message.
            executor: What the handlers run on, in the concurrency mode "cc"; None for the adapter's, if any. One that
                takes no work is no loss: the messages go back, and it is tried again later.

        Raises:
            InvalidActivationSpecError: With the options, fields of the spec are wrong; or neither the spec nor the
                adapter has a connection URL.
            InvalidOptionError: An option is unknown, or its value cannot be used.
            InvalidSelectorError: A placeholder of the selector is not closed.
            ConfigurationError: The function asks for something that it cannot be given; or an executor is given for
                another concurrency mode than "cc".
            NotSupportedError: The spec asks for something that this release does not do yet.
        """
        from jmsjca.config import resolve_spec  # noqa: PLC0415  # loads pydantic

        effective = resolve_spec(spec, self._options, self._connection_url)
        if executor is not None and effective.concurrency_mode != "cc":
            raise ConfigurationError(
                f"{spec.destination}: an executor is for concurrency_mode='cc', not {effective.concurrency_mode!r}."
            )
        settings = self._settings(spec, effective.connection_url)
        kind = DistributedActivation if effective.distributed else Activation
        activation = kind(
            effective, handler, settings, HookChain(self._hooks), loop=self._loop, executor=executor or self._executor
        )
        with self._lock:
            self._activations.append(activation)
        return activation

    def connection_factory(self) -> ConnectionFactory:
        """Make a factory of connections to this adapter's broker, with this adapter's hooks.

        Raises:
            InvalidActivationSpecError: The adapter has no connection URL.
        """
        return ConnectionFactory(
            add_options(self._needed_url(), provider_options(self._options)),
            user_name=self._user_name,
            password=self._password,
            limits=self._limits,
            hooks=self._hooks,
        )

    def start(self) -> None:
        """Start all activations. Returns at once: the broker may be down, they keep trying."""
        with self._lock:
            self._started = True
            activations = list(self._activations)
        for activation in activations:
            activation.start()

    def stop(self, timeout: float | None = None) -> bool:
        """Stop all activations side by side; returns when the handlers at work have finished.

        At the deadline the connections are closed over those that have not: their messages come again. Called by a
        handler, or on the event loop that async handlers run on, it returns at once, and the rest happens when the
        handlers have returned.

        Args:
            timeout: Seconds until the deadline; None to wait for ever.

        Returns:
            True if all handlers ended in time; False if some are still at work.
        """
        with self._lock:
            self._started = False
            activations = list(self._activations)
        return stop_all(activations, timeout)

    def _reset_after_fork(self) -> None:
        """Be stopped, without a word: a forked child calls this, where threads and connections are its parent's."""
        self._lock = threading.Lock()
        self._started = False

    def run(self, timeout: float | None = None) -> bool:
        """Serve until SIGINT or SIGTERM, then stop; a second signal is the deadline. For the main thread.

        Args:
            timeout: Seconds from the first signal to the deadline; None to wait for the handlers at work.

        Returns:
            As `stop`.
        """
        return serve(self.start, self.stop, timeout)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    async def __aenter__(self) -> Self:
        import asyncio  # noqa: PLC0415  # who comes here has it; the others need not wait for it

        self._loop.use(asyncio.get_running_loop())
        self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        import asyncio  # noqa: PLC0415  # likewise

        try:
            await asyncio.to_thread(self.stop)
        finally:
            self._loop.use(None)

    def __repr__(self) -> str:
        return f"<ResourceAdapter {self._url} with {len(self._activations)} activations>"

    def _settings(self, spec: "ActivationSpec", url: str | None) -> ConnectionSettings:
        url = url or self._needed_url()
        own = ConnectionURL.parse(url) if spec.connection_url else None
        client_id = spec.effective_client_id
        if spec.user_name:
            password = spec.password.get_secret_value() if spec.password else None
            return ConnectionSettings(url, spec.user_name, password, client_id, self._limits)
        if own and own.user_name:  # a URL of its own brings its own credentials; ours are not for that broker
            return ConnectionSettings(url, client_id=client_id, limits=self._limits)
        return ConnectionSettings(url, self._user_name, self._password, client_id, self._limits)

    def _needed_url(self) -> str:
        if self._connection_url is None:
            raise InvalidActivationSpecError(
                "No connection_url: give one to the ResourceAdapter or to the spec, for instance 'embedded://'."
            )
        return self._connection_url
