"""Messages: their types, typed properties and conversions."""

from jmsjca.messages.bytes_and_stream import BytesMessage, StreamMessage
from jmsjca.messages.delivery import (
    MANUAL_PREFIX,
    PREFIX,
    DeliveryContext,
    EndpointContext,
    Outcome,
    PreviousFailure,
    Settlement,
    rollback_key,
    vendor_names,
)
from jmsjca.messages.map_message import MapMessage
from jmsjca.messages.message import DeliveryMode, EndOfBatch, Message, TextMessage, end_of_batch_message
from jmsjca.messages.object_message import ObjectMessage, PlainData
from jmsjca.messages.properties import (
    DUPLICATE_ID,
    GROUP_ID,
    Byte,
    Char,
    Double,
    EntryValue,
    Float,
    Int,
    Long,
    Properties,
    PropertyValue,
    Short,
    convert,
    type_name,
    typed_entry,
    typed_property,
)

__all__ = [
    "DUPLICATE_ID",
    "GROUP_ID",
    "MANUAL_PREFIX",
    "PREFIX",
    "Byte",
    "BytesMessage",
    "Char",
    "DeliveryContext",
    "DeliveryMode",
    "Double",
    "EndOfBatch",
    "EndpointContext",
    "EntryValue",
    "Float",
    "Int",
    "Long",
    "MapMessage",
    "Message",
    "ObjectMessage",
    "Outcome",
    "PlainData",
    "PreviousFailure",
    "Properties",
    "PropertyValue",
    "Settlement",
    "Short",
    "StreamMessage",
    "TextMessage",
    "convert",
    "end_of_batch_message",
    "entry",
    "rollback_key",
    "type_name",
    "typed",
    "typed_entry",
    "typed_property",
    "vendor_names",
]

# The former names, for one release.
entry = typed_entry
typed = typed_property
