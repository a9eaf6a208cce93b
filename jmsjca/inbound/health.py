"""The health of activations: whether messages can flow, not only whether a connection is open."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal, Protocol

from jmsjca import spi
from jmsjca.arguments import Constraint
from jmsjca.destinations import Queue, Subscription
from jmsjca.errors import (
    InvalidArgumentError,
    InvalidDestinationError,
    JMSError,
    JMSSecurityError,
    MessageFormatError,
    NotSupportedError,
)
from jmsjca.inbound.activation_state import ActivationState
from jmsjca.inbound.dispatcher import Dispatcher
from jmsjca.inbound.endpoint import Activity, Endpoint, Stall, message_identity

if TYPE_CHECKING:
    import asyncio

__all__ = ["INTERVAL", "ActivationHealth", "Health", "HealthCheck", "HealthStatus"]

HealthStatus = Literal["consuming", "idle", "stuck", "down"]
"""In ascending order of attention, "idle" before "consuming". The last one is the status of several activations."""

_ATTENTION: tuple[HealthStatus, ...] = ("idle", "consuming", "stuck", "down")
_LOOP_GRACE = 1.0  # seconds of real time within which a busy event loop must answer


@dataclass(frozen=True, slots=True)
class ActivationHealth:
    """The health of one activation.

    Attributes:
        name: The display name.
        status: "consuming": it delivers messages, or did within the interval. "idle": no messages arrive. "stuck": it
            is connected, but messages do not flow. "down": it is stopped or not connected.
        reason: The reason of "stuck" and "down"; otherwise None, or a remark.
        since: The time when that began; None if unknown.
        failed: True if only a new start can help: the activation stopped permanently, or its threads ended.
    """

    name: str
    status: HealthStatus
    reason: str | None = None
    since: datetime | None = None
    failed: bool = False

    def as_dict(self) -> dict[str, object]:
        """Return the fields as values for JSON."""
        since = None if self.since is None else self.since.isoformat(timespec="seconds")
        return {
            "name": self.name,
            "status": self.status,
            "reason": self.reason,
            "since": since,
            "failed": self.failed,
        }


@dataclass(frozen=True, slots=True)
class Health:
    """The health of an adapter.

    Attributes:
        status: The status of the activation that needs most attention ("down" before "stuck"); "idle" if there are no
            activations.
        reason: The reason of that status, with the name of the activation.
        since: The time when that began.
        activations: The health of each activation.
    """

    status: HealthStatus
    reason: str | None
    since: datetime | None
    activations: Sequence[ActivationHealth]

    @classmethod
    def of(cls, activations: Sequence[ActivationHealth]) -> "Health":
        """Return the health of an adapter with these activations."""
        if not activations:
            return cls("idle", "there are no activations", None, ())
        worst = max(activations, key=lambda each: _ATTENTION.index(each.status))
        reason = f"{worst.name}: {worst.reason}" if worst.reason else None
        return cls(worst.status, reason, worst.since, tuple(activations))

    @property
    def is_ready(self) -> bool:
        """True if messages can flow in all activations."""
        return self.status in ("consuming", "idle")

    @property
    def is_alive(self) -> bool:
        """False if restarting the process may help: an activation is stuck, or ended. A lost broker does not count."""
        return not any(each.status == "stuck" or each.failed for each in self.activations)

    def as_dict(self) -> dict[str, object]:
        """Return the fields as values for JSON."""
        return {
            "status": self.status,
            "reason": self.reason,
            "since": None if self.since is None else self.since.isoformat(timespec="seconds"),
            "ready": self.is_ready,
            "alive": self.is_alive,
            "activations": [each.as_dict() for each in self.activations],
        }


INTERVAL = Constraint[float](
    "a number of seconds above 0",
    (int, float),
    fits=lambda seconds: 0 < seconds < float("inf"),
    error=InvalidArgumentError,
    seconds=True,
)
"""The interval of health checks."""


class ObservedRun(Protocol):
    """The run of an activation, reduced to what a health check uses."""

    failure: Exception | None
    last_error: Exception | None

    @property
    def stop_requested(self) -> bool:
        """True if the run was asked to stop."""
        ...

    @property
    def delivering(self) -> tuple[spi.Connection, Dispatcher] | None:
        """The connection and the dispatcher of the current attempt; None before it delivers."""
        ...


class HealthCheck:
    """Checks one activation. Keeps what it observed for the next check.

    Args:
        endpoint: The endpoint of the activation.
        state: The state machine of the activation.
    """

    def __init__(self, endpoint: Endpoint, state: "ActivationState[Any]") -> None:
        self._endpoint = endpoint
        self._state = state
        self._loop = _LoopProbe(endpoint)
        self._backlog = _BacklogProbe(endpoint)
        self._lock = threading.Lock()

    def check(self, interval: float) -> ActivationHealth:
        """Return the health of the activation.

        Args:
            interval: Seconds that a handler, a settlement or an acknowledgement may take.
        """
        with self._lock:
            run: ObservedRun | None = self._state.current_run
            status = self._state.status
            if run is None or status != "Up":
                return self._down(run, status)
            delivering, now = run.delivering, self._endpoint.activity.now()
            stall = self._find_stall(delivering, now, interval)
            if stall is not None:
                return self._health("stuck", stall.reason, stall.since)
            return self._flowing(now, interval)

    def _down(self, run: ObservedRun | None, status: str) -> ActivationHealth:
        error = None if run is None else run.last_error if run.failure is None else run.failure
        ended = run is not None and status == "Down" and not run.stop_requested
        reason = str(error) if error is not None else "its thread has ended" if ended else _REASONS[status]
        return self._health("down", reason, self._state.changed_at, failed=ended)

    def _flowing(self, now: float, interval: float) -> ActivationHealth:
        activity = self._endpoint.activity
        if self._endpoint.paused:
            return self._health("idle", "it is paused", self._state.changed_at)
        if activity.units or (self._endpoint.statistics.n_messages and now - activity.last_progress < interval):
            return self._health("consuming", None, activity.last_progress)
        return self._health("idle", None, max(activity.last_progress, self._state.changed_at))

    def _find_stall(self, delivering: "_Delivering | None", now: float, interval: float) -> Stall | None:
        found: list[Stall | None] = [_oldest_step(self._endpoint.activity), self._loop.find_stall(now)]
        if delivering is not None:
            found.append(delivering[1].find_stall())
        for stall in found:
            if stall is not None and now - stall.since >= interval:
                return stall
        return None if delivering is None else self._backlog.find_stall(delivering[0], now, interval)

    def _health(
        self, status: HealthStatus, reason: str | None, since: float, *, failed: bool = False
    ) -> ActivationHealth:
        clock = self._endpoint.clock
        moment = datetime.fromtimestamp(clock.now() - (clock.monotonic() - since), UTC)
        return ActivationHealth(self._endpoint.name, status, reason, moment, failed)


_Delivering = tuple[spi.Connection, Dispatcher]
_REASONS = {
    "Down": "it is stopped",
    "Connecting": "it is connecting",
    "Disconnecting": "it is being stopped",
    "Up": "it is starting",
}


def _oldest_step(activity: Activity) -> Stall | None:
    """Return the step that has lasted longest. A delayed redelivery does not count, because its end is known."""
    steps = [(since, step) for step, since in activity.steps() if step != "delay"]
    if not steps:
        return None
    since, step = min(steps)
    return Stall(f"a {step} has not ended", since)


class _LoopProbe:
    """Detects a blocked event loop: asks the loop of async handlers to run a callback.

    Args:
        endpoint: The endpoint of the activation.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._asked_at: float | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._answered = threading.Event()

    def find_stall(self, now: float) -> Stall | None:
        """Return the time since when the loop has not answered; None if it has answered, or there is no loop."""
        loop = self._endpoint.handler.running_loop()
        if loop is None or loop is not self._loop or self._answered.is_set() or self._asked_at is None:
            self._ask(loop, now)
            return None
        if self._endpoint.handler.runs_on_calling_loop() or self._answered.wait(_LOOP_GRACE):
            return None  # the caller runs on this loop, so it is not blocked
        return Stall("the event loop of the handlers is blocked", self._asked_at)

    def _ask(self, loop: "asyncio.AbstractEventLoop | None", now: float) -> None:
        self._loop, self._asked_at, answered = loop, now, threading.Event()
        self._answered = answered
        if loop is not None and not loop.is_closed():
            try:
                loop.call_soon_threadsafe(answered.set)
            except RuntimeError:  # the loop was closed after the check
                answered.set()


class _BacklogProbe:
    """Detects messages that wait at the broker for an activation that receives none although it could.

    Nothing else reveals a subscription that the broker dropped, or a consumer that it no longer knows: the connection
    is open, and nothing arrives. The probe browses one message, over the activation's own connection.

    Args:
        endpoint: The endpoint of the activation.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._seen: tuple[str, float] | None = None  # the waiting message, and the activation's progress at that time
        self._since = 0.0
        self._looked_at: float | None = None

    def find_stall(self, connection: spi.Connection, now: float, interval: float) -> Stall | None:
        """Return the stall once a message has waited for a third of the interval."""
        if self._looked_at is None or now - self._looked_at >= interval / 10:
            self._look(connection, now)
        if self._seen is None or self._seen[1] != self._endpoint.activity.last_progress:
            return None
        if now - self._since < interval / 3:
            return None
        return Stall(self._seen[0], self._since)

    def _look(self, connection: spi.Connection, now: float) -> None:
        activity = self._endpoint.activity
        progress, waiting = activity.last_progress, None
        if activity.units < self._endpoint.settings.pool_size:
            waiting = self._waiting(connection)
        seen = None if waiting is None else (waiting, progress)
        if seen != self._seen:
            self._seen, self._since = seen, now
        self._looked_at = now

    def _waiting(self, connection: spi.Connection) -> str | None:
        try:
            return self._find_waiting(connection)
        except (NotSupportedError, JMSSecurityError, InvalidDestinationError):
            return None
        except JMSError as error:
            return f"the broker does not answer: {type(error).__name__}"

    def _find_waiting(self, connection: spi.Connection) -> str | None:
        settings = self._endpoint.settings
        admin = connection.admin()  # without it, browsers also see messages that other consumers hold
        if admin is None:
            return None
        if isinstance(settings.source, Subscription):
            ready = admin.depth(settings.source).ready
            return f"{ready} messages of the subscription wait, but none is received" if ready else None
        if not isinstance(settings.source, Queue) or not connection.capabilities.browse:
            return None
        for chunk in connection.browse(settings.source, selector=settings.selector, limit=1):
            for delivery in chunk:
                return f"the message {_identity(delivery)} waits at the broker, but is not received"
        return None


def _identity(delivery: spi.Delivery) -> str:
    try:
        return message_identity(delivery)
    except MessageFormatError:
        return delivery.digest
