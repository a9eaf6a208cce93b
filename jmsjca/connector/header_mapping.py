"""The mapping between the headers and properties of messages and the dynamic meta-objects of business objects.

A definition marks a child as dynamic meta-object. In an event, the child holds the headers for which it has attributes.
In a request, its values take precedence over the values of the static meta-object.
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import cast

from jmsjca.connector.business_objects import Attribute, BusinessObject, Scalar, shown
from jmsjca.connector.definitions import AttributeDefinition, BusinessObjectDefinition, BusinessObjectDefinitions
from jmsjca.connector.meta_objects import DYNAMIC_NAMES, MetaData, parse_information
from jmsjca.destinations import Destination
from jmsjca.errors import ConfigurationError, DataHandlerError, MessageFormatError, excerpt
from jmsjca.messages.message import Message
from jmsjca.messages.properties import EntryValue, PropertyValue, check_name, convert, typed_property

__all__ = ["HeaderMapping", "message_format", "set_message_format"]

_PROPERTIES = "JMSProperties"
_JMS_TYPE = "JMSType"
_KINDS = {"string": "string", "integer": "long", "float": "double", "boolean": "boolean"}
_PROPERTY_KINDS = frozenset({"boolean", "string", "byte", "short", "int", "long", "float", "double"})


def message_format(message: Message, format_property: str) -> str | None:
    """Return the format of a message.

    Args:
        message: The message.
        format_property: The property that holds it; ``JMSType`` for the header.
    """
    return message.type if format_property == _JMS_TYPE else message.get_string_property(format_property)


def set_message_format(message: Message, format_property: str, value: str) -> None:
    """Set the format of a message that is to be sent; see `message_format`."""
    if format_property == _JMS_TYPE:
        message.type = value
    else:
        message.set_string_property(format_property, value)


class HeaderMapping:
    """The mapping for the dynamic meta-objects of some definitions.

    Args:
        definitions: The definitions; None if there are no dynamic meta-objects.
        format_property: The property that holds the format of messages; ``JMSType`` for the header.

    Raises:
        ConfigurationError: A dynamic meta-object has an attribute that does not name a header, or a property with an
            invalid name or type.
    """

    def __init__(self, definitions: BusinessObjectDefinitions | None, format_property: str) -> None:
        self._definitions = definitions
        self._format_property = format_property
        self._attributes: dict[str, str] = {}
        known: Mapping[str, BusinessObjectDefinition] = definitions or {}
        for kind, definition in known.items():
            if definition.meta_object is not None:
                self._attributes[kind] = definition.meta_object
                self._check(definition.attributes[definition.meta_object].type)

    def fill(self, business_object: BusinessObject, message: Message, origin: Destination) -> None:
        """Set the attributes of the dynamic meta-object to the headers and properties of a message.

        A header that is not set removes its attribute. A business object without dynamic meta-object is not changed.

        Args:
            business_object: The business object.
            message: The message.
            origin: The destination that the message was received from.

        Raises:
            DataHandlerError: A header or property cannot be converted to the type of its attribute.
        """
        attribute = self._attributes.get(business_object.type)
        if attribute is None or self._definitions is None:
            return
        child = business_object.attributes.get(attribute)
        kind = self._definitions[business_object.type].attributes[attribute].type
        if not isinstance(child, BusinessObject):
            child = business_object.attributes[attribute] = BusinessObject(kind)
        for name, definition in self._definitions[kind].attributes.items():
            self._fill(child, name, definition, message, origin)

    def overrides(self, business_object: BusinessObject) -> MetaData:
        """Return the properties that the dynamic meta-object of a request defines.

        Raises:
            ConfigurationError: A value is invalid.
        """
        child = self._child(business_object)
        if child is None:
            return MetaData()
        values = {name: value for name, value in child.attributes.items() if name in DYNAMIC_NAMES - {_PROPERTIES}}
        return MetaData.of(values, f"Dynamic meta-object {child.type} of {business_object.type}")

    def properties(self, business_object: BusinessObject) -> dict[str, PropertyValue]:
        """Return the message properties that the dynamic meta-object of a request defines.

        Raises:
            DataHandlerError: A value does not have the type of its property.
        """
        child = self._child(business_object)
        holder = None if child is None else child.attributes.get(_PROPERTIES)
        if not isinstance(holder, BusinessObject) or self._definitions is None or holder.type not in self._definitions:
            return {}
        found: dict[str, PropertyValue] = {}
        for name, definition in self._definitions[holder.type].attributes.items():
            value = holder.attributes.get(name)
            if value is not None:
                key, kind = _property_of(name, definition)
                found[key] = _written(value, kind, f"{holder.type}.{name}")
        return found

    def without_meta_object(self, business_object: BusinessObject) -> BusinessObject:
        """Return a business object without its dynamic meta-object, for a data handler."""
        attribute = self._attributes.get(business_object.type)
        if attribute not in business_object.attributes:
            return business_object
        kept = {name: value for name, value in business_object.attributes.items() if name != attribute}
        return BusinessObject(business_object.type, business_object.verb, kept, business_object.object_event_id)

    def only_meta_object(self, business_object: BusinessObject) -> dict[str, Attribute]:
        """Return the attribute with the dynamic meta-object; empty if the business object has none."""
        attribute = self._attributes.get(business_object.type)
        return {name: value for name, value in business_object.attributes.items() if name == attribute}

    def _child(self, business_object: BusinessObject) -> BusinessObject | None:
        child = business_object.attributes.get(self._attributes.get(business_object.type, ""))
        return child if isinstance(child, BusinessObject) else None

    def _fill(
        self, child: BusinessObject, name: str, definition: AttributeDefinition, message: Message, origin: Destination
    ) -> None:
        if name == _PROPERTIES and self._definitions is not None:
            properties = self._definitions[definition.type].attributes
            read = {each: _read_property(message, each, of, f"{child.type}.{name}") for each, of in properties.items()}
            child.attributes[name] = BusinessObject(
                definition.type, "", {each: value for each, value in read.items() if value is not None}
            )
        elif name in _HEADERS or name == _FORMAT:
            path = f"{child.type}.{name}"
            value = _read_header(message, name, origin, self._format_property, path)
            child.attributes.pop(name, None)
            if value is not None:
                child.attributes[name] = _as_attribute(value, definition.type, path)

    def _check(self, kind: str) -> None:
        definitions: Mapping[str, BusinessObjectDefinition] = self._definitions or {}
        for name, attribute in definitions[kind].attributes.items():
            if name == _PROPERTIES and not attribute.is_scalar and attribute.cardinality == "single":
                for each, definition in definitions[attribute.type].attributes.items():
                    _property_of(each, definition)
            elif name == _PROPERTIES or not (name in _HEADERS or name == _FORMAT or name in DYNAMIC_NAMES):
                known = ", ".join(sorted({*_HEADERS, _FORMAT, *DYNAMIC_NAMES}))
                raise ConfigurationError(
                    f"Attribute {excerpt(name)!r} of the dynamic meta-object {kind} is no header; there are {known}. "
                    f"{_PROPERTIES} is a single child."
                )
            elif not attribute.is_scalar or attribute.cardinality == "multiple":
                raise ConfigurationError(f"Attribute {name} of the dynamic meta-object {kind} is not a single scalar.")


def _milliseconds(time: datetime | None) -> int | None:
    return None if time is None else round(time.timestamp() * 1000)


_FORMAT = "InputFormat"
_HEADERS: Mapping[str, Callable[[Message], object]] = {
    "AppID": lambda message: message.get_object_property("JMSXAppID"),
    "CorrelationID": lambda message: message.correlation_id,
    "DeliveryCount": lambda message: message.delivery_count or None,
    "DeliveryMode": lambda message: int(message.delivery_mode),
    "Destination": lambda message: message.destination,
    "Expiration": lambda message: _milliseconds(message.expiration) or 0,
    "GroupID": lambda message: message.get_object_property("JMSXGroupID"),
    "GroupSeq": lambda message: message.get_object_property("JMSXGroupSeq"),
    "MessageID": lambda message: message.message_id,
    "Priority": lambda message: message.priority,
    "Redelivered": lambda message: message.redelivered,
    "ReplyToDestination": lambda message: message.reply_to,
    "TimeStamp": lambda message: _milliseconds(message.timestamp),
    "Type": lambda message: message.type,
    "UserID": lambda message: message.get_object_property("JMSXUserID"),
}


def _read_header(message: Message, name: str, origin: Destination, format_property: str, path: str) -> object:
    try:
        if name == _FORMAT:
            return message_format(message, format_property)
        value = origin if name == "Destination" else _HEADERS[name](message)
    except MessageFormatError as error:
        raise DataHandlerError(f"Attribute {path} cannot be read from the message: {error}") from error
    return str(value) if isinstance(value, Destination) else value


def _as_attribute(value: object, kind: str, path: str) -> Scalar:
    """Return a value with the type of an attribute, by the conversions of message properties."""
    try:
        converted = convert(cast("EntryValue", value), _KINDS[kind])
    except MessageFormatError as error:
        raise DataHandlerError(
            f"Attribute {path} is {kind}, and the message has {excerpt(value)!r} for it: {error}"
        ) from error
    return _plain(converted)


def _plain(value: EntryValue) -> Scalar:
    """Return a value without its JMS type: definitions know plain Python types only."""
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int):
        return int(value)
    return float(value) if isinstance(value, float) else str(cast("str", value))


def _property_of(name: str, definition: AttributeDefinition) -> tuple[str, str]:
    """Return the name and the type of the property of an attribute."""
    information = parse_information(definition.information)
    unknown = sorted(information.keys() - {"name", "type"})
    kind = information.get("type", _KINDS.get(definition.type, "")).lower()
    if unknown or kind not in _PROPERTY_KINDS or definition.cardinality == "multiple":
        raise ConfigurationError(
            f"Attribute {excerpt(name)} of {_PROPERTIES} is a single scalar with the information "
            f"name=<property>;type=<{', '.join(sorted(_PROPERTY_KINDS))}>, not {excerpt(definition.information)!r}."
        )
    try:
        check_name(information.get("name", name))
    except MessageFormatError as error:
        raise ConfigurationError(f"Attribute {excerpt(name)} of {_PROPERTIES}: {error}") from error
    return information.get("name", name), kind


def _read_property(message: Message, name: str, definition: AttributeDefinition, path: str) -> Scalar:
    key, kind = _property_of(name, definition)
    value = cast("EntryValue", message.get_object_property(key))
    if value is None:
        return None
    try:
        return _as_attribute(convert(value, kind), definition.type, f"{path}.{name}")
    except MessageFormatError as error:
        raise DataHandlerError(
            f"Attribute {path}.{name} cannot be read from property {excerpt(key)} = {excerpt(value)!r}: {error}"
        ) from error


def _written(value: object, kind: str, path: str) -> PropertyValue:
    made = value
    if kind == "boolean" and str(value).lower() in {"true", "false"}:
        made = str(value).lower() == "true"
    elif kind == "string" and not isinstance(value, str):
        made = str(value).lower() if isinstance(value, bool) else str(value)
    try:
        return typed_property(made, kind)
    except (MessageFormatError, TypeError, ValueError) as error:
        raise DataHandlerError(
            f"Attribute {path} = {shown(cast('Scalar', value))!r} cannot be a property of type {kind}: {error}"
        ) from error
