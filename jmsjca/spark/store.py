"""The store of staged messages: its operations, its names, and small files with checksums.

Exactly-once reading needs two properties of a store: of several processes that create one file, exactly one succeeds,
and a file is there whole or not at all. `jmsjca.spark.folder_store` and `jmsjca.spark.object_store` have them. Without
the first one, reading is possible with ``guarantee=at-least-once``, see `jmsjca.spark.staging`.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import BinaryIO, NamedTuple, Protocol, Self
from zlib import crc32

from jmsjca.errors import StoreError

__all__ = [
    "EpochPartition",
    "Store",
    "StoreUnavailableError",
    "create_sealed",
    "damaged",
    "epoch_folder",
    "epochs_of",
    "files_of",
    "published_of",
    "read_sealed",
    "replace_sealed",
    "seal",
    "unseal",
]


class StoreUnavailableError(StoreError):
    """The store cannot be reached now, or refused an operation. Nothing is known to be damaged."""


class Store(Protocol):
    """Files in folders, by names with ``/``, below one address.

    A folder is added before files are created in it, and removed with all its files at once: after that no process
    sees one of them. The methods raise an OSError or a StoreUnavailableError if the store fails.
    """

    def __str__(self) -> str:
        """Return the address, without secrets."""
        ...

    def __hash__(self) -> int:
        """Return equal numbers for equal stores."""
        ...

    def relaxed(self) -> Self:
        """Return the same store with a `create` that may replace a file of another process that creates it now."""
        ...

    def within(self, folder: str) -> Self:
        """Return the store of a folder."""
        ...

    def address(self, name: str) -> str:
        """Return the full address of a file or folder, for messages."""
        ...

    def create(self, name: str, write: Callable[[BinaryIO], object]) -> bool:
        """Create a file durably, as a whole. Return False if it exists already.

        Args:
            name: The name of the file.
            write: Writes the content to a file that is open.

        Raises:
            FileNotFoundError: The folder does not exist. Object stores do not notice that: a file that is created in a
                folder that was removed is invisible.
        """
        ...

    def create_like(self, name: str, data: bytes, common: str) -> bool:
        """Create a file with the content of a common file, as a whole. Return False if it exists already.

        It may be lost when the machine crashes.

        Args:
            name: The name of the file.
            data: The content.
            common: The name of a durable file with this content, which is created if it does not exist.
        """
        ...

    def flush(self, folder: str) -> None:
        """Make all files of a folder durable that were created by `create_like`."""
        ...

    def replace(self, name: str, data: bytes) -> None:
        """Create or replace a file durably, as a whole."""
        ...

    def mark(self, name: str) -> None:
        """Create an empty file that may be lost when the machine crashes. A missing folder is ignored."""
        ...

    def open(self, name: str) -> BinaryIO:
        """Open a file for reading from its beginning to its end.

        Raises:
            FileNotFoundError: There is no such file.
        """
        ...

    def version(self, name: str) -> str | None:
        """Return a text that changes whenever a file is replaced; None if there is no such file."""
        ...

    def delete(self, name: str) -> None:
        """Delete a file, if it exists."""
        ...

    def set_aside(self, name: str) -> None:
        """Rename a damaged file, so that it is kept, and is not read again."""
        ...

    def add_folder(self, name: str = "") -> bool:
        """Create a folder durably, with all folders above it. Return False if it exists: one process creates it."""
        ...

    def has_folder(self, name: str = "") -> bool:
        """Return True if a folder exists."""
        ...

    def remove_folder(self, name: str) -> None:
        """Remove a folder with its files."""
        ...

    def names(self, folder: str = "") -> set[str]:
        """Return the names of the files in a folder; none if there is no folder."""
        ...

    def folders(self, beginning: str = "") -> dict[str, set[str]]:
        """Return the folders with names that start with a prefix, in order, and the names of the files in each."""
        ...

    def sweep(self, folder: str = "", name: str = "") -> int:
        """Remove the files that crashed processes left incomplete, and return their number.

        Args:
            folder: A folder in which no other process creates such a file now.
            name: The beginning of the name of that file; empty for all.
        """
        ...

    def sweep_folders(self, beginning: str, last: str) -> None:
        """Remove what is left of folders that were removed.

        Args:
            beginning: The beginning of their names.
            last: The highest of their names.
        """
        ...

    def look(self) -> None:
        """Find whether the store can be used at all, without creating anything in it.

        Raises:
            OSError: Its folder cannot be made.
            StoreError: It cannot be used here.
        """
        ...

    def probe(self) -> None:
        """Try the operations that reading depends on.

        Raises:
            StoreError: One of them does not work here. The message describes what to do.
        """
        ...


_SEAL = b"crc32:"
# The texts of version 1: a list of keys, the number of an epoch, or the id that Spark gives a query, which is a UUID.
_VERSION_1 = re.compile(rb"\[.*\]|[0-9]+|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.DOTALL)
_REMEDY = "Restore it from a backup, or see `jmsjca spark repair --help` for what can be repaired."


def create_sealed(store: Store, name: str, text: str, common: str | None = None) -> bool:
    """Create a file with a text and its checksum. Return False if it exists already.

    Args:
        store: The store.
        name: The name of the file.
        text: The text.
        common: The name of a file that has this text on behalf of many files, which may be lost when the machine
            crashes. None creates a separate, durable file.
    """
    data = seal(text.encode())
    if common is None:
        return store.create(name, lambda file: file.write(data))
    return store.create_like(name, data, common)


def replace_sealed(store: Store, name: str, text: str) -> None:
    """Replace a file by a text and its checksum."""
    store.replace(name, seal(text.encode()))


def read_sealed(store: Store, name: str) -> str | None:
    """Return a text that has a checksum; None if there is no file. The texts of version 1 have no checksum.

    Raises:
        StoreError: The file is empty or damaged.
    """
    try:
        with store.open(name) as file:
            data = file.read()
    except FileNotFoundError:
        return None
    if _VERSION_1.fullmatch(data):
        return data.decode(errors="replace")
    try:
        return unseal(data).decode()
    except ValueError as error:
        raise damaged(store, name, str(error)) from error


def damaged(store: Store, name: str, problem: str) -> StoreError:
    """Return the error for a file that cannot be used."""
    return StoreError(
        f"The file {store.address(name)} is damaged: {problem}. Without it jmsjca cannot know which messages were"
        f" processed. {_REMEDY}"
    )


def seal(data: bytes) -> bytes:
    """Return a short text with its checksum in front, so that a truncated text is also detected."""
    return b"%b%08x %b" % (_SEAL, crc32(data), data)


def unseal(sealed: bytes) -> bytes:
    """Return the text that was sealed.

    Raises:
        ValueError: The checksum does not match, or is missing.
    """
    head, _, data = sealed.partition(b" ")
    if head != b"%b%08x" % (_SEAL, crc32(data)):
        raise ValueError("its checksum does not match" if sealed else "it is empty")
    return data


_FOLDER = re.compile(r"e-([0-9]{10}|[1-9][0-9]{10,})")
_FILE = re.compile(r"p-([0-9]{5}|[1-9][0-9]{5,})(?:\.(\w+))?\.(arrow|acked|ok)")


class EpochPartition(NamedTuple):
    """One partition of one epoch. The order decides which partition keeps a message that two of them have.

    Attributes:
        epoch: The number of the epoch.
        number: The number of the partition in it.
        attempt: The attempt that wrote the file, with ``guarantee=at-least-once``; else empty.
    """

    epoch: int
    number: int
    attempt: str = ""

    @property
    def name(self) -> str:
        """The file name, without extension."""
        return f"p-{self.number:05d}{'.' if self.attempt else ''}{self.attempt}"

    def file(self, ending: str) -> str:
        """Return the name of a file below its generation."""
        return f"{epoch_folder(self.epoch)}/{self.name}.{ending}"


def epoch_folder(epoch: int) -> str:
    """Return the name of the folder of an epoch."""
    return f"e-{epoch:010d}"


def epochs_of(folders: Mapping[str, set[str]]) -> dict[int, set[str]]:
    """Return the epochs among folders with the names of their files."""
    found = ((_FOLDER.fullmatch(folder), names) for folder, names in folders.items())
    return {int(match[1]): names for match, names in found if match}


def files_of(epoch: int, names: Iterable[str]) -> Iterator[tuple[EpochPartition, str]]:
    """Yield the partition and the ending of each file of partitions among the files of an epoch."""
    for match in map(_FILE.fullmatch, names):
        if match:
            yield EpochPartition(epoch, int(match[1]), match[2] or ""), match[3]


def published_of(epoch: int, names: set[str]) -> dict[EpochPartition, bool]:
    """Return the published partitions among the files of an epoch, in order, and whether each is confirmed."""
    return {part: f"{part.name}.acked" in names for part, ending in sorted(files_of(epoch, names)) if ending == "arrow"}
