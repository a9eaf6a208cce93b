"""Leases of the parts of an outbox: several relays share a table, and each part has one relay at a time."""

from collections.abc import Iterable, Sequence
from math import ceil

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from jmsjca.log_records import get_logger

__all__ = ["Leases"]

logger = get_logger("jmsjca.transactions")

_RELAY = "relay:"
# A lease that ends later than so many leases from now is that of a clock that was ahead, and was set back since, or is
# wrong. With fewer, a relay would take the parts of those that were given longer leases.
_LONGEST = 10


class Leases:
    """The leases of one relay. Each change of the owner raises the token of the lease, which fences the last owner.

    A new relay registers itself; the others then keep no more than their share of the parts, so that it gets its own.
    Clocks of different machines should agree within a fraction of the lease's duration. If they do not, two relays may
    send the same messages, which the broker recognises by their duplicate ids. A lease that ends later than ten leases
    from now counts as expired: it is that of a clock that was ahead.

    Args:
        table: The table of the leases.
        owner: The unique name of the relay.
        parts: The number of parts.
        seconds: The duration of a lease.
    """

    def __init__(self, table: sa.Table, owner: str, parts: int, seconds: float) -> None:
        self._table = table
        self._owner = owner
        self._parts = parts
        self._seconds = seconds
        self._has_warned = False

    def renew(self, connection: sa.Connection, now: float) -> dict[int, int]:
        """Renew the leases, take free ones up to the relay's share, and release those above it.

        Args:
            connection: A connection in a transaction.
            now: Seconds since the epoch.

        Returns:
            The token of each part that the relay has.
        """
        columns, until = self._table.c, now + self._seconds
        latest = self._latest(now)
        self._register(connection, until)
        rows = connection.execute(sa.select(self._table)).all()
        known = {row.name for row in rows}
        for part in range(self._parts):
            if _name(part) not in known:
                self._create(connection, _name(part))
        rows = connection.execute(sa.select(self._table).order_by(columns.name)).all()
        relays = sum(row.name.startswith(_RELAY) and now < row.expires <= latest for row in rows)
        share = ceil(self._parts / max(relays, 1))
        parts = [row for row in rows if not row.name.startswith(_RELAY)]
        mine = [row for row in parts if row.owner == self._owner and row.expires > now]
        self._release(connection, mine[share:])
        tokens = {row.name: row.token for row in mine[:share] if self._extend(connection, row, until)}
        expired = [row for row in parts if not now < row.expires <= latest and row.name not in tokens]
        self._warn_of_clocks([row for row in expired if row.expires > latest], now)
        for row in expired:
            if len(tokens) < share and self._take(connection, row, now, until):
                tokens[row.name] = row.token + 1
        return {int(name): token for name, token in tokens.items()}

    def still_mine(self, connection: sa.Connection, tokens: dict[int, int], now: float | None = None) -> set[int]:
        """Return the parts that the relay still has, and keep others from taking them until the transaction ends.

        Args:
            connection: A connection in a transaction.
            tokens: The tokens that the relay had.
            now: Seconds since the epoch, to renew their leases; None leaves the leases as they are.
        """
        columns = self._table.c
        expires = columns.expires if now is None else now + self._seconds
        return {
            part
            for part, token in tokens.items()
            if connection.execute(
                sa.update(self._table)
                .where(columns.name == _name(part), columns.owner == self._owner, columns.token == token)
                .values(expires=expires)
            ).rowcount
        }

    def release_all(self, connection: sa.Connection) -> None:
        """Release all leases of the relay, and its registration."""
        columns = self._table.c
        connection.execute(sa.update(self._table).where(columns.owner == self._owner).values(expires=0.0))
        connection.execute(sa.delete(self._table).where(columns.name == _RELAY + self._owner))

    def _register(self, connection: sa.Connection, until: float) -> None:
        """Write first: a transaction of SQLite that begins with a read may fail when it writes later."""
        columns, name = self._table.c, _RELAY + self._owner
        if not connection.execute(sa.update(self._table).where(columns.name == name).values(expires=until)).rowcount:
            connection.execute(sa.insert(self._table).values(name=name, owner=self._owner, token=0, expires=until))
            # Registrations of relays that died.
            long_ago = until - 100 * self._seconds
            connection.execute(
                sa.delete(self._table).where(columns.name.startswith(_RELAY), columns.expires < long_ago)
            )

    def _create(self, connection: sa.Connection, name: str) -> None:
        try:
            with connection.begin_nested():
                connection.execute(sa.insert(self._table).values(name=name, owner="", token=0, expires=0.0))
        except IntegrityError:  # another relay was faster
            return

    def _release(self, connection: sa.Connection, rows: Iterable[sa.Row[tuple[str, str, int, float]]]) -> None:
        for row in rows:
            connection.execute(
                sa.update(self._table)
                .where(self._table.c.name == row.name, self._table.c.token == row.token)
                .values(expires=0.0, owner="")
            )

    def _extend(self, connection: sa.Connection, row: sa.Row[tuple[str, str, int, float]], until: float) -> bool:
        columns = self._table.c
        changed = connection.execute(
            sa.update(self._table)
            .where(columns.name == row.name, columns.owner == self._owner, columns.token == row.token)
            .values(expires=until)
        )
        return bool(changed.rowcount)

    def _warn_of_clocks(self, rows: Sequence[sa.Row[tuple[str, str, int, float]]], now: float) -> None:
        """Log that there are such leases, once as long as there are some at each renewal."""
        warned, self._has_warned = self._has_warned, bool(rows)
        if rows and not warned:
            logger.warning(
                "%d leases of %s end %.0f s from now, and are taken over: the clock of a relay was ahead, or is. "
                "Relays of one table need clocks that agree, and leases of similar length.",
                *(len(rows), self._table, max(row.expires for row in rows) - now),
            )

    def _latest(self, now: float) -> float:
        return now + _LONGEST * self._seconds

    def _take(
        self, connection: sa.Connection, row: sa.Row[tuple[str, str, int, float]], now: float, until: float
    ) -> bool:
        columns = self._table.c
        is_expired = (columns.expires <= now) | (columns.expires > self._latest(now))
        changed = connection.execute(
            sa.update(self._table)
            .where(columns.name == row.name, columns.token == row.token, is_expired)
            .values(owner=self._owner, token=row.token + 1, expires=until)
        )
        return bool(changed.rowcount)


def _name(part: int) -> str:
    return f"{part:03d}"
