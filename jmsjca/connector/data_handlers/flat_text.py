"""The data handlers for flat text, delimited and of fixed width: one record in the order of its definition.

The fields before the attributes are the type and the verb; ``type_and_verb=False`` leaves both out. A field is quoted
if it has the delimiter, a quotation mark or a line break; a quotation mark in it is doubled (RFC 4180).
An empty field is an attribute without value; a quoted empty field is an empty text.

The data handler for fixed-width text: one record with the attributes in the order and width of their definition.

Before the attributes are the type and the verb, in ``type_width`` and ``verb_width`` characters. Texts and booleans are
aligned to the left, numbers to the right; the rest is blanks. A field of blanks is an attribute without value.
"""

import re
from collections.abc import Iterator, Sequence

from jmsjca.connector.business_objects import BusinessObject
from jmsjca.connector.data_handlers.text_values import chosen_type, decoded, texts, typed
from jmsjca.connector.definitions import AttributeDefinition, BusinessObjectDefinitions
from jmsjca.errors import ConfigurationError, DataHandlerError, excerpt

__all__ = ["DelimitedDataHandler", "FixedWidthDataHandler", "fields_of", "flat_attributes", "record_of"]


class DelimitedDataHandler:
    """Conversion between delimited text and business objects without children."""

    def __init__(
        self, definitions: BusinessObjectDefinitions, *, delimiter: str = ",", type_and_verb: bool = True
    ) -> None:
        """Set up the handler.

        Args:
            definitions: The definitions of the business objects.
            delimiter: The character between fields.
            type_and_verb: Whether a record begins with the type and the verb. Without them the caller names the type,
                and the verb is not written.

        Raises:
            ConfigurationError: The delimiter is not one character, or is a quotation mark or a line break.
        """
        if len(delimiter) != 1 or delimiter in '"\r\n':
            raise ConfigurationError(
                f"The delimiter is one character, not {excerpt(delimiter)!r}, and no quotation mark or line break."
            )
        self._definitions = definitions
        self._delimiter = delimiter
        self._type_and_verb = type_and_verb
        self._field = re.compile(rf'"((?:[^"]|"")*)"|([^"\r\n{re.escape(delimiter)}]*)')

    def to_business_object(self, content: str | bytes, *, type: str | None = None) -> BusinessObject:
        """Return the business object of a record.

        Args:
            content: One record, with or without a line break at its end, as text or as bytes in UTF-8.
            type: The type of the business object; None if the record names it.

        Raises:
            UnknownBusinessObjectError: Neither the record nor the caller names the type.
            DataHandlerError: The record is malformed or has another number of fields, or a value is invalid.
        """
        fields = list(self._parsed(decoded(content)))
        kind: str | None = ""
        verb: str | None = ""
        if self._type_and_verb:
            try:
                kind, verb, *fields = fields
            except ValueError:
                raise DataHandlerError(
                    f"The record does not begin with a type and a verb: {excerpt(content)!r}."
                ) from None
        return record_of(chosen_type(kind or "", type, content), verb or "", fields, self._definitions)

    def to_content(self, business_object: BusinessObject) -> str:
        """Return the record of a business object, without a line break at its end.

        Raises:
            DataHandlerError: The business object is invalid, or its definition has children or lists.
        """
        fields = [value for _, _, value in fields_of(business_object, self._definitions)]
        head = [business_object.type, business_object.verb or None] if self._type_and_verb else []
        return self._delimiter.join(self._quoted(field) for field in [*head, *fields])

    # The csv module of Python 3.11 reads an empty field and a quoted empty field alike, so it would lose empty texts.
    def _parsed(self, text: str) -> Iterator[str | None]:
        position = 0
        while match := self._field.match(text, position):
            quoted, plain = match.groups()
            yield (plain or None) if quoted is None else quoted.replace('""', '"')
            position = match.end()
            if text[position:] in {"", "\n", "\r\n"}:
                return
            if text[position] != self._delimiter:
                raise DataHandlerError(
                    f"The record has {excerpt(text[position:])!r} after character {position}, where a delimiter "
                    f"{self._delimiter!r} or the end of the record is expected."
                )
            position += 1

    def _quoted(self, field: str | None) -> str:
        if field is None:
            return ""
        special: Sequence[str] = (self._delimiter, '"', "\r", "\n")
        if field and not any(character in field for character in special):
            return field
        doubled = field.replace('"', '""')
        return f'"{doubled}"'


class FixedWidthDataHandler:
    """Conversion between fixed-width text and business objects without children."""

    def __init__(self, definitions: BusinessObjectDefinitions, *, type_width: int = 32, verb_width: int = 16) -> None:
        """Set up the handler.

        Args:
            definitions: The definitions of the business objects, with the width of each attribute.
            type_width: The number of characters of the type; 0 if the record has none and the caller names it.
            verb_width: The number of characters of the verb; 0 if the record has none and it is not written.

        Raises:
            ConfigurationError: A width is negative.
        """
        if min(type_width, verb_width) < 0:
            raise ConfigurationError(f"Widths are 0 or more; type_width is {type_width}, verb_width {verb_width}.")
        self._definitions = definitions
        self._type_width = type_width
        self._verb_width = verb_width

    def to_business_object(self, content: str | bytes, *, type: str | None = None) -> BusinessObject:
        """Return the business object of a record.

        Args:
            content: One record, with or without a line break at its end, as text or as bytes in UTF-8.
            type: The type of the business object; None if the record names it.

        Raises:
            UnknownBusinessObjectError: Neither the record nor the caller names the type.
            DataHandlerError: The record has another length, an attribute has no width, or a value is invalid.
        """
        text = decoded(content).removesuffix("\n").removesuffix("\r")
        named, rest = text[: self._type_width].rstrip(" "), text[self._type_width :]
        verb, rest = rest[: self._verb_width].rstrip(" "), rest[self._verb_width :]
        kind = chosen_type(named, type, content)
        widths = self._widths(kind)
        if len(rest) != sum(widths.values()):
            expected = self._type_width + self._verb_width + sum(widths.values())
            raise DataHandlerError(
                f"The record has {len(text)} characters, and {kind} needs {expected}: {excerpt(text)!r}."
            )
        fields: list[str | None] = []
        for width in widths.values():
            fields.append(rest[:width].rstrip(" ") or None)
            rest = rest[width:]
        return record_of(kind, verb, fields, self._definitions)

    def to_content(self, business_object: BusinessObject) -> str:
        """Return the record of a business object, without a line break at its end.

        Raises:
            DataHandlerError: The business object is invalid, its definition has children, lists or an attribute without
                width, or a value is too long, is empty, ends with a blank or has a line break.
        """
        widths = self._widths(business_object.type)
        fields = [
            ("the type", business_object.type, self._type_width),
            ("the verb", business_object.verb, self._verb_width),
        ]
        record = "".join(_padded(name, text or None, width, "string") for name, text, width in fields if width)
        for name, attribute, text in fields_of(business_object, self._definitions):
            record += _padded(f"attribute {name}", text, widths[name], attribute.type)
        return record

    def _widths(self, kind: str) -> dict[str, int]:
        attributes = flat_attributes(kind, self._definitions)
        missing = [name for name, attribute in attributes.items() if attribute.width is None]
        if missing:
            raise DataHandlerError(f"The definition of {kind} has no width for: {', '.join(missing)}.")
        return {name: attribute.width or 0 for name, attribute in attributes.items()}


def _padded(name: str, text: str | None, width: int, kind: str) -> str:
    if text is None:
        return " " * width
    if len(text) > width:
        raise DataHandlerError(
            f"The value of {name} has {len(text)} characters, and its width is {width}: {excerpt(text)!r}."
        )
    # Blanks are the padding: these would be read as an attribute without value, or without the blanks.
    if not text or text.endswith(" ") or "\n" in text or "\r" in text:
        raise DataHandlerError(
            f"The value of {name} is empty, ends with a blank or has a line break: {excerpt(text)!r}."
        )
    return text.rjust(width) if kind in {"integer", "float"} else text.ljust(width)


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
        DataHandlerError: There are more or fewer fields than attributes, or a value is invalid.
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
