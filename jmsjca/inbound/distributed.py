"""Distributed durable subscriptions: one process forwards messages to a queue, all processes consume from it."""

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import astuple, replace
from typing import TYPE_CHECKING, cast

from jmsjca.arguments import check_timeout
from jmsjca.config.clock import Deadline
from jmsjca.config.naming import NamingContext, resolve_destination
from jmsjca.destinations import Queue
from jmsjca.errors import IllegalStateError, InvalidClientIDError
from jmsjca.hooks import HookChain
from jmsjca.inbound.activation import Activation
from jmsjca.inbound.handler import HandlerLoop
from jmsjca.inbound.health import ActivationHealth
from jmsjca.inbound.listener_unit import Inbox
from jmsjca.inbound.shutdown import Account
from jmsjca.messages.converters import Converters
from jmsjca.messages.message import Message
from jmsjca.outbound.delivery_sends import SendScope
from jmsjca.outbound.session import Session
from jmsjca.reconnection import ConnectionSettings
from jmsjca.redelivery.moved_copy import plain_copy, remaining_life

if TYPE_CHECKING:
    from jmsjca.config.activation_spec import ActivationSpec
    from jmsjca.config.distributed_subscription import DistributedSubscription

__all__ = ["DistributedActivation"]


class DistributedActivation(Activation):
    """The activation of a distributed durable subscription: a consumer of the queue, with the topic side beside it.

    Every process tries to take the subscription; when the process that has it dies, another one takes it.

    Args:
        spec: The effective spec; its subscription name is ``jmsjca://?distribution=1&…``.
        handler: The user's function, called with the messages of the queue.
        settings: The settings for connections; the client id is that of the topic side.
        hooks: Called around deliveries of both sides and at their status changes.
        loop: The event loop for the handler's coroutines; None for a loop of its own.
        executor: Runs the handlers in mode cc; None for threads of its own.
        on_status: Called at each change of the status of either side; None for nothing.
        naming: Where ``lookup://`` names are looked up; None for `NamingContext.default`.
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
        shared = cast("DistributedSubscription", spec.distributed)  # the caller has looked
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
        """The error with which one of the sides stopped permanently; None otherwise."""
        failure = super().failure
        return self.topic_side.failure if failure is None else failure

    def start(self) -> None:
        """Start both sides, as `Activation.start` does."""
        self.topic_side.start()
        super().start()

    def account(self) -> Account:
        """Return what the messages of both sides have come to."""
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
        """Return the health of both sides; a topic side that waits for the subscription of another process is idle."""
        side = self.topic_side
        found = side.check_health(interval)
        if isinstance(side.last_error, InvalidClientIDError | IllegalStateError) and side.failure is None:
            found = [replace(each, status="idle", reason="another process has the subscription") for each in found]
        return (*super().check_health(interval), *found)

    def stop_intake(self, reason: str | None = None) -> bool:
        """Take no more messages on both sides, as `Activation.stop_intake` does."""
        self.topic_side.stop_intake()
        return super().stop_intake(reason)

    def stop(self, timeout: float | None = None) -> bool:
        """Stop both sides concurrently with one deadline, as `Activation.stop` does."""
        check_timeout("timeout", timeout)
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
            "subscription_name": None,
            "client_id": None,
            "selector": None,  # the selector belongs to the subscription
        }
    )
