"""The event connector: it polls input destinations and delivers each message as a business object.

::

    config = ConnectorConfig(connection_url="amqp://localhost", input_destination="orders", error_destination="errors")
    with Connector(config, collaboration) as connector:
        connector.run()
"""

import sys
from collections.abc import Callable, Iterator, Mapping
from inspect import signature
from pathlib import Path
from queue import SimpleQueue
from threading import Event as Flag
from threading import Lock
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TextIO, cast

from jmsjca.arguments import Constraint, check
from jmsjca.config.clock import SYSTEM_CLOCK, Clock
from jmsjca.config.configuration_file import Configuration, load_handler, read_configuration
from jmsjca.connector.business_objects import BusinessObject
from jmsjca.connector.collaborations import COLLABORATION, FUNCTION, FUNCTION_OR_NONE, Collaboration, receiver_of
from jmsjca.connector.config import ConnectorConfig, InDoubtEvents, managed_destinations
from jmsjca.connector.data_handlers import DataHandler
from jmsjca.connector.duplicate_elimination import Resolver
from jmsjca.connector.event_conversion import EventConversion, default_data_handler
from jmsjca.connector.event_flow import EventFlow
from jmsjca.connector.event_store import EventStore
from jmsjca.connector.outcomes import DeliveryOutcome, ReturnCode, ReturnStatus
from jmsjca.connector.polling import (
    POLL_LIMITS,
    Keys,
    PolledSession,
    key_polls,
    polled_destinations,
    timed_polls,
    wait_for_window,
)
from jmsjca.connector.queue_uris import destination_of
from jmsjca.connector.request_processing import RequestProcessing
from jmsjca.connector.store_polling import StoredEvents
from jmsjca.destinations import Destination
from jmsjca.errors import ArgumentTypeError, ConfigurationError, IllegalStateError, JMSError, excerpt
from jmsjca.forking import ProcessBound
from jmsjca.log_records import get_logger
from jmsjca.outbound.factory import ConnectionFactory
from jmsjca.reconnection import exhaustion_reported, is_transient

if TYPE_CHECKING:
    import tenacity

__all__ = ["Connector", "ConnectorTerminatedError"]

logger = get_logger("jmsjca.connector")

_LONGEST_PAUSE = 3600.0  # seconds between restarts


class ConnectorTerminatedError(JMSError):
    """A connector has terminated: its restarts failed, or it must not start while events are in doubt."""


class Connector(ProcessBound):
    """Delivers the messages of input destinations to a collaboration, in order, one at a time.

    It connects at the first poll. `stop` and `close` may be called from any thread.

    Args:
        config: The configuration.
        collaboration: Called with each business object, by the thread that polls; or a queue or topic that gets a
            message for each one, in the transaction that removes the event. None for a connector that only sends
            requests.
        collaborations: The collaborations of events that ask for a report, by the CollaborationName of their rules.
        data_handler: The default data handler; None uses the handler of the configured class or MIME type.
        resolver: Decides about events in doubt under duplicate elimination; None delivers them again.
        event_store: Events that are not messages; they are polled before the input destinations. None for no store.
        clock: The source of the time of day for ``poll_start_time`` and ``poll_end_time``.

    Raises:
        ConfigurationError: A data handler is not registered, a dynamic meta-object or the connection URL is invalid, or
            a collaboration is a destination that the connector reads.
        ArgumentTypeError: An argument has another type, or a function is asynchronous.
    """

    def __init__(
        self,
        config: ConnectorConfig,
        collaboration: Collaboration | None = None,
        *,
        collaborations: Mapping[str, Collaboration] | None = None,
        data_handler: DataHandler | None = None,
        resolver: Resolver | None = None,
        event_store: EventStore | None = None,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        check(_ARGUMENTS, config=config, data_handler=data_handler, resolver=resolver, event_store=event_store)
        self._config = config
        self._clock = clock
        handler = default_data_handler(config) if data_handler is None else data_handler
        conversion = EventConversion(config, handler)
        mime_type = config.delivery_mime_type
        self._requests = RequestProcessing(config, conversion)
        chosen = config.delivery_queue if collaboration is None else collaboration
        receiver = _checked_collaboration(config, chosen, needed=event_store is not None)
        sending = handler if mime_type is None else conversion.data_handlers.named(mime_type, None)
        for name, each in (collaborations or {}).items():
            _checked_collaboration(config, each, needed=True, name=f"collaboration {excerpt(name)}")
        named = {name: receiver_of(each, sending) for name, each in (collaborations or {}).items()}
        self._flow = EventFlow(config, conversion, receiver_of(receiver, sending), named, resolver)
        self._has_sources = bool(polled_destinations(config)) or event_store is not None
        self._factory = ConnectionFactory(config.connection_url, client_id=config.client_id, limits=POLL_LIMITS)
        self._store = None if event_store is None else StoredEvents(event_store, config, self._flow)
        self._session: PolledSession | None = None
        self._failed = False  # the latest poll
        self._polling = Lock()
        self._stopping = Flag()
        self._keys: Keys = SimpleQueue()

    @classmethod
    def from_config(cls, path: str | Path, name: str | None = None) -> Self:
        """Return the connector of a configuration file, ``jmsjca.toml`` for instance.

        Its table ``[connectors.<name>]`` has the properties of `ConnectorConfig.from_properties`. ``collaboration`` is
        a function, ``module:function``, or a queue or topic, ``queue:hub``; ``collaborations`` is a table of them.

        Args:
            path: The file.
            name: The name of the connector; None for the only one.

        Raises:
            ConfigurationError: The file has no such connector, or its properties are invalid; or as the class.
        """
        table = _table(read_configuration(path), name)
        try:
            return cls._from_table(table)
        except ConfigurationError as error:  # not another error, which would show the values of the one that it chains
            error.args = (f"{path}: connectors{'.' if name else ''}{name or ''}: {error}",)
            raise

    @classmethod
    def _from_table(cls, table: dict[str, Any]) -> Self:
        collaboration = table.pop("collaboration", None)
        named: object = table.pop("collaborations", {})
        if not isinstance(named, dict):
            raise ConfigurationError(f"collaborations is a table, name = 'module:function', not {excerpt(named)!r}.")
        return cls(
            ConnectorConfig.from_properties(table),
            None if collaboration is None else _named_collaboration(collaboration),
            collaborations={
                each: _named_collaboration(value) for each, value in cast("dict[str, object]", named).items()
            },
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def poll_for_events(self) -> ReturnCode:
        """Poll once: deliver up to ``poll_quantity`` messages of each input destination.

        The destinations take turns, one message each. In-doubt events are treated before, as configured. After
        APPRESPONSETIMEOUT the connection is closed; the next poll opens another one, which is a restart.

        Returns:
            SUCCEED, also when there was no message; APPRESPONSETIMEOUT if the connection failed or the collaboration
            returned CONNECTOR_NOT_ACTIVE.

        Raises:
            ConnectorTerminatedError: ``in_doubt_events`` is FailOnStartup, and the in-progress queue has messages.
            IllegalStateError: The connector is stopped, another call polls, or the events are managed by the container.
            ConfigurationError: There is nothing to poll; or the connection cannot succeed until the configuration is
                changed; so do JMSSecurityError, NotSupportedError and InvalidSelectorError.
        """
        if self._stopping.is_set():
            raise IllegalStateError("The connector is stopped, so it does not poll; create another one.")
        if self._config.container_managed_events:
            raise IllegalStateError("The events are managed by the container: call run() or transfer_events() instead.")
        self._check_sources()
        return self._poll()

    def transfer_events(self) -> ReturnCode:
        """Move up to ``poll_quantity`` container managed events from the source queue to the collaboration.

        Each event is removed and sent in one transaction; an event that fails goes to the fault queue.

        Returns:
            SUCCEED, or APPRESPONSETIMEOUT if the connection failed.

        Raises:
            IllegalStateError: The events are not managed by the container; or as `poll_for_events`.
            JMSError: As `poll_for_events`.
        """
        if not self._config.container_managed_events:
            raise IllegalStateError("container_managed_events is False: call run() or poll_for_events() instead.")
        if self._stopping.is_set():
            raise IllegalStateError("The connector is stopped, so it moves no events; create another one.")
        return self._poll()

    def run(self, *, keyboard: TextIO | None = None) -> None:
        """Poll until `stop` is called, with a pause of ``poll_frequency`` seconds after each poll.

        After APPRESPONSETIMEOUT the connector restarts: first after ``restart_retry_interval`` seconds, then after
        twice the time of the restart before, up to an hour. A poll that succeeds resets the count.

        Args:
            keyboard: The input with the ``p`` of an operator if ``poll_frequency`` is ``"key"``; None for the standard
                input. Its end ends `run`.

        Raises:
            ConnectorTerminatedError: ``restart_retry_count`` restarts in a row failed; or as `poll_for_events`.
            ConfigurationError: There is nothing to poll; or ``poll_frequency`` is None, so polling is disabled; or it
                is ``"key"``, and the process has no standard input; or as `poll_for_events`.
            JMSError: The keyboard cannot be read; or as `poll_for_events`.
        """
        attempts = self._attempts()
        for _ in self._polls(keyboard):
            attempts(self._attempt)

    def do_verb_for(self, business_object: BusinessObject, status: ReturnStatus | None = None) -> ReturnCode:
        """Send a request: a message with the business object, to the OutputDestination of its meta-objects.

        With a ResponseTimeout of 0 or more it waits for a response; its result is the return code.
        Thread-safe; a collaboration may call it.

        Args:
            business_object: The request. After VALCHANGE and MULTIPLE_HITS it has the values of the response, and its
                dynamic meta-object the headers. The verb does not change the action.
            status: Gets the description of an error; None if it is not needed.

        Returns:
            SUCCEED, the result of the response, FAIL for wrong meta-objects, values or data, or APPRESPONSETIMEOUT if
            the broker cannot be reached, or if no response arrives and TimeoutFatal is not false.

        Raises:
            IllegalStateError: The connector is stopped.
            ArgumentTypeError: The request is not a business object.
        """
        check(_ARGUMENTS, business_object=business_object)
        if self._stopping.is_set():
            raise IllegalStateError("The connector is stopped, so it sends no requests; create another one.")
        return self._requests.do_verb_for(business_object, ReturnStatus() if status is None else status)

    def stop(self) -> None:
        """End `run`, and a running poll after its current message, without waiting. It cannot poll again."""
        self._stopping.set()
        self._keys.put("")
        self._close_if_idle()

    def close(self) -> None:
        """Stop, and close the connections; a running poll closes its own after its current message. Idempotent."""
        self.stop()
        self._requests.close()

    def _check_sources(self) -> None:
        if not self._has_sources:
            raise ConfigurationError(
                "The connector has nothing to poll: set input_destination, or pass an event_store. Without them it "
                "only sends requests (do_verb_for)."
            )

    def _polls(self, keyboard: TextIO | None) -> Iterator[None]:
        self._check_sources()
        pause = self._config.poll_frequency
        if pause is None:
            raise ConfigurationError("poll_frequency is None, which disables polling: call poll_for_events() instead.")
        if isinstance(pause, str):
            opened = cast("TextIO | None", sys.stdin) if keyboard is None else keyboard
            if opened is None:
                raise ConfigurationError(
                    'poll_frequency is "key", and there is no standard input: call run(keyboard=…), or set seconds.'
                )
            return key_polls(opened, self._stopping, self._keys)
        return timed_polls(self._config, pause, self._stopping, self._clock)

    def _attempt(self) -> ReturnCode:
        """Poll for `run`. A restart waits for the window of the day, and a connector that stops does not restart."""
        pause = self._config.poll_frequency
        if isinstance(pause, float) and not wait_for_window(self._config, pause, self._stopping, self._clock):
            return ReturnCode.SUCCEED
        return ReturnCode.SUCCEED if self._stopping.is_set() else self._poll()

    def _poll(self) -> ReturnCode:
        if not self._polling.acquire(blocking=False):
            raise IllegalStateError("The connector polls already: a connector has one thread. Wait for the other call.")
        try:
            return self._guarded_poll()
        except BaseException:
            self._failed = True
            self._disconnect()
            raise
        finally:
            self._polling.release()
            if self._stopping.is_set():
                self._close_if_idle()

    def _guarded_poll(self) -> ReturnCode:
        try:
            with exhaustion_reported("The connector"):
                code = self._opened().poll()
        except JMSError as error:
            if isinstance(error, ConnectorTerminatedError) or not is_transient(error):
                raise
            logger.exception("The poll failed: %s", error)  # noqa: TRY401  # handlers may leave out the traceback
            code = ReturnCode.APPRESPONSETIMEOUT
        self._failed = code is not ReturnCode.SUCCEED
        if code is ReturnCode.APPRESPONSETIMEOUT:
            self._disconnect()
        return code

    def _opened(self) -> PolledSession:
        if self._session is None:
            self._session = PolledSession(
                self._factory,
                self._config,
                self._flow,
                self._stopping.is_set,
                self._store,
                one_by_one=self._failed,
            )
            self._session.open()
            self._check_in_doubt(self._session)
            if self._store is not None:
                self._store.recover()
        return self._session

    def _check_in_doubt(self, session: PolledSession) -> None:
        mode, queue = self._config.in_doubt_events, self._config.in_progress_destination
        if mode not in {InDoubtEvents.FAIL_ON_STARTUP, InDoubtEvents.LOG_ERROR} or not session.has_in_doubt_events():
            return
        text = (
            f"{queue or 'The event store'} has messages whose delivery is in doubt. Move them to an input destination, "
            "or delete them."
        )
        logger.critical("%s", text)
        if mode is InDoubtEvents.FAIL_ON_STARTUP:
            raise ConnectorTerminatedError(f"The connector does not start: {text}")

    def _close_if_idle(self) -> None:
        if self._polling.acquire(blocking=False):
            try:
                self._disconnect()
            finally:
                self._polling.release()

    def _disconnect(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            session.close()

    def _attempts(self) -> "tenacity.Retrying":
        import tenacity  # slow to import, and only `run` needs it

        interval = self._config.restart_retry_interval
        return tenacity.Retrying(
            retry=tenacity.retry_if_result(lambda code: code is ReturnCode.APPRESPONSETIMEOUT),
            wait=tenacity.wait_exponential(multiplier=interval, max=max(interval, _LONGEST_PAUSE)),
            stop=tenacity.stop_when_event_set(self._stopping)
            | tenacity.stop_after_attempt(self._config.restart_retry_count + 1),
            sleep=tenacity.sleep_using_event(self._stopping),
            before_sleep=_report_restart,
            retry_error_callback=self._terminate,
        )

    def _terminate(self, state: "tenacity.RetryCallState") -> ReturnCode:
        if self._stopping.is_set():
            return ReturnCode.SUCCEED
        raise ConnectorTerminatedError(
            f"The connector has terminated: its poll returned {ReturnCode.APPRESPONSETIMEOUT} {state.attempt_number} "
            f"times in a row (restart_retry_count is {self._config.restart_retry_count}). The log has the reasons."
        )


def _has_methods(contract: type) -> Constraint[Any]:
    """Return the constraint of an object with the methods of a Protocol, or None."""
    methods = [each for each in vars(contract) if not each.startswith("_")]
    return Constraint(
        f"an object with the methods {', '.join(methods)}",
        fits=lambda value: value is None or all(callable(getattr(value, each, None)) for each in methods),
        misfit=ArgumentTypeError,
    )


def _takes_one_argument(function: Callable[..., object]) -> bool:
    try:
        signature(function).bind(None)
    except TypeError:
        return False
    except ValueError:  # some functions in C have no signature
        return True
    return True


_ONE_ARGUMENT = Constraint[Any](
    "a function of one argument, the business object", fits=_takes_one_argument, misfit=ArgumentTypeError
)

_ARGUMENTS: dict[str, Constraint[Any]] = {  # each would otherwise fail with the first event
    "config": Constraint("a ConnectorConfig(…)", ConnectorConfig),
    "resolver": FUNCTION_OR_NONE,
    "data_handler": _has_methods(DataHandler),
    "event_store": _has_methods(EventStore),
    "business_object": Constraint("a BusinessObject(…)", BusinessObject),
}


def _checked_collaboration(
    config: ConnectorConfig, collaboration: Collaboration | None, *, needed: bool, name: str = "collaboration"
) -> Collaboration:
    """Return a collaboration that the connector neither reads nor uses for other messages."""
    managed = config.container_managed_events
    if managed and not isinstance(collaboration, Destination):
        raise ConfigurationError("Container managed events go to a queue or topic: set delivery_queue.")
    if collaboration is None:
        if needed or config.input_destination:
            raise ConfigurationError("The connector polls events, but has no collaboration for them: name one.")
        return lambda _: DeliveryOutcome.NO_SUBSCRIPTION_FOUND
    if not isinstance(COLLABORATION(name, collaboration), Destination):
        FUNCTION(name, collaboration)
        _ONE_ARGUMENT(name, collaboration)
        return collaboration
    monitor = config.monitor_queue if config.duplicate_event_elimination else None
    held = (config.in_progress_destination, config.source_queue if managed else None, monitor)
    if collaboration in (*config.input_destination, *held):
        raise ConfigurationError(f"{name} is {collaboration}, which the connector reads: each event would come again.")
    others = managed_destinations(vars(config)) if managed else {}
    for each in ("fault_queue", "archive_destination"):
        if others.get(each) == collaboration:
            raise ConfigurationError(f"{name} is {collaboration}, which is {each} as well: use another queue for one.")
    return collaboration


def _table(configuration: Configuration, name: str | None) -> dict[str, Any]:
    tables = configuration.connectors
    chosen = next(iter(tables)) if name is None and len(tables) == 1 else name
    if chosen is None or chosen not in tables:
        known = ", ".join(tables) or "none"
        raise ConfigurationError(f"The configuration has no connector {excerpt(chosen or '')!r} (it has: {known}).")
    return dict(tables[chosen])


def _named_collaboration(value: object) -> Collaboration:
    text = str(value)
    if text.startswith(("queue:", "topic:")):
        return destination_of(text)
    return cast("Callable[[BusinessObject], DeliveryOutcome | None]", load_handler(text))


def _report_restart(state: "tenacity.RetryCallState") -> None:
    logger.warning("The connector restarts in %.1f seconds (restart %d).", state.upcoming_sleep, state.attempt_number)
