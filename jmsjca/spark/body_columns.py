"""Typed columns out of the bodies of messages: whole chunks at a time, in Arrow.

A chunk with a body that does not fit is divided until that body is alone. So each body is converted by the same rules,
whatever is beside it, and one that does not fit costs the others little. A body of JSON is an object, and its members
are the columns; a body of CSV is one record, with a value for each column in order.
"""

import csv
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from importlib import import_module
from math import inf
from threading import Lock
from typing import Any, TypeAlias

from jmsjca.messages.json_text import BYTE_ORDER_MARK
from jmsjca.spark.schema import pa

__all__ = ["Body", "BodyColumns", "CsvColumns", "JsonColumns", "MisfitError", "PreparedRow"]

_compute: Any = import_module("pyarrow.compute")
_json: Any = import_module("pyarrow.json")

Body: TypeAlias = str | bytes | None
PreparedRow: TypeAlias = Any
"""A body that is ready for its conversion together with others."""

_MAX_REASON = 300  # characters
_NO_ZONE = r"^\d{4}-\d{2}-\d{2}[T ][\d:.]+$"
_DAY = r"^(\d{4}-\d{2}-\d{2})$"
_BEYOND_MICROSECONDS = r"(:\d{2}\.\d{6})\d+"
# No JSON value contains this: an object is followed by a comma or a bracket, and a string has no line break. So a body
# cannot merge with the next one, and as many rows as bodies mean that each body is one object.
_BEGIN, _END = b'{"":', b"}\n"
_COLUMN = re.compile(r"Column\(//?(.*?)\) ")
_OTHER_TYPE = re.compile(r"changed from (\w+) to (\w+)")  # Arrow's words, as if an earlier body had the first type
_TYPES = {"array": "an array", "object": "an object", "null": "null"}
_ROW = re.compile(r"\.? in row 0")
_ADVICE = ": expected a zone offset"  # Arrow goes on with its functions; a text without a zone is given one before

_USUAL_LIMIT = 131_072  # characters of a value: the default of `csv`
_NOTHING = nullcontext()
_limit_lock = Lock()


class MisfitError(ValueError):
    """A body does not fit the columns; the text gives the reason."""


class BodyColumns(ABC):
    """Converts bodies to columns.

    Args:
        types: The Arrow types of the columns by name, in order.
    """

    def __init__(self, types: Mapping[str, Any]) -> None:
        self.types = dict(types)

    def read(self, bodies: Sequence[Body]) -> tuple[dict[str, Any], dict[int, str]]:
        """Return an array for each column, and the reason by position for each body that does not fit.

        Args:
            bodies: The bodies. None, for a message without one, does not fit.
        """
        rows, misfits = self._prepared(bodies)
        parts = [*self._parts(rows, misfits)]
        arrays = {
            name: pa.concat_arrays([part[n] for part in parts]) if parts else pa.array([], kind)
            for n, (name, kind) in enumerate(self.types.items())
        }
        return arrays, misfits

    @abstractmethod
    def prepare(self, body: str) -> PreparedRow:
        """Return what is needed of a body to convert it together with others.

        Raises:
            MisfitError: It does not fit.
        """

    @abstractmethod
    def convert(self, rows: Sequence[PreparedRow]) -> Sequence[Any]:
        """Return the arrays of all columns for some bodies.

        Raises:
            ValueError: One of them does not fit.
        """

    @abstractmethod
    def reason(self, row: PreparedRow, error: Exception) -> str:
        """Return the reason why a body does not fit, for which `convert` raised an error."""

    def _prepared(self, bodies: Sequence[Body]) -> tuple[list[PreparedRow], dict[int, str]]:
        rows: list[PreparedRow] = []
        misfits: dict[int, str] = {}
        for n, body in enumerate(bodies):
            try:
                rows.append(self.prepare(_text_of(body)))
            except ValueError as error:
                misfits[n] = _shown(str(error))
                rows.append(None)
        return rows, misfits

    def _parts(self, rows: Sequence[PreparedRow], misfits: dict[int, str]) -> Iterator[Sequence[Any]]:
        """Yield the arrays of the runs of bodies that fit, and nulls for the others, in order."""
        begin = 0
        for n in (*sorted(misfits), len(rows)):
            yield from self._halves(rows, begin, n, misfits)
            if n < len(rows):
                yield self._nulls()
            begin = n + 1

    def _halves(
        self, rows: Sequence[PreparedRow], begin: int, end: int, misfits: dict[int, str]
    ) -> Iterator[Sequence[Any]]:
        if begin == end:
            return
        try:
            yield self.convert(rows[begin:end])
        except (ValueError, TypeError, NotImplementedError) as error:  # Arrow's errors are among them
            if end - begin == 1:
                misfits[begin] = _shown(self.reason(rows[begin], error))
                yield self._nulls()
            else:
                middle = (begin + end) // 2
                yield from self._halves(rows, begin, middle, misfits)
                yield from self._halves(rows, middle, end, misfits)

    def _nulls(self) -> Sequence[Any]:
        return [pa.nulls(1, kind) for kind in self.types.values()]


class JsonColumns(BodyColumns):
    """Converts bodies that are JSON objects.

    Args:
        types: The Arrow types of the columns by name, in order.
    """

    def __init__(self, types: Mapping[str, Any]) -> None:
        super().__init__(types)
        self._kind = pa.struct(list(types.items()))

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
            ValueError: A body is not a JSON object, or the type of one of its members is not the type of the column.
        """
        columns: Sequence[Any] = self._converted(rows, self._kind).flatten()
        return columns

    def reason(self, row: bytes, error: Exception) -> str:
        """Return the reason in terms of the body and its columns."""
        text = str(error).partition("JSON parse error: ")
        found = _OTHER_TYPE.sub(_other_type, _ROW.sub("", text[2] or text[0]).partition(_ADVICE)[0])
        name = "" if isinstance(error, MisfitError) or "Column(" in found else self._culprit(row)
        return name + _COLUMN.sub(lambda match: f"column {match[1]} " if match[1] else "it ", found)

    def _converted(self, rows: Sequence[bytes], kind: Any) -> Any:
        array = self._parsed(rows, _replaced(kind, pa.types.is_temporal, pa.string()))
        infinite = _count_infinite(array)
        # Arrow reads a number that is too large for a FLOAT as infinity.
        if infinite and infinite != _count_infinite(
            self._parsed(rows, _replaced(kind, pa.types.is_float32, pa.float64()))
        ):
            raise ValueError("a number is too large for a FLOAT")
        return _from_text(array, kind)

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
        """Return the column with a value that cannot be converted, for the beginning of a message.

        It is empty if the body cannot be read without any of the columns: then none of them is the reason.
        """
        misfits = self._misfits(row) if self._fits(row, []) else _infinite_members(row)
        return next((f"column {name}: " for name in misfits if name in self.types), "")

    def _misfits(self, row: bytes) -> Iterator[str]:
        return (field.name for field in self._kind if not self._fits(row, [field]))

    def _fits(self, row: bytes, fields: Sequence[Any]) -> bool:
        try:
            self._converted([row], pa.struct(fields))
        except (ValueError, TypeError, NotImplementedError):
            return False
        return True


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
            with _NOTHING if len(body) <= _USUAL_LIMIT else _values_of(len(body)):
                (record,) = csv.reader([body], delimiter=self._delimiter, strict=True)
        except csv.Error as error:
            raise MisfitError(f"it is not one record of CSV: {error}") from error
        return record

    def convert(self, rows: Sequence[list[str]]) -> Sequence[Any]:
        """Return the arrays of all columns.

        Raises:
            ValueError: A value cannot be parsed as the type of its column.
        """
        return [_typed(texts, kind) for texts, kind in zip(zip(*rows, strict=True), self.types.values(), strict=True)]

    def reason(self, row: list[str], error: Exception) -> str:
        """Return the reason with the name of the column."""
        for text, (name, kind) in zip(row, self.types.items(), strict=True):
            try:
                _typed([text], kind)
            except (ValueError, TypeError, NotImplementedError) as found:
                return f"column {name}: {str(found).partition(_ADVICE)[0]}"
        return str(error)


@contextmanager
def _values_of(length: int) -> Generator[None]:
    """Allow values of a length. The limit of `csv` is one of the process, and others may rely on it."""
    with _limit_lock:
        limit = csv.field_size_limit()
        csv.field_size_limit(max(limit, length))
        try:
            yield
        finally:
            csv.field_size_limit(limit)


def _replaced(kind: Any, is_old: Callable[[Any], bool], new: Any) -> Any:
    """Return a type with another one in place of some, also within lists and structs."""
    if is_old(kind):
        return new
    if pa.types.is_list(kind):
        return pa.list_(pa.field(kind.value_field.name, _replaced(kind.value_type, is_old, new)))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, _replaced(field.type, is_old, new)) for field in kind])
    return kind


def _count_infinite(array: Any) -> int:
    """Return how many numbers are infinite, also within lists and structs."""
    if pa.types.is_floating(array.type):
        return _compute.sum(_compute.is_inf(array)).as_py() or 0
    parts = array.flatten() if pa.types.is_struct(array.type) else ()
    return sum(map(_count_infinite, [array.flatten()] if pa.types.is_list(array.type) else parts))


def _from_text(array: Any, kind: Any) -> Any:
    """Return an array with its texts converted, also within lists and structs.

    Args:
        array: An array with texts in place of dates and times.
        kind: The type of the result.

    Raises:
        ValueError: A text has another form.
    """
    if array.type == kind:
        return array
    if pa.types.is_list(kind):
        values = _from_text(array.values, kind.value_type)
        return pa.ListArray.from_arrays(array.offsets, values, type=kind, mask=array.is_null())
    if pa.types.is_struct(kind):
        children = [_from_text(child, field.type) for child, field in zip(array.flatten(), kind, strict=True)]
        return pa.StructArray.from_arrays(children, fields=list(kind), mask=array.is_null())
    return _compute.cast(_times(array, kind) if pa.types.is_timestamp(kind) else array, kind)


def _text_of(body: Body) -> str:
    if body is None:
        raise MisfitError("the message has no body")
    try:
        text = body if isinstance(body, str) else body.decode()
        return text.removeprefix(BYTE_ORDER_MARK)
    except UnicodeDecodeError as error:
        raise MisfitError(f"it is not in UTF-8, at byte {error.start}") from error


def _infinite_members(body: bytes) -> list[str]:
    """Return the members with a number that is too large for Arrow, which Python reads as infinity."""
    try:
        members: dict[str, object] | list[object] | None = json.loads(body)
    except (ValueError, RecursionError):
        return []
    return [name for name, value in members.items() if not _is_finite(value)] if isinstance(members, dict) else []


def _is_finite(value: object) -> bool:
    try:
        json.dumps(value, allow_nan=False)
    except ValueError:
        return False
    return True


def _other_type(match: re.Match[str]) -> str:
    wanted, found = (_TYPES.get(name, f"a {name}") for name in match.groups())
    return f"is {found}, not {wanted}"


def _shown(reason: str) -> str:
    return f"The body does not fit the columns: {reason}"[:_MAX_REASON]


def _typed(texts: Sequence[str], kind: Any) -> Any:
    array = pa.array(texts, pa.string())
    if kind == pa.string():
        return array
    values = _from_text(_compute.if_else(_compute.equal(array, ""), pa.scalar(None, pa.string()), array), kind)
    if pa.types.is_floating(kind) and _count_infinite(values):
        for text, number in zip(texts, values.to_pylist(), strict=True):
            if number in (inf, -inf) and any(map(str.isdigit, text)):  # Arrow reads it so if it is too large
                raise ValueError(f"{text} is too large for its type, {values.type}")
    return values


def _times(array: Any, kind: Any) -> Any:
    """Return the texts of times as Arrow reads them: with microseconds at most, and the zone UTC if one is missing.

    Spark's ``from_json`` also accepts more digits, and dates without a time.
    """
    array = _compute.replace_substring_regex(array, _BEYOND_MICROSECONDS, r"\1")
    if kind.tz is None:
        return array
    array = _compute.replace_substring_regex(array, _DAY, r"\1T00:00:00Z")
    lacks_zone = _compute.match_substring_regex(array, _NO_ZONE)
    return _compute.if_else(lacks_zone, _compute.binary_join_element_wise(array, pa.scalar("Z"), ""), array)
