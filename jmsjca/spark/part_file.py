"""The file of a published partition: counts, keys and rows, each with a checksum, so that damage is found when read.

::

    jmsjca staged part 2                     the format version
    crc32:89abcdef {"received": 3, …}        the line's checksum; counts, and sizes and checksums of what follows
    the keys                                 an Arrow IPC stream: one key for each row, in the same order
    the rows                                 an Arrow IPC stream

Counts are read without the keys, and keys without the rows. The messages in a file are settled, so the file is their
only copy: a reader never guesses what a damaged one held. Files of version 1 are plain Arrow files without checksums;
they are still read.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC
from typing import Any, BinaryIO, TypeVar
from zlib import crc32

from jmsjca.errors import StoreError
from jmsjca.spark.schema import ipc, pa
from jmsjca.spark.store import Store, seal, unseal

__all__ = ["Counts", "StagedPart", "read_counts", "read_keys", "read_part", "write_part"]

T = TypeVar("T")

_FORMAT = b"jmsjca staged part "
_MAGIC = _FORMAT + b"2\n"
_VERSION_1 = b"ARROW1"
_KEYS = pa.schema([pa.field("key", pa.string())])
_HEAD = 512  # the size of the line with counts and checksums, filled up with spaces
_MAX_HEAD = 1 << 16
_DAMAGE = (ValueError, KeyError, TypeError, AttributeError, OSError)  # ArrowInvalid is a ValueError


@dataclass(frozen=True, slots=True)
class Counts:
    """The counts of a published partition.

    Attributes:
        received: The number of messages received, including dropped duplicates.
        rows: The number of rows.
        redelivered: The number of rows with a message that was delivered before.
        latest: The latest JMSTimestamp in milliseconds since the epoch; None if none was read.
        same_key: The number of messages that were dropped because an earlier one of this partition had the same key.
        without_key: The number of rows with a message that has no key, so that a redelivery is not recognised.
        unmarked: The number of duplicates that the broker does not mark as redelivered. They may be different messages
            with the same key.
        earliest: The earliest JMSTimestamp, as `latest`.
    """

    received: int
    rows: int
    redelivered: int = 0
    latest: int | None = None
    same_key: int = 0
    without_key: int = 0
    unmarked: int = 0
    earliest: int | None = None

    @property
    def duplicates(self) -> int:
        """The number of redelivered messages that were dropped, because they were staged before."""
        return self.received - self.rows - self.same_key


@dataclass(frozen=True, slots=True)
class StagedPart:
    """The content of a published partition.

    Attributes:
        table: The rows, an Arrow table.
        keys: The key of each row's message; None if it has no key.
        counts: The counts.
    """

    table: Any
    keys: Sequence[str | None]
    counts: Counts


def write_part(file: BinaryIO, part: StagedPart) -> None:
    """Write the content of the file. Its first lines come last, because the checksums are known only then.

    The rows are not held in memory a second time.
    """
    file.seek(len(_MAGIC) + _HEAD)
    keys = _write_stream(file, pa.table([pa.array(part.keys, pa.string())], schema=_KEYS))
    rows = _write_stream(file, part.table)
    head = json.dumps({**asdict(part.counts), "keys": keys, "table": rows}).encode()
    file.seek(0)
    file.write(_MAGIC + seal(head.ljust(_HEAD - len(seal(b"")) - 1)) + b"\n")


def read_counts(store: Store, name: str) -> Counts:
    """Return the counts of a file, without reading keys and rows.

    Raises:
        StoreError: The file is damaged.
        FileNotFoundError: There is no such file.
    """
    return _reading(store, name, lambda file: _counts(_head(file)), lambda table: _old_part(table).counts)


def read_keys(store: Store, name: str) -> Sequence[str | None]:
    """Return the key of each row, without reading the rows.

    Raises:
        StoreError: The file is damaged.
        FileNotFoundError: There is no such file.
    """
    return _reading(store, name, lambda file: _keys(file, _head(file)), lambda table: _old_part(table).keys)


def read_part(store: Store, name: str) -> StagedPart:
    """Return the whole content of a file.

    Raises:
        StoreError: The file is damaged.
        FileNotFoundError: There is no such file.
    """
    return _reading(store, name, _read_sections, _old_part)


def _reading(store: Store, name: str, read: Callable[[BinaryIO], T], read_version_1: Callable[[Any], T]) -> T:
    with store.open(name) as file:
        try:
            beginning = file.read(len(_MAGIC))
            if beginning == _MAGIC:
                return read(file)
            if beginning.startswith(_VERSION_1):
                with ipc.open_file(pa.py_buffer(beginning + file.read())) as reader:
                    return read_version_1(reader.read_all())
            raise ValueError(_unknown(beginning))
        except _DAMAGE as error:
            raise StoreError(
                f"The staged messages in {store.address(name)} are damaged: {error}. They were taken off the"
                " queue, and this is their only copy: restore the file from a backup. To accept their loss, remove the"
                " file and see `jmsjca spark repair --help`."
            ) from error


def _unknown(beginning: bytes) -> str:
    version = beginning.removeprefix(_FORMAT).strip()
    if beginning.startswith(_FORMAT) and version.isdigit():
        return f"the format version is {version.decode()}, which this release of jmsjca does not know"
    return "the beginning of the file is missing or altered"


def _head(file: BinaryIO) -> dict[str, Any]:
    line = file.readline(_MAX_HEAD)
    if not line.endswith(b"\n"):
        raise ValueError("the file is truncated in its first line")
    head: dict[str, Any] = json.loads(unseal(line[:-1]))
    return head


def _counts(head: dict[str, Any]) -> Counts:
    older = {"same_key": 0, "without_key": 0, "unmarked": 0, "earliest": head["latest"]}  # files lack these
    return Counts(
        **{name: head[name] for name in ("received", "rows", "redelivered", "latest")},
        **{name: head.get(name, value) for name, value in older.items()},
    )


def _read_sections(file: BinaryIO) -> StagedPart:
    head = _head(file)
    keys = _keys(file, head)
    table = ipc.open_stream(_section(file, head["table"], "rows")).read_all()
    if file.read(1):
        raise ValueError("there are bytes behind its end")
    return StagedPart(table, keys, _counts(head))


def _keys(file: BinaryIO, head: dict[str, Any]) -> list[str | None]:
    table = ipc.open_stream(_section(file, head["keys"], "keys")).read_all()
    keys: list[str | None] = table.column("key").to_pylist()
    return keys


def _section(file: BinaryIO, told: dict[str, int], name: str) -> Any:
    data = file.read(told["size"])
    if len(data) != told["size"]:
        raise ValueError(f"the {name} are truncated to {len(data)} of {told['size']} bytes")
    if crc32(data) != told["crc"]:
        raise ValueError(f"the checksum of the {name} does not match")
    return pa.py_buffer(data)


class _Checked:
    """A file for Arrow to write to: knows the size and the checksum of what was written."""

    closed = False

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.size = 0
        self.crc = 0

    def write(self, data: bytes) -> int:
        """Write some bytes."""
        self.size += len(data)
        self.crc = crc32(data, self.crc)
        return self._file.write(data)

    def flush(self) -> None:
        """Do nothing: the file is flushed once, at its end."""


def _write_stream(file: BinaryIO, table: Any) -> dict[str, int]:
    """Write a table as an Arrow IPC stream, and return its size and checksum."""
    checked = _Checked(file)
    options = ipc.IpcWriteOptions(compression="zstd")
    with ipc.new_stream(pa.PythonFile(checked, "w"), table.schema, options=options) as writer:
        writer.write_table(table)
    return {"size": checked.size, "crc": checked.crc}


def _old_part(table: Any) -> StagedPart:
    """Return the content of a file of version 1, with the keys as a column and the counts as the schema's metadata."""
    sent = [time for time in table.column("timestamp").to_pylist() if time is not None]
    latest = round(max(sent).astimezone(UTC).timestamp() * 1000) if sent else None
    redelivered = sum(map(bool, table.column("redelivered").to_pylist()))
    counts = Counts(int(table.schema.metadata[b"received"]), table.num_rows, redelivered, latest)
    rows = table.drop_columns(["_key"]).replace_schema_metadata()
    return StagedPart(rows, table.column("_key").to_pylist(), counts)
