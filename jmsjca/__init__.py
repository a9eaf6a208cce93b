"""jmsjca: message-driven endpoints for Python and Spark.

Declare listeners on a `ResourceAdapter` and send through a `ConnectionFactory`; `jmsjca.errors` lists all errors.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from jmsjca.config import AcknowledgeMode, DestinationSettings, Limits
from jmsjca.destinations import Destination, Queue, TemporaryQueue, TemporaryTopic, Topic
from jmsjca.errors import JMSError, Reject, Retry
from jmsjca.hooks import Hooks
from jmsjca.messages import (
    Byte,
    BytesMessage,
    Char,
    DeliveryMode,
    Double,
    Float,
    Int,
    Long,
    MapMessage,
    Message,
    ObjectMessage,
    Outcome,
    Settlement,
    Short,
    StreamMessage,
    TextMessage,
)
from jmsjca.outbound import (
    CompletionListener,
    Connection,
    ConnectionFactory,
    ConnectionMetaData,
    JMSContext,
    JMSProducer,
    MessageConsumer,
    MessageProducer,
    QueueBrowser,
    QueueConnectionFactory,
    Requestor,
    Session,
    TopicConnectionFactory,
)

if TYPE_CHECKING:
    from jmsjca.adapter import ResourceAdapter
    from jmsjca.config import ActivationSpec
    from jmsjca.inbound import Activation

__version__ = "0.2.0"

__all__ = [
    "AcknowledgeMode",
    "Activation",
    "ActivationSpec",
    "Byte",
    "BytesMessage",
    "Char",
    "CompletionListener",
    "Connection",
    "ConnectionFactory",
    "ConnectionMetaData",
    "DeliveryMode",
    "Destination",
    "DestinationSettings",
    "Double",
    "Float",
    "Hooks",
    "Int",
    "JMSContext",
    "JMSError",
    "JMSProducer",
    "Limits",
    "Long",
    "MapMessage",
    "Message",
    "MessageConsumer",
    "MessageProducer",
    "ObjectMessage",
    "Outcome",
    "Queue",
    "QueueBrowser",
    "QueueConnectionFactory",
    "Reject",
    "Requestor",
    "ResourceAdapter",
    "Retry",
    "Session",
    "Settlement",
    "Short",
    "StreamMessage",
    "TemporaryQueue",
    "TemporaryTopic",
    "TextMessage",
    "Topic",
    "TopicConnectionFactory",
    "__version__",
]


# Loaded on first use: listeners take as long to import as everything else together, pydantic even longer.
_LAZY = {
    "Activation": "jmsjca.inbound",
    "ActivationSpec": "jmsjca.config",
    "ResourceAdapter": "jmsjca.adapter",
}
_LAZY_MODULES = ("adapter", "inbound", "redelivery")  # for the same reason


def __getattr__(name: str) -> object:
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    if name in _LAZY_MODULES:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY, *_LAZY_MODULES})
