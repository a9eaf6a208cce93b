"""Bodies of JSON as columns: each body is an object, and its members are the columns."""

import re
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

from jmsjca.spark.arrow_text import from_text, text_type
from jmsjca.spark.body_columns import BodyColumns, MisfitError
from jmsjca.spark.schema import pa

__all__ = ["JsonColumns"]

_json: Any = import_module("pyarrow.json")

# No JSON value contains this: an object is followed by a comma or a bracket, and a string has no line break. So a body
# cannot merge with the next one, and as many rows as bodies mean that each body is one object.
_BEGIN, _END = b'{"":', b"}\n"
_COLUMN = re.compile(r"Column\(//?(.*?)\) ")
_ROW = re.compile(r"\.? in row 0")


class JsonColumns(BodyColumns):
    """Converts bodies that are JSON objects.

    Args:
        types: The Arrow types of the columns by name, in order.
    """

    def __init__(self, types: Mapping[str, Any]) -> None:
        super().__init__(types)
        self._kind = pa.struct(list(types.items()))
        self._text_kind = text_type(self._kind)

    def prepare(self, body: str) -> bytes:
        """Return the JSON in UTF-8.

        Raises:
            MisfitError: The JSON contains a character that could end it early.
        """
        if "\0" in body:
            raise MisfitError("it contains a NUL character")
        return body.encode()

    def convert(self, rows: Sequence[bytes]) -> Sequence[Any]:
        """Return the arrays of all columns.

        Raises:
            ValueError: A body is no JSON object, or one of its members has another type than its column.
        """
        columns: Sequence[Any] = from_text(self._parsed(rows, self._text_kind), self._kind).flatten()
        return columns

    def reason(self, row: bytes, error: Exception) -> str:
        """Return the reason in terms of the body and its columns."""
        text = str(error).partition("JSON parse error: ")
        found = _ROW.sub("", text[2] or text[0])
        name = "" if isinstance(error, MisfitError) or "Column(" in found else self._culprit(row)
        return name + _COLUMN.sub(lambda match: f"column {match[1]} " if match[1] else "it ", found)

    def _parsed(self, rows: Sequence[bytes], kind: Any) -> Any:
        data = b"".join([_BEGIN + row + _END for row in rows])
        table = _json.read_json(
            pa.BufferReader(data),
            read_options=_json.ReadOptions(use_threads=False, block_size=len(data) + 1),
            parse_options=_json.ParseOptions(
                explicit_schema=pa.schema([("", kind)]),
                newlines_in_values=True,
                unexpected_field_behavior="ignore",
            ),
        )
        array = table.column(0).combine_chunks()
        array.validate(full=True)  # Arrow reads decimals with more digits than their type has
        if len(array) != len(rows):
            raise MisfitError("it is more than one JSON object")
        if array.null_count:
            raise MisfitError("it is null, and no JSON object")
        return array

    def _culprit(self, row: bytes) -> str:
        """Return the column with a value that cannot be converted, for the beginning of a message."""
        for field in self._kind:
            kind = pa.struct([field])
            try:
                from_text(self._parsed([row], text_type(kind)), kind)
            except (ValueError, TypeError, NotImplementedError):
                return f"column {field.name}: "
        return ""
