"""The store of staged messages: its few operations, which the staging code above builds on.

Exactly-once reading needs two properties of a store: of several processes that create one file, exactly one succeeds,
and a file is there whole or not at all. `jmsjca.spark.folder_store` and `jmsjca.spark.object_store` have them. Without
the first one, reading is possible with ``guarantee=at-least-once``, see `jmsjca.spark.generation`.
"""

from collections.abc import Callable
from typing import BinaryIO, Protocol, Self

from jmsjca.errors import StoreError

__all__ = ["Store", "StoreUnavailableError"]


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
        """Create an empty file that may be lost when the machine crashes. A missing folder is no error."""
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
        """Return the folders whose names have a beginning, in order, with the names of the files in each."""
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

    def probe(self) -> None:
        """Try the operations that reading depends on.

        Raises:
            StoreError: One of them does not work here; the message has the remedy.
        """
        ...
