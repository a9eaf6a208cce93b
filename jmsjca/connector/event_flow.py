"""The flow of one event: message, data handler, business object, collaboration, outcome, and the copies it requires."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from jmsjca.connector.business_objects import BusinessObject
from jmsjca.connector.collaborations import EventSession, Receiver, SendFailedError
from jmsjca.connector.config import ConnectorConfig
from jmsjca.connector.duplicate_elimination import DuplicateElimination, MonitorFailedError, Resolver
from jmsjca.connector.event_conversion import Event, EventConversion
from jmsjca.connector.outcomes import DeliveryOutcome, ReportRequest, Reports, loggable, report_request
from jmsjca.destinations import Destination
from jmsjca.errors import (
    ConfigurationError,
    InvalidDestinationError,
    JMSError,
    JMSSecurityError,
    MessageFormatError,
    UnknownBusinessObjectError,
    excerpt,
)
from jmsjca.log_records import exc_info_of, get_logger
from jmsjca.messages.message import Message
from jmsjca.messages.properties import DUPLICATE_ID
from jmsjca.redelivery import MoveFacts, moved_copy, raw_copy
from jmsjca.redelivery.encounter import Failure, text_of

__all__ = ["EventFlow", "event_id_of", "outcome_of"]

logger = get_logger("jmsjca.connector")

_LONGEST_DESCRIPTION = 1000  # characters


@dataclass
class _Delivery:
    """The delivery of one event.

    Attributes:
        outcome: The outcome.
        error: The reason of a failure; None for success.
        business_object: The business object; None if the message could not be converted.
    """

    outcome: DeliveryOutcome
    error: Exception | None = None
    business_object: BusinessObject | None = None


class EventFlow:
    """Delivers events to collaborations, within the transaction of the session that received them.

    Args:
        config: Names the destinations of copies.
        conversion: Converts messages to business objects.
        receiver: The collaboration of events that ask for no report.
        named: The collaborations of the others, by name.
        resolver: Decides about events in doubt under duplicate elimination.
    """

    def __init__(
        self,
        config: ConnectorConfig,
        conversion: EventConversion,
        receiver: Receiver,
        named: Mapping[str, Receiver],
        resolver: Resolver | None = None,
    ) -> None:
        self._config = config
        self._conversion = conversion
        self._reports = Reports(config, conversion)
        self._named = named
        self.receiver = receiver
        self.resolver = resolver

    def process(
        self,
        session: EventSession,
        event: Event,
        elimination: DuplicateElimination | None = None,
        archive: EventSession | None = None,
        *,
        take: Callable[[], object] | None = None,
    ) -> DeliveryOutcome:
        """Deliver an event, and end its transaction or leave it open for more events.

        The commit removes the message and sends its copy and its report. CONNECTOR_NOT_ACTIVE rolls back, so the
        message is kept. A lost connection or a failed commit leaves the message with the broker: its event is delivered
        again.

        Args:
            session: The session of the message, with its open transaction.
            event: The event.
            elimination: Eliminates duplicates; None for no elimination.
            archive: The session of the archive, which sends at once; None for an archive on the same broker.
            take: Receives the message in the transaction, which stays open after a success without a report. It is
                not called for CONNECTOR_NOT_ACTIVE, and nothing is rolled back. None if the session has received the
                message: its transaction ends.

        Returns:
            The outcome of the delivery.

        Raises:
            JMSError: The broker refuses a copy or the commit, or the collaboration, a queue or topic, is not reached.
        """
        request = _report_request(event, self._config.connection_url)
        delivery = self._delivered(session, event, elimination, request)
        if delivery.outcome is DeliveryOutcome.CONNECTOR_NOT_ACTIVE:
            if take is None:
                session.rollback()
            return delivery.outcome
        if request is not None:
            self._report(session, event, request, delivery)
        self._copy(session, event, delivery, archive)
        if take is not None:
            with suppress(MessageFormatError):  # the event has the error
                take()
        if take is None or request is not None or delivery.outcome is not DeliveryOutcome.SUCCEED:
            session.commit()
        self._warn(event, delivery.outcome, delivery.error)
        return delivery.outcome

    def deliver(
        self,
        session: EventSession,
        business_object: BusinessObject,
        receiver: Receiver,
        elimination: DuplicateElimination | None,
        *,
        alone: bool = True,
    ) -> DeliveryOutcome:
        """Deliver a business object to a collaboration.

        Args:
            session: A transacted session.
            business_object: The business object.
            receiver: The collaboration.
            elimination: Eliminates duplicates; None for no elimination.
            alone: True if the caller sends nothing else in the transaction. The transaction records the delivery then.
                A copy or report that the broker refuses must not roll that record back.

        Returns:
            The outcome; the transaction is still open.

        Raises:
            SendFailedError: The collaboration is a queue or topic that is not reached: the event has not failed.
            Exception: The collaboration failed.
        """
        if elimination is None:
            return outcome_of(receiver.publish(session, business_object))
        return outcome_of(elimination.deliver(business_object, receiver, session if alone else None))

    def _delivered(
        self,
        session: EventSession,
        event: Event,
        elimination: DuplicateElimination | None,
        request: ReportRequest | None,
    ) -> _Delivery:
        try:
            found = self._conversion.to_business_object(event)
        except UnknownBusinessObjectError as error:
            return _Delivery(DeliveryOutcome.NO_SUBSCRIPTION_FOUND, error)
        except Exception as error:  # noqa: BLE001  # a data handler may belong to the application
            return _Delivery(DeliveryOutcome.FAIL, error)
        try:
            receiver = self.receiver if request is None else self._named_receiver(found, request)
            alone = request is None and self._config.archive_destination is None
            outcome = self.deliver(session, found, receiver, elimination, alone=alone)
        except (MonitorFailedError, SendFailedError):
            raise
        except Exception as error:  # noqa: BLE001  # the collaboration belongs to the application
            return _Delivery(DeliveryOutcome.FAIL, error, found)
        return _Delivery(outcome, _reason(outcome, found), found)

    def _named_receiver(self, business_object: BusinessObject, request: ReportRequest) -> Receiver:
        if request.reply_to is None:
            raise InvalidDestinationError(
                "The message asks for a report, but has no reply destination that can be used."
            )
        name = self._reports.collaboration_name(business_object)
        receiver = self._named.get(name)
        if receiver is None:
            known = ", ".join(sorted(self._named)) or "none"
            raise ConfigurationError(f"There is no collaboration {excerpt(name)!r}; there are: {known}.")
        return receiver

    def _report(self, session: EventSession, event: Event, request: ReportRequest, delivery: _Delivery) -> None:
        try:
            report = self._reports.report(event, request, delivery.outcome, delivery.error, delivery.business_object)
        except Exception as error:  # noqa: BLE001  # a data handler may belong to the application
            delivery.outcome, delivery.error = DeliveryOutcome.FAIL, error
            report = self._reports.report(event, request, delivery.outcome, error, None)
        if report is None or request.reply_to is None:
            return
        try:
            session.send(report, request.reply_to)
        except (InvalidDestinationError, JMSSecurityError) as error:
            # The sender has chosen the destination, and a repetition of the event would fail in the same way.
            delivery.outcome = DeliveryOutcome.FAIL
            delivery.error = InvalidDestinationError(f"The report cannot be sent to {request.reply_to}: {error}")

    def _copy(self, session: EventSession, event: Event, delivery: _Delivery, archive: EventSession | None) -> None:
        """Send the copy that the outcome requires; a second archived copy of an event has the same duplicate id."""
        target = self._target(delivery.outcome)
        if target is None:
            return
        copy = _copy_of(event, delivery.error)
        copy.properties.update(self._fault(delivery.outcome, delivery.error))
        if archive is not None and delivery.outcome is DeliveryOutcome.SUCCEED:
            session = archive
            event_id = event_id_of(event)
            if event_id is not None:
                copy.properties[DUPLICATE_ID] = event_id
        session.send(copy, target, delivery_mode=copy.delivery_mode, priority=copy.priority)

    def _warn(self, event: Event, outcome: DeliveryOutcome, error: Exception | None) -> None:
        """Log a failure. Call it after the commit: before it, the message may still be kept."""
        target = self._target(outcome)
        error = None if error is None else loggable(error)
        if outcome is not DeliveryOutcome.SUCCEED:
            logger.warning(
                "Message %s of %s: %s: %s. The message is %s.",
                _readable(event.message, "message_id"),
                event.origin,
                outcome,
                "" if error is None else text_of(error).rstrip("."),
                f"moved to {target}" if target else "discarded, because no destination is configured for it",
                exc_info=exc_info_of(error) if error is not None and outcome is DeliveryOutcome.FAIL else None,
            )

    def _target(self, outcome: DeliveryOutcome) -> Destination | None:
        if outcome is DeliveryOutcome.SUCCEED:
            return self._config.archive_destination
        if self._config.container_managed_events:
            return self._config.fault_queue
        if outcome is DeliveryOutcome.NO_SUBSCRIPTION_FOUND:
            return self._config.unsubscribed_destination
        return self._config.error_destination

    def _fault(self, outcome: DeliveryOutcome, error: Exception | None) -> dict[str, str]:
        """Return the properties of a copy for the fault queue."""
        if not self._config.container_managed_events or error is None:
            return {}
        return {"FaultStatus": str(outcome), "FaultDescription": text_of(error)[:_LONGEST_DESCRIPTION]}


def event_id_of(event: Event) -> str | None:
    """Return the id of an event; None if it has none that can be read."""
    found: str | None = event.event_id or _readable(event.message, "message_id")
    return found


def outcome_of(returned: object) -> DeliveryOutcome:
    """Return the outcome that a collaboration returned; None means SUCCEED.

    Raises:
        TypeError: It returned something else.
    """
    if returned is None:
        return DeliveryOutcome.SUCCEED
    if isinstance(returned, DeliveryOutcome):
        return returned
    raise TypeError(f"The collaboration returned {returned!r:.100}; it returns a DeliveryOutcome or None.")


def _reason(outcome: DeliveryOutcome, business_object: BusinessObject) -> JMSError | None:
    """Return the failure context of an outcome that the collaboration returned; None for success."""
    if outcome is DeliveryOutcome.SUCCEED:
        return None
    return JMSError(f"The collaboration returned {outcome} for {business_object.type}.{business_object.verb}")


def _copy_of(event: Event, error: Exception | None) -> Message:
    failure = None if error is None else Failure.of(error)
    facts = MoveFacts(event.origin, max((_readable(event.message, "delivery_count") or 1) - 1, 0), failure=failure)
    try:
        copy = moved_copy(event.message, facts)
    except MessageFormatError:
        if event.raw is None:
            raise
        copy = raw_copy(event.raw(), event.message, facts)
    for name, value in event.properties.items():
        copy.properties.pop(name, None)
        if value is not None:
            copy.properties[name] = value
    return copy


def _report_request(event: Event, connection_url: str) -> ReportRequest | None:
    """Return the reports that a message asks for; none if its properties are damaged."""
    with suppress(MessageFormatError):
        return report_request(event, connection_url)
    return None


def _readable(message: Message, header: str) -> Any:
    """Return a header; None if it cannot be decoded."""
    with suppress(MessageFormatError):
        return getattr(message, header)
    return None
