"""Annotations of messages in streams of RabbitMQ 4, as properties: the filter value, and the offset."""

from collections.abc import Mapping
from typing import Any

from jmsjca.errors import MessageFormatError
from jmsjca.messages import Properties, PropertyValue
from jmsjca.providers.amqp.codec.jms_mapping import to_jms_property
from jmsjca.providers.common.amqp_types import symbol, text

__all__ = ["FILTER_ANNOTATION", "stream_annotations", "stream_properties"]

FILTER_ANNOTATION = "x-stream-filter-value"

_FILTER = "JMS_AMQP_STREAM_FILTER"
_ANNOTATIONS_BY_PROPERTY = {_FILTER: FILTER_ANNOTATION, "JMS_AMQP_STREAM_OFFSET": "x-stream-offset"}
_ENCODED_FILTER_ANNOTATION = symbol(FILTER_ANNOTATION)


def stream_annotations(properties: Properties) -> list[bytes]:
    """Return the encoded annotation, name and value, of the filter value among properties; empty without one.

    Raises:
        MessageFormatError: The filter value is not text.
    """
    value = properties.get(_FILTER)
    if value is None:
        return []
    if not isinstance(value, str):
        raise MessageFormatError(f"{_FILTER} is text, not {type(value).__name__}")
    return [_ENCODED_FILTER_ANNOTATION, text(value)]


def stream_properties(annotations: Mapping[Any, Any]) -> dict[str, PropertyValue]:
    """Return the offset and the filter value of a received message as properties, if it has them."""
    told = _ANNOTATIONS_BY_PROPERTY.items()
    return {name: to_jms_property(annotations[key]) for name, key in told if key in annotations}
