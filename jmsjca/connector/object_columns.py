"""Business objects as columns: the typed tables of an `EventPipeline`, with the types of Spark and of Arrow."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from jmsjca.connector.business_objects import Attribute, BusinessObject, shown
from jmsjca.connector.definitions import AttributeDefinition, BusinessObjectDefinitions
from jmsjca.errors import ConfigurationError, DataHandlerError, ProviderNotInstalledError, excerpt

try:
    from pyspark.sql import types as t

    pa: Any = import_module("pyarrow")
except ImportError as error:
    raise ProviderNotInstalledError(f'An EventPipeline needs {error.name}: pip install "jmsjca[spark]"') from error

__all__ = ["EVENT_ID", "VERB", "ObjectColumns", "arrow_type", "pa"]

VERB, EVENT_ID = "_verb", "_event_id"
"""The columns that a typed table has in addition to the attributes."""

_SCALARS: Mapping[str, Callable[[], t.DataType]] = {
    "string": t.StringType,
    "integer": t.LongType,
    "float": t.DoubleType,
    "boolean": t.BooleanType,
}
_ARROW: Mapping[str, Any] = {
    "string": pa.string(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "binary": pa.binary(),
}
_LONGS = range(-(2**63), 2**63)


def arrow_type(kind: t.DataType) -> Any:
    """Return the Arrow type of a Spark type."""
    if isinstance(kind, t.StructType):
        return pa.struct([(field.name, arrow_type(field.dataType)) for field in kind.fields])
    if isinstance(kind, t.ArrayType):
        return pa.list_(arrow_type(kind.elementType))
    if isinstance(kind, t.MapType):
        return pa.map_(arrow_type(kind.keyType), arrow_type(kind.valueType))
    return _ARROW[kind.simpleString()]


class ObjectColumns:
    """The columns of the business objects of one type: its attributes, the verb and the id of the event.

    A child is a struct, a list an array. An integer has 64 bits.

    Args:
        kind: The type.
        definitions: The definitions; None if the connector has none.

    Attributes:
        schema: The columns.

    Raises:
        ConfigurationError: The type has no definition, or one that no table can have.
    """

    def __init__(self, kind: str, definitions: BusinessObjectDefinitions | None) -> None:
        if definitions is None or kind not in definitions:
            known = ", ".join(sorted(definitions or ())) or "none"
            raise ConfigurationError(
                f"A table of {excerpt(kind)} needs its definition, for the types of the columns; there are: {known}."
            )
        self._kind = kind
        self._definitions = definitions
        self.schema = self._struct(kind, (kind,)).add(VERB, t.StringType()).add(EVENT_ID, t.StringType())
        if len({field.name.lower() for field in self.schema.fields}) < len(self.schema.fields):
            raise ConfigurationError(
                f"{excerpt(kind)} has an attribute {VERB} or {EVENT_ID}, or two that differ by case only, which Spark "
                "does not distinguish; rename it."
            )

    def values(self, business_object: BusinessObject) -> dict[str, object]:
        """Return the values of a business object by column.

        Raises:
            DataHandlerError: The business object does not satisfy its definition, or a value does not fit its column.
        """
        self._definitions.validate(business_object)
        made = self._values(business_object)
        return made | {VERB: business_object.verb, EVENT_ID: business_object.object_event_id}

    def _struct(self, kind: str, path: tuple[str, ...]) -> t.StructType:
        attributes = self._definitions[kind].attributes
        return t.StructType([t.StructField(name, self._type(each, path)) for name, each in attributes.items()])

    def _type(self, attribute: AttributeDefinition, path: tuple[str, ...]) -> t.DataType:
        single = _SCALARS[attribute.type]() if attribute.is_scalar else self._child(attribute.type, path)
        return t.ArrayType(single) if attribute.cardinality == "multiple" else single

    def _child(self, kind: str, path: tuple[str, ...]) -> t.StructType:
        if kind in path:
            raise ConfigurationError(
                f"{' has '.join((*path, kind))}: no column holds a business object within its own type."
            )
        return self._struct(kind, (*path, kind))

    def _values(self, source: BusinessObject) -> dict[str, object]:
        return {name: self._value(value, f"{source.type}.{name}") for name, value in source.attributes.items()}

    def _value(self, value: Attribute, path: str) -> object:
        if isinstance(value, list):
            return [self._value(each, path) for each in value]
        if isinstance(value, BusinessObject):
            return self._values(value)
        if isinstance(value, str):
            return _checked_text(value, path)
        if isinstance(value, int) and not isinstance(value, bool) and value not in _LONGS:
            raise DataHandlerError(f"{path} = {shown(value)} has more than the 64 bits of its column.")
        return value


def _checked_text(text: str, path: str) -> str:
    """Return a text, if it is one that UTF-8 can represent.

    Raises:
        DataHandlerError: It has half of a surrogate pair.
    """
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise DataHandlerError(f"{path} = {shown(text)!r} cannot be stored as UTF-8: {error}.") from error
    return text
