"""The broker's file and the processes that share it: access rights, owners of messages, and wakeup.

Processes that use a broker's file: each is one owner of messages, alive as long as its lock file is locked.

The operating system releases the lock when a process ends, however it ends, so other processes find the messages of a
killed process and release them. A forked child inherits the lock with the open lock file and must close it: otherwise
its parent would seem alive as long as the child.
"""

import contextlib
import errno
import fcntl
import mmap
import os
import re
import socket
import sqlite3
import stat
import struct
import tempfile
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from jmsjca.errors import InvalidURLError, StoreError
from jmsjca.providers.embedded.store.messages import dead_letter_failed
from jmsjca.providers.embedded.store.queues import count_return, drop_of_owner, drop_queue, unregister_consumers_of

__all__ = [
    "UNRECORDED",
    "HandOverRecord",
    "ProcessMembership",
    "WakeupCounter",
    "WakeupSocket",
    "has_disk_space",
    "live_processes",
    "lock_folder",
    "open_lock_file",
    "prepare_file",
    "prepare_folder",
    "remove_wakeup_socket",
]

# Bytes of disk space kept free for consumers, which also write. The journal grows to about four megabytes, and then as
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
    fault = _network_fault(path)
    try:
        if fault is None and not path.parent.is_dir():
            fault = f"The folder {path.parent} of the embedded broker does not exist; make it, or correct the URL."
        if fault is None:
            fault = _create_if_missing(path) or _file_fault(path, path.lstat()) or _companion_fault(path)
    except OSError as error:
        raise InvalidURLError(f"The embedded broker's file {path} cannot be used: {error.strerror}.") from error
    if fault is not None:
        raise InvalidURLError(fault)


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


def _create_if_missing(path: Path) -> str | None:
    """Create a file, without the journal and the index of a removed one, which processes may still use."""
    if os.path.lexists(path):
        return None
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)  # otherwise another process may already use those that are removed here
        if not os.path.lexists(path):
            if fault := _companion_fault(path):
                return fault
            for ending in _COMPANIONS:
                Path(f"{path}{ending}").unlink(missing_ok=True)
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    finally:
        os.close(folder)
    return None


def _file_fault(path: Path, status: os.stat_result) -> str | None:
    """Return why an existing file cannot be used; None if it can."""
    faults = (
        (
            not stat.S_ISREG(status.st_mode),
            f"{path} is not a file; the URL of an embedded broker names a file (embedded:///folder/file.db).",
        ),
        (
            _is_owned_by_other(status),
            (
                f"{path} belongs to another user (id {status.st_uid}), who could read and change the messages of this "
                "process; name a file of your own."
            ),
        ),
        (
            status.st_nlink > 1,
            (
                f"{path} has {status.st_nlink} names (hard links); opened under two names at once it would be "
                "destroyed. Remove the others, or copy the file."
            ),
        ),
        (
            not os.access(path, os.R_OK | os.W_OK, effective_ids=True),
            f"The embedded broker's file {path} cannot be read and written by this process.",
        ),
    )
    return next((text for applies, text in faults if applies), None)


def _companion_fault(path: Path) -> str | None:
    for companion in (Path(f"{path}{ending}") for ending in _COMPANIONS):
        try:
            status = companion.lstat()
        except FileNotFoundError:
            continue
        if not stat.S_ISREG(status.st_mode) or _is_owned_by_other(status):
            return f"{companion}, which is part of the broker's file, is not a file of this user; who put it there?"
    return None


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


def _network_fault(path: Path) -> str | None:
    """Return why a file on a network file system is refused: there, memory is not shared, and locks may not hold.

    Systems without ``/proc/self/mountinfo`` (Linux has it) are not checked.

    Args:
        path: The resolved path of the file.
    """
    try:
        mounts = _MOUNTS.read_text(errors="surrogateescape")
    except OSError:
        return None
    mount = _mount_of(path, mounts)
    if mount is None or not _is_network(mount.kind):
        return None
    return (
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


_PREFIX, _NAME = "jmsjca-", "wakeup"
_NAMES = (_NAME, "bell")  # the second: of a process of an earlier release, which was killed


class WakeupCounter:
    """Counts wakeups. A consumer waits for a value other than the one it has seen, so it misses no wakeup.

    Attributes:
        value: The number of wakeups; read it before the look for messages.
    """

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self.value = 0

    def notify(self) -> None:
        """Wake all waiting consumers of this process."""
        with self._condition:
            self.value += 1
            self._condition.notify_all()

    def wait(self, seen: int, timeout: float) -> None:
        """Wait until the value differs from `seen`, `timeout` seconds at most."""
        with self._condition:
            self._condition.wait_for(lambda: self.value != seen, timeout)


class WakeupSocket:
    """The datagram socket of this process, through which other processes wake its consumers.

    Args:
        counter: Notified of each datagram.

    Raises:
        OSError: There is no folder for temporary files that can be written and has a short name.
    """

    def __init__(self, counter: WakeupCounter) -> None:
        self._counter = counter
        self._thread: threading.Thread | None = None
        self._stopped = False
        self._lock = threading.Lock()
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._sender = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._sender.setblocking(False)
        # Not beside the broker's file: the path of a UNIX socket is limited to about 100 bytes.
        folder = tempfile.mkdtemp(prefix=_PREFIX)
        self.path = f"{folder}/{_NAME}"
        try:
            self._socket.bind(self.path)
        except OSError:
            self.close()
            with contextlib.suppress(OSError):  # which it has removed if the socket was made
                Path(folder).rmdir()
            raise

    def listen(self) -> None:
        """Start the thread that listens, if it does not run; the first consumer that waits calls this."""
        with self._lock:
            if self._thread is None and not self._stopped:
                self._thread = threading.Thread(target=self._listen, name="jmsjca-wakeup", daemon=True)
                self._thread.start()

    def wake_others(self, paths: Iterable[str]) -> None:
        """Wake other processes. A socket that is full or gone is ignored: its process polls anyway."""
        for path in paths:
            with contextlib.suppress(OSError):
                self._sender.sendto(b"r", path)

    def stop(self) -> None:
        """Stop listening; other processes can still be woken.

        Call it before `close`: the thread is woken through the socket.
        """
        with self._lock:  # a thread that `listen` creates at this moment has started when the lock is free
            self._stopped = True
            thread = self._thread
        if thread is not None:
            self.wake_others([self.path])
            thread.join(timeout=5)

    def close(self) -> None:
        """Remove the socket."""
        self.abandon_after_fork()
        remove_wakeup_socket(self.path)

    def abandon_after_fork(self) -> None:
        """Close the file descriptors only; for a forked child: its parent still uses the socket."""
        self._socket.close()
        self._sender.close()

    def _listen(self) -> None:
        with contextlib.suppress(OSError):
            while not self._stopped:
                self._socket.recv(1)
                self._counter.notify()


def remove_wakeup_socket(path: str) -> None:
    """Remove the wakeup socket of a process with its folder, if it exists.

    The path comes from a file that other processes write, so only a socket of the expected name is removed, and its
    folder only if it is empty after that.
    """
    place = Path(path)
    if place.name not in _NAMES or not place.parent.name.startswith(_PREFIX):
        return
    with contextlib.suppress(OSError):
        if place.is_socket():
            place.unlink()
            place.parent.rmdir()


# A lock file begins with a header; slots follow, each with the id and the token of a claimed message. Earlier releases,
# which may use the same broker's file, write an empty lock file.
_HEADER = b"jmsjca-handover1"
_SLOT = struct.Struct("=qq")
_PAGE = 4096
UNRECORDED = -1  #: the slot of a delivery that was handed over without a record


class HandOverRecord:
    """The deliveries that this process has handed over to the application and not settled: slots in its lock file.

    The file is mapped, so that a record costs one store, and the system keeps it when the process is killed. A slot is
    reused once its message is settled or released: what it says until then is of a claim that has ended.

    Args:
        fd: The locked lock file, empty.

    Raises:
        OSError: There is no disk space for it.
    """

    def __init__(self, fd: int) -> None:
        self._fd = fd
        _extend(fd, 0, _PAGE)
        self._map = mmap.mmap(fd, _PAGE)
        self._map[: len(_HEADER)] = _HEADER
        self._map.flush()  # otherwise, after a power cut, it could be empty as if it were of an earlier release
        self._free = _slots(_SLOT.size, _PAGE)
        self._growing = threading.Lock()

    def add(self, message: int, token: int) -> int:
        """Record that a message was handed over; return its slot, or `UNRECORDED` if there is no disk space for it."""
        try:
            slot = self._free.pop()
        except IndexError:
            slot = self._grow()
        if slot != UNRECORDED:
            try:
                _SLOT.pack_into(self._map, slot, message, token)
            except ValueError:  # the map was closed, with the store
                return UNRECORDED
        return slot

    def free(self, slot: int) -> None:
        """Free a slot for another delivery. The message in the slot is settled or released."""
        if slot != UNRECORDED:
            self._free.append(slot)

    def close(self) -> None:
        """Close the map. The slots stay in the file. Idempotent."""
        with self._growing:
            self._fd = -1
            self._map.close()

    def abandon_after_fork(self) -> None:
        """Close the map in a forked child, which must not write to the map of its parent."""
        self._growing = threading.Lock()  # a thread that does not exist in the child may hold the old one
        self.close()

    def _grow(self) -> int:
        """Double the file; return a new slot, or `UNRECORDED` if there is no disk space."""
        with self._growing:
            if not self._free:
                try:
                    size = len(self._map)
                    _extend(self._fd, size, size)
                    self._map = mmap.mmap(self._fd, 2 * size)  # macOS cannot resize a map
                except (OSError, ValueError):  # the disk is full, or the store is closed
                    return UNRECORDED
                self._free += _slots(size, 2 * size)
            return self._free.pop()


def _extend(fd: int, begin: int, size: int) -> None:
    """Extend a file by zeros that have disk space. A store to a mapped page without it would kill this process."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(fd, begin, size)
        return
    while size:  # macOS
        written = os.pwrite(fd, bytes(size), begin)
        begin, size = begin + written, size - written


def _slots(begin: int, end: int) -> list[int]:
    """Return the offsets of the slots in a part of the file; the first is the last of the list."""
    return list(range(end - _SLOT.size, begin - 1, -_SLOT.size))


def _read_hand_overs(path: Path) -> set[tuple[int, int]] | None:
    """Return the messages that a process handed over, each with the token of its claim; None if it has no record.

    A process of an earlier release has none, nor one that found no disk space, nor one that used the original of this
    file if it is a copy.
    """
    try:
        fd = open_lock_file(path)
    except FileNotFoundError:
        return None
    with os.fdopen(fd, "rb") as file:
        content = file.read()
    slots = content[_SLOT.size : len(content) // _SLOT.size * _SLOT.size]
    return {(message, token) for message, token in _SLOT.iter_unpack(slots)} if content else None


_RELEASE_ALL = "UPDATE message SET owner = NULL, token = NULL WHERE owner = ?"
_UNCOUNT = "UPDATE message SET deliveries = deliveries - 1 WHERE id = ?"
_HELD = "SELECT queue_id, id, token FROM message WHERE owner = ?"
# Messages that were held while their queue or subscription was removed have no queue to return to.
_DELETE_WITHOUT_QUEUE = "DELETE FROM message WHERE owner = ? AND queue_id NOT IN (SELECT id FROM queue)"


class ProcessMembership:
    """Membership of this process in a shared file: its owner id, its liveness lock, and its wakeup socket.

    Args:
        path: The broker's file.
        counter: Notified when another process wakes this one.

    Raises:
        StoreError: No wakeup socket can be created.

    Attributes:
        folder: The folder of the lock files.
        id: The owner id, under which this process holds messages; 0 before `register`.
        wakeup_socket: The socket through which processes wake each other.
        hand_overs: The record of the deliveries that were handed over; None before `register`, or on a full disk.
        lost: True if another process took this one for dead.
    """

    def __init__(self, path: Path, counter: WakeupCounter) -> None:
        self.folder = lock_folder(path)
        self._lock_fd: int | None = None
        self.hand_overs: HandOverRecord | None = None
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
            StoreError: The folder cannot be written.
        """
        try:
            prepare_folder(self.folder)
            self._remove_left_files(cursor)
            owner, lock_fd = self._insert_owner(cursor)
            self.hand_overs = _create_record(lock_fd)
            _sync_folder(self.folder)  # for the same reason: it could be missing
        except OSError as error:
            raise StoreError(f"The folder {self.folder} cannot be written: {error.strerror}.") from error
        self.id = owner

    def _insert_owner(self, cursor: sqlite3.Cursor) -> tuple[int, int]:
        """Insert an owner with the next id whose lock file is free; return the id and the descriptor of the lock.

        Another one belongs to a removed file of this name, which this process or another one still has open.
        """
        while True:
            cursor.execute("INSERT INTO owner (pid, wakeup_path) VALUES (?, ?)", (os.getpid(), self.wakeup_socket.path))
            owner = cursor.lastrowid or 0
            # Locked before the transaction commits: no process ever sees an owner that looks dead.
            fd = self._lock_fd = open_lock_file(_lock_file(self.folder, owner), create=True)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                self._close_lock_file()
                cursor.execute("DELETE FROM owner WHERE id = ?", (owner,))
            else:
                return owner, fd

    def release(self, cursor: sqlite3.Cursor, owner: int) -> None:
        """Release the messages of this process, or of a dead one, and remove it from the owners.

        Call `remove_lock_files` when that is committed.
        """
        _release_owner(cursor, owner, _read_hand_overs(_lock_file(self.folder, owner)))

    def _remove_left_files(self, cursor: sqlite3.Cursor) -> None:
        """Remove the lock files of owners that were released by a process that ended before it removed them."""
        owners = {str(owner) for (owner,) in cursor.execute("SELECT id FROM owner")}
        for path in self.folder.glob("*.lock"):
            if path.stem not in owners and not _is_locked(path):
                path.unlink(missing_ok=True)

    def remove_lock_files(self, owners: Iterable[int]) -> None:
        """Remove the lock files of owners that were released."""
        for owner in owners:
            _lock_file(self.folder, owner).unlink(missing_ok=True)

    def is_registered(self, cursor: sqlite3.Cursor) -> bool:
        """Return False if another process took this one for dead and removed it."""
        self.lost = cursor.execute("SELECT 1 FROM owner WHERE id = ?", (self.id,)).fetchone() is None
        return not self.lost

    def dead_owners(self, cursor: sqlite3.Cursor) -> list[int]:
        """Return the ids of other owners that are dead processes."""
        owners = cursor.execute("SELECT id FROM owner WHERE id <> ?", (self.id,)).fetchall()
        return [owner for (owner,) in owners if not _is_locked(_lock_file(self.folder, owner))]

    def other_wakeup_paths(self, cursor: sqlite3.Cursor) -> list[str]:
        """Return the paths of the wakeup sockets of the other processes."""
        return [path for (path,) in cursor.execute("SELECT wakeup_path FROM owner WHERE id <> ?", (self.id,))]

    def close(self) -> None:
        """Release the liveness lock, and remove the wakeup socket. Idempotent."""
        if self.hand_overs is not None:
            self.hand_overs.close()  # it has a separate descriptor
        self._close_lock_file()
        self.wakeup_socket.close()

    def abandon_after_fork(self) -> None:
        """Close the file descriptors in a forked child; the parent keeps its lock and socket."""
        if self.hand_overs is not None:
            self.hand_overs.abandon_after_fork()
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


def _release_owner(cursor: sqlite3.Cursor, owner: int, handed_over: set[tuple[int, int]] | None) -> None:
    """Remove an owner, release its messages, and remove its consumers, client ids and temporary destinations.

    The claim of a message has counted a delivery. That stays for those that were handed over, and for all if the owner
    has no record (None).
    """
    cursor.execute(_DELETE_WITHOUT_QUEUE, (owner,))
    # First: the queues removed below have the settings by which messages are moved.
    _release_messages(cursor, owner, handed_over)
    unregister_consumers_of(cursor, owner)
    drop_of_owner(cursor, owner)
    cursor.execute("DELETE FROM client WHERE owner = ?", (owner,))
    for (queue_id,) in cursor.execute("SELECT id FROM queue WHERE owner = ?", (owner,)).fetchall():
        drop_queue(cursor, queue_id)
    row = cursor.execute("DELETE FROM owner WHERE id = ? RETURNING wakeup_path", (owner,)).fetchone()
    if row:
        remove_wakeup_socket(row[0])


def _release_messages(cursor: sqlite3.Cursor, owner: int, handed_over: set[tuple[int, int]] | None) -> None:
    """Release the messages of an owner; those that reached the maximum of deliveries are dead-lettered."""
    held: dict[int, list[int]] = {}
    unseen: list[tuple[int]] = []
    for queue_id, message, token in cursor.execute(_HELD, (owner,)):
        held.setdefault(queue_id, []).append(message)
        if handed_over is not None and (message, token) not in handed_over:
            unseen.append((message,))
    cursor.executemany(_UNCOUNT, unseen)
    cursor.execute(_RELEASE_ALL, (owner,))
    count_return(cursor, held)
    for queue_id, messages in held.items():
        dead_letter_failed(cursor, queue_id, messages)


def _lock_file(folder: Path, owner: int) -> Path:
    return folder / f"{owner}.lock"


def _create_record(lock_fd: int) -> HandOverRecord | None:
    """Create the record of a lock file that was opened; return None if there is no disk space, and leave it empty."""
    os.ftruncate(lock_fd, 0)  # of a removed broker's file of this name there may be one with this id
    try:
        return HandOverRecord(lock_fd)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        os.ftruncate(lock_fd, 0)
        return None


def _sync_folder(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _is_locked(path: Path) -> bool:
    """Return True if the process of a lock file is alive."""
    try:
        fd = open_lock_file(path)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    else:
        return False
    finally:
        os.close(fd)
