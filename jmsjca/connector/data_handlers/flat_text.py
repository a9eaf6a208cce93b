"""The data handler for delimited text: one record with the attributes in the order of their definition.

The fields before the attributes are the type and the verb; ``type_and_verb=False`` leaves both out. A field is quoted
if it has the delimiter, a quotation mark or a line break; a quotation mark in it is doubled (RFC 4180).
An empty field is an attribute without value; a quoted empty field is an empty text.
"""

import re
from collections.abc import Iterator, Sequence

from jmsjca.connector.business_objects import BusinessObject
from jmsjca.connector.data_handlers.flat_records import fields_of, record_of
from jmsjca.connector.data_handlers.text_values import chosen_type, decoded
from jmsjca.connector.definitions import BusinessObjectDefinitions
from jmsjca.errors import ConfigurationError, DataHandlerError, excerpt

__all__ = ["DelimitedDataHandler"]


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

    def to_business_object(self, content: str | bytes, *, type: str | None = None) -> BusinessObject:  # noqa: A002
        """Return the business object of a record.

        Args:
            content: One record, with or without a line break at its end, as text or as bytes in UTF-8.
            type: The type of the business object; None if the record names it.

        Raises:
            UnknownBusinessObjectError: Neither the record nor the caller names the type.
            DataHandlerError: The record is malformed or has another number of fields, or a value is invalid.
        """
        fields = list(self._parsed(decoded(content)))
        kind, verb = "", ""
        if self._type_and_verb:
            if len(fields) < 2:  # noqa: PLR2004  # the type and the verb
                raise DataHandlerError(f"The record does not begin with a type and a verb: {excerpt(content)!r}.")
            kind, verb, fields = fields[0] or "", fields[1] or "", fields[2:]
        return record_of(chosen_type(kind, type, content), verb, fields, self._definitions)

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
