"""The life cycle of an activation: its states, its runs, its connections and reconnects, its dispatcher."""

import contextlib
import logging
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor
from typing import Generic, Literal, TypeVar

from jmsjca import spi
from jmsjca.config import InboundOptions
from jmsjca.errors import ConnectionLostError, InvalidClientIDError, JMSError
from jmsjca.inbound.capability_check import Adjustments
from jmsjca.inbound.cc_dispatcher import CCDelivery
from jmsjca.inbound.dispatcher import Delivery
from jmsjca.inbound.endpoint import Endpoint
from jmsjca.inbound.listener_context import inside
from jmsjca.inbound.serial_dispatcher import SerialDelivery
from jmsjca.inbound.sync_dispatcher import SyncDelivery
from jmsjca.reconnection import ConnectionSettings, FailoverConnector, is_transient, retry_with_backoff

__all__ = ["Attempt", "Life", "Service", "Status", "Trouble", "delivery_of"]

logger = logging.getLogger("jmsjca.inbound")

_GOODBYE = 1.0  # seconds that each step of closing a connection over its handlers may take

_STEADY = 30.0  # seconds after which a connection that breaks is not taken for one that never worked
_TELL_EVERY = 15.0

Status = Literal["Up", "Down", "Connecting", "Disconnecting"]

R = TypeVar("R")

Event = Literal["start", "stop", "connected", "broken", "ended"]

_NEXT: dict[tuple[Event, Status], Status] = {
    ("start", "Down"): "Connecting",
    ("connected", "Connecting"): "Up",
    ("broken", "Up"): "Connecting",
    ("stop", "Connecting"): "Disconnecting",
    ("stop", "Up"): "Disconnecting",
    ("ended", "Connecting"): "Down",  # by itself: trying again could not help
    ("ended", "Up"): "Down",
    ("ended", "Disconnecting"): "Down",
}  # whatever else happens changes nothing


def _always() -> bool:
    return True


class Life(Generic[R]):
    """The state machine of an activation; for any number of threads.

    ============= ========== ========== ============= =============
    event         Down       Connecting Up            Disconnecting
    ============= ========== ========== ============= =============
    start         Connecting            .             .
    connected                Up         .             .
    broken                              Connecting    .
    stop                     Disconnecting (both)     .
    ended                    Down       Down          Down
    ============= ========== ========== ============= =============

    Args:
        tell: Told of each new status, in order, one at a time, without a lock: it may call back.

    Attributes:
        run: What was started last.
    """

    def __init__(self, tell: Callable[[Status], None]) -> None:
        self._tell = tell
        self._lock = threading.Lock()
        self._status: Status = "Down"
        self.run: R | None = None
        self._untold: deque[Status] = deque()
        self._telling = threading.Lock()

    @property
    def status(self) -> Status:
        """Where it stands."""
        return self._status

    def happens(self, event: Event, run: R, still: Callable[[], bool] = _always) -> bool:
        """Let something happen.

        Args:
            event: What happens.
            run: What it happens to: that which was started last, or it means nothing any more.
            still: Asked at that moment; False if it means nothing any more.

        Returns:
            True if that changed the status.
        """
        with self._lock:
            following = _NEXT.get((event, self._status))
            if following is None or (event != "start" and run is not self.run) or not still():
                return False
            self._status, self.run = following, run
            self._untold.append(following)
        self._tell_all()
        return True

    def _tell_all(self) -> None:
        """Tell what is untold, unless somebody is at it: they go on until there is nothing left."""
        while self._untold and self._telling.acquire(blocking=False):
            try:
                while self._untold:
                    self._tell(self._untold.popleft())
            finally:
                self._telling.release()


class Attempt:
    """Connects, and delivers until it is stopped or something breaks.

    Args:
        endpoint: Whose messages.
        connector: Makes the connection.
        adjustments: What looks at what the broker can do.
        executor: What handlers run on in the mode cc; None for threads of its own.

    Attributes:
        connected: True once the broker was reached.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        connector: FailoverConnector,
        adjustments: Adjustments,
        executor: Executor | None = None,
    ) -> None:
        self._endpoint = endpoint
        self._connector = connector
        self._adjustments = adjustments
        self._executor = executor
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self.connected = self._stopping = False
        self._error: Exception | None = None
        self._connection: spi.Connection | None = None
        self._delivery: Delivery | None = None

    def run(self, up: Callable[[], None], lost: Callable[[JMSError], None]) -> None:
        """Connect and deliver.

        Args:
            up: Told when messages can flow.
            lost: Told when the connection breaks, perhaps while handlers are at work; `stop` is what it should call.

        Raises:
            JMSError: The broker cannot be reached or refuses, the connection broke, or something else failed.
        """
        connection = self._connection = self._connector.connect(lost, lambda: not self._stopping)
        self.connected = True
        try:
            if not self._stopping:
                delivery = self._begin(connection)
                up()
                self._adjustments.compare_limits(self._endpoint.terms, connection)
                delivery.run()
        finally:
            self._endpoint.statistics.n_configured_endpoints = -1
            with contextlib.suppress(JMSError):  # given up anyway
                connection.close()
            self._ended.set()

    def stop(self, error: Exception | None = None) -> None:
        """Take no more messages, and let `run` end when the handlers are done; with an error as soon as it can."""
        with self._lock:
            self._stopping = True
            self._error = self._error or error
            delivery = self._delivery
        if delivery is not None:
            delivery.stop(error)

    def give_up(self) -> None:
        """Close the connection over the handlers at work: their units are lost, their messages come again."""
        self.stop(ConnectionLostError(f"{self._endpoint.name} was stopped before its handlers were done."))
        if self._endpoint.terms.mode != "serial":  # where `run` does not wait for handlers then, but notes them
            self._ended.wait(_GOODBYE)
        if self._connection is not None:
            with contextlib.suppress(JMSError):
                self._connection.close(_GOODBYE)

    def _begin(self, connection: spi.Connection) -> Delivery:
        self._adjustments.check(self._endpoint.terms, connection)
        delivery = delivery_of(self._endpoint, connection, self._executor)
        with self._lock:
            self._delivery = delivery
            stopping, error = self._stopping, self._error
        if error is not None:
            raise error
        if stopping:
            delivery.stop()
        self._endpoint.statistics.reset_commits()
        self._endpoint.statistics.n_configured_endpoints = self._endpoint.terms.pool_size
        return delivery


class Service:
    """Connects and delivers on a thread of its own, and again when the connection breaks, until it is ended.

    Args:
        endpoint: Whose messages.
        settings: What connections are made from.
        options: How failures are told.
        executor: What handlers run on in the mode cc; None for threads of its own.
        life: Told what leads to another status.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        settings: ConnectionSettings,
        options: InboundOptions,
        executor: Executor | None,
        life: Life["Service"],
    ) -> None:
        self._endpoint = endpoint
        self._settings = settings
        self._connector = FailoverConnector(settings)
        self._executor = executor
        self._life = life
        self._trouble = Trouble(endpoint.name, options, durable=endpoint.terms.subscription_name is not None)
        self._adjustments = Adjustments(endpoint.name)
        self._stopping = threading.Event()
        self._ending = threading.Lock()
        self._ended = threading.Event()
        self._over = False
        self._given_up = self._cut_off = False
        self._attempt: Attempt | None = None
        self._up_since: float | None = None

    def begin(self) -> None:
        """Start the thread."""
        threading.Thread(target=inside(self._run), name=f"jmsjca {self._endpoint.name}", daemon=True).start()

    def end_intake(self) -> None:
        """Take no more messages; the thread ends when the handlers at work are done."""
        self._stopping.set()
        if self._attempt is not None:
            self._attempt.stop()

    def finish(self, timeout: float | None) -> bool:
        """Wait for the handlers at work; after so many seconds close the connection over them. None: wait for ever.

        Returns:
            True if all of them ended in time.
        """
        clock = self._settings.clock
        deadline = None if timeout is None else clock.monotonic() + timeout
        while not self._ended.is_set():
            left = None if deadline is None else deadline - clock.monotonic()
            if left is not None and left <= 0:
                self._give_up()
                self._ended.wait()
            elif not self._settings.wait(self._ended, _TELL_EVERY if left is None else min(left, _TELL_EVERY)):
                logger.info("%s is being stopped and waits for %s.", self._endpoint.name, self._who())
        return not self._given_up

    def _who(self) -> str:
        return f"{self._endpoint.statistics.n_active_endpoints} handlers at work"

    def _give_up(self) -> None:
        self._cut_off = True
        busy = self._endpoint.statistics.n_active_endpoints
        if busy:
            self._given_up = True  # before others who wait are woken by what follows
            logger.warning(
                "%s was stopped before all was done: %s; their messages come again.", self._endpoint.name, self._who()
            )
        if self._attempt is not None:
            self._attempt.give_up()
        if self._endpoint.statistics.n_active_endpoints:  # one may have begun just then
            self._given_up = True
        self._end()

    def _open(self) -> None:
        """Let coroutines run, unless this was given up before its thread began."""
        with self._ending:
            if not self._over:
                self._endpoint.handler.open()

    def _end(self) -> None:
        """Be over, once: the handler is that of the next run, too."""
        with self._ending:
            over, self._over = self._over, True
            if not over:
                self._endpoint.handler.close()
        if not over:
            self._life.happens("ended", self)
            self._ended.set()

    def _run(self) -> None:
        try:
            self._open()
            while not self._stopping.is_set():
                retry_with_backoff(self._connect_and_deliver, self._stopping, self._trouble.note, self._settings.wait)
        except JMSError as error:
            logger.error("%s is down and stays down: %s", self._endpoint.name, error)  # noqa: TRY400  # says it all
        except Exception:
            logger.exception("%s is down: a fault in jmsjca or its provider.", self._endpoint.name)
        finally:
            self._end()

    def _connect_and_deliver(self) -> None:
        """Make one attempt; returns when it is stopped, or breaks after it has been up for a while."""
        self._up_since = None
        attempt = self._attempt = Attempt(self._endpoint, self._connector, self._adjustments, self._executor)
        if self._stopping.is_set():  # who sets it stops the attempt that it sees
            return
        try:
            attempt.run(self._up, lambda error: self._lost(attempt, error))
        except JMSError as error:
            self._life.happens("broken", self)
            self._trouble.connected = attempt.connected
            if self._stopping.is_set():
                if not self._cut_off:
                    self._trouble.while_stopping(error)
            elif is_transient(error) and self._was_steady():
                self._trouble.lost(error)
            else:
                raise

    def _up(self) -> None:
        self._trouble.over()
        self._up_since = self._settings.clock.monotonic()
        self._life.happens("connected", self)

    def _lost(self, attempt: Attempt, error: JMSError) -> None:
        self._life.happens("broken", self, lambda: attempt is self._attempt)  # what is told late is known already
        attempt.stop(error)

    def _was_steady(self) -> bool:
        return self._up_since is not None and self._settings.clock.monotonic() - self._up_since >= _STEADY


class Trouble:
    """Tells of each failed attempt, or of the first of a row only.

    Args:
        name: The endpoint's display name.
        options: Which of the two.
        durable: True if it is a durable subscription, which another node may have.

    Attributes:
        connected: True if the broker was reached when the last attempt failed.
    """

    def __init__(self, name: str, options: InboundOptions, *, durable: bool) -> None:
        self._name = name
        self._once = options.minimal_reconnect_logging
        self._elsewhere = options.minimal_reconnect_logging_ds and durable
        self._told = False
        self.connected = False

    def note(self, error: BaseException, attempt: int, seconds: float) -> None:
        """Tell that an attempt failed, and when the next one follows."""
        if not (self._once or self._elsewhere):
            logger.warning(
                "%s: attempt %d failed, the next one follows in %.1f s: %s",
                self._name,
                attempt,
                seconds,
                error,
            )
        elif not self._told:
            self._told = True
            self._tell_once(error)

    def lost(self, error: JMSError) -> None:
        """Tell that a connection broke that had been up for a while."""
        logger.warning("%s lost its connection and makes a new one: %s", self._name, error)

    def while_stopping(self, error: JMSError) -> None:
        """Tell that something broke that was about to end anyway."""
        logger.warning("%s was not stopped in order: %s", self._name, error)

    def over(self) -> None:
        """Note that messages can flow."""
        self._told = False

    def _tell_once(self, error: BaseException) -> None:
        if self._elsewhere and (self.connected or isinstance(error, InvalidClientIDError)):
            logger.info("%s cannot subscribe yet, another node may have the subscription: %s", self._name, error)
        else:
            logger.error("%s cannot connect and keeps trying without further notice: %s", self._name, error)


def delivery_of(endpoint: Endpoint, link: spi.Connection, executor: Executor | None = None) -> Delivery:
    """Begin to consume, in the endpoint's mode.

    Args:
        endpoint: Whose messages.
        link: Where they come from.
        executor: What handlers run on in the mode cc; None for a pool of its own.

    Raises:
        JMSError: The broker refuses.
    """
    match endpoint.terms.mode:
        case "serial":
            return SerialDelivery(endpoint, link)
        case "sync":
            return SyncDelivery(endpoint, link)
        case "cc":
            return CCDelivery(endpoint, link, executor)
