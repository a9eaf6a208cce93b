"""Scalars as text: the part that the data handlers of XML, delimited, fixed-width and name-value text share.

A handler parses a body into a business object with texts as scalars, and `typed` converts them to the types of the
definitions; `texts` is the way back. An attribute that is None and a list without elements are not written.
"""

import math
import re

from jmsjca.connector.business_objects import Attribute, BusinessObject, Scalar, shown
from jmsjca.connector.definitions import AttributeDefinition, BusinessObjectDefinitions
from jmsjca.errors import DataHandlerError, UnknownBusinessObjectError, excerpt

__all__ = ["chosen_type", "decoded", "texts", "typed"]

# Python does not convert more than 4300 digits.
_INTEGER = re.compile(r" *([+-]?[0-9]{1,4000}) *")
_FLOAT = re.compile(r" *([+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?) *")
_BOOLEANS = {"true": True, "false": False}
_SURROGATE = re.compile("[\ud800-\udfff]")


def decoded(content: str | bytes) -> str:
    """Return a body as text; bytes are UTF-8.

    Raises:
        DataHandlerError: The bytes are not UTF-8.
    """
    try:
        return content if isinstance(content, str) else content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise DataHandlerError(f"The body is not UTF-8: {error}; it begins with {excerpt(content)!r}.") from error


def chosen_type(named: str, expected: str | None, content: str | bytes) -> str:
    """Return the type of the business object of a body.

    Args:
        named: The type that the body names; empty if it names none.
        expected: The type that the caller names; None if it names none.
        content: The body, for the error.

    Raises:
        UnknownBusinessObjectError: Neither names the type.
        DataHandlerError: They name different types.
    """
    if expected is not None and named not in {"", expected}:
        raise DataHandlerError(f"The body names type {excerpt(named)!r}, but {expected!r} is expected.")
    if not (expected or named):
        raise UnknownBusinessObjectError(
            f"The body names no type of business object, and no meta-object rule selects one: {excerpt(content)!r}."
        )
    return expected or named


def typed(source: BusinessObject, definitions: BusinessObjectDefinitions | None) -> BusinessObject:
    """Return a business object of texts with the types and cardinalities of the definitions.

    Args:
        source: The business object of texts. A single text or child is accepted where a list is defined.
        definitions: The definitions; None returns the source.

    Raises:
        DataHandlerError: The result is invalid; the message lists every problem with its path and value.
    """
    if definitions is None:
        return source
    try:
        result = _typed_object(definitions.with_child_types(source), definitions)
    except RecursionError as error:
        raise DataHandlerError(f"The body of business object {source.type} is nested too deeply.") from error
    definitions.validate(result)
    return result


def texts(source: BusinessObject, definitions: BusinessObjectDefinitions | None) -> BusinessObject:
    """Return a business object with texts as scalars, without the attributes that have no value.

    Args:
        source: The business object.
        definitions: The definitions that it must satisfy; None accepts all.

    Raises:
        DataHandlerError: The business object is invalid, or text cannot represent a value.
    """
    if definitions is not None:
        definitions.validate(source)
    try:
        return _text_object(source, "")
    except RecursionError as error:
        raise DataHandlerError(f"Business object {source.type} is nested too deeply.") from error


def _typed_object(source: BusinessObject, definitions: BusinessObjectDefinitions) -> BusinessObject:
    definition = definitions.get(source.type)
    known = definition.attributes if definition else {}
    values = {
        name: _typed_value(value, known[name], definitions) if name in known else value
        for name, value in source.attributes.items()
    }
    return BusinessObject(source.type, source.verb, values)


def _typed_value(value: Attribute, attribute: AttributeDefinition, definitions: BusinessObjectDefinitions) -> Attribute:
    if isinstance(value, list):
        return [_typed_single(element, attribute, definitions) for element in value]
    single = _typed_single(value, attribute, definitions)
    return [single] if attribute.cardinality == "multiple" else single


def _typed_single(
    value: Scalar | BusinessObject, attribute: AttributeDefinition, definitions: BusinessObjectDefinitions
) -> Scalar | BusinessObject:
    if isinstance(value, BusinessObject):
        return _typed_object(value, definitions)
    return _scalar(value, attribute.type) if isinstance(value, str) else value


def _scalar(text: str, kind: str) -> Scalar:
    """Return the value of a text; the text itself if it has no such value, which the validation then reports."""
    if kind == "integer" and (match := _INTEGER.fullmatch(text)):
        return int(match[1])
    if kind == "float" and (match := _FLOAT.fullmatch(text)):
        return float(match[1])
    return _BOOLEANS.get(text.strip(" "), text) if kind == "boolean" else text


def _text_object(source: BusinessObject, path: str) -> BusinessObject:
    values = {name: _text_value(value, f"{path}{name}") for name, value in source.attributes.items()}
    kept: dict[str, Attribute] = {name: value for name, value in values.items() if value not in (None, [])}
    return BusinessObject(source.type, source.verb, kept)


def _text_value(value: Attribute, path: str) -> Attribute:
    if isinstance(value, list):
        return [_text_element(element, f"{path}[{index}]") for index, element in enumerate(value)]
    return None if value is None else _text_element(value, path)


def _text_element(value: Scalar | BusinessObject, path: str) -> str | BusinessObject:
    if isinstance(value, BusinessObject):
        return _text_object(value, f"{path}.")
    text = _text(value)
    if text is None:
        raise DataHandlerError(f"Attribute {path} has the value {shown(value)!r}, which text cannot represent.")
    return text


def _text(value: Scalar) -> str | None:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else None
    if isinstance(value, int):
        return str(value) if abs(value) < 10**4000 else None
    return value if isinstance(value, str) and not _SURROGATE.search(value) else None
