"""How a consumer comes to its messages: look whether there are any, choose where it must, claim."""

import sqlite3
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from jmsjca.config import DestinationSettings
from jmsjca.providers.embedded.claiming import claim, make_ready, of_ids, ready
from jmsjca.providers.embedded.consumers import is_first
from jmsjca.providers.embedded.delivery import EmbeddedDelivery, Row
from jmsjca.providers.embedded.failures import bury, expire
from jmsjca.providers.embedded.mailboxes import Mailbox, read_mailbox
from jmsjca.providers.embedded.matching import Match
from jmsjca.providers.embedded.rows import Hold
from jmsjca.providers.embedded.scan import Found, Scan
from jmsjca.providers.embedded.store import Store

__all__ = ["Claims", "Position"]

_DEFAULTS = DestinationSettings()
_Candidates = Callable[[sqlite3.Cursor, int | None], Iterable[Row]]  # with how often a message is delivered at most


class Position(NamedTuple):
    """Where a consumer stands: its mailbox, and its number among all consumers."""

    mailbox: int
    number: int


class Claims:
    """Claims what a consumer may take.

    Args:
        store: The broker's database.
        position: Whose messages, under which number.
        selector: Which of them; None for all.
        max_bytes: The largest size of one chunk; one message always passes.
        keep: Makes deliveries of a claim, under the lock of the store: whoever closes the consumer there knows of all.

    Attributes:
        closed: Set under the lock of the store; then nothing is claimed any more.
    """

    def __init__(
        self,
        store: Store,
        position: Position,
        selector: str | None,
        max_bytes: int,
        keep: Callable[[Sequence[Row], Hold], Sequence[EmbeddedDelivery]],
    ) -> None:
        self._store = store
        self._mailbox, self._number = position
        self._max_bytes = max_bytes
        self._keep = keep
        self._scan = Scan(store, self._mailbox, Match(selector, self._number))
        self._choosy = selector is not None
        self._busy = False
        self.closed = False

    def claim(self, limit: int) -> Sequence[EmbeddedDelivery]:
        """Claim the next messages, if there are any; what had expired or failed does not hide what is behind it.

        Args:
            limit: How many at most.
        """
        claimed = None
        while claimed is None:
            claimed = self._claim_next(limit)
        return claimed

    def _claim_next(self, limit: int) -> Sequence[EmbeddedDelivery] | None:
        """None if all that was found is gone by now, so that there is reason to look again."""
        if self._choosy:
            found = self._find(limit)
            return self._claim_found(found) if found else []
        if self._busy or self._is_ready():  # a busy consumer need not look before it takes the lock
            return self._claim(lambda cursor, _: ready(cursor, self._mailbox, limit))
        return []

    def _is_ready(self) -> bool:
        with self._store.read() as cursor:
            state = read_mailbox(cursor, self._mailbox, self._store.now())
            if state is None or not (state.ready or state.due or state.expired):  # what expired elsewhere may come here
                return False
            return self._may_claim(cursor, state)

    def _find(self, limit: int) -> list[Found]:
        with self._store.read() as cursor:
            state = read_mailbox(cursor, self._mailbox, self._store.now())
            if state is None or not self._may_claim(cursor, state):
                return []
        if state.due or state.expired:
            state = self._bring_up_to_date()
        return [] if state is None else self._scan.find(state.returns, limit)

    def _bring_up_to_date(self) -> Mailbox | None:
        """Let what is due by now be ready, and what has expired go where it belongs: that may be here."""
        store, now = self._store, self._store.now()
        with store.write(durable=False) as cursor:
            make_ready(cursor, self._mailbox, now)
            moved = expire(cursor, now)
            doorbells = store.other_doorbells(cursor) if moved else []
            state = read_mailbox(cursor, self._mailbox, now)
        if moved:
            store.ring(doorbells)
        return state

    def _claim_found(self, found: Sequence[Found]) -> Sequence[EmbeddedDelivery] | None:
        ids = [candidate.id for candidate in found]
        used = 0
        try:
            claimed = self._claim(lambda cursor, most: of_ids(cursor, self._mailbox, self._number, ids, most))
            used = ids.index(claimed[-1].id) + 1 if claimed else len(ids)
        finally:
            self._scan.put_back(found[used:])
        return claimed or None

    def _claim(self, candidates: _Candidates) -> Sequence[EmbeddedDelivery] | None:
        store = self._store
        hold = Hold(self._mailbox, store.owner, store.next_token())
        with store.lock:  # until the claim is kept
            with store.write(durable=False) as cursor:
                store.check_owner(cursor)
                rows, moved = self._take(cursor, hold, candidates)
                doorbells = store.other_doorbells(cursor) if moved else []
            self._busy = bool(rows)
            claimed = self._keep(rows, hold)
        if moved:
            store.ring(doorbells)
        return claimed or (None if moved else [])

    def _take(self, cursor: sqlite3.Cursor, hold: Hold, candidates: _Candidates) -> tuple[Sequence[Row], bool]:
        """Claim what is there by now; tell whether there is reason to look again, here or elsewhere."""
        now = self._store.now()
        state = read_mailbox(cursor, self._mailbox, now)
        if state is None or not self._may_claim(cursor, state):
            return [], False
        moved = state.expired and expire(cursor, now)
        if state.due:
            make_ready(cursor, self._mailbox, now)
        if state.grouped and not self._choosy:
            self._choosy = True
            return [], True
        settings = state.settings or _DEFAULTS
        most = settings.max_deliveries
        rows, failed = claim(cursor, hold, candidates(cursor, most), self._max_bytes, most)
        bury(cursor, failed, settings.dead_letter)
        return rows, moved or bool(failed)

    def _may_claim(self, cursor: sqlite3.Cursor, state: Mailbox) -> bool:
        if self.closed:
            return False
        exclusive = state.settings is not None and state.settings.exclusive
        return not exclusive or is_first(cursor, self._mailbox, self._number)
