"""The data handler for JSON text.

The attributes of the business object are the members of a JSON object. Its member ``_type`` names the type and
``_verb`` the verb. A nested object is a child. A child without ``_type`` has the type of the definition; without
definitions, its type is the attribute's name.
"""

import json
import math
from typing import cast

from jmsjca.connector.business_objects import Attribute, BusinessObject, Scalar
from jmsjca.connector.definitions import BusinessObjectDefinitions
from jmsjca.errors import DataHandlerError, UnknownBusinessObjectError, excerpt
from jmsjca.messages.json_text import BYTE_ORDER_MARK

__all__ = ["JSONDataHandler"]

_TYPE, _VERB = "_type", "_verb"


class JSONDataHandler:
    """Conversion between JSON text and business objects."""

    def __init__(self, definitions: BusinessObjectDefinitions | None = None) -> None:
        """Set up the handler.

        Args:
            definitions: The definitions that the business objects must satisfy; None accepts all.
        """
        self._definitions = definitions

    def to_business_object(self, content: str | bytes, *, type: str | None = None) -> BusinessObject:
        """Return the business object of a JSON text.

        Args:
            content: A JSON object, as text or as bytes in UTF-8, UTF-16 or UTF-32.
            type: The type of the business object; None if the member ``_type`` names it.

        Raises:
            UnknownBusinessObjectError: ``type`` is None and the text has no member ``_type``.
            DataHandlerError: The text is not a JSON object, has a member twice or names another type, or the business
                object is invalid.
        """
        document = _parsed(content)
        if not isinstance(document, dict):
            raise DataHandlerError(f"The body is JSON, but not an object: {excerpt(document)}.")
        members = cast("dict[str, object]", document)
        named = _text(members, _TYPE, "")
        if type is not None and named not in {"", type}:
            raise DataHandlerError(f"The body names type {excerpt(named)!r}, but {type!r} is expected.")
        if not (type or named):
            raise UnknownBusinessObjectError(
                f"The body has no member {_TYPE!r}, and no meta-object rule selects a type: {excerpt(content)}."
            )
        try:
            found = _object(members, type or named, "")
            return found if self._definitions is None else _satisfying(found, self._definitions)
        except RecursionError as error:
            raise DataHandlerError(f"The objects of the body are nested too deeply: {excerpt(content)!r}.") from error

    def to_content(self, business_object: BusinessObject) -> str:
        """Return the JSON text of a business object.

        Raises:
            DataHandlerError: The business object is invalid, an attribute is named ``_type`` or ``_verb``, or its value
                is not of a JSON type.
        """
        if self._definitions is not None:
            self._definitions.validate(business_object)
        try:
            return json.dumps(_members(business_object, ""))
        except (ValueError, RecursionError) as error:
            if isinstance(error, DataHandlerError):
                raise
            raise DataHandlerError(f"Business object {business_object.type} cannot be JSON: {error}.") from error


def _satisfying(source: BusinessObject, definitions: BusinessObjectDefinitions) -> BusinessObject:
    found = definitions.with_child_types(source)
    definitions.validate(found)
    return found


def _parsed(content: str | bytes) -> object:
    text = content.removeprefix(BYTE_ORDER_MARK) if isinstance(content, str) else content  # json skips it in bytes
    try:
        return cast("object", json.loads(text, object_pairs_hook=_unique, parse_constant=_constant))
    except (ValueError, RecursionError) as error:
        if isinstance(error, DataHandlerError):
            raise
        raise DataHandlerError(f"The body is not valid JSON: {error}; it begins with {excerpt(content)!r}.") from error


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members: dict[str, object] = {}
    for name, value in pairs:
        if name in members:
            raise DataHandlerError(f"The JSON object has member {excerpt(name)!r} twice; its value is ambiguous.")
        members[name] = value
    return members


def _constant(name: str) -> object:
    raise DataHandlerError(f"The body has the number {name}, which JSON does not allow (RFC 8259, section 6).")


def _text(members: dict[str, object], name: str, path: str) -> str:
    value = members.get(name, "")
    if isinstance(value, str):
        return value
    raise DataHandlerError(f"Member {path}{name} is a text, not {excerpt(value)}.")


def _object(members: dict[str, object], kind: str, path: str) -> BusinessObject:
    values = {name: _value(name, value, path) for name, value in members.items() if name not in {_TYPE, _VERB}}
    return BusinessObject(kind, _text(members, _VERB, path), values)


def _value(name: str, value: object, path: str) -> Attribute:
    if not isinstance(value, list):
        return _single(name, value, f"{path}{name}")
    values = cast("list[object]", value)
    return [_single(name, element, f"{path}{name}[{index}]") for index, element in enumerate(values)]


def _single(name: str, value: object, path: str) -> Scalar | BusinessObject:
    if isinstance(value, dict):
        members = cast("dict[str, object]", value)
        return _object(members, _text(members, _TYPE, f"{path}.") or name, f"{path}.")
    if isinstance(value, list):
        raise DataHandlerError(f"Attribute {path} is a list in a list, which a business object cannot have.")
    if isinstance(value, float) and not math.isfinite(value):
        raise DataHandlerError(f"Attribute {path} has a number that is too large for a float.")
    return cast("Scalar", value)


def _members(source: BusinessObject, path: str) -> dict[str, object]:
    reserved = {_TYPE, _VERB} & source.attributes.keys()
    if reserved:
        raise DataHandlerError(f"Attribute {path}{min(reserved)} has a name that is reserved in JSON; rename it.")
    head: dict[str, object] = {_TYPE: source.type, **({_VERB: source.verb} if source.verb else {})}
    return head | {name: _member(value, f"{path}{name}") for name, value in source.attributes.items()}


def _member(value: object, path: str) -> object:
    if not isinstance(value, list):
        return _element(value, path)
    values = cast("list[object]", value)
    return [_element(element, f"{path}[{index}]") for index, element in enumerate(values)]


def _element(value: object, path: str) -> object:
    if isinstance(value, BusinessObject):
        return _members(value, f"{path}.")
    if value is None or isinstance(value, str | int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    raise DataHandlerError(f"Attribute {path} has the value {excerpt(value)}, which JSON cannot represent.")
