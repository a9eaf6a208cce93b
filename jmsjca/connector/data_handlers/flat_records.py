"""Records of scalars in the order of a definition: what delimited and fixed-width text have in common."""

from collections.abc import Iterator, Sequence

from jmsjca.connector.business_objects import BusinessObject
from jmsjca.connector.data_handlers.text_values import texts, typed
from jmsjca.connector.definitions import AttributeDefinition, BusinessObjectDefinitions
from jmsjca.errors import DataHandlerError, excerpt

__all__ = ["fields_of", "flat_attributes", "record_of"]


def flat_attributes(kind: str, definitions: BusinessObjectDefinitions) -> dict[str, AttributeDefinition]:
    """Return the attributes of a type, in their order.

    Raises:
        DataHandlerError: The type has no definition, or has an attribute that is a child or a list.
    """
    if kind not in definitions:
        known = ", ".join(sorted(definitions))
        raise DataHandlerError(f"Type {excerpt(kind)!r} has no definition; there are: {known}.")
    attributes = definitions[kind].attributes
    for name, attribute in attributes.items():
        if not attribute.is_scalar or attribute.cardinality == "multiple":
            raise DataHandlerError(
                f"Attribute {name} of {kind} is a child or a list, which a record has no place for; use JSON, XML or "
                "name-value text."
            )
    return attributes


def record_of(
    kind: str, verb: str, fields: Sequence[str | None], definitions: BusinessObjectDefinitions
) -> BusinessObject:
    """Return the business object of the fields of a record; None is an attribute without value.

    Raises:
        DataHandlerError: The number of fields is not that of the attributes, or a value is invalid.
    """
    attributes = flat_attributes(kind, definitions)
    if len(fields) != len(attributes):
        raise DataHandlerError(
            f"The record has {len(fields)} fields ({excerpt(fields)}), and {kind} has {len(attributes)} attributes: "
            f"{excerpt(', '.join(attributes), 200)}."
        )
    values = {name: field for name, field in zip(attributes, fields, strict=True) if field is not None}
    return typed(BusinessObject(kind, verb, dict(values)), definitions)


def fields_of(
    source: BusinessObject, definitions: BusinessObjectDefinitions
) -> Iterator[tuple[str, AttributeDefinition, str | None]]:
    """Yield the name, the definition and the text of each attribute; None if it has no value.

    Raises:
        DataHandlerError: The business object is invalid, or its type has children or lists.
    """
    attributes = flat_attributes(source.type, definitions)
    values = texts(source, definitions).attributes
    for name, attribute in attributes.items():
        value = values.get(name)
        yield name, attribute, None if value is None else str(value)
