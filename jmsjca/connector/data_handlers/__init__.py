"""Data handlers: conversions between message bodies and business objects, chosen by MIME type."""

from jmsjca.connector.data_handlers.handler import DataHandler
from jmsjca.connector.data_handlers.json_text import JSONDataHandler
from jmsjca.connector.data_handlers.registry import data_handler

__all__ = ["DataHandler", "JSONDataHandler", "data_handler"]
