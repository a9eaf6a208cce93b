"""Durable subscriptions that processes share: one process forwards messages to a queue, all consume from it."""

import time
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from jmsjca.destinations import Queue
from jmsjca.hooks import HookChain
from jmsjca.inbound.activation import Activation
from jmsjca.inbound.handler import HandlerLoop
from jmsjca.messages import Message
from jmsjca.outbound import Session
from jmsjca.reconnection import ConnectionSettings
from jmsjca.redelivery import plain_copy

if TYPE_CHECKING:
    from jmsjca.config import ActivationSpec, DistributedSubscription

__all__ = ["DistributedActivation"]


class DistributedActivation(Activation):
    """The activation of a distributed durable subscription: what consumes from the queue, and beside it the topic side.

    Every process tries to be the one that has the subscription; when that one dies, another gets it.

    Args:
        spec: What to listen to; its subscription name is ``jmsjca://?distribution=1&…``.
        handler: The user's function, called with the messages of the queue.
        settings: What connections are made from; the client id is that of the topic side.
        hooks: What surrounds deliveries of both sides, and hears of their changes.
        loop: Where the handler's coroutines run; None for a loop of its own.
        executor: What handlers run on in the mode cc; None for threads of its own.

    Attributes:
        topic_side: What forwards messages from the subscription to the queue.

    Raises:
        ConfigurationError: The handler asks for something that it cannot be given.
        NotSupportedError: The spec asks for something that this release does not do yet.
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
    ) -> None:
        shared = spec.distributed
        assert shared is not None  # noqa: S101  # whoever makes it has looked
        queue = Queue(shared.queue_name(spec.destination))
        queue_settings = replace(settings, client_id=None)
        super().__init__(_queue_spec(spec, queue), handler, queue_settings, hooks, loop=loop, executor=executor)
        self.topic_side = Activation(_topic_spec(spec, shared), Forwarder(queue), settings, hooks, forwards=True)

    def start(self) -> None:
        """Begin to connect both sides, as `Activation.start` does."""
        self.topic_side.start()
        super().start()

    def end_intake(self, reason: str | None = None) -> bool:
        """Take no more messages on both sides, as `Activation.end_intake` does."""
        self.topic_side.end_intake()
        return super().end_intake(reason)

    def stop(self, timeout: float | None = None) -> bool:
        """Stop both sides at one time, as `Activation.stop` does; they have one deadline."""
        deadline = None if timeout is None else time.monotonic() + timeout
        self.end_intake()
        forwarded = self.topic_side.stop(timeout)
        left = None if deadline is None else max(deadline - time.monotonic(), 0.0)
        return super().stop(left) and forwarded


class Forwarder:
    """Sends each message on to a queue, in the unit of its delivery.

    Args:
        queue: Where to.
    """

    def __init__(self, queue: Queue) -> None:
        self._queue = queue

    def __call__(self, message: Message, session: Session) -> None:
        """Send a copy that lives as long as the message; one that has expired goes nowhere."""
        left = _time_left(message)
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
            "selector": None,  # the subscription has it
        }
    )


def _time_left(message: Message) -> float:
    """Seconds until a message expires; 0 if it never does, below 0 if it has."""
    if message.expiration is None:
        return 0.0
    return (message.expiration - datetime.now(UTC)).total_seconds() or -1.0
