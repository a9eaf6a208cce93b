"""Activations: listeners from start to stop, including listeners of distributed durable subscriptions."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import astuple, replace
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, cast

from jmsjca.arguments import MAX_INT, TIMEOUT, wrong_argument
from jmsjca.config.clock import Deadline
from jmsjca.config.connection_url import ConnectionURL, Login
from jmsjca.config.limits import UNITS_PER_HANDLER
from jmsjca.config.naming import LOOKUP, NamingContext, resolve_destination
from jmsjca.destinations import Queue
from jmsjca.errors import (
    ConfigurationError,
    IllegalStateError,
    InvalidArgumentError,
    InvalidClientIDError,
    NotSupportedError,
    excerpt,
)
from jmsjca.forking import ProcessBound, reset_in_child
from jmsjca.hooks import HookChain
from jmsjca.inbound.activation_state import Account, ActivationState, Status
from jmsjca.inbound.endpoint import Endpoint, EndpointSettings
from jmsjca.inbound.handler import Handler, HandlerLoop
from jmsjca.inbound.handler_arguments import is_async
from jmsjca.inbound.health import ActivationHealth, HealthCheck
from jmsjca.inbound.lifecycle import ActivationRun
from jmsjca.inbound.listener_log import as_listener, in_listener, log_fields
from jmsjca.inbound.listener_unit import Inbox, require_container_transactions
from jmsjca.inbound.shutdown import stop_at_exit
from jmsjca.inbound.statistics import Statistics, StatisticsRecorder
from jmsjca.log_records import get_logger, one_line
from jmsjca.messages.converters import Converters
from jmsjca.messages.delivery import Outcome, Settlement
from jmsjca.messages.message import Message
from jmsjca.outbound.delivery_sends import SendScope
from jmsjca.outbound.factory import ConnectionFactory, look_up_factory
from jmsjca.outbound.session import Session
from jmsjca.reconnection import ConnectionSettings
from jmsjca.redelivery.moved_copy import plain_copy, remaining_life
from jmsjca.redelivery.policy import DEFAULT_REDELIVERY_HANDLING

if TYPE_CHECKING:
    from jmsjca.config.activation_spec import ActivationSpec
    from jmsjca.config.distributed_subscription import DistributedSubscription

__all__ = [
    "Activation",
    "DistributedActivation",
    "Status",
    "display_name",
    "factory_of_spec",
    "listener_settings",
]

logger = get_logger("jmsjca.inbound")

_UNSPECIFIED = "<unspecified>"
_WITH_DEAD_LETTER_QUEUE = f"{DEFAULT_REDELIVERY_HANDLING.rpartition(':')[0]}:move(queue:dlq.$)"


class Activation(ProcessBound):
    """A running or stopped listener. Created by `ResourceAdapter.activate`.

    It connects, delivers, and reconnects when the connection breaks.

    Args:
        spec: The activation spec, with the options applied.
        handler: The user's function.
        settings: The settings for connections.
        hooks: Called around deliveries and at status changes.
        loop: The event loop for the handler's coroutines; None to create one.
        executor: Runs the handlers in mode cc; None to create threads.
        requires_atomic_unit: True if the handler sends in the unit of every message, so that a broker without that
            capability is refused.
        on_status: Called at each change of the status; None for no call.
        naming: The context for ``lookup://`` names; None for `NamingContext.default`.
        converters: Converts bodies and replies; None for `Converters.default`.
        inbox: Recognises messages with committed database work; None for no inbox.
        adapter: The name of the adapter, for log records; None for the URL of the broker.
        scope: The senders that join the unit of a delivery; None for no senders.

    Attributes:
        name: The display name, for logs and hooks.
        spec: The activation spec, as given.
        handler: The handler, as given.
        stats: The counters.

    Raises:
        ConfigurationError: The handler has a parameter for which there is no value; or the spec does not allow an
            inbox.
        ProviderNotInstalledError: ``transaction="required"`` needs packages that are not installed.
    """

    def __init__(
        self,
        spec: "ActivationSpec",
        handler: Callable[..., object],
        settings: ConnectionSettings,
        hooks: HookChain,
        *,
        loop: HandlerLoop | None = None,
        executor: Executor | None = None,
        requires_atomic_unit: bool = False,
        on_status: Callable[[], None] | None = None,
        naming: NamingContext | None = None,
        converters: Converters | None = None,
        inbox: Inbox | None = None,
        adapter: str | None = None,
        scope: SendScope | None = None,
    ) -> None:
        self._endpoint_settings = EndpointSettings.of(spec, requires_atomic_unit=requires_atomic_unit, naming=naming)
        if spec.transaction == "required":
            require_container_transactions(self._endpoint_settings.locator)
        if inbox is not None:
            _check_inbox(spec, inbox, handler)
            inbox.prepare()
        self._inbox, self._scope = inbox, scope
        self.spec = spec
        self.handler = handler
        self.name = display_name(spec, settings.url)
        self._settings = settings
        self._hooks = hooks
        self._executor = executor
        self._on_status = on_status
        self._adapter = adapter or str(ConnectionURL.parse(settings.url))
        self._make_handler = partial(Handler, handler, loop, converters, joined=self._endpoint_settings.joined)
        self._reset_after_fork()
        reset_in_child(self, Activation._reset_after_fork)

    @property
    def status(self) -> Status:
        """Return "Up" while messages can flow, else "Down", "Connecting" or "Disconnecting"."""
        return self._state.status

    @property
    def failure(self) -> Exception | None:
        """The error that stopped the activation permanently; None otherwise, and after another `start`."""
        run = self._state.current_run
        return None if run is None or self.status != "Down" else run.failure

    @property
    def last_error(self) -> Exception | None:
        """The error of the latest attempt to connect; None if that succeeded or there was no attempt."""
        run = self._state.current_run
        return None if run is None else run.last_error

    @property
    def handler_name(self) -> str:
        """The name of the handler's function."""
        return self._endpoint.handler.name

    @property
    def units_in_flight(self) -> int:
        """The number of units with an active handler, or waiting for acknowledgement or for the end of a delay."""
        run = self._state.current_run
        delivering = None if run is None else run.delivering
        return 0 if delivering is None else delivering[1].units_in_flight

    def start(self) -> None:
        """Start to connect; deliver as soon as the connection is open. Does nothing if the activation is started.

        Returns at once, even if the broker is down. The connection is retried after 1, 2, 5, 5, 10, 10, … seconds.

        Raises:
            IllegalStateError: The activation is being stopped.
            ResourceAllocationError: The system refuses another thread.
        """
        run = ActivationRun(self._endpoint, self._settings, self._executor, self._state)
        try:
            if is_new := self._state.fire("start", run):
                self._warn_of_endless_redelivery()
                run.start()
        except BaseException:  # including an interrupt
            run.abandon_start()
            raise
        if not is_new and self.status == "Disconnecting":
            raise IllegalStateError(f"{self.name} is being stopped; start it again when its status is 'Down'.")

    def stop(self, timeout: float | timedelta | None = None) -> bool:
        """Stop receiving, wait for active handlers, release prefetched messages, and disconnect.

        Units that wait for an acknowledgement are rolled back. At the deadline the connection is closed even if
        handlers are active: their units are lost, and the messages are redelivered.

        If a handler, a hook around a handler, or the event loop of async handlers calls this method, it returns at
        once, and the activation stops when the handlers have returned.

        Args:
            timeout: Seconds until the deadline; None waits forever.

        Returns:
            True if all handlers ended in time; False if some are still active.

        Raises:
            InvalidArgumentError: The timeout is not a number of seconds, or is negative. Nothing was stopped.
        """
        timeout = TIMEOUT("timeout", timeout)
        run = self._state.current_run
        if run is None:
            return True
        self.stop_intake()
        if self._must_not_block():
            self._in_background(partial(run.wait_until_stopped, timeout))
            return False
        return run.wait_until_stopped(timeout)

    @property
    def paused(self) -> bool:
        """True between `pause` and `resume`."""
        return self._endpoint.paused

    def pause(self) -> None:
        """Stop receiving until `resume`, but keep the connection. Also holds after a reconnect. Returns at once.

        Active handlers continue, prefetched messages are released, and units that wait for acknowledgements are rolled
        back. A non-durable subscription misses messages that are published during the pause.
        """
        self._endpoint.paused = True
        self._apply()

    def resume(self) -> None:
        """Receive messages again after `pause`. Returns at once."""
        self._endpoint.paused = False
        self._apply()

    def resize(self, endpoint_pool_max_size: int) -> None:
        """Change the maximum number of concurrent handlers. Returns at once.

        The new size takes effect when the active handlers have returned; the connection is kept.

        Args:
            endpoint_pool_max_size: The number, from 1 to 2,147,483,647.

        Raises:
            InvalidArgumentError: The number is out of this range.
            NotSupportedError: The activation runs one handler at a time: in mode serial, and in mode sync for a topic.
        """
        size, settings = endpoint_pool_max_size, self._endpoint.settings
        if type(size) is not int or not 1 <= size <= MAX_INT:
            wanted = f"at most {MAX_INT}" if type(size) is int and size > MAX_INT else "a whole number from 1 on"
            raise wrong_argument("endpoint_pool_max_size", size, wanted, InvalidArgumentError)
        if settings.mode == "serial" or (settings.mode == "sync" and self.spec.destination_type == "topic"):
            raise NotSupportedError(f"{self.name} has one handler at a time: use the concurrency mode cc to resize it.")
        self._endpoint.settings = replace(settings, pool_size=size, max_outstanding=self._limit_for(size))
        self._apply()

    def _limit_for(self, size: int) -> int:
        """Return max_outstanding for this pool size: the spec's value, or 10 per handler if the spec has the default.

        A value equal to the default counts as the default, because the effective spec does not show which one was set.
        """
        limit = self.spec.max_outstanding
        if limit == self.spec.endpoint_pool_max_size * UNITS_PER_HANDLER:
            return size * UNITS_PER_HANDLER
        if size > limit:
            fields = log_fields("resize_limited", self._endpoint.log_source)
            text = "%s has %d handlers now, but runs at most %d of them: its spec has max_outstanding=%d."
            logger.warning(text, self.name, size, limit, limit, extra=fields)
        return limit

    def _apply(self) -> None:
        if (run := self._state.current_run) is not None:
            run.apply()

    def restart(self, timeout: float | timedelta | None = None) -> None:
        """Stop, then start. If a handler calls it, it returns at once, and another thread restarts the activation.

        Args:
            timeout: As of `stop`.

        Raises:
            InvalidArgumentError: As of `stop`.
        """
        timeout = TIMEOUT("timeout", timeout)
        if self._must_not_block():
            self._in_background(partial(self.restart, timeout))
        else:
            self.stop(timeout)
            self.start()

    def request_stop(self, reason: str | None = None) -> None:
        """Begin to stop, and return at once. Ignored if the activation is already stopping: the first reason is logged.

        Args:
            reason: The reason, for the log.
        """
        run = self._state.current_run
        if run is not None and self.stop_intake(reason or _UNSPECIFIED):
            self._in_background(partial(run.wait_until_stopped, None))

    def stop_intake(self, reason: str | None = None) -> bool:
        """Stop receiving, and return at once: the first half of `stop`.

        Args:
            reason: The handler's reason, for the log.

        Returns:
            True if this call began the stop; False if the activation was already stopped or stopping.
        """
        run = self._state.current_run
        if run is None or not self._state.fire("stop", run):
            return False
        if reason is not None or in_listener():
            fields = log_fields("stop_requested", self._endpoint.log_source, reason=reason or _UNSPECIFIED)
            logger.warning("%s is stopped by its handler: %s", self.name, reason or _UNSPECIFIED, extra=fields)
        run.stop_intake()
        return True

    def connection_factory(self) -> ConnectionFactory:
        """Return a factory of connections to the broker of this activation, with its credentials, for management."""
        settings = self._settings
        return ConnectionFactory(
            settings.url,
            user_name=settings.user_name,
            password=None if settings.source else settings.password,
            credentials=settings.source,
            limits=settings.limits,
        )

    def account(self) -> Account:
        """Return the number of messages by outcome since the activation was created."""
        settled = self.stats.settled_messages
        return Account(
            finished=settled[Outcome.COMMITTED] + settled[Outcome.ROLLED_BACK],
            returned=self.stats.returned_messages,
            in_doubt=settled[Outcome.IN_DOUBT],
            lost=settled[Outcome.LOST],
            active=self._endpoint.abandoned_messages,
        )

    def check_health(self, interval: float) -> Sequence[ActivationHealth]:
        """Return the health of the activation. A distributed subscription has two entries, one for each side.

        Args:
            interval: As of `ResourceAdapter.health`.
        """
        return (self._health_check.check(interval),)

    def is_held(self, message_id: str) -> bool:
        """Return True while the unit of a message with this id waits for acknowledgements.

        Args:
            message_id: The ``delivery_id`` of the message, or its message id.
        """
        return self._endpoint.held.is_held(message_id)

    def has_delivered(self, message_id: str) -> bool:
        """Return True if the activation remembers a delivery of a message under held acknowledgement.

        It remembers at least the last 1,000 deliveries, and the last 5,000 messages that it delivered without a
        commit.

        Args:
            message_id: The id of the message.
        """
        return self._endpoint.held.has_delivered(message_id)

    def settle(self, message_id: str, action: str) -> Settlement:
        """Acknowledge a held message, or first mark its unit for rollback. Never blocks.

        Args:
            message_id: The ``delivery_id`` of the held message. Its message id is accepted only while the activation
                remembers no other delivery of the message (see `has_delivered`).
            action: "JBXCommit" or "JBXRollback", in upper or lower case.

        Returns:
            The settlement of the message's unit.

        Raises:
            ConfigurationError: The action is neither of the two.
            IllegalStateError: No such message is held: it was never held, its unit is settled, or it is already
                acknowledged. Or the message has several deliveries, and its id does not identify one of them.
        """
        return self._endpoint.held.settle(message_id, action)

    def reset_stats(self) -> None:
        """Reset the counters of messages and commits. The counters of endpoints and redeliveries are kept."""
        self.stats.reset()

    def _reset_after_fork(self) -> None:
        """Reset the state after a fork: the parent's threads and connections do not exist in the child."""
        recorder = StatisticsRecorder(self._settings.clock)
        self.stats: Statistics = recorder
        self._status_since = self._settings.clock.monotonic()
        self._state: ActivationState[ActivationRun] = ActivationState(self._report_status, self._settings.clock)
        self._endpoint = Endpoint(
            self.name,
            self._endpoint_settings,
            self._make_handler(),
            statistics=recorder,
            hooks=self._hooks,
            limits=self._settings.limits,
            clock=self._settings.clock,
            request_stop=self.request_stop,
            activation=self,
            mbean_name=self.spec.mbean_name,
            adapter=self._adapter,
            inbox=self._inbox,
            scope=self._scope,
        )
        self._health_check = HealthCheck(self._endpoint, self._state)

    def _warn_of_endless_redelivery(self) -> None:
        """Warn that the default redelivery handling redelivers a message without end if it always fails."""
        if self._endpoint_settings.redelivery.text == DEFAULT_REDELIVERY_HANDLING:
            logger.warning(
                "%s: a message from %s that always fails is redelivered for ever, as the default redelivery handling "
                'has no end%s. To move it to a dead-letter queue: redelivery_handling="%s"',
                self.name,
                self._endpoint_settings.destination,
                ", and holds up all later ones" if self._endpoint_settings.mode == "serial" else "",
                _WITH_DEAD_LETTER_QUEUE,
                extra=log_fields("no_end_of_redelivery", self._endpoint.log_source),
            )

    def __repr__(self) -> str:
        return f"<Activation {self.name} {self.status}>"

    def _must_not_block(self) -> bool:
        return in_listener() or self._endpoint.handler.runs_on_calling_loop()

    def _in_background(self, act: Callable[[], object]) -> None:
        """Call ``act`` on another thread, because the caller must not block."""
        threading.Thread(target=act, name=f"jmsjca stop {self.name}", daemon=True).start()

    def _report_status(self, status: Status) -> None:
        if status == "Up":
            stop_at_exit(self)
        now = self._settings.clock.monotonic()
        duration, self._status_since = now - self._status_since, now
        fields = log_fields("status_changed", self._endpoint.log_source, status=status, duration=duration)
        logger.info("%s is %s.", self.name, status, extra=fields)
        if self._on_status is not None:
            self._on_status()
        as_listener(lambda: self._hooks.status_changed(self.name, status))()


def display_name(spec: "ActivationSpec", url: str) -> str:
    """Return the display name: mode, kind, destination, selector, context and the URL without password.

    Args:
        spec: The effective spec.
        url: The connection URL.
    """
    selector = f"({excerpt(spec.selector, 100)})" if spec.selector else ""
    context = f"{{{excerpt(spec.context_name)}}}" if spec.context_name else ""
    receiver = f"{spec.concurrency_mode}-{_receiver_name(spec)}"
    return one_line(f"{receiver}{selector}{context} @ [{ConnectionURL.parse(url)}]")


def _check_inbox(spec: "ActivationSpec", inbox: Inbox, handler: Callable[..., object]) -> None:
    """Raise an error if the inbox does not fit the listener.

    Raises:
        ConfigurationError: The handler's work is not a part of the unit; the subscription is not durable, so that its
            messages are not redelivered to another consumer; or the handler cannot use the sessions of the inbox.
    """
    place = f"{spec.destination_type}:{spec.destination}"
    if spec.transaction != "required":
        raise ConfigurationError(
            f"{place}: inbox=… needs transaction='required', as the inbox belongs to the handler's transaction; the "
            f"spec has {spec.transaction!r}."
        )
    if spec.destination_type == "topic" and spec.subscription_durability != "Durable":
        raise ConfigurationError(
            f"{place}: inbox=… is for queues and durable subscriptions: all subscribers of one topic would share it."
        )
    if inbox.is_asynchronous and not is_async(handler):
        raise ConfigurationError(
            f"{place}: the sessions of this inbox are asynchronous, and its handler is not. Declare the handler with "
            "'async def', or give the inbox a synchronous Engine."
        )


def _receiver_name(spec: "ActivationSpec") -> str:
    if spec.destination_type == "queue":
        return f"QueueReceiver({spec.destination})"
    if spec.subscription_durability == "Durable":
        return f"Durable TopicSubscriber({spec.subscription_name})({spec.destination})"
    return f"NonDurable TopicSubscriber({spec.destination})"


def listener_settings(
    spec: "ActivationSpec", factory: ConnectionFactory | None, defaults: ConnectionSettings
) -> ConnectionSettings:
    """Return the settings of a listener's connections.

    User name and password are always taken together: from the spec, else from the factory that its URL refers to, else
    from its URL, else from the adapter (JMSJCA manual, "ConnectionURL").

    Args:
        spec: The activation spec, as the application wrote it.
        factory: The factory that the URL of the spec refers to; None for another URL.
        defaults: The URL in use, with the limits and the credentials of the adapter.
    """
    url = defaults.url
    if spec.connection_url and ConnectionURL.parse(url).user_name:  # the adapter's credentials are for another broker
        login = Login(url)
    else:
        login = Login(url, defaults.user_name, defaults.password, defaults.source)
    if factory:
        found = factory.login
        login = found if found.source else login.fill_in(found.user_name, found.password)
    login = login.fill_in(spec.user_name, spec.password.get_secret_value() if spec.password else None)
    return replace(
        defaults,
        user_name=login.user_name,
        password=login.password,
        source=login.source,
        client_id=spec.effective_client_id,
    )


def factory_of_spec(spec: "ActivationSpec", naming: NamingContext) -> ConnectionFactory | None:
    """Return the factory that the URL ``lookup://name`` of a spec refers to; None for another URL.

    Args:
        spec: The activation spec.
        naming: The context in which the name is looked up.

    Raises:
        NameNotFoundError: The name is not bound.
        ConfigurationError: The object is not a connection factory.
    """
    url = spec.connection_url or ""
    return look_up_factory(url, naming) if url.startswith(LOOKUP) else None


class DistributedActivation(Activation):
    """The activation of a distributed durable subscription: a consumer of the queue, and a topic side that fills it.

    Every process tries to take the subscription. When the process that has it dies, another process takes it.

    Args:
        spec: The effective spec; its subscription name is ``jmsjca://?distribution=1&…``.
        handler: The user's function, called with the messages of the queue.
        settings: The settings for connections. The client id is used for the topic side.
        hooks: Called around deliveries of both sides and at their status changes.
        loop: The event loop for the handler's coroutines; None to create one.
        executor: Runs the handlers in mode cc; None to create threads.
        on_status: Called at each change of the status of either side; None for no call.
        naming: The context for ``lookup://`` names; None for `NamingContext.default`.
        converters: Converts bodies and replies; None for `Converters.default`.
        adapter: The name of the adapter, for log records; None for the URL of the broker.

    Attributes:
        topic_side: The activation that forwards messages from the subscription to the queue.

    Raises:
        ConfigurationError: The handler has a parameter for which there is no value.
        NotSupportedError: The spec requires a feature that this release does not have.
    """

    def __init__(
        self,
        spec: "ActivationSpec",
        handler: Callable[..., object],
        settings: ConnectionSettings,
        hooks: HookChain,
        *,
        loop: HandlerLoop | None = None,
        executor: Executor | None = None,
        on_status: Callable[[], None] | None = None,
        naming: NamingContext | None = None,
        converters: Converters | None = None,
        inbox: Inbox | None = None,
        adapter: str | None = None,
        scope: SendScope | None = None,
    ) -> None:
        shared = cast("DistributedSubscription", spec.distributed)  # checked by the caller
        naming = naming or NamingContext.default()
        topic = resolve_destination(spec.destination, "topic", naming)
        queue = Queue(shared.queue_name(topic.name))
        queue_settings = replace(settings, client_id=None)
        super().__init__(
            _queue_spec(spec, queue),
            handler,
            queue_settings,
            hooks,
            loop=loop,
            executor=executor,
            on_status=on_status,
            naming=naming,
            converters=converters,
            inbox=inbox,
            adapter=adapter,
            scope=scope,
        )
        self.topic_side = Activation(
            _topic_spec(spec, shared),
            Forwarder(queue),
            settings,
            hooks,
            requires_atomic_unit=True,
            on_status=on_status,
            naming=naming,
            adapter=adapter,
        )

    @property
    def failure(self) -> Exception | None:
        """The error that stopped one of the sides permanently; None otherwise."""
        failure = super().failure
        return self.topic_side.failure if failure is None else failure

    def start(self) -> None:
        """Start both sides, as `Activation.start` does."""
        self.topic_side.start()
        super().start()

    def account(self) -> Account:
        """Return the number of messages by outcome, for both sides together."""
        both = zip(astuple(super().account()), astuple(self.topic_side.account()), strict=True)
        return Account(*map(sum, both))

    def pause(self) -> None:
        """Pause both sides, as `Activation.pause` does."""
        self.topic_side.pause()
        super().pause()

    def resume(self) -> None:
        """Resume both sides, as `Activation.resume` does."""
        self.topic_side.resume()
        super().resume()

    def check_health(self, interval: float) -> Sequence[ActivationHealth]:
        """Return the health of both sides. A topic side that waits for another process's subscription is idle."""
        side = self.topic_side
        found = side.check_health(interval)
        if isinstance(side.last_error, InvalidClientIDError | IllegalStateError) and side.failure is None:
            found = [replace(each, status="idle", reason="another process has the subscription") for each in found]
        return (*super().check_health(interval), *found)

    def stop_intake(self, reason: str | None = None) -> bool:
        """Stop receiving on both sides, as `Activation.stop_intake` does."""
        self.topic_side.stop_intake()
        return super().stop_intake(reason)

    def stop(self, timeout: float | timedelta | None = None) -> bool:
        """Stop both sides concurrently with one deadline, as `Activation.stop` does."""
        timeout = TIMEOUT("timeout", timeout)
        deadline = Deadline(timeout)
        self.stop_intake()
        forwarded = self.topic_side.stop(timeout)
        return super().stop(deadline.remaining()) and forwarded


class Forwarder:
    """A handler that sends each message to a queue, in the unit of its delivery.

    Args:
        queue: The queue to send to.
    """

    def __init__(self, queue: Queue) -> None:
        self._queue = queue

    def __call__(self, message: Message, session: Session) -> None:
        """Send a copy with the message's remaining time to live. An expired message is dropped."""
        left = remaining_life(message.expiration)
        if message.end_of_batch or left < 0:
            return
        session.create_producer(self._queue).send(
            plain_copy(message), priority=message.priority, delivery_mode=message.delivery_mode, time_to_live=left
        )


def _topic_spec(spec: "ActivationSpec", shared: "DistributedSubscription") -> "ActivationSpec":
    return spec.model_copy(
        update={
            "subscription_name": shared.subscriber_name,
            "concurrency_mode": "sync",
            "endpoint_pool_max_size": 1,
            "batch_size": shared.batch_size,
            "hold_until_ack": False,
            "transaction": "local",
            "mbean_name": shared.topic_mbean_name(spec.mbean_name),
            "options": {**spec.options, "JMSJCA.concurrencymode": "sync", "JMSJCA.minimalreconnectloggingds": "1"},
        }
    )


def _queue_spec(spec: "ActivationSpec", queue: Queue) -> "ActivationSpec":
    return spec.model_copy(
        update={
            "destination": queue.name,
            "destination_type": queue.kind,
            "subscription_durability": "NonDurable",
            "subscription_durable": None,
            "subscription_name": None,
            "client_id": None,
            "selector": None,  # the selector belongs to the subscription
        }
    )
