"""Event connectors on top of the adapter: a polling connector for business objects, and Jitterbit's activities.

`EventPipeline`, the connector on Spark, is imported at its first use: it needs ``pip install "jmsjca[spark]"``.
"""

from typing import TYPE_CHECKING

from jmsjca.connector.activities import Activities, ListenResponse, PollResponse
from jmsjca.connector.business_objects import BusinessObject
from jmsjca.connector.config import ConnectorConfig, InDoubtEvents
from jmsjca.connector.connector import Connector, ConnectorTerminatedError
from jmsjca.connector.data_handlers.registry import DataHandler
from jmsjca.connector.duplicate_elimination import EventStatus
from jmsjca.connector.event_store import EventRecord, EventStore, RecordStatus
from jmsjca.connector.folder_event_store import FolderEventStore
from jmsjca.connector.mailbox_event_store import MailboxEventStore
from jmsjca.connector.outcomes import DeliveryOutcome, ReturnCode, ReturnStatus

if TYPE_CHECKING:
    from jmsjca.connector.event_pipeline import EventPipeline

__all__ = [
    "Activities",
    "BusinessObject",
    "Connector",
    "ConnectorConfig",
    "ConnectorTerminatedError",
    "DataHandler",
    "DeliveryOutcome",
    "EventPipeline",
    "EventRecord",
    "EventStatus",
    "EventStore",
    "FolderEventStore",
    "InDoubtEvents",
    "ListenResponse",
    "MailboxEventStore",
    "PollResponse",
    "RecordStatus",
    "ReturnCode",
    "ReturnStatus",
]


def __getattr__(name: str) -> object:
    """Import the pipeline at its first use, because it imports Spark."""
    if name == "EventPipeline":
        from jmsjca.connector.event_pipeline import EventPipeline

        return EventPipeline
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
