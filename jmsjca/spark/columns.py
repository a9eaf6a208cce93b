"""Received messages as Arrow columns: one pass over the deliveries that never fails.

Whatever a broker hands over becomes a row. A message that cannot be decoded, or with a value that its column does not
hold, is a row with its raw bytes and the error: an exception would end the stream for ever, because the broker would
redeliver the message to each attempt.
"""

import json
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from hashlib import blake2b
from itertools import compress
from typing import Any
from uuid import UUID

from jmsjca import spi
from jmsjca.destinations import Destination
from jmsjca.errors import MessageFormatError, StoreError
from jmsjca.messages import (
    BytesMessage,
    Int,
    Long,
    MapMessage,
    Message,
    ObjectMessage,
    StreamMessage,
    TextMessage,
    convert,
)
from jmsjca.messages.json_text import with_finite_numbers
from jmsjca.messages.message import headers_of
from jmsjca.messages.object_message import plain_data_of
from jmsjca.redelivery.encounter import text_of
from jmsjca.spark.body_columns import BodyColumns
from jmsjca.spark.part_file import Counts, StagedPart
from jmsjca.spark.schema import VARIANT, arrow_columns, pa
from jmsjca.spark.variants import encode_object

__all__ = ["ColumnBuilder", "content_key", "json_of_body", "key_reader"]

_HEADERS = ("message_id", "correlation_id", "destination", "reply_to", "type", "priority", "timestamp", "expiration")
_CONTENT = ("correlation_id", "destination", "reply_to", "type", "priority", "timestamp", "expiration")
_FROM_HEADERS = (*_HEADERS, "properties")
_PLACES = ("_epoch", "_partition", "_seq")
_SOURCES = {"typed_properties": "properties"}  # the columns with values of another one
_MAX_INT = 2**31 - 1
_CHUNK_ROWS = 10_000
_CHUNK_BYTES = 1 << 24  # in memory twice for a moment; far below the 2 GiB that one Arrow array of texts holds

KeyReader = Callable[[spi.Delivery], str | None]


def key_reader(dedup_key: str) -> KeyReader | None:
    """Return a function from a delivery to the key that identifies its redeliveries.

    Args:
        dedup_key: The option ``dedupKey``.

    Returns:
        None if messages have no keys. The function returns None for a message without a key.
    """
    if dedup_key == "none":
        return None
    if dedup_key == "content":
        return content_key
    if dedup_key.startswith("property:"):
        name = dedup_key.removeprefix("property:")
        return lambda delivery: _storable(_property_text(headers_of(delivery.message)["properties"].get(name)))
    return _HeaderKey({"JMSMessageID": "message_id", "JMSCorrelationID": "correlation_id"}[dedup_key])


class _HeaderKey:
    """Reads a header as the key of a message.

    Args:
        name: The name of the attribute.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, delivery: spi.Delivery) -> str | None:
        return _storable(headers_of(delivery.message)[self.name])


def content_key(delivery: spi.Delivery) -> str:
    """Return a digest of what a message is, without its id and the traces of its deliveries."""
    text = _attempt(lambda: _content(delivery.message))
    content = delivery.raw if text is None else text.encode("utf-8", "backslashreplace")
    return blake2b(content, digest_size=16).hexdigest()


def _content(message: Message) -> str:
    headers, body = headers_of(message), repr(message.body)
    properties = sorted((n, repr(v)) for n, v in headers["properties"].items() if not n.startswith("JMSX"))
    return f"{[str(headers[name]) for name in _CONTENT]!r}{properties!r}{body}"


def _storable(key: str | None) -> str | None:
    """Return a key that Arrow holds: without halves of surrogate pairs."""
    if key is None or key.isascii():
        return key
    return key.encode("utf-8", "backslashreplace").decode()


class ColumnBuilder:
    """Collects deliveries, and converts them to Arrow in chunks. A delivery loses its content as it is converted.

    Args:
        names: The names of the columns, in order.
        read_key: Returns the key of a message; None for messages without keys.
        body: The columns that come out of the bodies; None without them.
        source: Where the messages come from, which is the destination of a message that cannot be decoded.

    Attributes:
        schema: The columns in Arrow.
        size: The size of the messages that were added, in bytes.
    """

    def __init__(
        self,
        names: Sequence[str],
        read_key: KeyReader | None,
        body: BodyColumns | None = None,
        source: Destination | None = None,
    ) -> None:
        self._body = body
        self._source = source
        types = {} if body is None else body.types
        # Without any column a batch of Arrow has no rows, so one column is there that the caller does not see.
        self._names = [name for name in names if name not in _PLACES] or ["error"]
        self._sources = [name for name in self._names if name not in types and name != "error"]
        self.schema = arrow_columns(names, types)
        self._unplaced = arrow_columns(self._names, types)
        # The time of sending is needed for the end of AvailableNow, also if no column has it.
        needed = {_SOURCES.get(name, name) for name in (*names, "timestamp")}
        self._headers = [name for name in _FROM_HEADERS if name in needed]
        self._has_count, self._has_body = "delivery_count" in names, "body" in names
        self._has_text = body is not None or "text" in names
        self._read_key = read_key
        key = read_key.name if isinstance(read_key, _HeaderKey) else None
        self._key_at = self._headers.index(key) if key in self._headers else None  # a row has it already
        self._chunk: list[tuple[Any, ...]] = []
        self._deliveries: list[spi.Delivery] = []
        self._errors: dict[int, str] = {}
        self._bytes = 0
        self._flushed_bytes = 0
        self._keys: list[str | None] = []
        self._redelivered: list[bool | None] = []
        self._batches: list[Any] = []
        self._sent: list[int] = []  # the earliest and the latest JMSTimestamp, in milliseconds since the epoch

    def extend(self, deliveries: Iterable[spi.Delivery]) -> None:
        """Add deliveries."""
        for delivery in deliveries:
            try:
                self._add(delivery)
            except Exception as error:  # noqa: BLE001  # no message may end the stream, whatever is wrong with it
                self._add_damaged(delivery, error)
            if len(self._chunk) >= _CHUNK_ROWS or self._bytes >= _CHUNK_BYTES:
                self._flush()

    @property
    def size(self) -> int:
        """The size of the messages that were added, in bytes, also of what no column needs: it was in memory."""
        return self._flushed_bytes + self._bytes

    def staged(self, epoch: int, partition: int, known: set[str], positions: Sequence[int] | None = None) -> StagedPart:
        """Return the rows of all messages that are not duplicates, with their places.

        Args:
            epoch: The number of the epoch.
            partition: The number of the partition.
            known: The keys of messages that other partitions have staged.
            positions: The positions of the rows; None counts them from 0.
        """
        self._flush()
        table = pa.Table.from_batches(self._batches, self._unplaced)
        keys, redelivered, received = self._keys, self._redelivered, len(self._keys)
        kept = _first_of_each(keys, known)
        if not all(kept):
            table = table.filter(pa.array(kept, pa.bool_()))  # in its chunks: `take` would join them beyond 2 GiB
            keys, redelivered = list(compress(keys, kept)), list(compress(redelivered, kept))
        marks = [mark for key, mark in zip(self._keys, self._redelivered, strict=True) if key in known] if known else []
        same_key, unmarked = received - len(keys) - len(marks), sum(not mark for mark in marks)
        without_key = 0 if self._read_key is None else keys.count(None)
        again = sum(map(bool, redelivered))
        earliest, latest = (min(self._sent), max(self._sent)) if self._sent else (None, None)
        counts = Counts(received, len(keys), again, latest, same_key, without_key, unmarked, earliest)
        return StagedPart(self._placed(table, epoch, partition, positions), keys, counts)

    def _add(self, delivery: spi.Delivery) -> None:
        message = delivery.message
        headers = headers_of(message)
        select = getattr(headers, "select", None)  # of the headers that are decoded on access
        values = [headers[name] for name in self._headers] if select is None else select(self._headers)
        key = self._key_of(delivery) if self._key_at is None else _storable(values[self._key_at])
        text, body = self._bodies(message, delivery)
        redelivered, count = self._history(delivery)
        size = delivery.size
        self._append(delivery, key, redelivered, (*values, redelivered, count, text, body))
        self._bytes += size

    def _bodies(self, message: Message, delivery: spi.Delivery) -> tuple[str | None, bytes | None]:
        text: str | None = None
        body: bytes | None = None
        if isinstance(message, TextMessage):
            return message.body, None
        if isinstance(message, BytesMessage) and (self._has_body or self._body is not None):
            body = message.body
        if isinstance(message, MapMessage | StreamMessage | ObjectMessage):
            text = self._json_of(message) if self._has_text else None
            body = delivery.raw if self._has_body else None
        return text, body

    def _json_of(self, message: MapMessage | StreamMessage | ObjectMessage) -> str | None:
        try:
            text = json_of_body(message)
        except MessageFormatError as error:
            self._errors[len(self._chunk)] = text_of(error)
            return None
        if text is None and self._body is not None:
            self._errors[len(self._chunk)] = "The body does not fit the columns: it is an object, and no plain data."
        return text

    def _history(self, delivery: spi.Delivery) -> tuple[bool | None, int | None]:
        """Return whether a message was delivered before, and how often; a count that is too large is the largest."""
        count = delivery.count if self._has_count else None
        return bool(delivery.redelivered), None if count is None else min(max(count, 0), _MAX_INT)

    def _add_damaged(self, delivery: spi.Delivery, error: Exception) -> None:
        self._errors[len(self._chunk)] = text_of(error)
        redelivered, count = _attempt(lambda: self._history(delivery)) or (None, None)
        key = _attempt(lambda: self._key_of(delivery))
        self._append(delivery, key, redelivered, self._blank(delivery, redelivered, count))
        self._bytes += _attempt(lambda: delivery.size) or 0

    def _key_of(self, delivery: spi.Delivery) -> str | None:
        return None if self._read_key is None else self._read_key(delivery)

    def _blank(self, delivery: spi.Delivery, redelivered: bool | None, count: int | None) -> tuple[Any, ...]:
        raw = _attempt(lambda: delivery.raw)
        headers = (self._source if name == "destination" else None for name in self._headers)
        return (*headers, redelivered, count, None, raw)

    def _append(
        self, delivery: spi.Delivery, key: str | None, redelivered: bool | None, values: tuple[Any, ...]
    ) -> None:
        self._chunk.append(values)
        self._deliveries.append(delivery)
        self._keys.append(key)
        self._redelivered.append(redelivered)

    def _flush(self) -> None:
        """Convert the rows that were added since the last call to an Arrow batch."""
        if self._chunk:
            self._batches.append(self._batch())
        for delivery in self._deliveries:
            delivery.drop_content()
        self._flushed_bytes += self._bytes
        self._chunk, self._deliveries, self._errors, self._bytes = [], [], {}, 0

    def _batch(self) -> Any:
        arrays = self._read_bodies()
        sources = (*self._headers, "redelivered", "delivery_count", "text", "body")
        columns = dict(zip(sources, zip(*self._chunk, strict=True), strict=True))
        self._note_times(columns.get("timestamp", ()))
        for name in self._sources:
            values = columns[_SOURCES.get(name, name)]
            array = _array_or_none(name, values)
            if array is None:
                self._replace_unstorable(name, values)
                return self._batch()  # at most one more time for each column
            arrays[name] = array
        errors = [self._errors.get(n) for n in range(len(self._chunk))] if self._errors else None
        arrays["error"] = pa.nulls(len(self._chunk), pa.string()) if errors is None else pa.array(errors, pa.string())
        return pa.RecordBatch.from_arrays([arrays[name] for name in self._names], schema=self._unplaced)

    def _read_bodies(self) -> dict[str, Any]:
        """Return the columns that come out of the bodies. If a body does not fit, its row keeps the bytes of it."""
        if self._body is None:
            return {}
        bodies = [
            None if n in self._errors else body if text is None else text
            for n, (*_, text, body) in enumerate(self._chunk)
        ]
        arrays, misfits = self._body.read(bodies)
        for n, reason in misfits.items():
            if n not in self._errors:
                self._errors[n] = reason
                *others, text, body = self._chunk[n]
                kept = body if body is not None or text is None else text.encode("utf-8", "surrogatepass")
                self._chunk[n] = (*others, text, kept)
        return arrays

    def _note_times(self, times: Sequence[Any]) -> None:
        sent = [time for time in times if isinstance(time, datetime) and time.tzinfo is not None]
        if sent:
            self._sent += [round(time.timestamp() * 1000) for time in (min(sent), max(sent))]

    def _replace_unstorable(self, name: str, values: Sequence[Any]) -> None:
        """Replace the rows with a value that a column does not hold: found only now, because nearly all fit."""
        at = len(self._headers)
        unstorable = [n for n, value in enumerate(values) if _array_or_none(name, [value]) is None]
        if not unstorable:
            raise StoreError(
                f"The column {name} of {len(values)} messages is too large; set maxMessagesPerBatch lower."
            )
        for n in unstorable:
            redelivered, count = self._chunk[n][at : at + 2]
            self._chunk[n] = self._blank(self._deliveries[n], redelivered, count)
            self._errors[n] = f"The message does not fit the columns: its {name} is {values[n]!r:.200}"

    def _placed(self, table: Any, epoch: int, partition: int, positions: Sequence[int] | None) -> Any:
        rows = table.num_rows
        places = {
            "_epoch": pa.repeat(pa.scalar(epoch, pa.int64()), rows),
            "_partition": pa.repeat(pa.scalar(partition, pa.int32()), rows),
            "_seq": pa.array(range(rows) if positions is None else positions, pa.int64()),
        }
        columns = [places[field.name] if field.name in places else table.column(field.name) for field in self.schema]
        return pa.Table.from_arrays(columns, schema=self.schema)


def _attempt(read: Callable[[], Any]) -> Any:
    """Return what a function returns, or None if it fails."""
    try:
        return read()
    except Exception:  # noqa: BLE001  # a message of another program may hold any value, and be damaged
        return None


def _first_of_each(keys: Sequence[str | None], known: set[str]) -> Sequence[bool]:
    """Return for each message whether it is kept: the first of each key that is not known, and all without a key."""
    if known.isdisjoint(keys) and len(set(keys)) == len(keys):
        return [True] * len(keys)
    seen, kept = set(known), list[bool]()
    for key in keys:
        kept.append(key is None or key not in seen)
        if key is not None:
            seen.add(key)
    return kept


def _array_or_none(name: str, values: Sequence[Any]) -> Any:
    """Return the Arrow array of a column, or None if one of the values does not fit."""
    make = _ARRAYS.get(name)
    return _attempt(lambda: make(values) if make else pa.array(values, arrow_columns([name]).field(0).type))


def _names_array(values: Sequence[Any]) -> Any:
    """Return the array of destinations, as "queue:orders"."""
    different = {id(value): value for value in values}  # few, as providers keep those that they have decoded
    texts = {place: None if value is None else str(value) for place, value in different.items()}
    return pa.array([texts[id(value)] for value in values], pa.string())


def _properties_array(values: Sequence[Any]) -> Any:
    """Return the array of maps from names to texts."""
    names: list[str] = []
    texts: list[str | None] = []
    offsets: list[int | None] = []
    properties: Mapping[str, Any] | None
    for properties in values:
        offsets.append(None if properties is None else len(names))  # Arrow's sign of a null
        for name, value in () if properties is None else properties.items():
            names.append(name)
            texts.append(value if value.__class__ is str else _TEXTS.get(value.__class__, _property_text)(value))
    offsets.append(len(names))
    return pa.MapArray.from_arrays(
        pa.array(offsets, pa.int32()), pa.array(names, pa.string()), pa.array(texts, pa.string())
    )


def _variant_array(values: Sequence[Any]) -> Any:
    """Return the array of objects with the typed properties."""
    return pa.array([None if properties is None else encode_object(properties) for properties in values], VARIANT)


def _property_text(value: Any) -> Any:
    """Return the text of a property; bytes, which only other AMQP clients send, as hexadecimal digits."""
    return value.hex() if isinstance(value, bytes) else convert(value, "string")


_TEXTS: dict[type, Callable[[Any], Any]] = {Int: int.__repr__, Long: int.__repr__}  # the usual ones
_ARRAYS: dict[str, Callable[[Sequence[Any]], Any]] = {
    "destination": _names_array,
    "reply_to": _names_array,
    "properties": _properties_array,
    "typed_properties": _variant_array,
}


def json_of_body(message: MapMessage | StreamMessage | ObjectMessage) -> str | None:
    """Return a body as JSON: an object of a map, an array of a stream.

    Bytes are written in base64; and NaN and infinity, which JSON lacks, as strings.

    Returns:
        None for an object that is pickled: to unpickle it could run any code.

    Raises:
        MessageFormatError: A value has no JSON form.
    """
    if isinstance(message, ObjectMessage):
        data = plain_data_of(message)
        return None if data is None else _encode(data.value)
    return _encode(dict(message.body) if isinstance(message, MapMessage) else message.body)


def _encode(value: Any) -> str:
    try:
        try:
            return _ENCODER.encode(value)
        except ValueError:  # NaN or infinity
            return _ENCODER.encode(with_finite_numbers(value))
    except (TypeError, ValueError, RecursionError) as error:
        raise MessageFormatError(f"The body has no JSON form: {error}.") from error


def _jsonable(value: Any) -> object:
    """Return a value that `json` knows for one that it does not know."""
    if isinstance(value, bytes | bytearray):
        return b64encode(value).decode()
    if issubclass(type(value), Mapping):
        return dict(value)
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, UUID | Decimal):
        return str(value)
    raise TypeError(f"it holds a value of type {type(value).__name__}")


_ENCODER = json.JSONEncoder(allow_nan=False, ensure_ascii=False, separators=(",", ":"), default=_jsonable)
