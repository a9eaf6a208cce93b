"""Report messages: senders that use WebSphere MQ ask for a report of the success (PAN) or failure (NAN) of an event."""

from contextlib import suppress
from dataclasses import dataclass

from jmsjca.connector.business_objects import BusinessObject
from jmsjca.connector.config import ConnectorConfig
from jmsjca.connector.event_conversion import Event, EventConversion
from jmsjca.connector.feedback_codes import MQFB_NAN, MQFB_PAN
from jmsjca.connector.header_mapping import message_format, set_message_format
from jmsjca.connector.meta_objects import MetaData
from jmsjca.connector.queue_uris import parse_target
from jmsjca.connector.return_codes import DeliveryOutcome
from jmsjca.destinations import Destination
from jmsjca.errors import ConfigurationError
from jmsjca.messages.bytes_message import BytesMessage
from jmsjca.messages.message import Message, TextMessage, may_contain_property
from jmsjca.redelivery.encounter import text_of

__all__ = [
    "DATAGRAM",
    "FEEDBACK",
    "MESSAGE_TYPE",
    "NAN",
    "PAN",
    "PASS_ID",
    "REPORT",
    "ReportRequest",
    "Reports",
    "report_request",
]

MESSAGE_TYPE, FEEDBACK = "JMS_IBM_MsgType", "JMS_IBM_Feedback"
"""The properties of reports that are integers."""

PAN, NAN, PASS_ID = "JMS_IBM_Report_PAN", "JMS_IBM_Report_NAN", "JMS_IBM_Report_Pass_Correl_ID"
"""The properties of a request: reports of success, reports of failure, and whether they carry its correlation id."""

DATAGRAM, REPORT = 8, 4
"""The values of `MESSAGE_TYPE` for a request and a report."""

_UNSET = (None, 0, "0", "false")
_URI = "queue://"


@dataclass(frozen=True)
class ReportRequest:
    """The reports that a message asks for.

    Attributes:
        of_success: Whether a success is reported.
        of_failure: Whether a failure is reported.
        correlation_id: The correlation id of the report.
        reply_to: The destination of the report; None if the message names none that can be used.
    """

    of_success: bool
    of_failure: bool
    correlation_id: str | None
    reply_to: Destination | None


def report_request(event: Event) -> ReportRequest | None:
    """Return the reports that the message of an event asks for; None if it asks for none.

    The message is a datagram (``JMS_IBM_MsgType`` 8 or not set) with ``JMS_IBM_Report_PAN`` or ``JMS_IBM_Report_NAN``.
    The correlation id of the report is the message id, or, with ``JMS_IBM_Report_Pass_Correl_ID``, the correlation id.
    """
    message = event.message
    if not (may_contain_property(message, PAN) or may_contain_property(message, NAN)):
        return None  # most messages: their properties are not decoded
    of_success, of_failure, passes_id = (
        message.get_object_property(name) not in _UNSET for name in (PAN, NAN, PASS_ID)
    )
    # Some senders, those over STOMP for instance, have texts only.
    kind = message.get_object_property(MESSAGE_TYPE)
    if not (of_success or of_failure) or kind not in {None, DATAGRAM, str(DATAGRAM)}:
        return None
    correlation_id = message.correlation_id if passes_id else event.event_id or message.message_id
    return ReportRequest(of_success, of_failure, correlation_id, _usable(message.reply_to))


def _usable(reply_to: Destination | None) -> Destination | None:
    """Return the destination of a report. If its name is a queue URI, it is the queue; the manager is not used."""
    if reply_to is None or not reply_to.name.startswith(_URI):
        return reply_to
    with suppress(ConfigurationError):
        return parse_target(reply_to.name).destination
    return None


class Reports:
    """Sends the reports of a connector, in the transactions of its events.

    Args:
        config: The configuration.
        conversion: Converts business objects.
    """

    def __init__(self, config: ConnectorConfig, conversion: EventConversion) -> None:
        self._config = config
        self._conversion = conversion

    def collaboration_name(self, business_object: BusinessObject) -> str:
        """Return the name of the collaboration of a business object; only the static meta-object has it.

        Raises:
            ConfigurationError: It has none.
        """
        name = self._data(business_object).collaboration_name
        if name is None:
            raise ConfigurationError(
                f"The message asks for a report, but no CollaborationName is in the static meta-object for "
                f"{business_object.type}_{business_object.verb}."
            )
        return name

    def report(
        self,
        event: Event,
        request: ReportRequest,
        outcome: DeliveryOutcome,
        error: Exception | None,
        business_object: BusinessObject | None,
    ) -> Message | None:
        """Return the report of an event; None if the request wants none of this outcome.

        Args:
            event: The event.
            request: The request.
            outcome: The outcome.
            error: The reason of a failure.
            business_object: The business object, with the changes of the collaboration.

        Raises:
            DataHandlerError: The business object cannot be converted.
        """
        succeeded = outcome is DeliveryOutcome.SUCCEED
        if request.reply_to is None or not (request.of_success if succeeded else request.of_failure):
            return None
        reason = "" if error is None else text_of(error)
        made = self._of_success(event, business_object) if succeeded else TextMessage(reason)
        made.correlation_id = request.correlation_id
        made.set_int_property(MESSAGE_TYPE, REPORT)
        made.set_int_property(FEEDBACK, MQFB_PAN if succeeded else MQFB_NAN)
        name = self._config.message_response_result_property
        if name is not None and name != FEEDBACK:  # which has the result already, as its code
            made.set_string_property(name, str(outcome))
        return made

    def _of_success(self, event: Event, business_object: BusinessObject | None) -> Message:
        data = MetaData() if business_object is None else self._data(business_object)
        if business_object is None or data.do_not_report_bus_obj:
            return TextMessage("")
        handler = self._conversion.data_handlers.named(data.data_handler_mime_type, data.data_handler_class_name)
        content = handler.to_content(self._conversion.mapping.without_meta_object(business_object))
        made: Message = TextMessage(content) if isinstance(content, str) else BytesMessage(content)
        name = self._config.message_format_property
        chosen = data.output_format or message_format(event.message, name)
        if chosen is not None:
            set_message_format(made, name, chosen)
        return made

    def _data(self, business_object: BusinessObject) -> MetaData:
        return self._conversion.static.data_for(business_object.type, business_object.verb)
