"""The outcomes of events and requests: return codes, feedback codes of WebSphere MQ, and report messages."""

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum

from jmsjca.connector.business_objects import BusinessObject
from jmsjca.connector.config import ConnectorConfig
from jmsjca.connector.event_conversion import Event, EventConversion
from jmsjca.connector.header_mapping import message_format, set_message_format
from jmsjca.connector.meta_objects import MetaData
from jmsjca.connector.queue_uris import parse_target, reads_uris
from jmsjca.destinations import Destination
from jmsjca.errors import (
    ConfigurationError,
    DataHandlerError,
    InvalidSelectorError,
    JMSError,
    MessageFormatError,
    excerpt,
)
from jmsjca.messages.bytes_and_stream import BytesMessage
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
    "DeliveryOutcome",
    "FeedbackCodes",
    "ReportRequest",
    "Reports",
    "ReturnCode",
    "ReturnStatus",
    "loggable",
    "report_request",
    "result_of",
]

_QUOTING = (DataHandlerError, InvalidSelectorError, MessageFormatError)


def loggable(error: Exception) -> Exception:
    """Return the error for a log record, which never has a part of a body.

    The errors of jmsjca about values quote them. Of such an error, or of an error that it caused, the record has the
    class and the traceback.

    Args:
        error: The error.
    """
    each: BaseException | None = error
    for _ in range(100):  # a chain can have a circle
        if each is None:
            return error
        if isinstance(each, _QUOTING):
            break
        each = each.__context__ if each.__cause__ is None else each.__cause__
    text = f"{type(error).__name__}, whose text is not logged because it may quote the body"
    return JMSError(text).with_traceback(error.__traceback__)


class ReturnCode(StrEnum):
    """The result of a poll for events (the first three) or of a request."""

    SUCCEED = "SUCCEED"
    """The poll ended normally, also when it found no message; or the request succeeded."""
    FAIL = "FAIL"
    """The poll or the request failed; the connector goes on."""
    APPRESPONSETIMEOUT = "APPRESPONSETIMEOUT"
    """The broker, the collaboration or the target application cannot be reached, so the connector restarts."""
    VALCHANGE = "VALCHANGE"
    """The target application changed the business object, which has the new values."""
    MULTIPLE_HITS = "MULTIPLE_HITS"
    """Several objects matched; the business object has the values of the first one."""
    VALDUPES = "VALDUPES"
    """The object exists already."""
    FAIL_RETRIEVE_BY_CONTENT = "FAIL_RETRIEVE_BY_CONTENT"
    """No object has the content that was searched for."""
    BO_DOES_NOT_EXIST = "BO_DOES_NOT_EXIST"
    """The object does not exist."""
    UNABLE_TO_LOGIN = "UNABLE_TO_LOGIN"
    """The target application refused the login."""


@dataclass
class ReturnStatus:
    """The description of a request that did not succeed.

    Attributes:
        text: The text of the error; empty after a success.
    """

    text: str = ""


class DeliveryOutcome(StrEnum):
    """The result of the delivery of one business object to a collaboration."""

    SUCCEED = "SUCCEED"
    """The collaboration took the business object."""
    FAIL = "FAIL"
    """The collaboration rejected the business object."""
    NO_SUBSCRIPTION_FOUND = "NO_SUBSCRIPTION_FOUND"
    """No collaboration subscribes to the business object."""
    CONNECTOR_NOT_ACTIVE = "CONNECTOR_NOT_ACTIVE"
    """The connector is paused or stopped, so the message must be kept."""

    @property
    def return_code(self) -> ReturnCode:
        """The return code of the poll: only an inactive connector ends it, since other failures concern one event."""
        if self is DeliveryOutcome.CONNECTOR_NOT_ACTIVE:
            return ReturnCode.APPRESPONSETIMEOUT
        return ReturnCode.SUCCEED


MQFB_PAN, MQFB_NAN = 275, 276
MQFB_APPL_FIRST, _APPL_LAST = 65536, 999_999_999
_NAMES = {"MQFB_PAN": MQFB_PAN, "MQFB_NAN": MQFB_NAN, "MQFB_APPL_FIRST": MQFB_APPL_FIRST, "MQFB_APPL_LAST": _APPL_LAST}
_CODE = re.compile(r"\s*(\w+)\s*(?:\+\s*(\d{1,9})\s*)?")
_OF_APPLICATIONS = (
    ReturnCode.SUCCEED,
    ReturnCode.FAIL,
    ReturnCode.VALCHANGE,
    ReturnCode.VALDUPES,
    ReturnCode.MULTIPLE_HITS,
    ReturnCode.FAIL_RETRIEVE_BY_CONTENT,
    ReturnCode.BO_DOES_NOT_EXIST,
    ReturnCode.UNABLE_TO_LOGIN,
    ReturnCode.APPRESPONSETIMEOUT,
)
_DEFAULTS = {
    MQFB_PAN: ReturnCode.SUCCEED,
    MQFB_NAN: ReturnCode.FAIL,
    **{MQFB_APPL_FIRST + offset: code for offset, code in enumerate(_OF_APPLICATIONS)},
}


def result_of(name: str) -> ReturnCode | None:
    """Return the result with a name, in any case; ``SUCCESS`` is the same as ``SUCCEED``. None if it is unknown."""
    text = name.strip().upper().replace("APP_RESPONSE_TIMEOUT", "APPRESPONSETIMEOUT")
    return ReturnCode.SUCCEED if text == "SUCCESS" else ReturnCode.__members__.get(text)


class FeedbackCodes:
    """The results by feedback code.

    By default ``MQFB_PAN`` is SUCCEED, ``MQFB_NAN`` is FAIL, and the codes from ``MQFB_APPL_FIRST`` are SUCCEED, FAIL,
    VALCHANGE, VALDUPES, MULTIPLE_HITS, FAIL_RETRIEVE_BY_CONTENT, BO_DOES_NOT_EXIST, UNABLE_TO_LOGIN and
    APPRESPONSETIMEOUT.

    Args:
        changes: Results by code: a number, or a name of WebSphere MQ as in ``MQFB_APPL_FIRST + 1``.

    Raises:
        ConfigurationError: A code or a result is unknown.
    """

    def __init__(self, changes: Mapping[str, str]) -> None:
        self._results = dict(_DEFAULTS)
        for code, name in changes.items():
            result = result_of(name)
            if result is None:
                known = ", ".join(ReturnCode)
                raise ConfigurationError(
                    f"Feedback code {excerpt(code)} has the result {excerpt(name)!r}; there are {known}."
                )
            self._results[_code(code)] = result

    def result(self, value: object) -> ReturnCode | None:
        """Return the result for the value of a property: a name or a code; None if it is neither.

        Args:
            value: The value; None if the property is not set.
        """
        if isinstance(value, bool) or not isinstance(value, str | int):
            return None
        if isinstance(value, int) or value.strip().isdecimal():
            return self._results.get(int(value))
        return result_of(value)

    def code(self, result: ReturnCode) -> int | None:
        """Return the code of applications (from ``MQFB_APPL_FIRST``) for a result; None for a result without a code."""
        found = (code for code, each in self._results.items() if each is result and code >= MQFB_APPL_FIRST)
        return min(found, default=None)


def _code(text: str) -> int:
    match = _CODE.fullmatch(text)
    base = None if match is None else _NAMES.get(match[1], int(match[1]) if match[1].isdecimal() else None)
    if match is None or base is None:
        raise ConfigurationError(f"{excerpt(text)!r} is no feedback code: a number, or {', '.join(_NAMES)} + n.")
    return base + int(match[2] or 0)


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


def report_request(event: Event, connection_url: str = "") -> ReportRequest | None:
    """Return the reports that the message of an event asks for; None if it asks for none.

    The message is a datagram (``JMS_IBM_MsgType`` 8 or not set) with ``JMS_IBM_Report_PAN`` or ``JMS_IBM_Report_NAN``.
    The correlation id of the report is the message id, or, with ``JMS_IBM_Report_Pass_Correl_ID``, the correlation id.

    Args:
        event: The event.
        connection_url: The URL of the connection that sends the reports.
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
    reply_to = message.reply_to if reads_uris(connection_url) else _usable(message.reply_to)
    return ReportRequest(of_success, of_failure, correlation_id, reply_to)


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
