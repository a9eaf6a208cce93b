"""An activation: one message-driven endpoint, from start to stop, and its display name."""

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from jmsjca.config import ConnectionURL
from jmsjca.errors import IllegalStateError, excerpt
from jmsjca.forking import reset_in_child
from jmsjca.hooks import HookChain
from jmsjca.inbound.capability_check import refuse_unavailable
from jmsjca.inbound.endpoint import Endpoint, terms_of
from jmsjca.inbound.handler import Handler, HandlerLoop
from jmsjca.inbound.lifecycle import Life, Service, Status
from jmsjca.inbound.listener_context import inside, is_inside
from jmsjca.inbound.shutdown import end_with_process
from jmsjca.inbound.statistics import Statistics
from jmsjca.messages import Settlement
from jmsjca.reconnection import ConnectionSettings

if TYPE_CHECKING:
    from jmsjca.config import ActivationSpec

__all__ = ["Activation", "Status", "display_name"]

logger = logging.getLogger("jmsjca.inbound")

_UNSPECIFIED = "<unspecified>"


class Activation:
    """Made by `ResourceAdapter.activate`. Connects, delivers, connects again when the connection breaks.

    Args:
        spec: What to listen to.
        handler: The user's function.
        settings: What connections are made from.
        hooks: What surrounds deliveries and hears of changes.
        loop: Where the handler's coroutines run; None for a loop of its own.
        executor: What handlers run on in the mode cc; None for threads of its own.
        forwards: True if the handler sends in the unit of every message: a broker that cannot do that is refused.

    Attributes:
        name: The display name, for logs and hooks.
        spec: What it listens to.
        stats: What it counted.

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
        forwards: bool = False,
    ) -> None:
        refuse_unavailable(spec)
        self.spec = spec
        self.name = display_name(spec, settings.url)
        self._settings = settings
        self._hooks = hooks
        self._executor = executor
        self._terms = replace(terms_of(spec), forwards=forwards)
        self._make_handler = partial(Handler, handler, loop)
        self._reset_after_fork()
        reset_in_child(self, Activation._reset_after_fork)

    @property
    def status(self) -> Status:
        """Up when messages can flow; else "Down", "Connecting" or "Disconnecting"."""
        return self._life.status

    def start(self) -> None:
        """Begin to connect, and deliver as soon as that succeeds. Does nothing if it was started already.

        Returns at once: the broker may be down. It is tried again after 1, 2, 5, 5, 10, 10, … seconds.

        Raises:
            IllegalStateError: It is being stopped just now.
        """
        service = Service(self._endpoint, self._settings, self.spec.inbound_options, self._executor, self._life)
        if self._life.happens("start", service):
            service.begin()
        elif self.status == "Disconnecting":
            raise IllegalStateError(f"{self.name} is being stopped; start it again when its status is 'Down'.")

    def stop(self, timeout: float | None = None) -> bool:
        """Take no more messages, wait for the handlers at work, give back what was taken ahead, disconnect.

        Units that wait for an acknowledgement are rolled back. At the deadline the connection is closed over the
        handlers that are still at work: their units are lost, and the messages come again.

        Called by a handler, by a hook around one, or on the event loop that async handlers run on, it returns at once,
        and all this happens when the handlers have returned.

        Args:
            timeout: Seconds until the deadline; None to wait for ever.

        Returns:
            True if all handlers ended in time; False if some are still at work.
        """
        service = self._life.run
        if service is None:
            return True
        self.end_intake()
        if self._cannot_wait():
            self._elsewhere(partial(service.finish, timeout))
            return False
        return service.finish(timeout)

    def restart(self, timeout: float | None = None) -> None:
        """Stop, then start. From inside a handler it returns at once, and this happens elsewhere.

        Args:
            timeout: As of `stop`.
        """
        if self._cannot_wait():
            self._elsewhere(partial(self.restart, timeout))
        else:
            self.stop(timeout)
            self.start()

    def request_stop(self, reason: str | None = None) -> None:
        """Begin to stop, and return at once. Ignored if it is being stopped already: the first reason counts.

        Args:
            reason: Why, for the log.
        """
        service = self._life.run
        if service is not None and self.end_intake(reason or _UNSPECIFIED):
            self._elsewhere(partial(service.finish, None))

    def end_intake(self, reason: str | None = None) -> bool:
        """Take no more messages, and return at once: the first half of `stop`.

        Args:
            reason: Why a handler wants it, for the log.

        Returns:
            True if this is what begins to stop it.
        """
        service = self._life.run
        if service is None or not self._life.happens("stop", service):
            return False
        if reason is not None or is_inside():
            logger.warning("%s is stopped by its handler: %s", self.name, reason or _UNSPECIFIED)
        service.end_intake()
        return True

    def settle(self, message_id: str, action: str) -> Settlement:
        """Acknowledge a held message, or let its unit roll back. Does not wait.

        Args:
            message_id: Which message.
            action: "JBXCommit" or "JBXRollback", in upper or lower case.

        Raises:
            ConfigurationError: The action is another one.
            IllegalStateError: No such message is held: it never was, or its unit is settled, or it is acknowledged.
        """
        return self._endpoint.held.settle(message_id, action)

    def reset_stats(self) -> None:
        """Begin anew to count messages and commits; not endpoints and redeliveries."""
        self.stats.reset()

    def _reset_after_fork(self) -> None:
        """Begin anew: a forked child calls this, where the threads and connections are its parent's."""
        self.stats = Statistics(self._settings.clock)
        self._life: Life[Service] = Life(self._tell)
        self._endpoint = Endpoint(
            self.name,
            self._terms,
            self._make_handler(),
            statistics=self.stats,
            hooks=self._hooks,
            limits=self._settings.limits,
            clock=self._settings.clock,
            request_stop=self.request_stop,
            activation=self,
            mbean_name=self.spec.mbean_name,
        )

    def __repr__(self) -> str:
        return f"<Activation {self.name} {self.status}>"

    def _cannot_wait(self) -> bool:
        return is_inside() or self._endpoint.handler.is_blocked_by_caller()

    def _elsewhere(self, act: Callable[[], object]) -> None:
        """Do it on another thread: whoever asks for it is being waited for."""
        threading.Thread(target=act, name=f"jmsjca stop {self.name}", daemon=True).start()

    def _tell(self, status: Status) -> None:
        if status == "Up":
            end_with_process(self)
        logger.info("%s is %s.", self.name, status)
        inside(lambda: self._hooks.status_changed(self.name, status))()


def display_name(spec: "ActivationSpec", url: str) -> str:
    """Tell how and to what an activation listens: mode, kind, destination, selector, context, URL without password.

    Args:
        spec: The spec in force.
        url: The connection URL in force.
    """
    selector = f"({excerpt(spec.selector, 100)})" if spec.selector else ""
    context = f"{{{excerpt(spec.context_name)}}}" if spec.context_name else ""
    return f"{spec.concurrency_mode}-{_receiver(spec)}{selector}{context} @ [{ConnectionURL.parse(url)}]"


def _receiver(spec: "ActivationSpec") -> str:
    if spec.destination_type == "queue":
        return f"QueueReceiver({spec.destination})"
    if spec.subscription_durability == "Durable":
        return f"Durable TopicSubscriber({spec.subscription_name})({spec.destination})"
    return f"NonDurable TopicSubscriber({spec.destination})"
