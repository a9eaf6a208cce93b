"""The polls of an event store: claim, business object, collaboration, final status."""

from collections.abc import Callable, Generator
from contextlib import contextmanager

from jmsjca.connector.business_objects import BusinessObject
from jmsjca.connector.collaborations import EventSession, SendFailedError
from jmsjca.connector.config import ConnectorConfig, InDoubtEvents
from jmsjca.connector.duplicate_elimination import DuplicateElimination, MonitorFailedError
from jmsjca.connector.event_flow import EventFlow
from jmsjca.connector.event_store import EventRecord, EventStore, RecordStatus, keys_only
from jmsjca.connector.outcomes import DeliveryOutcome, ReturnCode, loggable
from jmsjca.errors import ConnectionLostError, JMSError, StoreError
from jmsjca.log_records import get_logger
from jmsjca.redelivery.encounter import encodable, text_of

__all__ = ["StoredEvents"]

logger = get_logger("jmsjca.connector")

_DELETE = "Delete"
_STATUSES = {
    DeliveryOutcome.SUCCEED: RecordStatus.SUCCESS,
    DeliveryOutcome.NO_SUBSCRIPTION_FOUND: RecordStatus.UNSUBSCRIBED,
    DeliveryOutcome.FAIL: RecordStatus.ERROR_POSTING_EVENT,
}


class StoredEvents:
    """Delivers the events of a store.

    Args:
        store: The store.
        config: The configuration of the connector.
        flow: Names the collaboration.
    """

    def __init__(self, store: EventStore, config: ConnectorConfig, flow: EventFlow) -> None:
        self._store = store
        self._config = config
        self._flow = flow

    def has_in_doubt_events(self) -> bool:
        """Return True if there are records in progress, which an earlier run has left."""
        with _store_errors("has not counted the records in progress"):
            return self._store.in_progress() > 0

    def recover(self) -> None:
        """Make the records of an earlier run ready again, if in-doubt events are to be reprocessed."""
        if self._config.in_doubt_events is not InDoubtEvents.REPROCESS:
            return
        with _store_errors("has not made the records in progress ready"):
            count = self._store.recover()
        if count:
            logger.info("%d events that were in progress are processed again.", count)

    def poll(
        self, session: EventSession, elimination: DuplicateElimination | None, is_stopping: Callable[[], bool]
    ) -> ReturnCode:
        """Deliver up to ``poll_quantity`` events.

        Args:
            session: The transacted session of the connector.
            elimination: Eliminates duplicates; None for no elimination.
            is_stopping: Returns True once no further record may be claimed.

        Raises:
            JMSError: The store failed, or the transaction of a delivery: its record stays in progress.
        """
        for _ in range(self._config.poll_quantity):
            if is_stopping():
                break
            with _store_errors("has returned no records"):
                records = self._store.claim(1)
            if not records:
                break
            outcome = self._process(session, records[0], elimination)
            if outcome.return_code is not ReturnCode.SUCCEED:
                return outcome.return_code
        return ReturnCode.SUCCEED

    def _process(
        self, session: EventSession, record: EventRecord, elimination: DuplicateElimination | None
    ) -> DeliveryOutcome:
        try:
            found = self._business_object(record)
        except ConnectionLostError:  # the next start reads the record again
            raise
        except Exception as error:  # noqa: BLE001  # the store belongs to the application
            self._finish(record, RecordStatus.ERROR_PROCESSING_EVENT, error)
            return DeliveryOutcome.FAIL
        if found is None:
            missing = JMSError("The application does not have the object.")
            self._finish(record, RecordStatus.ERROR_OBJECT_NOT_FOUND, missing)
            return DeliveryOutcome.FAIL
        return self._publish(session, record, found, elimination)

    def _publish(
        self,
        session: EventSession,
        record: EventRecord,
        found: BusinessObject,
        elimination: DuplicateElimination | None,
    ) -> DeliveryOutcome:
        failure: Exception | None = None
        try:
            outcome = self._flow.deliver(session, found, self._flow.receiver, elimination)
        except (MonitorFailedError, SendFailedError):  # the event has not failed: its record stays in progress
            raise
        except Exception as error:  # noqa: BLE001  # the collaboration belongs to the application
            session.rollback()
            outcome, failure = DeliveryOutcome.FAIL, error
        if outcome is not DeliveryOutcome.CONNECTOR_NOT_ACTIVE:  # then the record stays in progress
            session.commit()
            self._finish(record, _STATUSES[outcome], failure)
        return outcome

    def _business_object(self, record: EventRecord) -> BusinessObject | None:
        found = self._store.business_object(record)
        definitions = self._config.definitions
        if found is None and record.object_verb == _DELETE:
            found = keys_only(record, definitions)
        elif found is not None and definitions is not None:
            found = definitions.without_inactive_children(found)
        if found is not None:
            found.verb = record.object_verb or found.verb or self._config.default_verb
            found.object_event_id = encodable(record.event_id)  # messages carry it
        return found

    def _finish(self, record: EventRecord, status: RecordStatus, failure: Exception | None) -> None:
        if status is not RecordStatus.SUCCESS:
            kind = record.object_name or "the event store"
            reason = "" if failure is None else text_of(loggable(failure))
            logger.warning("Event %s of %s: %s: %s", record.event_id, kind, status.name, reason)
        try:
            self._store.finish(record, status, "" if failure is None else text_of(failure))
        except Exception as error:
            raise JMSError(f"The event store cannot archive event {record.event_id}: {text_of(error)}") from error


@contextmanager
def _store_errors(failure: str) -> Generator[None]:
    """Raise what a store raises as an error that ends the poll and is a reason for a restart."""
    try:
        yield
    except JMSError:
        raise
    except Exception as error:
        raise StoreError(f"The event store {failure}: {text_of(error)}") from error
