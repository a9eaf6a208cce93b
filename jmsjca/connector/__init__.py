"""Event connectors on top of the adapter: a polling connector for business objects, and Jitterbit's activities."""

from jmsjca.connector.activities import Activities
from jmsjca.connector.business_objects import BusinessObject
from jmsjca.connector.config import ConnectorConfig
from jmsjca.connector.config_fields import InDoubtEvents
from jmsjca.connector.connector import Connector, ConnectorTerminatedError
from jmsjca.connector.data_handlers.handler import DataHandler
from jmsjca.connector.duplicate_elimination import EventStatus
from jmsjca.connector.event_store import EventRecord, EventStore, RecordStatus
from jmsjca.connector.folder_event_store import FolderEventStore
from jmsjca.connector.responses import ListenResponse, PollResponse
from jmsjca.connector.return_codes import DeliveryOutcome, ReturnCode, ReturnStatus

__all__ = [
    "Activities",
    "BusinessObject",
    "Connector",
    "ConnectorConfig",
    "ConnectorTerminatedError",
    "DataHandler",
    "DeliveryOutcome",
    "EventRecord",
    "EventStatus",
    "EventStore",
    "FolderEventStore",
    "InDoubtEvents",
    "ListenResponse",
    "PollResponse",
    "RecordStatus",
    "ReturnCode",
    "ReturnStatus",
]
