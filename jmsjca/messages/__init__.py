"""Messages: their types, typed properties and conversions."""

from jmsjca.messages.bytes_message import BytesMessage
from jmsjca.messages.delivery import DeliveryContext, EndpointContext, PreviousFailure
from jmsjca.messages.end_of_batch import EndOfBatch, end_of_batch_message
from jmsjca.messages.map_message import MapMessage
from jmsjca.messages.message import DeliveryMode, Message, TextMessage
from jmsjca.messages.object_message import ObjectMessage, PlainData
from jmsjca.messages.properties import DUPLICATE_ID, GROUP_ID, Properties
from jmsjca.messages.settlement import Outcome, Settlement
from jmsjca.messages.stream_message import StreamMessage
from jmsjca.messages.value_types import (
    Byte,
    Char,
    Double,
    EntryValue,
    Float,
    Int,
    Long,
    PropertyValue,
    Short,
    convert,
    type_name,
    typed_entry,
    typed_property,
)
from jmsjca.messages.vendor_properties import MANUAL_PREFIX, PREFIX, rollback_key, vendor_names

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
