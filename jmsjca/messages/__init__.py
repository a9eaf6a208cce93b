"""Messages: their types, typed properties and conversions."""

from jmsjca.messages.conversion import PropertyValue, convert, type_name, typed
from jmsjca.messages.message import BytesMessage, DeliveryContext, DeliveryMode, Message, TextMessage
from jmsjca.messages.numbers import Byte, Double, Float, Int, Long, Short
from jmsjca.messages.properties import DUPLICATE_ID, GROUP_ID, Properties
from jmsjca.messages.settlement import Outcome, Settlement

__all__ = [
    "DUPLICATE_ID",
    "GROUP_ID",
    "Byte",
    "BytesMessage",
    "DeliveryContext",
    "DeliveryMode",
    "Double",
    "Float",
    "Int",
    "Long",
    "Message",
    "Outcome",
    "Properties",
    "PropertyValue",
    "Settlement",
    "Short",
    "TextMessage",
    "convert",
    "type_name",
    "typed",
]
