"""The life cycle of an activation: runs, connections and reconnects, and the check of the broker's capabilities."""

import contextlib
import logging
import threading
from collections.abc import Callable
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import replace
from threading import Thread

from jmsjca import spi
from jmsjca.config.clock import Deadline
from jmsjca.destinations import Destination, Subscription
from jmsjca.errors import ConnectionLostError, InvalidClientIDError, JMSError, NotSupportedError
from jmsjca.inbound.activation_state import ActivationState
from jmsjca.inbound.dispatcher import CCDispatcher, Dispatcher, SerialDispatcher
from jmsjca.inbound.endpoint import Endpoint, EndpointSettings
from jmsjca.inbound.listener_log import Event, EventSource, as_listener, log_fields
from jmsjca.inbound.sync_dispatcher import SyncDispatcher
from jmsjca.log_records import get_logger
from jmsjca.reconnection import (
    ConnectionSettings,
    FailoverConnector,
    exhaustion_reported,
    is_transient,
    retry_with_backoff,
)
from jmsjca.redelivery.policy import Move

__all__ = ["ActivationRun", "CapabilityCheck", "create_dispatcher"]

logger = get_logger("jmsjca.inbound")

_CLOSE_TIMEOUT = 1.0  # seconds for each step of closing a connection with active handlers

_STABLE_AFTER = 30.0  # seconds; a connection that lived this long is reconnected without back-off
_LOG_INTERVAL = 15.0
_MEMORY_PAUSE = 1.0  # seconds

_Test = Callable[[EndpointSettings, spi.Capabilities], bool]

_UNSUPPORTED: tuple[tuple[str, _Test], ...] = (
    (
        "a selector: it lacks the capability selectors",
        lambda settings, can: bool(settings.selector) and not can.selectors,
    ),
    (
        "a durable subscription: it lacks the capability durable",
        lambda settings, can: isinstance(settings.source, Subscription) and settings.source.durable and not can.durable,
    ),
    (
        "a shared subscription: it lacks the capability shared",
        lambda settings, can: isinstance(settings.source, Subscription) and settings.source.shared and not can.shared,
    ),
    (
        "forwarding and acknowledging messages in one transaction: it lacks the capability atomic",
        lambda settings, can: settings.requires_atomic_unit and not can.atomic,
    ),
    (
        "transaction='required': it lacks the capability atomic",
        lambda settings, can: settings.joined and not can.atomic,
    ),
)

_DEGRADED: tuple[tuple[str, _Test], ...] = (
    (
        "moves a message by sending, then acknowledging: without a transaction for both (atomic) it may be duplicated.",
        lambda settings, can: isinstance(settings.redelivery.last_action, Move) and not can.atomic,
    ),
    (
        "acknowledges a batch one by one: without a transaction (transacted_receive) a part may be redelivered.",
        lambda settings, can: settings.batch_size > 0 and not can.transacted_receive,
    ),
)

_EMULATED: tuple[tuple[str, _Test], ...] = (
    (
        "has one receiver in mode sync: each of several receivers would get every message of the topic.",
        lambda settings, _: (
            settings.mode == "sync"
            and settings.destination.kind == "topic"
            and not (isinstance(settings.source, Subscription) and settings.source.shared)
        ),
    ),
    (
        "refuses sends in the unit of a message: the broker cannot acknowledge and send in one transaction (atomic).",
        lambda settings, can: settings.transacted and not can.atomic,
    ),
    (
        "counts redeliveries itself, until the process ends: the broker does not (delivery_count).",
        lambda settings, can: bool(settings.redelivery.rules) and not can.delivery_count,
    ),
)


class CapabilityCheck:
    """Compares the settings of an endpoint with the capabilities of each connection. Logs each difference once.

    Args:
        source: The fields of the endpoint's log records.
    """

    def __init__(self, source: EventSource) -> None:
        self._source = source
        self._name = source.endpoint
        self._logged: set[str] = set()

    def check(self, settings: EndpointSettings, connection: spi.Connection) -> None:
        """Refuse settings that the connection does not support, and log the replacements of others.

        Raises:
            NotSupportedError: The broker lacks a capability that cannot be replaced.
        """
        can = connection.capabilities
        refused = [what for what, holds in _UNSUPPORTED if holds(settings, can)]
        if refused:
            raise NotSupportedError(f"The broker of {self._name} does not support {', nor '.join(refused)}.")
        for level, reasons in ((logging.WARNING, _DEGRADED), (logging.INFO, _EMULATED)):
            for reason, holds in reasons:
                if holds(settings, can):
                    self._log_once(level, reason)

    def check_max_deliveries(self, settings: EndpointSettings, connection: spi.Connection) -> None:
        """Warn if the broker removes messages before the redelivery handling reaches its last action.

        A broker on a network is asked on another thread, because it may answer slowly, and messages must not wait.
        """
        highest = settings.redelivery.highest_index
        if not (highest and connection.capabilities.admin):
            return

        def compare() -> None:
            most = _most_deliveries(settings.destination, connection)
            if most is not None and most <= highest:
                self._log_once(
                    logging.WARNING,
                    f"has a redelivery handling that ends with the redelivery {highest}, but the broker delivers a "
                    f"message {most} times at most: set max_deliveries to {highest + 1} at least.",
                )

        if connection.capabilities.configurable:
            compare()
        else:
            Thread(target=compare, name=f"jmsjca {self._name}", daemon=True).start()

    def _log_once(self, level: int, reason: str) -> None:
        if reason not in self._logged:
            self._logged.add(reason)
            logger.log(level, "%s %s", self._name, reason, extra=log_fields("delivery_limit", self._source))


def _most_deliveries(source: Destination, connection: spi.Connection) -> int | None:
    """Return the broker's limit of deliveries per message; None if there is no limit or it is unknown."""
    with suppress(JMSError):
        admin = connection.admin()
        return None if admin is None else admin.settings(source).max_deliveries
    return None


class _ListenerConnection:
    """One connection of a listener: connects, and delivers until it is stopped or the connection breaks.

    Args:
        endpoint: The endpoint to dispatch for.
        connector: Opens the connection.
        check: Compares the settings with the broker's capabilities.
        executor: Runs the handlers in mode cc; None to create threads.

    Attributes:
        connected: True once the broker was reached.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        connector: FailoverConnector,
        check: CapabilityCheck,
        executor: Executor | None = None,
    ) -> None:
        self._endpoint = endpoint
        self._connector = connector
        self._check = check
        self._executor = executor
        self._lock = threading.Lock()
        self._changed = threading.Event()
        self._ended = threading.Event()
        self.connected = self._stopping = self._interrupted = False
        self._error: Exception | None = None
        self._connection: spi.Connection | None = None
        self._dispatcher: Dispatcher | None = None

    def run(self, on_up: Callable[[], None], on_lost: Callable[[JMSError], None]) -> None:
        """Connect and deliver.

        Args:
            on_up: Called when messages can flow.
            on_lost: Called when the connection breaks, even while handlers are active; it should call `stop`.

        Raises:
            JMSError: The broker cannot be reached or refuses, the connection broke, or something else failed.
        """
        connection = self._connection = self._connector.connect(on_lost, lambda: not self._stopping)
        self.connected = True
        try:
            if not self._stopping:
                self._endpoint.unsettled.begin_connection()
                dispatcher = self._create_dispatcher(connection)
                on_up()
                self._check.check_max_deliveries(self._endpoint.settings, connection)
                dispatcher.run()
                while self._begin_again(dispatcher):
                    dispatcher = self._create_dispatcher(connection)
                    dispatcher.run()
        finally:
            self._endpoint.statistics.n_configured_endpoints = -1
            with contextlib.suppress(JMSError):  # the connection is abandoned anyway
                connection.close()
            self._ended.set()

    @property
    def delivering(self) -> "tuple[spi.Connection, Dispatcher] | None":
        """The connection and its dispatcher while messages are delivered; otherwise None."""
        connection, dispatcher = self._connection, self._dispatcher
        return None if connection is None or dispatcher is None or self._ended.is_set() else (connection, dispatcher)

    def apply(self) -> None:
        """Stop the consumers. Start again with the endpoint's current settings, unless the endpoint is paused."""
        with self._lock:
            self._interrupted = True
            dispatcher = self._dispatcher
        self._changed.set()
        if dispatcher is not None:
            dispatcher.stop()

    def _begin_again(self, ended: Dispatcher) -> bool:
        """Close the consumers of an interrupted dispatcher, and wait while the endpoint is paused.

        Returns:
            False if the dispatcher ended for another reason, or the connection is to be closed.
        """
        if self._stopping or not (self._interrupted or self._endpoint.paused):
            return False
        self._dispatcher = None
        ended.close()
        while self._endpoint.paused and not self._stopping:
            self._changed.wait()
            self._changed.clear()
        self._interrupted = False
        if self._error is not None:
            raise self._error
        return not self._stopping

    def stop(self, error: Exception | None = None) -> None:
        """Stop receiving. `run` returns when the handlers have returned; with an error as soon as possible."""
        with self._lock:
            self._stopping = True
            self._error = error if self._error is None else self._error
            dispatcher = self._dispatcher
        if self._endpoint.paused:
            self._changed.set()
        if dispatcher is not None:
            dispatcher.stop(error)

    def abort(self) -> None:
        """Close the connection while handlers are active: their units are lost, their messages are redelivered."""
        self.stop(ConnectionLostError(f"{self._endpoint.name} was stopped before its handlers had returned."))
        if self._endpoint.settings.mode != "serial":  # `run` marks active handlers then and does not wait for them
            self._ended.wait(_CLOSE_TIMEOUT)
        if self._connection is not None:
            with contextlib.suppress(JMSError):
                self._connection.close(_CLOSE_TIMEOUT)

    def _create_dispatcher(self, connection: spi.Connection) -> Dispatcher:
        self._check.check(self._endpoint.settings, connection)
        dispatcher = create_dispatcher(self._endpoint, connection, self._executor)
        with self._lock:
            self._dispatcher = dispatcher
            stopping, error = self._stopping or self._interrupted or self._endpoint.paused, self._error
        if error is not None:
            raise error
        if stopping:
            dispatcher.stop()
        self._endpoint.statistics.reset_commits()
        self._endpoint.statistics.n_configured_endpoints = self._endpoint.settings.pool_size
        return dispatcher


class ActivationRun:
    """Connects and delivers on its own thread, and reconnects when the connection breaks, until it is stopped.

    Args:
        endpoint: The endpoint to dispatch for.
        settings: The settings for connections.
        executor: Runs the handlers in mode cc; None to create threads.
        state: The state machine of the activation.

    Attributes:
        failure: The permanent error that ended the run; None otherwise.
        last_error: The error of the latest attempt to connect; None if the attempt succeeded.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        settings: ConnectionSettings,
        executor: Executor | None,
        state: ActivationState["ActivationRun"],
    ) -> None:
        self._endpoint = endpoint
        if not endpoint.settings.joined:
            settings = replace(settings, last_resource=None)
        self._settings = settings
        self._connector = FailoverConnector(settings)
        self._executor = executor
        self._state = state
        self._log = _ReconnectLog(endpoint)
        self._check = CapabilityCheck(endpoint.log_source)
        self._stopping = threading.Event()
        self._ending = threading.RLock()  # reentrant, because a hook on this thread may stop the run again
        self._ended = threading.Event()
        self._finished = False
        self._handlers_abandoned = self._aborted = False
        self._attempt: _ListenerConnection | None = None
        self._up_since: float | None = None
        self._stop_began = 0.0
        self.failure: Exception | None = None
        self.last_error: Exception | None = None

    @property
    def stop_requested(self) -> bool:
        """True if the run was stopped, False if it ended by itself."""
        return self._stopping.is_set()

    @property
    def delivering(self) -> tuple[spi.Connection, Dispatcher] | None:
        """The connection and its dispatcher while messages are delivered; otherwise None."""
        return None if self._attempt is None else self._attempt.delivering

    def start(self) -> None:
        """Start the thread."""
        with exhaustion_reported(self._endpoint.name):
            threading.Thread(target=as_listener(self._run), name=f"jmsjca {self._endpoint.name}", daemon=True).start()

    def abandon_start(self) -> None:
        """End the run if it is the current one. Its start failed, so there is no thread to end it."""
        if self._state.current_run is self:
            self.stop_intake()
            self._end()

    def stop_intake(self) -> None:
        """Stop receiving. The thread ends when the active handlers have returned. Idempotent."""
        self._stop_began = self._stop_began or self._settings.clock.monotonic()
        self._stopping.set()
        if self._attempt is not None:
            self._attempt.stop()

    def apply(self) -> None:
        """Apply the endpoint's current settings, including a pause."""
        if self._attempt is not None:
            self._attempt.apply()

    def wait_until_stopped(self, timeout: float | None) -> bool:
        """Wait for active handlers. At the deadline close the connection even if some are still active.

        Args:
            timeout: Seconds until the deadline; None waits forever.

        Returns:
            True if all handlers ended in time.
        """
        deadline = Deadline(timeout, self._settings.clock)
        self.stop_intake()  # again, in case a signal handler interrupted the first call
        while not self._ended.is_set():
            remaining = deadline.remaining()
            if remaining == 0:
                self._abort()
                self._ended.wait()
            elif not self._settings.wait(self._ended, min(remaining or _LOG_INTERVAL, _LOG_INTERVAL)):
                busy = self._endpoint.statistics.n_active_endpoints
                fields = self._fields_of_stop("stopping", busy)
                logger.info("%s is stopping and waits for %d active handlers.", self._endpoint.name, busy, extra=fields)
        return not self._handlers_abandoned

    def _fields_of_stop(self, event: Event, handlers: int) -> dict[str, object]:
        duration = self._settings.clock.monotonic() - self._stop_began
        return log_fields(event, self._endpoint.log_source, handlers=handlers, duration=duration)

    def _abort(self) -> None:
        self._aborted = True
        busy = self._endpoint.statistics.n_active_endpoints
        if busy:
            self._handlers_abandoned = True  # set before the following calls wake other waiting threads
            logger.warning(
                "%s was stopped before its handlers had returned: %d active handlers; their messages are redelivered.",
                self._endpoint.name,
                busy,
                extra=self._fields_of_stop("handlers_abandoned", busy),
            )
        if self._attempt is not None:
            self._attempt.abort()
        if self._endpoint.statistics.n_active_endpoints:  # a handler may have started since the first check
            self._handlers_abandoned = True
        self._end()

    def _open(self) -> None:
        """Allow coroutines to run, unless the run was aborted before its thread started."""
        with self._ending:
            if not self._finished:
                self._endpoint.handler.open()

    def _end(self) -> None:
        """End the run once, because the next run uses the same handler. An interrupted call can be repeated."""
        with self._ending:
            if self._ended.is_set():
                return
            if not self._finished:
                self._endpoint.handler.close()
                self._finished = True
            self._log_suppressed()
            self._state.fire("ended", self)
            self._ended.set()

    def _log_suppressed(self) -> None:
        """Log how many records were suppressed since the last logged one. That record had the earlier number."""
        endpoint = self._endpoint
        for text, limit in (("failures of the handler", endpoint.failures), ("rollbacks", endpoint.rollbacks)):
            suppressed = limit.take_suppressed()
            if suppressed:
                fields = log_fields("records_suppressed", endpoint.log_source, suppressed=suppressed)
                logger.warning(
                    "%s: the last %d records about %s were not logged.", endpoint.name, suppressed, text, extra=fields
                )

    def _run(self) -> None:
        try:
            self._run_attempts()
        except JMSError as error:
            self.failure = error
            fields = self._log.fields("stopped_permanently", error=type(error).__name__)
            logger.error("%s stopped permanently: %s", self._endpoint.name, error, extra=fields)  # noqa: TRY400  # no traceback
        except Exception as error:
            self.failure = error
            fields = self._log.fields("stopped_permanently", error=type(error).__name__)
            told = "%s stopped permanently: a defect in jmsjca or its provider."
            logger.exception(told, self._endpoint.name, extra=fields)
        finally:
            self._end()

    def _run_attempts(self) -> None:
        """Connect and deliver until stopped.

        Raises:
            JMSError: The error is permanent; or an exit, such as `SystemExit`, was raised outside a handler.
        """
        wait, report = self._settings.wait, self._log.attempt_failed
        while not self._stopping.is_set():
            try:
                self._open()
                retry_with_backoff(self._connect_and_deliver, self._stopping, report, wait)
            except MemoryError:  # raised after an attempt
                wait(self._stopping, _MEMORY_PAUSE)
            except Exception:
                raise
            except BaseException as error:
                raise JMSError(
                    f"{type(error).__name__} was raised outside the handler, and ends the listener."
                ) from error

    def _connect_and_deliver(self) -> None:
        """Make one attempt. Return when it is stopped, or when it breaks after the connection was stable."""
        self._up_since = None
        self._log.begin()
        attempt = self._attempt = _ListenerConnection(self._endpoint, self._connector, self._check, self._executor)
        if self._stopping.is_set():  # `stop_intake` only stops a connection that exists when it is called
            return
        try:
            with exhaustion_reported(self._endpoint.name):
                attempt.run(self._up, lambda error: self._lost(attempt, error))
        except JMSError as error:
            self.last_error = error
            self._state.fire("broken", self)
            self._log.broker_reached = attempt.connected
            if self._stopping.is_set():
                if not self._aborted:
                    self._log.failed_while_stopping(error)
            elif is_transient(error) and self._was_stable():
                self._log.connection_lost(error)
            else:
                raise

    def _up(self) -> None:
        self._log.connected()
        self.last_error = None
        self._up_since = self._settings.clock.monotonic()
        self._state.fire("connected", self)

    def _lost(self, attempt: _ListenerConnection, error: JMSError) -> None:
        self._state.fire("broken", self, lambda: attempt is self._attempt)  # ignores a late report of an old attempt
        attempt.stop(error)

    def _was_stable(self) -> bool:
        return self._up_since is not None and self._settings.clock.monotonic() - self._up_since >= _STABLE_AFTER


class _ReconnectLog:
    """Logs each failed attempt, or only the first of several consecutive ones.

    Args:
        endpoint: The endpoint; its settings have the log switches.

    Attributes:
        broker_reached: True if the broker was reached when the last attempt failed.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        settings = endpoint.settings
        self._name, self._source, self._clock = endpoint.name, endpoint.log_source, endpoint.clock
        self._began = self._clock.monotonic()
        self._once = settings.minimal_reconnect_logging
        self._standby = settings.minimal_reconnect_logging_ds and settings.subscription_name is not None
        self._logged = False
        self.broker_reached = False

    def begin(self) -> None:
        """Record the beginning of an attempt."""
        self._began = self._clock.monotonic()

    def fields(self, event: Event, **fields: object) -> dict[str, object]:
        """Return the fields of a log record, with the seconds since the attempt began."""
        return log_fields(event, self._source, duration=self._clock.monotonic() - self._began, **fields)

    def attempt_failed(self, error: BaseException, attempt: int, seconds: float) -> None:
        """Log that an attempt failed, and when the next one begins."""
        if not (self._once or self._standby):
            logger.warning(
                "%s: connection attempt %d failed, the next one is in %.1f s: %s",
                self._name,
                attempt,
                seconds,
                error,
                extra=self.fields("connection_failed", attempt=attempt, retry_in=round(seconds, 1)),
            )
        elif not self._logged:
            self._logged = True
            self._log_once(error)

    def connection_lost(self, error: JMSError) -> None:
        """Log that a stable connection broke."""
        fields = self.fields("connection_lost")
        logger.warning("%s lost its connection and reconnects: %s", self._name, error, extra=fields)

    def failed_while_stopping(self, error: JMSError) -> None:
        """Log an error of a connection that is being stopped."""
        fields = self.fields("failed_while_stopping")
        logger.warning("%s failed while it was stopping: %s", self._name, error, extra=fields)

    def connected(self) -> None:
        """Record that messages can flow. The next failure is logged again."""
        self._logged = False

    def _log_once(self, error: BaseException) -> None:
        if self._standby and (self.broker_reached or isinstance(error, InvalidClientIDError)):
            fields = self.fields("connection_waiting")
            told = "%s cannot subscribe yet; another node may have the subscription: %s"
            logger.info(told, self._name, error, extra=fields)
        else:
            fields = self.fields("connection_failed")
            told = "%s cannot connect and retries; further failures are not logged: %s"
            logger.error(told, self._name, error, extra=fields)


def create_dispatcher(endpoint: Endpoint, connection: spi.Connection, executor: Executor | None = None) -> Dispatcher:
    """Start to consume in the endpoint's mode.

    Args:
        endpoint: The endpoint to dispatch for.
        connection: The provider connection to consume from.
        executor: Runs the handlers in mode cc; None for a thread pool of the dispatcher.

    Raises:
        JMSError: The broker refuses the consumer.
    """
    match endpoint.settings.mode:
        case "serial":
            return SerialDispatcher(endpoint, connection)
        case "sync":
            return SyncDispatcher(endpoint, connection)
        case "cc":
            return CCDispatcher(endpoint, connection, executor)
