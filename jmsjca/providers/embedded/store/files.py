"""The file of a broker and what lies beside it: made for its user alone, refused where somebody else prepared it."""

import os
import stat
from contextlib import suppress
from pathlib import Path

from jmsjca.errors import InvalidURLError

__all__ = ["make_file", "make_folder", "open_lock_file"]

# What SQLite keeps beside a database.
_COMPANIONS = ("-wal", "-shm", "-journal")


def make_file(path: Path) -> None:
    """Make the file of a broker, or find out whether it can be used.

    A file that is there is not opened: closing it would end the locks that SQLite may have on it in this process.

    Args:
        path: The resolved path: a symbolic link there was put there since.

    Raises:
        InvalidURLError: It cannot be, or others could read or change what will be in it.
    """
    try:
        if not path.parent.is_dir():
            raise InvalidURLError(
                f"The folder {path.parent} of the embedded broker does not exist; make it, or correct the URL."
            )
        _make_if_missing(path)
        _check_file(path, path.lstat())
        _check_companions(path)
    except OSError as error:
        raise InvalidURLError(f"The embedded broker's file {path} cannot be used: {error.strerror}.") from error


def make_folder(folder: Path) -> None:
    """Make the folder of the lock files, or find out whether it is ours.

    Raises:
        InvalidURLError: It is not.
        OSError: It cannot be made.
    """
    folder.mkdir(mode=0o700, exist_ok=True)
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or _is_foreign(status):
        raise InvalidURLError(f"{folder} is not a folder of this user; remove it, or name another file for the broker.")


def open_lock_file(path: Path, *, make: bool = False) -> int:
    """Open a lock file, and nothing that a link leads to.

    Args:
        path: The lock file.
        make: True to make it.

    Raises:
        OSError: It is not there, or cannot be opened.
    """
    fd = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC | (os.O_CREAT if make else 0), 0o600)
    if (
        make and os.geteuid() == 0
    ):  # as SQLite does: what root makes must not lock out the user whom the file belongs to
        owner = path.parent.stat()
        os.fchown(fd, owner.st_uid, owner.st_gid)
    return fd


def _make_if_missing(path: Path) -> None:
    if not os.path.lexists(path):
        with suppress(FileExistsError):  # another process was faster
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))


def _check_file(path: Path, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise InvalidURLError(
            f"{path} is not a file; the URL of an embedded broker names a file (embedded:///folder/file.db)."
        )
    if _is_foreign(status):
        raise InvalidURLError(
            f"{path} belongs to another user (id {status.st_uid}), who could read and change what this process puts "
            "into it; name a file of your own."
        )
    if status.st_nlink > 1:
        raise InvalidURLError(
            f"{path} has {status.st_nlink} names (hard links); opened by two of them at a time it would be destroyed. "
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
        if not stat.S_ISREG(status.st_mode) or _is_foreign(status):
            raise InvalidURLError(
                f"{companion}, which is part of the broker's file, is not a file of this user; who put it there?"
            )


def _is_foreign(status: os.stat_result) -> bool:
    """Tell whether somebody else owns a file. Root may use everybody's."""
    return os.geteuid() not in (0, status.st_uid)
