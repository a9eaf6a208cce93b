"""Files that appear at once and survive a power cut."""

import os
import uuid
from pathlib import Path

__all__ = ["replace", "sync_folder", "write_exclusively"]


def write_exclusively(path: Path, data: bytes) -> bool:
    """Make a file durably and as a whole. False if it is there already."""
    temporary = path.parent / f".{uuid.uuid4().hex}.tmp"
    try:
        _write(temporary, data)
        os.link(temporary, path)
    except FileExistsError:
        return False
    finally:
        temporary.unlink(missing_ok=True)
    sync_folder(path.parent)
    return True


def replace(path: Path, data: bytes) -> None:
    """Make a file durably and as a whole, in the place of the one that is there."""
    temporary = path.parent / f".{uuid.uuid4().hex}.tmp"
    _write(temporary, data)
    temporary.replace(path)
    sync_folder(path.parent)


def _write(path: Path, data: bytes) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(fd, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(fd)


def sync_folder(folder: Path) -> None:
    """Make durable which files a folder has."""
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
