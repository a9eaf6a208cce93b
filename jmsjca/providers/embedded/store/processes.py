"""Processes that use a broker's file: each is one owner of messages, alive as long as its lock file is locked.

The operating system releases the lock when a process ends, however it ends, so other processes find the messages of a
killed process and release them. A forked child inherits the lock with the open lock file and must close it: otherwise
its parent would seem alive as long as the child.
"""

import fcntl
import os
import sqlite3
import tempfile
from pathlib import Path

from jmsjca.errors import ConnectionLostError, StoreError
from jmsjca.providers.embedded.store.consumers import unregister_consumers_of
from jmsjca.providers.embedded.store.files import open_lock_file, prepare_folder
from jmsjca.providers.embedded.store.messages import dead_letter_failed
from jmsjca.providers.embedded.store.queues import count_return, drop_queue
from jmsjca.providers.embedded.store.temporary_destinations import drop_of_owner
from jmsjca.providers.embedded.store.wakeup import WakeupCounter, WakeupSocket, remove_wakeup_socket

__all__ = ["ProcessMembership", "live_processes", "lock_folder", "release_owner"]

_RELEASE_ALL = "UPDATE message SET owner = NULL, token = NULL WHERE owner = ?"
_HELD = "SELECT mailbox, id FROM message WHERE owner = ?"
# Messages that were held while their queue or subscription was removed have no queue to return to.
_DELETE_WITHOUT_QUEUE = "DELETE FROM message WHERE owner = ? AND mailbox NOT IN (SELECT id FROM mailbox)"


class ProcessMembership:
    """Membership of this process in a shared file: its owner id, its liveness lock, and its wakeup socket.

    Args:
        path: The broker's file.
        counter: Notified when another process wakes this one.

    Raises:
        StoreError: No wakeup socket can be created.

    Attributes:
        id: The owner id, under which this process holds messages; 0 before `register`.
        wakeup_socket: The socket through which processes wake each other.
        lost: True if another process took this one for dead.
    """

    def __init__(self, path: Path, counter: WakeupCounter) -> None:
        self._folder = lock_folder(path)
        self._lock_fd: int | None = None
        self.id = 0
        self.lost = False
        try:
            self.wakeup_socket = WakeupSocket(counter)
        except OSError as error:
            raise StoreError(
                f"No socket can be made in {tempfile.gettempdir()}, by which other processes wake this one: {error}. "
                "Set TMPDIR to a folder that can be written and has a short name."
            ) from error

    def register(self, cursor: sqlite3.Cursor) -> None:
        """Register this process as an owner of messages.

        Args:
            cursor: A write transaction on the file.

        Raises:
            InvalidURLError: The folder of the lock files belongs to another user.
            StoreError: The folder cannot be written, or a process that uses a removed file of this name has this id.
        """
        cursor.execute("INSERT INTO owner (pid, bell) VALUES (?, ?)", (os.getpid(), self.wakeup_socket.path))
        owner = cursor.lastrowid or 0
        try:
            prepare_folder(self._folder)
            # Locked before the transaction commits: no process ever sees an owner that looks dead.
            self._lock_fd = _lock(_lock_file(self._folder, owner))
        except OSError as error:
            raise StoreError(f"The folder {self._folder} cannot be written: {error.strerror}.") from error
        self.id = owner

    def unregister(self, cursor: sqlite3.Cursor) -> None:
        """Release the messages of this process, and remove it from the owners."""
        release_owner(cursor, self.id)
        _lock_file(self._folder, self.id).unlink(missing_ok=True)

    def check_registered(self, cursor: sqlite3.Cursor) -> None:
        """Check that no process took this one for dead and removed it.

        Raises:
            ConnectionLostError: Another process did.
        """
        if cursor.execute("SELECT 1 FROM owner WHERE id = ?", (self.id,)).fetchone() is None:
            self.lost = True
            raise ConnectionLostError(
                f"This process was taken for dead, as its lock file in {self._folder} was removed; connect again."
            )

    def dead_owners(self, cursor: sqlite3.Cursor) -> list[int]:
        """Return the ids of other owners that are dead processes."""
        owners = cursor.execute("SELECT id FROM owner WHERE id <> ?", (self.id,)).fetchall()
        return [owner for (owner,) in owners if not _is_locked(_lock_file(self._folder, owner))]

    def other_wakeup_paths(self, cursor: sqlite3.Cursor) -> list[str]:
        """Return the paths of the wakeup sockets of the other processes."""
        return [path for (path,) in cursor.execute("SELECT bell FROM owner WHERE id <> ?", (self.id,))]

    def close(self) -> None:
        """Release the liveness lock, and remove the wakeup socket. Idempotent."""
        self._close_lock_file()
        self.wakeup_socket.close()

    def abandon_after_fork(self) -> None:
        """Close the file descriptors in a forked child; lock and socket stay those of the parent."""
        self._close_lock_file()
        self.wakeup_socket.abandon_after_fork()

    def _close_lock_file(self) -> None:
        fd, self._lock_fd = self._lock_fd, None  # a second close might close a file of others
        if fd is not None:
            os.close(fd)  # the lock ends with its last descriptor


def lock_folder(path: Path) -> Path:
    """Return the folder of the lock files of a broker's file."""
    return Path(f"{path}-owners")


def live_processes(cursor: sqlite3.Cursor, folder: Path) -> list[int]:
    """Return the process ids of all processes that have the file open."""
    owners = cursor.execute("SELECT id, pid FROM owner").fetchall()
    return [pid for owner, pid in owners if _is_locked(_lock_file(folder, owner))]


def release_owner(cursor: sqlite3.Cursor, owner: int) -> None:
    """Remove an owner, release its messages, and remove its consumers, client ids and temporary destinations.

    The deliveries of the messages stay counted: the process may have begun to process them.
    """
    cursor.execute(_DELETE_WITHOUT_QUEUE, (owner,))
    _release_messages(cursor, owner)  # first: the queues removed below have the settings by which messages are moved
    unregister_consumers_of(cursor, owner)
    drop_of_owner(cursor, owner)
    cursor.execute("DELETE FROM client WHERE owner = ?", (owner,))
    for (queue_id,) in cursor.execute("SELECT id FROM mailbox WHERE owner = ?", (owner,)).fetchall():
        drop_queue(cursor, queue_id)
    row = cursor.execute("DELETE FROM owner WHERE id = ? RETURNING bell", (owner,)).fetchone()
    if row:
        remove_wakeup_socket(row[0])


def _release_messages(cursor: sqlite3.Cursor, owner: int) -> None:
    """Release the messages of an owner; those that reached the maximum of deliveries are dead-lettered."""
    held: dict[int, list[int]] = {}
    for queue_id, message in cursor.execute(_HELD, (owner,)):
        held.setdefault(queue_id, []).append(message)
    cursor.execute(_RELEASE_ALL, (owner,))
    count_return(cursor, held)
    for queue_id, messages in held.items():
        dead_letter_failed(cursor, queue_id, messages)


def _lock_file(folder: Path, owner: int) -> Path:
    return folder / f"{owner}.lock"


def _lock(path: Path) -> int:
    """Create and lock a lock file; return its descriptor."""
    fd = open_lock_file(path, create=True)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(fd)
        raise StoreError(
            f"{path} is locked: a process still uses a broker's file of this name that was removed. End it."
        ) from error
    except BaseException:  # of a signal handler: the next attempt of this process may get the same id
        os.close(fd)
        raise
    return fd


def _is_locked(path: Path) -> bool:
    """Return True if the process of a lock file is alive; otherwise remove the file."""
    try:
        fd = open_lock_file(path)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    else:
        path.unlink(missing_ok=True)
        return False
    finally:
        os.close(fd)
