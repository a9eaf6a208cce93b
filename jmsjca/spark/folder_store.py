"""Staged messages in a folder that driver and executors share: a local disk, or NFS.

A file is written under a temporary name, flushed, linked or renamed to its own name, and then its folder is flushed. A
folder is renamed for its removal, so that a late attempt never finds a partial one.
"""

import os
import shutil
import socket
import stat
import uuid
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from errno import EACCES, ENOTDIR
from functools import wraps
from pathlib import Path
from typing import BinaryIO, ParamSpec, TypeVar

from jmsjca.errors import StoreError
from jmsjca.spark.store import StoreUnavailableError

__all__ = ["FolderStore"]

_TRASH = "trash-"
_NO_LINKS = (
    "its file system has no hard links, by which one of several attempts at a partition is the first; use a local disk"
    " or NFS, not FAT or SMB, and name an object store by its URL instead of mounting it; or set"
    " guarantee=at-least-once"
)
_ONE_USER = "the driver and all executors need the same user, who may read and write there"
_SYNCED_PARENTS = 3  # above a generation: the version, the location, and its parent

P = ParamSpec("P")
T = TypeVar("T")


def _permitted(method: Callable[P, T]) -> Callable[P, T]:
    """Turn a refused permission into an error that names the user and the remedy."""

    @wraps(method)
    def _call(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return method(*args, **kwargs)
        except PermissionError as error:
            raise StoreUnavailableError(
                f"{error.filename or 'A file'} cannot be used by the user {os.geteuid()} on {socket.gethostname()}:"
                f" {error.strerror}. In the staging location {_ONE_USER}."
            ) from error

    return _call


@dataclass(frozen=True, slots=True)
class FolderStore:
    """A store that is a folder; see `Store` for the methods.

    Args:
        folder: The folder.
        exclusive: True if several processes may create one file, and one succeeds; False after `relaxed`.
    """

    folder: Path
    exclusive: bool = True

    def __str__(self) -> str:
        return str(self.folder)

    def relaxed(self) -> "FolderStore":
        """Return the same store with a `create` that needs no hard links."""
        return replace(self, exclusive=False)

    def within(self, folder: str) -> "FolderStore":
        """Return the store of a folder."""
        return replace(self, folder=self.folder / folder)

    def address(self, name: str) -> str:
        """Return the path of a file or folder."""
        return str(self.folder / name)

    @_permitted
    def create(self, name: str, write: Callable[[BinaryIO], object]) -> bool:
        """Create a file durably. Return False if it exists already."""
        path = self.folder / name
        temporary = _temporary(path)
        try:
            _write(temporary, write)
            if self.exclusive:
                os.link(temporary, path)
            elif path.exists():
                return False
            else:
                temporary.replace(path)
        except FileExistsError:
            return False
        finally:
            temporary.unlink(missing_ok=True)
        _sync_folder(path.parent)
        return True

    @_permitted
    def create_like(self, name: str, data: bytes, common: str) -> bool:
        """Create a second name of a common file, without flushing the folder. Return False if it exists already."""
        for _ in range(2):
            try:
                os.link(self.folder / common, self.folder / name)
            except FileExistsError:
                return False
            except FileNotFoundError:
                self.create(common, lambda file: file.write(data))
            except OSError:  # the file has as many names as it can have
                break
            else:
                return True
        return self.create(name, lambda file: file.write(data))

    @_permitted
    def flush(self, folder: str) -> None:
        """Flush the names in a folder."""
        _sync_folder(self.folder / folder)

    @_permitted
    def replace(self, name: str, data: bytes) -> None:
        """Create or replace a file durably."""
        path = self.folder / name
        temporary = _temporary(path)
        _write(temporary, lambda file: file.write(data))
        temporary.replace(path)
        _sync_folder(path.parent)

    @_permitted
    def mark(self, name: str) -> None:
        """Create an empty file, without flushing it."""
        with suppress(FileNotFoundError):
            (self.folder / name).touch(0o600)

    @_permitted
    def open(self, name: str) -> BinaryIO:
        """Open a file for reading."""
        return (self.folder / name).open("rb")

    @_permitted
    def version(self, name: str) -> str | None:
        """Return a text that changes whenever a file is replaced; None if there is no such file."""
        try:
            state = (self.folder / name).stat()
        except FileNotFoundError:
            return None
        return f"{state.st_ino} {state.st_mtime_ns} {state.st_size}"

    @_permitted
    def delete(self, name: str) -> None:
        """Delete a file, if it exists."""
        (self.folder / name).unlink(missing_ok=True)

    @_permitted
    def set_aside(self, name: str) -> None:
        """Rename a damaged file."""
        (self.folder / name).rename(self.folder / f"{name}.damaged")

    @_permitted
    def add_folder(self, name: str = "") -> bool:
        """Create a folder durably, with all folders above it. Return False if it exists."""
        folder = self.folder / name
        folder.parent.mkdir(parents=True, exist_ok=True)
        try:
            folder.mkdir()
        except FileExistsError:
            return False
        for parent in list(folder.parents)[:_SYNCED_PARENTS]:
            _sync_folder(parent)
        return True

    @_permitted
    def has_folder(self, name: str = "") -> bool:
        """Return True if a folder exists."""
        with suppress(FileNotFoundError, NotADirectoryError):
            return stat.S_ISDIR((self.folder / name).stat().st_mode)  # is_dir() may hide that this is not permitted
        return False

    @_permitted
    def remove_folder(self, name: str) -> None:
        """Rename a folder for its removal by `sweep_folders`."""
        (self.folder / name).rename(self.folder / f"{_TRASH}{uuid.uuid4().hex}")

    @_permitted
    def names(self, folder: str = "") -> set[str]:
        """Return the names in a folder; none if there is no folder."""
        return _names(self.folder / folder)

    @_permitted
    def folders(self, beginning: str = "") -> dict[str, set[str]]:
        """Return the folders with names that start with a prefix, and the names of the files in each."""
        found = sorted(name for name in _names(self.folder) if name.startswith(beginning))
        return {
            name: _names(self.folder / name) for name in found if not name.startswith(_TRASH) and self.has_folder(name)
        }

    @_permitted
    def sweep(self, folder: str = "", name: str = "") -> int:
        """Remove temporary files."""
        left = [each for each in _names(self.folder / folder) if each.startswith(f".{name}") and each.endswith(".tmp")]
        for each in left:
            (self.folder / folder / each).unlink(missing_ok=True)
        return len(left)

    @_permitted
    def sweep_folders(self, beginning: str, last: str) -> None:
        """Remove the folders that were renamed for their removal."""
        del beginning, last  # those have other names
        for path in self.folder.glob(f"{_TRASH}*"):
            shutil.rmtree(path, ignore_errors=True)

    @_permitted
    def look(self) -> None:
        """Raise an error if the folder, or the nearest one above it that exists, is a file or cannot be written."""
        nearest = next(path for path in (self.folder, *self.folder.parents) if path.exists())
        if not nearest.is_dir():
            raise NotADirectoryError(ENOTDIR, os.strerror(ENOTDIR), str(nearest))
        if not os.access(nearest, os.W_OK | os.X_OK, effective_ids=True):
            raise PermissionError(EACCES, os.strerror(EACCES), str(nearest))

    def probe(self) -> None:
        """Raise an error for a folder on which reading is impossible.

        Raises:
            StoreError: The folder cannot be written, or it does not flush folders. Or the store is exclusive, and its
                file system has no hard links, which are the way to create a file in exactly one of several processes.
        """
        first, second = _temporary(self.folder / "probe"), _temporary(self.folder / "probe")
        try:
            with _explained(self.folder, f"files cannot be written there; {_ONE_USER}"):
                _write(first, lambda file: file.write(b"probe"))
            if self.exclusive:
                with _explained(self.folder, _NO_LINKS):
                    os.link(first, second)
            with _explained(self.folder, "its file system cannot flush folders to disk"):
                _sync_folder(self.folder)
        finally:
            for path in (first, second):
                with suppress(OSError):
                    path.unlink(missing_ok=True)


@contextmanager
def _explained(folder: Path, problem: str) -> Generator[None]:
    """Turn an error of the operating system into one that says what is impossible in a folder."""
    try:
        yield
    except OSError as error:
        raise StoreError(f"The folder {folder} cannot hold staged messages: {problem} ({error}).") from error


def _names(folder: Path) -> set[str]:
    try:
        with os.scandir(folder) as entries:
            return {entry.name for entry in entries}
    except (FileNotFoundError, NotADirectoryError):
        return set()


def _sync_folder(folder: Path) -> None:
    """Flush the directory entries of a folder to disk."""
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _temporary(path: Path) -> Path:
    return path.parent / f".{path.name}.{uuid.uuid4().hex}.tmp"


def _write(path: Path, write: Callable[[BinaryIO], object]) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(fd, "wb") as file:
        write(file)
        file.flush()
        os.fsync(fd)
