"""The fields of a connector's configuration: their types, and their names in the documents of IBM's adapters."""

from collections.abc import Sequence
from enum import StrEnum
from typing import TypedDict

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
    poll_frequency: float | None
    receive_timeout: float
    in_progress_destination: str | Destination | None
    in_doubt_events: InDoubtEvents | str
    archive_destination: str | Destination | None
    error_destination: str | Destination | None
    unsubscribed_destination: str | Destination | None
    data_handler_mime_type: str
    default_verb: str
    restart_retry_count: int
    restart_retry_interval: float
    strict: bool


DOCUMENTED_NAMES = {
    "ConnectionFactoryName": "connection_url",
    "InputDestination": "input_destination",
    "PollQuantity": "poll_quantity",
    "PollFrequency": "poll_frequency",
    "InProgressDestination": "in_progress_destination",
    "InDoubtEvents": "in_doubt_events",
    "ArchiveDestination": "archive_destination",
    "ErrorDestination": "error_destination",
    "UnsubscribedDestination": "unsubscribed_destination",
    "DataHandlerMimeType": "data_handler_mime_type",
    "DefaultVerb": "default_verb",
    "RestartRetryCount": "restart_retry_count",
    "RestartRetryInterval": "restart_retry_interval",
}
"""The name of the field by the documented name of the property."""
