"""One broker's database, shared by all connections of this process."""

import itertools
import sqlite3
from pathlib import Path

from jmsjca.config import Clock, Limits
from jmsjca.providers.embedded.bell import Bell
from jmsjca.providers.embedded.member import Member
from jmsjca.providers.embedded.opening import check_format
from jmsjca.providers.embedded.owners import remove_owner
from jmsjca.providers.embedded.transactions import Transactions

__all__ = ["Store"]

_MEMORY_OWNER = 1
_REAP_INTERVAL = 0.25


class Store(Transactions):
    """A broker's database, opened once per process, and this process among those that use it.

    Args:
        path: The file; None for memory.
        limits: The bounds of the first connection that opened it.
        clock: Where time comes from.
    """

    def __init__(self, path: Path | None, limits: Limits, clock: Clock) -> None:
        super().__init__(path, limits)
        self.clock = clock
        self.bell = Bell()
        self.users = 0
        self._tokens = itertools.count(1)
        self._next_reap = 0.0
        self._member: Member | None = None
        if path is not None:
            try:
                self._join(path)
            except BaseException:
                self._let_go()
                raise

    @property
    def owner(self) -> int:
        """The id under which this process holds messages."""
        return self._member.id if self._member else _MEMORY_OWNER

    @property
    def lost(self) -> bool:
        """True if the file was removed, or this process taken for dead: who connects again must open it anew."""
        return self.database.lost or (self._member is not None and self._member.lost)

    def next_token(self) -> int:
        """A number that no other claim of this owner has."""
        return next(self._tokens)

    def now(self) -> int:
        """Milliseconds since the epoch."""
        return int(self.clock.now() * 1000)

    def ring(self, doorbells: list[str]) -> None:
        """Wake consumers here and behind these doorbells."""
        self.bell.ring()
        if self._member:
            self._member.ring(doorbells)

    def other_doorbells(self, cursor: sqlite3.Cursor) -> list[str]:
        """The doorbells of the other processes that use the file."""
        return self._member.other_doorbells(cursor) if self._member else []

    def check_owner(self, cursor: sqlite3.Cursor) -> None:
        """Make sure that what is claimed in this transaction will be given back when this process dies.

        Raises:
            ConnectionLostError: Another process took this one for dead.
        """
        if self._member:
            self._member.check_registered(cursor)

    def listen(self) -> None:
        """Let other processes wake us from now on."""
        if self._member:
            self._member.listen()

    def reap(self, *, now: bool = False) -> bool:
        """Give back what dead processes held; looks at most four times a second, or now. True if there were any."""
        moment = self.clock.monotonic()
        if self._member is None or (moment < self._next_reap and not now):
            return False
        self._next_reap = moment + _REAP_INTERVAL
        with self.read() as cursor:
            dead = self._member.find_dead(cursor)
        if dead:
            with self.write() as cursor:
                for owner in dead:
                    remove_owner(cursor, owner)
                doorbells = self.other_doorbells(cursor)
            self.ring(doorbells)
        return bool(dead)

    def close(self) -> None:
        """Give back what is held and close the file; once is enough."""
        if self._closed:
            return
        if self._member:
            self._member.hush()
        with self.lock:
            try:
                if self._member and not self.lost:
                    self._resign(self._member)
            finally:
                self._let_go()

    def abandon(self) -> None:
        """In a forked child: let the parent's lock go, touch nothing else."""
        self.forget_threads()
        if self._member:
            self._member.abandon()

    def _join(self, path: Path) -> None:
        self._member = Member(path, self.bell)
        with self.write() as cursor:
            check_format(cursor, path)
            self._member.join(cursor)
        self.reap()

    def _resign(self, member: Member) -> None:
        with self.write() as cursor:
            member.resign(cursor)
            doorbells = member.other_doorbells(cursor)
        self.ring(doorbells)

    def _let_go(self) -> None:
        self.close_database()
        if self._member:
            self._member.close()
