"""jmsjca: message-driven endpoints for Python and Spark.

Declare listeners on a `ResourceAdapter` and send through a `ConnectionFactory`; `jmsjca.errors` lists all errors.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jmsjca.adapter import ResourceAdapter
    from jmsjca.config import AcknowledgeMode, ActivationSpec, DestinationSettings, Limits
    from jmsjca.destinations import Destination, Queue, TemporaryQueue, TemporaryTopic, Topic
    from jmsjca.errors import JMSError, Reject, Retry
    from jmsjca.hooks import Hooks
    from jmsjca.inbound import Activation
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


# Modules are loaded on first use: a program pays for what it names, and a bare `import jmsjca` for this table.
_NAMES = {
    "adapter": "ResourceAdapter",
    "config": "AcknowledgeMode ActivationSpec DestinationSettings Limits",
    "destinations": "Destination Queue TemporaryQueue TemporaryTopic Topic",
    "errors": "JMSError Reject Retry",
    "hooks": "Hooks",
    "inbound": "Activation",
    "messages": """
        Byte BytesMessage Char DeliveryMode Double Float Int Long MapMessage Message ObjectMessage Outcome
        Settlement Short StreamMessage TextMessage
    """,
    "outbound": """
        CompletionListener Connection ConnectionFactory ConnectionMetaData JMSContext JMSProducer
        MessageConsumer MessageProducer QueueBrowser QueueConnectionFactory Requestor Session
        TopicConnectionFactory
    """,
}
_MODULE_OF = {name: module for module, names in _NAMES.items() for name in names.split()}
_MODULES = {*_NAMES, "arguments", "forking", "log_records", "providers", "reconnection", "redelivery", "spi"}


def __getattr__(name: str) -> object:
    if name in _MODULES:
        return import_module(f"{__name__}.{name}")
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULE_OF, *_MODULES})
