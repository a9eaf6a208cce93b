"""The flow of one event: message, data handler, business object, collaboration, outcome, and the copies it requires."""

import logging

from jmsjca.connector.business_objects import BusinessObject
from jmsjca.connector.collaborations import Publish
from jmsjca.connector.config import ConnectorConfig
from jmsjca.connector.duplicate_elimination import DuplicateElimination, MonitorFailedError, Resolver
from jmsjca.connector.event_conversion import Event, EventConversion
from jmsjca.connector.return_codes import DeliveryOutcome
from jmsjca.destinations import Destination
from jmsjca.errors import JMSError, UnknownBusinessObjectError
from jmsjca.messages.message import Message
from jmsjca.outbound.session import Session
from jmsjca.redelivery import MoveFacts, moved_copy
from jmsjca.redelivery.encounter import Failure, encodable

__all__ = ["EventFlow", "outcome_of"]

logger = logging.getLogger("jmsjca.connector")

_LONGEST_DESCRIPTION = 1000  # characters


class EventFlow:
    """Delivers events to a collaboration, within the transaction of the session that received them.

    Args:
        config: Names the destinations of copies.
        conversion: Converts messages to business objects.
        publish: Delivers each business object to the collaboration.
        resolver: Decides about events in doubt under duplicate elimination.
        transactional: True if the collaboration is a queue or topic, so that its delivery is part of a transaction.
    """

    def __init__(
        self,
        config: ConnectorConfig,
        conversion: EventConversion,
        publish: Publish,
        resolver: Resolver | None = None,
        *,
        transactional: bool = False,
    ) -> None:
        self._config = config
        self._conversion = conversion
        self.publish = publish
        self.resolver = resolver
        self.transactional = transactional

    def process(
        self, session: Session, event: Event, elimination: DuplicateElimination | None = None
    ) -> DeliveryOutcome:
        """Deliver an event and end its transaction.

        The commit removes the message and sends its copy. CONNECTOR_NOT_ACTIVE rolls back, so the message is kept. A
        lost connection or a failed commit leaves the message with the broker: its event is delivered again.

        Args:
            session: The session that received the message, in its open transaction.
            event: The event.
            elimination: Eliminates duplicates; None for no elimination.

        Returns:
            The outcome of the delivery.

        Raises:
            JMSError: The broker refuses a copy or the commit.
        """
        outcome, error = self._deliver(session, event, elimination)
        if outcome is DeliveryOutcome.CONNECTOR_NOT_ACTIVE:
            session.rollback()
            return outcome
        self._copy(session, event, outcome, error)
        session.commit()
        return outcome

    def _deliver(
        self, session: Session, event: Event, elimination: DuplicateElimination | None
    ) -> tuple[DeliveryOutcome, Exception | None]:
        try:
            business_object = self._conversion.to_business_object(event)
        except UnknownBusinessObjectError as error:
            return DeliveryOutcome.NO_SUBSCRIPTION_FOUND, error
        except Exception as error:  # noqa: BLE001  # a data handler may belong to the application
            return DeliveryOutcome.FAIL, error
        try:
            if elimination is None:
                outcome = outcome_of(self.publish(session, business_object))
            else:
                outcome = outcome_of(elimination.deliver(business_object, self.publish))
        except MonitorFailedError:
            raise
        except Exception as error:  # noqa: BLE001  # the collaboration belongs to the application
            return DeliveryOutcome.FAIL, error
        return outcome, _reason(outcome, business_object)

    def _copy(self, session: Session, event: Event, outcome: DeliveryOutcome, error: Exception | None) -> None:
        target = self._target(outcome)
        if outcome is not DeliveryOutcome.SUCCEED:
            logger.warning(
                "Message %s of %s: %s: %s. The message is %s.",
                event.message.message_id,
                event.origin,
                outcome,
                error,
                f"moved to {target}" if target else "discarded, because no destination is configured for it",
                exc_info=error if outcome is DeliveryOutcome.FAIL else None,
            )
        if target:
            copy = _copy_of(event, error)
            copy.properties.update(self._fault(outcome, error))
            producer = session.create_producer(target)
            producer.send(copy, delivery_mode=copy.delivery_mode, priority=copy.priority)

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
        if not self._config.container_managed_events or outcome is DeliveryOutcome.SUCCEED:
            return {}
        return {"FaultStatus": str(outcome), "FaultDescription": encodable(str(error))[:_LONGEST_DESCRIPTION]}


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
    copy = moved_copy(event.message, MoveFacts(event.origin, _redeliveries(event.message), failure=failure))
    for name, value in event.properties.items():
        copy.properties.pop(name, None)
        if value is not None:
            copy.properties[name] = value
    return copy


def _redeliveries(message: Message) -> int:
    return max((message.delivery_count or 1) - 1, 0)
