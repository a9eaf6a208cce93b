"""Small durable files: created by exactly one process, or replaced as a whole, each with a checksum.

A file is written under a temporary name, flushed, linked or renamed to its own name, and then its folder is flushed.
"""

import os
import uuid
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from jmsjca.errors import StoreError
from jmsjca.spark.part_file import seal, unseal

__all__ = [
    "create",
    "create_sealed",
    "damaged",
    "list_names",
    "probe",
    "read_sealed",
    "replace",
    "replace_sealed",
    "sweep",
    "sync_folder",
]

_REMEDY = "Restore it from a backup, or see `jmsjca spark repair --help` for what can be repaired."


def create(path: Path, write: Callable[[BinaryIO], object]) -> bool:
    """Create a file durably and atomically. Return False if it exists already.

    Args:
        path: The file.
        write: Writes the content to a file that is open.

    Raises:
        FileNotFoundError: The folder does not exist.
    """
    temporary = _temporary(path)
    try:
        _write(temporary, write)
        os.link(temporary, path)
    except FileExistsError:
        return False
    finally:
        temporary.unlink(missing_ok=True)
    sync_folder(path.parent)
    return True


def replace(path: Path, data: bytes) -> None:
    """Replace a file durably and atomically."""
    temporary = _temporary(path)
    _write(temporary, lambda file: file.write(data))
    temporary.replace(path)
    sync_folder(path.parent)


def create_sealed(path: Path, text: str) -> bool:
    """Create a file with a text and its checksum. Return False if it exists already."""
    return create(path, lambda file: file.write(seal(text.encode())))


def replace_sealed(path: Path, text: str) -> None:
    """Replace a file by a text and its checksum."""
    replace(path, seal(text.encode()))


def read_sealed(path: Path) -> str | None:
    """Return a text that has a checksum; None if there is no file. The texts of version 1 have no checksum.

    Raises:
        StoreError: The file is empty or damaged.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    if data.startswith(b"[") or (data and b" " not in data):  # version 1
        return data.decode(errors="replace")
    try:
        return unseal(data).decode()
    except ValueError as error:
        raise damaged(path, str(error)) from error


def damaged(path: Path, problem: str) -> StoreError:
    """Return the error for a file that cannot be used."""
    return StoreError(
        f"The file {path} is damaged: {problem}. Without it jmsjca cannot know which messages were processed. {_REMEDY}"
    )


def list_names(folder: Path) -> set[str]:
    """Return the names in a folder; none if there is no folder."""
    try:
        return set(os.listdir(folder))  # noqa: PTH208  # names are enough
    except FileNotFoundError:
        return set()


def sweep(folder: Path, name: str = "") -> int:
    """Remove the temporary files that crashed processes left, and return their number.

    Args:
        folder: A folder in which no other process writes such a file now.
        name: The beginning of the name of the file to which the temporary ones belong; empty for all.
    """
    left = [path for path in folder.glob(f".{name}*.tmp") if path.is_file()]
    for path in left:
        path.unlink(missing_ok=True)
    return len(left)


def sync_folder(folder: Path) -> None:
    """Flush the directory entries of a folder to disk."""
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def probe(folder: Path) -> None:
    """Raise an error for a folder on which exactly-once reading is impossible.

    Raises:
        StoreError: The folder cannot be written, or its file system has no hard links, which are the way to create a
            file in exactly one of several processes, or it does not flush folders.
    """
    first, second = _temporary(folder / "probe"), _temporary(folder / "probe")
    try:
        with _explained(folder, "files cannot be written there"):
            _write(first, lambda file: file.write(b"probe"))
        with _explained(
            folder,
            "its file system has no hard links, by which one of several attempts at a partition is the first; use a"
            " local disk or NFS, not a mounted object store, FAT or SMB",
        ):
            os.link(first, second)
        with _explained(folder, "its file system cannot flush folders to disk"):
            sync_folder(folder)
    finally:
        for path in (first, second):
            with suppress(OSError):
                path.unlink(missing_ok=True)


class _explained:  # noqa: N801  # a context manager
    """Turns an error of the operating system into one that says what is impossible in a folder."""

    def __init__(self, folder: Path, problem: str) -> None:
        self._folder = folder
        self._problem = problem

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, OSError):
            raise StoreError(f"The folder {self._folder} cannot hold staged messages: {self._problem} ({error}).")


def _temporary(path: Path) -> Path:
    return path.parent / f".{path.name}.{uuid.uuid4().hex}.tmp"


def _write(path: Path, write: Callable[[BinaryIO], object]) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(fd, "wb") as file:
        write(file)
        file.flush()
        os.fsync(fd)
