"""Room on the disk: what is sent must leave enough for others to consume, or a full disk would stay full for ever."""

import os
import sqlite3
from pathlib import Path

from jmsjca.errors import ResourceAllocationError

__all__ = ["check_room_within", "is_room_on_disk"]

# To consume takes room too: the journal grows to about four megabytes, and then as much goes from it into the file.
_RESERVE = 8 * 1024 * 1024


def is_room_on_disk(path: Path, size: int) -> bool:
    """Tell whether a file can grow by so many bytes and leave some room.

    Args:
        path: The broker's file.
        size: The bytes of what is to be sent; they go into the journal, and from there into the file.
    """
    disk = os.statvfs(path.parent)
    reserve = min(_RESERVE, disk.f_blocks * disk.f_frsize // 2)  # half of a small disk
    return disk.f_bavail * disk.f_frsize >= reserve + 2 * size


def check_room_within(cursor: sqlite3.Cursor, path: Path, size: int) -> None:
    """Make sure that the space of messages that are gone is enough for so many bytes, and as much again.

    Raises:
        ResourceAllocationError: It is not.
    """
    pages, page_size = (cursor.execute(f"PRAGMA {name}").fetchone()[0] for name in ("freelist_count", "page_size"))
    if pages * page_size < 2 * size + page_size:
        raise ResourceAllocationError(
            f"No space left for {path}: to send {size} bytes would leave too little to consume with. "
            "Consume, or make room on the disk, and try again."
        )
