"""The broker's file: access rights, local file systems only, and free space on the disk."""

import os
import re
import sqlite3
import stat
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from jmsjca.errors import InvalidURLError, ResourceAllocationError

__all__ = [
    "check_free_pages",
    "check_local_filesystem",
    "has_disk_space",
    "open_lock_file",
    "prepare_file",
    "prepare_folder",
]

# Bytes of disk space kept free for consumers: they write too. The journal grows to about four megabytes, and then as
# much is copied from it into the file.
_RESERVE = 8 * 1024 * 1024

# Endings of the files that SQLite keeps beside a database.
_COMPANIONS = ("-wal", "-shm", "-journal")


def prepare_file(path: Path) -> None:
    """Create the file of a broker, or check that an existing one can be used.

    An existing file is not opened: closing it would release the locks that SQLite may have on it in this process.

    Args:
        path: The resolved path. A symbolic link at it was created after that, and is refused.

    Raises:
        InvalidURLError: The file cannot be used, or other users could read or change it.
    """
    try:
        if not path.parent.is_dir():
            raise InvalidURLError(
                f"The folder {path.parent} of the embedded broker does not exist; make it, or correct the URL."
            )
        _create_if_missing(path)
        _check_file(path, path.lstat())
        _check_companions(path)
    except OSError as error:
        raise InvalidURLError(f"The embedded broker's file {path} cannot be used: {error.strerror}.") from error


def prepare_folder(folder: Path) -> None:
    """Create the folder of the lock files, or check that an existing one belongs to this user.

    Raises:
        InvalidURLError: It is not a folder of this user.
        OSError: It cannot be created.
    """
    folder.mkdir(mode=0o700, exist_ok=True)
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or _is_owned_by_other(status):
        raise InvalidURLError(f"{folder} is not a folder of this user; remove it, or name another file for the broker.")


def open_lock_file(path: Path, *, create: bool = False) -> int:
    """Open a lock file without following a symbolic link, and return its descriptor.

    Args:
        path: The lock file.
        create: True to create it.

    Raises:
        OSError: It does not exist, or cannot be opened.
    """
    fd = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC | (os.O_CREAT if create else 0), 0o600)
    if (
        create and os.geteuid() == 0
    ):  # as SQLite does: a lock file of root must not lock out the owner of the broker's file
        owner = path.parent.stat()
        os.fchown(fd, owner.st_uid, owner.st_gid)
    return fd


def _create_if_missing(path: Path) -> None:
    if not os.path.lexists(path):
        with suppress(FileExistsError):  # another process was faster
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))


def _check_file(path: Path, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise InvalidURLError(
            f"{path} is not a file; the URL of an embedded broker names a file (embedded:///folder/file.db)."
        )
    if _is_owned_by_other(status):
        raise InvalidURLError(
            f"{path} belongs to another user (id {status.st_uid}), who could read and change the messages of this "
            "process; name a file of your own."
        )
    if status.st_nlink > 1:
        raise InvalidURLError(
            f"{path} has {status.st_nlink} names (hard links); opened under two names at once it would be destroyed. "
            "Remove the others, or copy the file."
        )
    if not os.access(path, os.R_OK | os.W_OK, effective_ids=True):
        raise InvalidURLError(f"The embedded broker's file {path} cannot be read and written by this process.")


def _check_companions(path: Path) -> None:
    for companion in (Path(f"{path}{ending}") for ending in _COMPANIONS):
        try:
            status = companion.lstat()
        except FileNotFoundError:
            continue
        if not stat.S_ISREG(status.st_mode) or _is_owned_by_other(status):
            raise InvalidURLError(
                f"{companion}, which is part of the broker's file, is not a file of this user; who put it there?"
            )


def _is_owned_by_other(status: os.stat_result) -> bool:
    """Return True if another user owns a file. Root may use all files."""
    return os.geteuid() not in (0, status.st_uid)


_MOUNTS = Path("/proc/self/mountinfo")
_NETWORK = {
    "9p", "acfs", "afs", "beegfs", "ceph", "cifs", "coda", "davfs", "gfs", "gfs2", "glusterfs", "gpfs", "lustre",
    "moosefs", "ncpfs", "nfs", "nfs4", "ocfs2", "orangefs", "panfs", "pvfs2", "smb3", "smbfs", "wekafs",
}  # fmt: skip
_NETWORK_FUSE = {
    "beegfs", "blobfuse", "blobfuse2", "ceph", "ceph-fuse", "cifs", "curlftpfs", "davfs", "davfs2", "gcsfuse",
    "gluster", "glusterfs", "goofys", "httpfs", "juicefs", "mfs", "moosefs", "mount-s3", "rclone", "s3fs", "seaweedfs",
    "smbnetfs", "sshfs",
}  # fmt: skip
_LINE = re.compile(r"(\S+ ){4}(?P<point>\S+) .*? - (?P<kind>\S+) ")
_OCTAL = re.compile(r"\\([0-7]{3})")


class _Mount(NamedTuple):
    point: Path
    kind: str


def check_local_filesystem(path: Path) -> None:
    """Refuse a file on a network file system: there, memory is not shared and locks may not hold.

    Systems without ``/proc/self/mountinfo`` (Linux has it) are not checked.

    Args:
        path: The resolved path of the file.

    Raises:
        InvalidURLError: The file is on a network file system.
    """
    try:
        mounts = _MOUNTS.read_text(errors="surrogateescape")
    except OSError:
        return
    mount = _mount_of(path, mounts)
    if mount is not None and _is_network(mount.kind):
        raise InvalidURLError(
            f"{path} is on a network file system ({mount.kind}, mounted on {mount.point}): the locks and the shared "
            "memory of an embedded broker do not work there, and messages would be lost. Name a file on a local disk; "
            "for several machines use a broker that speaks AMQP or STOMP."
        )


def _mount_of(path: Path, mounts: str) -> _Mount | None:
    """Return the mount that a path is on: the deepest one; of several at one mount point, the last."""
    found = None
    for line in mounts.splitlines():
        mount = _parse(line)
        if mount and path.is_relative_to(mount.point) and (not found or mount.point.is_relative_to(found.point)):
            found = mount
    return found


def _parse(line: str) -> _Mount | None:
    """Read a line of proc(5): ``36 35 98:0 /root /point options … - type source options``."""
    match = _LINE.match(line)
    if match is None:
        return None
    point = _OCTAL.sub(lambda code: chr(int(code[1], 8)), match["point"])
    return _Mount(Path(point), match["kind"])


def _is_network(kind: str) -> bool:
    return kind in _NETWORK or kind.removeprefix("fuse.") in _NETWORK_FUSE


def has_disk_space(path: Path, size: int) -> bool:
    """Return True if the disk has space for new messages and a reserve for consumers.

    Args:
        path: The broker's file.
        size: Bytes to be sent; they are written to the journal, and copied from there into the file.
    """
    disk = os.statvfs(path.parent)
    reserve = min(_RESERVE, disk.f_blocks * disk.f_frsize // 2)  # half of a small disk
    return disk.f_bavail * disk.f_frsize >= reserve + 2 * size


def check_free_pages(cursor: sqlite3.Cursor, path: Path, size: int) -> None:
    """Check that the unused pages of the file have space for twice `size` bytes.

    Raises:
        ResourceAllocationError: They have not.
    """
    pages, page_size = (cursor.execute(f"PRAGMA {name}").fetchone()[0] for name in ("freelist_count", "page_size"))
    if pages * page_size < 2 * size + page_size:
        raise ResourceAllocationError(
            f"No space left for {path}: to send {size} bytes would leave too little to consume with. "
            "Consume, or make room on the disk, and try again."
        )
