"""The data handler for XML: an element per attribute, repeated elements for lists.

The root is ``<BusinessObject type="Customer" verb="Create">``. A root with another name is accepted; without ``type``,
its name is the type. An element with elements in it is a child. A child without ``type`` has the type of the
definition; without definitions, its type is the element's name. Namespaces are ignored; document types and entities are
refused.
"""

import re
from collections.abc import Callable
from xml.etree.ElementTree import Element, ParseError, SubElement, tostring

from jmsjca.connector.business_objects import Attribute, BusinessObject, Scalar
from jmsjca.connector.data_handlers.text_values import chosen_type, texts, typed
from jmsjca.connector.definitions import BusinessObjectDefinition, BusinessObjectDefinitions
from jmsjca.errors import ConfigurationError, DataHandlerError, excerpt

__all__ = ["XMLDataHandler"]

_ROOT, _TYPE, _VERB = "BusinessObject", "type", "verb"
# Expat accepts the names of XML 1.0, fourth edition; these are the ones with the letters of Latin-1.
_LETTER = "A-Za-z_\xc0-\xd6\xd8-\xf6\xf8-\xff"
_NAME = re.compile(rf"[{_LETTER}][{_LETTER}0-9.\-]*")
_ILLEGAL = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_SCHEMA_INSTANCE = "{http://www.w3.org/2001/XMLSchema-instance}"


class XMLDataHandler:
    """Conversion between XML and business objects."""

    def __init__(self, definitions: BusinessObjectDefinitions | None = None) -> None:
        """Set up the handler.

        Args:
            definitions: The definitions of the business objects. None reads each scalar as text, and an attribute as a
                list if its element is repeated.

        Raises:
            ConfigurationError: defusedxml is not installed.
        """
        self._definitions = definitions
        self._parse, self._refusal = _defused()

    def to_business_object(self, content: str | bytes, *, type: str | None = None) -> BusinessObject:
        """Return the business object of an XML document.

        Args:
            content: The document, as text or as bytes in the encoding that it declares.
            type: The type of the business object; None if the document names it.

        Raises:
            UnknownBusinessObjectError: Neither the document nor the caller names the type.
            DataHandlerError: The document is malformed or has a document type; an XML attribute or a text does not
                belong to an attribute of a business object; or the business object is invalid.
        """
        root = self._parsed(content)
        name = _local_name(root)
        named = root.get(_TYPE) or ("" if name == _ROOT or type is not None else name)
        kind = chosen_type(named, type, content)
        try:
            found = self._object(root, kind, name)
        except RecursionError as error:
            raise DataHandlerError(f"The elements of the body are nested too deeply: {excerpt(content)!r}.") from error
        return typed(found, self._definitions)

    def to_content(self, business_object: BusinessObject) -> str:
        """Return the XML text of a business object.

        Raises:
            DataHandlerError: The business object is invalid, or XML cannot represent a name or a value.
        """
        source = texts(business_object, self._definitions)
        root = Element(_ROOT, {_TYPE: _legal(source.type, "type")})
        try:
            _fill(root, source, "")
            # A parser reads a carriage return that is not escaped as a line feed (XML 1.0, section 2.11).
            return tostring(root, encoding="unicode").replace("\r", "&#13;")
        except RecursionError as error:
            raise DataHandlerError(f"Business object {source.type} is nested too deeply.") from error

    def _parsed(self, content: str | bytes) -> Element:
        try:
            return self._parse(content)
        except (ParseError, ValueError, LookupError) as error:
            verb = "refused" if isinstance(error, self._refusal) else "not valid XML"
            raise DataHandlerError(
                f"The body is {verb}: {excerpt(error, 200)}; it begins with {excerpt(content)!r}."
            ) from error

    def _object(self, element: Element, kind: str, path: str) -> BusinessObject:
        _check_attributes(element, path)
        for text in (element.text, *(child.tail for child in element)):
            if text and text.strip():
                raise DataHandlerError(f"Element {path} has the text {excerpt(text.strip())!r} beside its elements.")
        definition = self._definitions.get(kind) if self._definitions is not None else None
        elements: dict[str, list[Scalar | BusinessObject]] = {}
        for child in element:
            name = _local_name(child)
            elements.setdefault(name, []).append(self._value(child, definition, f"{path}.{name}"))
        values: dict[str, Attribute] = {name: found if len(found) > 1 else found[0] for name, found in elements.items()}
        return BusinessObject(kind, element.get(_VERB, ""), values)

    def _value(
        self, element: Element, definition: BusinessObjectDefinition | None, path: str
    ) -> Scalar | BusinessObject:
        name = _local_name(element)
        attribute = definition.attributes.get(name) if definition is not None else None
        if len(element) or _TYPE in element.attrib or _VERB in element.attrib:
            return self._object(element, element.get(_TYPE) or (attribute.type if attribute else name), path)
        if attribute is not None and not attribute.is_scalar and not (element.text or "").strip():
            return BusinessObject(attribute.type)
        _check_attributes(element, path)
        return element.text or ""


def _defused() -> tuple[Callable[[str | bytes], Element], type[Exception]]:
    try:
        from defusedxml.common import DefusedXmlException  # an extra
        from defusedxml.ElementTree import fromstring  # an extra
    except ImportError as error:
        raise ConfigurationError(
            'The data handler for XML needs defusedxml: pip install "jmsjca[connector]"'
        ) from error
    return lambda content: fromstring(content, forbid_dtd=True), DefusedXmlException


def _listed(value: Attribute) -> list[Scalar | BusinessObject]:
    return value if isinstance(value, list) else [value]


def _local_name(element: Element) -> str:
    return element.tag.rpartition("}")[2]


def _check_attributes(element: Element, path: str) -> None:
    for name, value in element.attrib.items():
        if name not in {_TYPE, _VERB} and not name.startswith(_SCHEMA_INSTANCE):
            raise DataHandlerError(
                f"Element {path} has the XML attribute {excerpt(name)} = {excerpt(value)!r}; a business object has its "
                "attributes in elements."
            )


def _fill(element: Element, source: BusinessObject, path: str) -> None:
    if source.verb:
        element.set(_VERB, _legal(source.verb, f"{path}verb"))
    for name, value in source.attributes.items():
        if not _NAME.fullmatch(name):
            raise DataHandlerError(f"Attribute {path}{excerpt(name)} has a name that is not one of XML; rename it.")
        for single in _listed(value):
            _append(element, name, single, f"{path}{name}")


def _append(parent: Element, name: str, value: Scalar | BusinessObject, path: str) -> None:
    element = SubElement(parent, name)
    if not isinstance(value, BusinessObject):
        element.text = _legal(str(value), path)
        return
    # Without elements in it and without type, the child would be read as an empty text.
    if value.type != name or not value.attributes:
        element.set(_TYPE, _legal(value.type, path))
    _fill(element, value, f"{path}.")


def _legal(text: str, path: str) -> str:
    illegal = _ILLEGAL.search(text)
    if illegal:
        raise DataHandlerError(f"Attribute {path} has the character {illegal[0]!r}, which XML cannot represent.")
    return text
