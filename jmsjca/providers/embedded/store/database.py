"""The connection to SQLite: how a write transaction begins beside other processes, and how it ends."""

import os
import sqlite3
import time
from pathlib import Path

from jmsjca.errors import ConnectionLostError
from jmsjca.providers.embedded.opening import open_database
from jmsjca.providers.embedded.sqlite_errors import commit_error, is_busy

__all__ = ["Database"]

# Seconds between two tries to get the file's lock. SQLite's own waiting sleeps ever longer: it can starve for seconds
# beside a process that writes all the time.
_PAUSE = 0.0005


class Database:
    """An open database.

    Args:
        path: The file; None for memory.
        patience: Seconds to wait at most for the write transactions of other processes.

    Attributes:
        connection: SQLite's.
        cursor: The one that all use.
        lost: True if the file was removed or replaced.
    """

    def __init__(self, path: Path | None, patience: float) -> None:
        self._path = path
        self._patience = patience
        self._lazy = False
        self.connection = open_database(path, patience)
        self.cursor = self.connection.cursor()
        self.lost = False
        self._place = _place(path)

    def begin(self, *, durable: bool) -> None:
        """Begin a write transaction, after those of other processes.

        Args:
            durable: True if its commit must be on disk when that returns.

        Raises:
            ConnectionLostError: The file was removed or replaced: what is written to it now is lost.
            sqlite3.OperationalError: The file stayed locked.
        """
        if self._path is None:
            self.cursor.execute("BEGIN IMMEDIATE")
            return
        self._check_place()
        self._sync(lazily=not durable)
        self.cursor.execute("PRAGMA busy_timeout = 0")
        try:
            self._insist()
        finally:  # whoever reads waits as SQLite does, for a process that repairs the journal of a killed one
            self.cursor.execute(f"PRAGMA busy_timeout = {int(self._patience * 1000)}")

    def commit(self) -> None:
        """Commit, or roll back and say what is known.

        Raises:
            TransactionRolledBackError: The commit did not happen.
            TransactionInDoubtError: It may or may not have happened.
        """
        try:
            self.cursor.execute("COMMIT")
        except sqlite3.Error as error:
            self.roll_back()
            raise commit_error(error, self._path) from error

    def roll_back(self) -> None:
        """Roll back, unless SQLite has done so by itself, as when the disk is full."""
        if self.connection.in_transaction:
            self.cursor.execute("ROLLBACK")

    def close(self) -> None:
        """Close the file."""
        self.connection.close()

    def _check_place(self) -> None:
        if _place(self._path) != self._place:
            self.lost = True
            raise ConnectionLostError(
                f"{self._path} was removed or replaced while it was in use; connect again to use what is there now."
            )

    def _sync(self, *, lazily: bool) -> None:
        if lazily != self._lazy:
            self.cursor.execute(f"PRAGMA synchronous = {'NORMAL' if lazily else 'FULL'}")
            self._lazy = lazily

    def _insist(self) -> None:
        deadline = time.monotonic() + self._patience
        while True:
            try:
                self.cursor.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError as error:
                if not is_busy(error) or time.monotonic() >= deadline:
                    raise
            else:
                return
            time.sleep(_PAUSE)


def _place(path: Path | None) -> tuple[int, int] | None:
    """What tells a file from another one of its name; None if there is none."""
    if path is None:
        return None
    try:
        status = os.stat(path)  # noqa: PTH116  # at every commit: Path.stat() takes twice as long
    except OSError:
        return None
    return status.st_dev, status.st_ino
