"""Processes that use a broker's file: one owner each, alive as long as its lock file is locked.

The lock ends with the process, however it ends, so what a killed process held is found and given back. A forked child
inherits the lock with the open file and must close it, or it would keep its parent alive.
"""

import fcntl
import os
import sqlite3
import tempfile
from collections.abc import Iterable
from pathlib import Path

from jmsjca.errors import ConnectionLostError, StoreError
from jmsjca.providers.embedded.store import wakeup
from jmsjca.providers.embedded.store.consumers import unregister_consumers_of
from jmsjca.providers.embedded.store.files import open_lock_file, prepare_folder
from jmsjca.providers.embedded.store.messages import dead_letter_failed
from jmsjca.providers.embedded.store.queues import count_return, drop_queue
from jmsjca.providers.embedded.store.temporary_destinations import drop_of_owner
from jmsjca.providers.embedded.store.wakeup import WakeupCounter, WakeupSocket

__all__ = ["Member", "Owner", "dead_owners", "is_registered", "live_processes", "lock_folder", "release_owner"]

_RELEASE_ALL = "UPDATE message SET owner = NULL, token = NULL WHERE owner = ?"
_HELD = "SELECT mailbox, id FROM message WHERE owner = ?"
# What was held while its queue or subscription was removed has no place to go back to.
_DELETE_WITHOUT_QUEUE = "DELETE FROM message WHERE owner = ? AND mailbox NOT IN (SELECT id FROM mailbox)"


class Owner:
    """This process, as the owner of what it receives from one file.

    Args:
        cursor: A write transaction on the file.
        folder: Where the lock files are.
        doorbell: The path of this process's doorbell.

    Raises:
        InvalidURLError: The folder is somebody else's.
        OSError: It cannot be written.
        StoreError: A process that uses a file of this name, which was removed since, has the same id.
    """

    def __init__(self, cursor: sqlite3.Cursor, folder: Path, wakeup_path: str) -> None:
        cursor.execute("INSERT INTO owner (pid, bell) VALUES (?, ?)", (os.getpid(), wakeup_path))
        self.id: int = cursor.lastrowid or 0
        prepare_folder(folder)
        self._path = _lock_file(folder, self.id)
        self._fd = open_lock_file(self._path, create=True)
        self._take_lock()

    def _take_lock(self) -> None:
        """Before the transaction commits: nobody ever sees an owner that looks dead."""
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            self.close()
            raise StoreError(
                f"{self._path} is locked: a process goes on with a broker's file of this name that was removed. End it."
            ) from error

    def unregister(self, cursor: sqlite3.Cursor) -> None:
        """Give back what is held, and be no owner any more."""
        release_owner(cursor, self.id)
        self._path.unlink(missing_ok=True)

    def close(self) -> None:
        """Close the lock file; the lock ends with its last descriptor."""
        os.close(self._fd)


def lock_folder(path: Path) -> Path:
    """The folder of the lock files of a broker's file."""
    return Path(f"{path}-owners")


def live_processes(cursor: sqlite3.Cursor, folder: Path) -> list[int]:
    """The ids of the processes that have the file open."""
    owners = cursor.execute("SELECT id, pid FROM owner").fetchall()
    return [pid for owner, pid in owners if _is_locked(_lock_file(folder, owner))]


def dead_owners(cursor: sqlite3.Cursor, folder: Path, me: int) -> list[int]:
    """Find the owners whose processes are gone."""
    owners = cursor.execute("SELECT id FROM owner WHERE id <> ?", (me,)).fetchall()
    return [owner for (owner,) in owners if not _is_locked(_lock_file(folder, owner))]


def is_registered(cursor: sqlite3.Cursor, owner: int) -> bool:
    """Tell whether nobody has removed an owner."""
    return cursor.execute("SELECT 1 FROM owner WHERE id = ?", (owner,)).fetchone() is not None


def release_owner(cursor: sqlite3.Cursor, owner: int) -> None:
    """Give back what an owner held (counted: it may have been seen), and forget what lived as long as it."""
    unregister_consumers_of(cursor, owner)
    drop_of_owner(cursor, owner)
    cursor.execute("DELETE FROM client WHERE owner = ?", (owner,))
    cursor.execute(_DELETE_WITHOUT_QUEUE, (owner,))
    _release_messages(cursor, owner)
    for (queue_id,) in cursor.execute("SELECT id FROM mailbox WHERE owner = ?", (owner,)).fetchall():
        drop_queue(cursor, queue_id)
    row = cursor.execute("DELETE FROM owner WHERE id = ? RETURNING bell", (owner,)).fetchone()
    if row:
        wakeup.remove_wakeup_socket(row[0])


def _release_messages(cursor: sqlite3.Cursor, owner: int) -> None:
    """Free what an owner held; what failed as often as it may by that goes where its destination's settings say."""
    held: dict[int, list[int]] = {}
    for queue_id, message in cursor.execute(_HELD, (owner,)):
        held.setdefault(queue_id, []).append(message)
    cursor.execute(_RELEASE_ALL, (owner,))
    count_return(cursor, held)
    for queue_id, messages in held.items():
        dead_letter_failed(cursor, queue_id, messages)


def _lock_file(folder: Path, owner: int) -> Path:
    return folder / f"{owner}.lock"


def _is_locked(path: Path) -> bool:
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


class Member:
    """A process that uses a file.

    Args:
        path: The file.
        bell: What others ring.

    Raises:
        StoreError: There is no place for a doorbell.

    Attributes:
        lost: True if others took this process for dead.
    """

    def __init__(self, path: Path, counter: WakeupCounter) -> None:
        self._folder = lock_folder(path)
        self._owner: Owner | None = None
        self.lost = False
        try:
            self._wakeup_socket = WakeupSocket(counter)
        except OSError as error:
            raise StoreError(
                f"No socket can be made in {tempfile.gettempdir()}, by which other processes wake this one: {error}. "
                "Set TMPDIR to a folder that can be written and has a short name."
            ) from error

    @property
    def id(self) -> int:
        """The id under which this process holds messages; 0 before it joined."""
        return self._owner.id if self._owner else 0

    def register(self, cursor: sqlite3.Cursor) -> None:
        """Become an owner of messages.

        Args:
            cursor: A write transaction.

        Raises:
            StoreError: The folder of the lock files cannot be used.
        """
        try:
            self._owner = Owner(cursor, self._folder, self._wakeup_socket.path)
        except OSError as error:
            raise StoreError(f"The folder {self._folder} cannot be written: {error.strerror}.") from error

    def check_registered(self, cursor: sqlite3.Cursor) -> None:
        """Make sure that nobody took this process for dead.

        Raises:
            ConnectionLostError: Somebody did.
        """
        if not is_registered(cursor, self.id):
            self.lost = True
            raise ConnectionLostError(
                f"This process was taken for dead, as its lock file in {self._folder} was removed; connect again."
            )

    def dead_owners(self, cursor: sqlite3.Cursor) -> list[int]:
        """The other owners whose processes are gone."""
        return dead_owners(cursor, self._folder, self.id)

    def other_wakeup_paths(self, cursor: sqlite3.Cursor) -> list[str]:
        """The doorbells of the others."""
        return [path for (path,) in cursor.execute("SELECT bell FROM owner WHERE id <> ?", (self.id,))]

    def wake_others(self, wakeup_paths: Iterable[str]) -> None:
        """Wake others."""
        self._wakeup_socket.wake_others(wakeup_paths)

    def listen(self) -> None:
        """Let others wake us from now on."""
        self._wakeup_socket.listen()

    def stop_listening(self) -> None:
        """Hear nothing any more."""
        self._wakeup_socket.stop()

    def unregister(self, cursor: sqlite3.Cursor) -> None:
        """Give back what is held."""
        if self._owner:
            self._owner.unregister(cursor)

    def close(self) -> None:
        """Let go of lock and socket."""
        if self._owner:
            self._owner.close()
        self._wakeup_socket.close()

    def abandon_after_fork(self) -> None:
        """In a forked child: let go of what is the parent's, without a word."""
        if self._owner:
            self._owner.close()
        self._wakeup_socket.abandon_after_fork()
