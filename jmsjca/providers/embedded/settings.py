"""The settings of destinations: kept by address, and copied to every mailbox that they hold for."""

import json
import sqlite3
from dataclasses import asdict
from functools import lru_cache
from typing import Any

from jmsjca.config import DestinationSettings
from jmsjca.destinations import Destination, destination

__all__ = ["decode_settings", "read_settings", "settings_text", "write_settings"]

_DEFAULT = ""  # the address of the settings that hold where there are none of one's own


def write_settings(cursor: sqlite3.Cursor, address: Destination | None, settings: DestinationSettings) -> None:
    """Keep settings for an address, or for all that have none (None), and apply them to the mailboxes there are."""
    key = _DEFAULT if address is None else str(address)
    cursor.execute("INSERT OR REPLACE INTO setting VALUES (?, ?)", (key, _encode(settings)))
    for mailbox, name, topic in cursor.execute("SELECT id, name, topic FROM mailbox").fetchall():
        of = destination(name, "queue") if topic is None else destination(topic, "topic")
        if address is None or str(address) == str(of):  # a temporary queue's mailbox is a queue's
            cursor.execute("UPDATE mailbox SET settings = ? WHERE id = ?", (settings_text(cursor, of), mailbox))


def read_settings(cursor: sqlite3.Cursor, address: Destination | None) -> DestinationSettings:
    """Tell what holds for an address; for None, what holds where nothing else does."""
    text = _kept(cursor, _DEFAULT) if address is None else settings_text(cursor, address)
    return decode_settings(text) or DestinationSettings()


def settings_text(cursor: sqlite3.Cursor, address: Destination) -> str | None:
    """The settings of an address as a mailbox keeps them; None if there are none."""
    text = _kept(cursor, str(address)) or _kept(cursor, _DEFAULT)
    settings = decode_settings(text)
    return None if settings is None else _encode(_without_circles(settings, address))


@lru_cache(1000)
def decode_settings(text: str | None) -> DestinationSettings | None:
    """Read settings as a mailbox keeps them."""
    if text is None:
        return None
    fields: dict[str, Any] = json.loads(text)
    for name in ("dead_letter", "expiry"):
        if fields.get(name):
            kind, where = fields[name]
            fields[name] = destination(where, kind)
    return DestinationSettings(**fields)


def _encode(settings: DestinationSettings) -> str:
    places = {name: getattr(settings, name) for name in ("dead_letter", "expiry")}
    return json.dumps({**asdict(settings), **{name: p and (p.kind, p.name) for name, p in places.items()}})


def _without_circles(settings: DestinationSettings, address: Destination) -> DestinationSettings:
    """A dead-letter or expiry destination does not send messages to itself: there they stay, or are deleted."""
    fails, expires = settings.dead_letter == address, settings.expiry == address
    return DestinationSettings(
        max_deliveries=None if fails else settings.max_deliveries,
        dead_letter=None if fails else settings.dead_letter,
        expiry=None if expires else settings.expiry,
        exclusive=settings.exclusive,
    )


def _kept(cursor: sqlite3.Cursor, key: str) -> str | None:
    row = cursor.execute("SELECT settings FROM setting WHERE address = ?", (key,)).fetchone()
    return None if row is None else str(row[0])
