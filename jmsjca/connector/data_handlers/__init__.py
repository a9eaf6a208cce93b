"""Data handlers: conversions between message bodies and business objects, chosen by MIME type."""

from jmsjca.connector.data_handlers.flat_text import DelimitedDataHandler, FixedWidthDataHandler
from jmsjca.connector.data_handlers.json_text import JSONDataHandler
from jmsjca.connector.data_handlers.name_value_text import NameValueDataHandler
from jmsjca.connector.data_handlers.registry import DataHandler, DataHandlers, data_handler, data_handler_of_class
from jmsjca.connector.data_handlers.xml_text import XMLDataHandler

__all__ = [
    "DataHandler",
    "DataHandlers",
    "DelimitedDataHandler",
    "FixedWidthDataHandler",
    "JSONDataHandler",
    "NameValueDataHandler",
    "XMLDataHandler",
    "data_handler",
    "data_handler_of_class",
]
