"""The fields of a connector's configuration: their types, and their names in the documents of IBM's adapters."""

from collections.abc import Mapping, Sequence
from datetime import time
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal, TypedDict

from jmsjca.connector.definitions import BusinessObjectDefinition, BusinessObjectDefinitions
from jmsjca.connector.meta_objects import StaticMetaObject
from jmsjca.destinations import Destination

__all__ = ["DOCUMENTED_NAMES", "ConnectorFields", "InDoubtEvents"]


class InDoubtEvents(StrEnum):
    """How a connector treats the messages that it finds in its in-progress destination when it starts."""

    FAIL_ON_STARTUP = "FailOnStartup"
    """Log a critical error and terminate. An operator deletes or moves the messages."""
    REPROCESS = "Reprocess"
    """Deliver them before all other messages. A collaboration may get a business object twice."""
    IGNORE = "Ignore"
    """Leave them there and start."""
    LOG_ERROR = "LogError"
    """Leave them there, log a critical error and start."""


class ConnectorFields(TypedDict, total=False):
    """The keyword arguments of `ConnectorConfig`, which describes them."""

    connection_url: str
    input_destination: str | Destination | Sequence[str | Destination]
    client_id: str | None
    poll_quantity: int
    poll_frequency: float | Literal["key"] | None
    poll_start_time: time | str | None
    poll_end_time: time | str | None
    receive_timeout: float
    in_progress_destination: str | Destination | None
    in_doubt_events: InDoubtEvents | str
    archive_destination: str | Destination | None
    archival_connection_url: str | None
    error_destination: str | Destination | None
    unsubscribed_destination: str | Destination | None
    connector_name: str | None
    delivery_transport: str
    source_queue: str | Destination | None
    delivery_queue: str | Destination | None
    delivery_mime_type: str | None
    fault_queue: str | Destination | None
    container_managed_events: bool
    monitor_queue: str | Destination | None
    duplicate_event_elimination: bool
    duplicate_history: int
    data_handler_mime_type: str
    data_handler_class_name: str | None
    definitions: (
        BusinessObjectDefinitions | Mapping[str, BusinessObjectDefinition | Mapping[str, Any]] | str | Path | None
    )
    configuration_meta_object: StaticMetaObject | Mapping[str, str | Mapping[str, object]] | str | Path | None
    message_format_property: str
    default_verb: str
    reply_to_destination: str | Destination | None
    message_response_result_property: str | None
    raw_response_selectors: bool
    session_pool_size_for_requests: int
    feedback_codes: Mapping[str, str]
    restart_retry_count: int
    restart_retry_interval: float
    strict: bool


DOCUMENTED_NAMES = {
    "ConnectionFactoryName": "connection_url",
    "InputDestination": "input_destination",
    "PollQuantity": "poll_quantity",
    "InputQueue": "input_destination",
    "PollFrequency": "poll_frequency",
    "PollStartTime": "poll_start_time",
    "PollEndTime": "poll_end_time",
    "InProgressDestination": "in_progress_destination",
    "InProgressQueue": "in_progress_destination",
    "InDoubtEvents": "in_doubt_events",
    "ArchiveDestination": "archive_destination",
    "ArchiveQueue": "archive_destination",
    "ArchivalConnectionFactoryName": "archival_connection_url",
    "ErrorDestination": "error_destination",
    "ErrorQueue": "error_destination",
    "UnsubscribedDestination": "unsubscribed_destination",
    "UnsubscribedQueue": "unsubscribed_destination",
    "ApplicationName": "connector_name",
    "DeliveryTransport": "delivery_transport",
    "ContainerManagedEvents": "container_managed_events",
    "SourceQueue": "source_queue",
    "DeliveryQueue": "delivery_queue",
    "BrokerType": "delivery_mime_type",
    "FaultQueue": "fault_queue",
    "DuplicateEventElimination": "duplicate_event_elimination",
    "MonitorQueue": "monitor_queue",
    "DataHandlerMimeType": "data_handler_mime_type",
    "MimeType": "data_handler_mime_type",
    "DHClass": "data_handler_class_name",
    "DataHandlerClassName": "data_handler_class_name",
    "ConfigurationMetaObject": "configuration_meta_object",
    "MessageFormatProperty": "message_format_property",
    "DefaultVerb": "default_verb",
    "ReplyToDestination": "reply_to_destination",
    "ReplyToQueue": "reply_to_destination",
    "MessageResponseResultProperty": "message_response_result_property",
    "SessionPoolSizeForRequests": "session_pool_size_for_requests",
    "FeedbackCodeMappingMO": "feedback_codes",
    "RestartRetryCount": "restart_retry_count",
    "RestartRetryInterval": "restart_retry_interval",
}
"""The name of the field by the documented name of the property; the names with ``Queue`` are of the MQ adapter."""
