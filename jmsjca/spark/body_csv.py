"""Bodies of CSV as columns: each body is one record, with a value for each column in order."""

import csv
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

from jmsjca.spark.arrow_text import from_text
from jmsjca.spark.body_columns import BodyColumns, MisfitError
from jmsjca.spark.schema import pa

__all__ = ["CsvColumns"]

_compute: Any = import_module("pyarrow.compute")


class CsvColumns(BodyColumns):
    """Converts bodies that are records of CSV.

    Args:
        types: The Arrow types of the columns by name, in order.
        delimiter: The character between two values.
    """

    def __init__(self, types: Mapping[str, Any], delimiter: str = ",") -> None:
        super().__init__(types)
        self._delimiter = delimiter

    def prepare(self, body: str) -> list[str]:
        """Return the values of the record.

        Raises:
            MisfitError: The body is not one record, or has another number of values.
        """
        record = self._record(body)
        if len(record) != len(self.types):
            raise MisfitError(f"it has {len(record)} values, not {len(self.types)}")
        for value in record:
            value.encode()  # raises for half of a surrogate pair
        return record

    def _record(self, body: str) -> list[str]:
        line = body.removesuffix("\n").removesuffix("\r")
        if '"' not in line and "\n" not in line and "\r" not in line:
            return line.split(self._delimiter)
        try:
            (record,) = csv.reader([body], delimiter=self._delimiter, strict=True)
        except csv.Error as error:
            raise MisfitError(f"it is not one record of CSV: {error}") from error
        return record

    def convert(self, rows: Sequence[list[str]]) -> Sequence[Any]:
        """Return the arrays of all columns.

        Raises:
            ValueError: A value is no text of the type of its column.
        """
        return [_typed(texts, kind) for texts, kind in zip(zip(*rows, strict=True), self.types.values(), strict=True)]

    def reason(self, row: list[str], error: Exception) -> str:
        """Return the reason with the name of the column."""
        for text, (name, kind) in zip(row, self.types.items(), strict=True):
            try:
                _typed([text], kind)
            except (ValueError, TypeError, NotImplementedError) as found:
                return f"column {name}: {found}"
        return str(error)


def _typed(texts: Sequence[str], kind: Any) -> Any:
    array = pa.array(texts, pa.string())
    if kind == pa.string():
        return array
    return from_text(_compute.if_else(_compute.equal(array, ""), pa.scalar(None, pa.string()), array), kind)
