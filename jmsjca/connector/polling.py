"""The connection of a connector from its start to its end or restart: its consumers in one transacted session."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import lru_cache

from jmsjca import spi
from jmsjca.config import Limits
from jmsjca.connector.config import ConnectorConfig
from jmsjca.connector.config_fields import InDoubtEvents
from jmsjca.connector.duplicate_elimination import DuplicateElimination
from jmsjca.connector.event_conversion import Event
from jmsjca.connector.event_flow import EventFlow
from jmsjca.connector.in_progress import InProgress
from jmsjca.connector.poll_cycle import poll_cycle
from jmsjca.connector.return_codes import DeliveryOutcome, ReturnCode
from jmsjca.connector.stored_events import StoredEvents
from jmsjca.destinations import Destination, Topic
from jmsjca.errors import JMSError, MessageFormatError
from jmsjca.log_records import get_logger
from jmsjca.messages.message import Message
from jmsjca.outbound.connection import Connection
from jmsjca.outbound.consumer import MessageConsumer, limit_prefetch, receive_delivery
from jmsjca.outbound.factory import ConnectionFactory
from jmsjca.outbound.session import Session

__all__ = ["POLL_LIMITS", "PolledSession"]

logger = get_logger("jmsjca.connector")

# A prefetched message would be locked for the pause between two polls, and competing consumers would miss it; within a
# poll, `PolledSession` prefetches what the poll takes. A refused copy would keep its message, and all that wait behind
# it: SQLite, so the embedded broker too, stores no larger one.
POLL_LIMITS = Limits(prefetch_messages=0, message_bytes=1_000_000_000)
"""The bounds of the connections that receive events and send their copies."""
_LONGEST_PREFETCH = 10  # messages of a destination
_KEPT_PRODUCERS = 16  # destinations


class _EventSession:
    """A session for the delivery of events. It keeps its latest producers: a new one costs as much as a send."""

    def __init__(self, session: Session) -> None:
        self.create_producer = lru_cache(_KEPT_PRODUCERS)(session.create_producer)
        self.commit = session.commit
        self.rollback = session.rollback


class PolledSession:
    """An open connection with one consumer per input destination. Like its session, it is for one thread at a time.

    Args:
        factory: Creates the connection.
        config: The configuration of the connector.
        flow: Delivers the events.
        is_stopping: Returns True once no further message may be received.
        store: The event store; None for messages only.

    Raises:
        JMSError: The connection or a consumer cannot be created.
    """

    def __init__(
        self,
        factory: ConnectionFactory,
        config: ConnectorConfig,
        flow: EventFlow,
        is_stopping: Callable[[], bool],
        store: StoredEvents | None = None,
    ) -> None:
        self._store = store
        self._config = config
        self._flow = flow
        self._is_stopping = is_stopping
        self._connection = factory.create_connection()
        self._archival: Connection | None = None
        try:
            self._archive = self._opened_archive()
            self._connection.start()
            self._exact = self._connection.capabilities.exact_credit
            self._session = self._connection.create_session(transacted=True)
            self._events = _EventSession(self._session)
            self._in_progress = _in_progress(self._session, config)
            self._consumers = {str(each): (each, _consumer(self._session, each)) for each in _sources(config)}
            self._elimination = _elimination(self._connection, config, flow)
        except BaseException:
            self.close()
            raise

    def poll(self) -> ReturnCode:
        """Deliver in-doubt events that are to be reprocessed, those of the store, and those of one cycle of the inputs.

        Raises:
            JMSError: The connection failed, or the broker refused an operation.
        """
        code = self._poll()
        if self._elimination is not None:
            self._elimination.remove_outdated()
        return code

    def _poll(self) -> ReturnCode:
        code = self._reprocess()
        if code is ReturnCode.SUCCEED and self._store is not None:
            code = self._store.poll(self._events, self._elimination, self._is_stopping)
        if code is not ReturnCode.SUCCEED:
            return code
        return poll_cycle(list(self._consumers), self._config.poll_quantity, self._process_next)

    def has_in_doubt_events(self) -> bool:
        """Return True if the in-progress destination has messages, or the event store records in progress.

        Raises:
            NotSupportedError: The broker cannot browse.
        """
        if self._store is not None and self._store.has_in_doubt_events():
            return True
        return self._in_progress is not None and not self._in_progress.is_empty()

    def close(self) -> None:
        """Close the connections, which rolls back the open transaction. Errors of a lost connection are ignored."""
        for connection in filter(None, (self._connection, self._archival)):
            with suppress(JMSError):
                connection.close()

    def _opened_archive(self) -> _EventSession | None:
        """Return a session on the broker of the archive; None if it is that of the connector."""
        url = self._config.archival_connection_url
        if url is None or self._config.archive_destination is None:
            return None
        self._archival = ConnectionFactory(url, limits=POLL_LIMITS).create_connection()
        return _EventSession(self._archival.create_session())

    def _reprocess(self) -> ReturnCode:
        if self._in_progress is None or self._is_stopping():
            return ReturnCode.SUCCEED
        for event in self._in_progress.earlier_events(self._config.receive_timeout):
            outcome = self._process(event)
            if outcome.return_code is not ReturnCode.SUCCEED or self._is_stopping():
                return outcome.return_code
        return ReturnCode.SUCCEED

    def _process_next(self, name: str, turns: int) -> DeliveryOutcome | None:
        if self._is_stopping():
            return None
        source, consumer = self._consumers[name]
        if self._exact:  # this poll takes all that are prefetched: none is locked during the pause after it
            limit_prefetch(consumer, min(turns, _LONGEST_PREFETCH))
        received = receive_delivery(consumer, self._config.receive_timeout)
        return None if received is None else self._process(self._event(*received, source))

    def _event(self, message: Message | MessageFormatError, delivery: spi.Delivery, source: Destination) -> Event:
        """Return the event of a message. One that cannot be decoded is never in doubt: it is not delivered."""
        if isinstance(message, MessageFormatError):
            return Event.undecodable(delivery.raw, source, message)
        if self._in_progress is not None:
            try:
                return self._in_progress.hold(message, source)
            except MessageFormatError as error:  # a header, which the copy needs
                return Event.undecodable(delivery.raw, source, error)
        return Event(message, source, {}, raw=lambda: delivery.raw)

    def _process(self, event: Event) -> DeliveryOutcome:
        return self._flow.process(self._events, event, self._elimination, self._archive)


def _sources(config: ConnectorConfig) -> Sequence[Destination]:
    managed = config.source_queue if config.container_managed_events else None
    return config.input_destination if managed is None else [managed]


def _elimination(connection: Connection, config: ConnectorConfig, flow: EventFlow) -> DuplicateElimination | None:
    if not config.duplicate_event_elimination or config.monitor_queue is None:
        return None
    return DuplicateElimination(
        connection,
        config.monitor_queue,
        config.duplicate_history,
        flow.resolver,
    )


def _in_progress(session: Session, config: ConnectorConfig) -> InProgress | None:
    if config.in_progress_destination is None:
        return None
    reprocess = config.in_doubt_events is InDoubtEvents.REPROCESS
    return InProgress(session, config.in_progress_destination, reprocess=reprocess)


def _consumer(session: Session, source: Destination) -> MessageConsumer:
    if isinstance(source, Topic):
        return session.create_durable_consumer(source, source.name)
    return session.create_consumer(source)
