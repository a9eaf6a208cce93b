"""The data handler for fixed-width text: one record with the attributes in the order and width of their definition.

Before the attributes are the type and the verb, in ``type_width`` and ``verb_width`` characters. Texts and booleans are
aligned to the left, numbers to the right; the rest is blanks. A field of blanks is an attribute without value.
"""

from jmsjca.connector.business_objects import BusinessObject
from jmsjca.connector.data_handlers.flat_records import fields_of, flat_attributes, record_of
from jmsjca.connector.data_handlers.text_values import chosen_type, decoded
from jmsjca.connector.definitions import BusinessObjectDefinitions
from jmsjca.errors import ConfigurationError, DataHandlerError, excerpt

__all__ = ["FixedWidthDataHandler"]


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

    def to_business_object(self, content: str | bytes, *, type: str | None = None) -> BusinessObject:  # noqa: A002
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
