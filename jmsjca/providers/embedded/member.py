"""This process among those that use a file: under which id it holds messages, how it wakes others and is woken."""

import sqlite3
import tempfile
from collections.abc import Iterable
from pathlib import Path

from jmsjca.errors import ConnectionLostError, StoreError
from jmsjca.providers.embedded.bell import Bell, Doorbell
from jmsjca.providers.embedded.owners import Owner, find_dead, is_registered, lock_folder

__all__ = ["Member"]


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

    def __init__(self, path: Path, bell: Bell) -> None:
        self._folder = lock_folder(path)
        self._owner: Owner | None = None
        self.lost = False
        try:
            self._doorbell = Doorbell(bell)
        except OSError as error:
            raise StoreError(
                f"No socket can be made in {tempfile.gettempdir()}, by which other processes wake this one: {error}. "
                "Set TMPDIR to a folder that can be written and has a short name."
            ) from error

    @property
    def id(self) -> int:
        """The id under which this process holds messages; 0 before it joined."""
        return self._owner.id if self._owner else 0

    def join(self, cursor: sqlite3.Cursor) -> None:
        """Become an owner of messages.

        Args:
            cursor: A write transaction.

        Raises:
            StoreError: The folder of the lock files cannot be used.
        """
        try:
            self._owner = Owner(cursor, self._folder, self._doorbell.path)
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

    def find_dead(self, cursor: sqlite3.Cursor) -> list[int]:
        """The other owners whose processes are gone."""
        return find_dead(cursor, self._folder, self.id)

    def other_doorbells(self, cursor: sqlite3.Cursor) -> list[str]:
        """The doorbells of the others."""
        return [path for (path,) in cursor.execute("SELECT bell FROM owner WHERE id <> ?", (self.id,))]

    def ring(self, doorbells: Iterable[str]) -> None:
        """Wake others."""
        self._doorbell.ring_others(doorbells)

    def listen(self) -> None:
        """Let others wake us from now on."""
        self._doorbell.listen()

    def hush(self) -> None:
        """Hear nothing any more."""
        self._doorbell.hush()

    def resign(self, cursor: sqlite3.Cursor) -> None:
        """Give back what is held."""
        if self._owner:
            self._owner.resign(cursor)

    def close(self) -> None:
        """Let go of lock and socket."""
        if self._owner:
            self._owner.abandon()
        self._doorbell.close()

    def abandon(self) -> None:
        """In a forked child: let go of what is the parent's, without a word."""
        if self._owner:
            self._owner.abandon()
        self._doorbell.abandon()
