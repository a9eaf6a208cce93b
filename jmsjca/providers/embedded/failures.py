"""Messages that expired or failed too often: deleted, or moved where their destination's settings say."""

import sqlite3
from collections.abc import Iterable
from typing import Any, NamedTuple

from jmsjca.destinations import Destination
from jmsjca.providers.embedded.codec import Outgoing, header_text
from jmsjca.providers.embedded.digests import relabelled
from jmsjca.providers.embedded.mailboxes import read_mailbox_settings
from jmsjca.providers.embedded.sending import Sender, insert
from jmsjca.providers.embedded.stored_headers import UNDECODABLE
from jmsjca.providers.values import from_json

__all__ = ["bury", "bury_failed", "expire"]

_CHUNK = 100
_EXPIRED_TO_MOVE = """SELECT message.id, message.mailbox FROM message INDEXED BY message_expires
                      JOIN mailbox ON mailbox.id = message.mailbox
                      WHERE message.expires <= ? AND message.owner IS NULL
                        AND json_extract(mailbox.settings, '$.expiry') IS NOT NULL LIMIT ?"""
_EXPIRE = "DELETE FROM message WHERE expires <= ? AND owner IS NULL"
_FAILED = "SELECT id FROM message WHERE id = ? AND owner IS NULL AND deliveries >= ?"
_CONTENT = "SELECT urgency, expires, bucket, digest, CAST(headers AS BLOB), body FROM message WHERE id = ?"
_DELETE = "DELETE FROM message WHERE id = ?"


class _Content(NamedTuple):
    urgency: int
    expires: int | None
    bucket: int | None
    digest: int | None
    headers: bytes
    body: bytes | None


def expire(cursor: sqlite3.Cursor, now: int) -> bool:
    """Take away what has expired by now, in all mailboxes; tell whether anything was moved.

    Args:
        cursor: A write transaction.
        now: Milliseconds since the epoch.
    """
    moved = False
    while rows := cursor.execute(_EXPIRED_TO_MOVE, (now, _CHUNK)).fetchall():
        moved = True
        for message, mailbox in rows:
            settings = read_mailbox_settings(cursor, mailbox)
            _move(cursor, message, settings.expiry if settings else None, expired=True)
    cursor.execute(_EXPIRE, (now,))
    return moved


def bury_failed(cursor: sqlite3.Cursor, mailbox: int, messages: Iterable[int]) -> None:
    """Take away those of a mailbox's messages that were delivered as often as its settings allow."""
    settings = read_mailbox_settings(cursor, mailbox)
    if settings is None or settings.max_deliveries is None:
        return
    failed = [m for m in messages if cursor.execute(_FAILED, (m, settings.max_deliveries)).fetchone()]
    bury(cursor, failed, settings.dead_letter)


def bury(cursor: sqlite3.Cursor, messages: Iterable[int], to: Destination | None) -> None:
    """Move messages to a dead-letter destination; without one they are deleted."""
    for message in messages:
        _move(cursor, message, to)


def _move(cursor: sqlite3.Cursor, message: int, to: Destination | None, *, expired: bool = False) -> None:
    if to is not None:
        content = _Content(*cursor.execute(_CONTENT, (message,)).fetchone())
        headers = _relabelled(content, to, expired=expired)
        written = headers if isinstance(headers, bytes) else headers.encode()
        digest = relabelled(content.digest, content.headers, written)
        outgoing = Outgoing(to, content.urgency, None, None, headers, content.body, None, content.bucket, digest)
        insert(cursor, [outgoing], Sender())
    cursor.execute(_DELETE, (message,))


def _relabelled(content: _Content, to: Destination, *, expired: bool) -> str | bytes:
    """The headers with the new destination, and the old one as Artemis names it; as they are if they are no headers."""
    try:
        fields: dict[str, Any] = from_json(content.headers.decode())
        properties = fields.setdefault("p", {})
        properties.update({"_AMQ_ORIG_ADDRESS": fields["to"][1], "_AMQ_ORIG_MESSAGE_ID": fields.get("id")})
        if expired:
            properties["_AMQ_ACTUAL_EXPIRY"] = content.expires
            fields.setdefault("t", {})["_AMQ_ACTUAL_EXPIRY"] = "long"
        fields["to"] = [to.kind, to.name]
        return header_text(fields)
    except UNDECODABLE:
        return content.headers
