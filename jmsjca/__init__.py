"""jmsjca: message-driven endpoints for Python and Spark.

Declare a listener on a `ResourceAdapter`, send through a `ConnectionFactory`, and read `jmsjca.errors` for what can go
wrong.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from jmsjca.config import AcknowledgeMode, DestinationSettings, Limits
from jmsjca.destinations import Destination, Queue, TemporaryQueue, TemporaryTopic, Topic
from jmsjca.errors import JMSError
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
    Connection,
    ConnectionFactory,
    ConnectionMetaData,
    JMSContext,
    JMSProducer,
    MessageConsumer,
    MessageProducer,
    QueueBrowser,
    Requestor,
    Session,
)

if TYPE_CHECKING:
    from jmsjca.adapter import ResourceAdapter
    from jmsjca.config import ActivationSpec
    from jmsjca.inbound import Activation

__version__ = "0.1.0"

__all__ = [
    "AcknowledgeMode",
    "Activation",
    "ActivationSpec",
    "Byte",
    "BytesMessage",
    "Char",
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
    "Requestor",
    "ResourceAdapter",
    "Session",
    "Settlement",
    "Short",
    "StreamMessage",
    "TemporaryQueue",
    "TemporaryTopic",
    "TextMessage",
    "Topic",
    "__version__",
]


# Loaded when they are first asked for: listeners cost as much to import as all the rest, pydantic more than that.
_LAZY = {
    "Activation": "jmsjca.inbound",
    "ActivationSpec": "jmsjca.config",
    "ResourceAdapter": "jmsjca.adapter",
}
_LAZY_MODULES = ("adapter", "inbound", "redelivery")  # likewise


def __getattr__(name: str) -> object:
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    if name in _LAZY_MODULES:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY, *_LAZY_MODULES})
