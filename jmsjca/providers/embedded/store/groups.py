"""Message groups: all messages of a group go to one consumer, as long as that consumer exists.

Groups share a fixed number of buckets (`codec.encode` computes the bucket of a message). A bucket belongs to the
consumer that got its first message, until that consumer is closed or its process dies.
"""

import sqlite3

__all__ = ["claim_group", "may_claim_group", "release_groups", "remove_groups_of_queue"]


def may_claim_group(cursor: sqlite3.Cursor, queue_id: int, bucket: int, consumer: int) -> bool:
    """Return True if a bucket of message groups is free or belongs to this consumer."""
    row = cursor.execute(
        "SELECT consumer FROM message_group WHERE mailbox = ? AND bucket = ?", (queue_id, bucket)
    ).fetchone()
    return row is None or row[0] == consumer


def claim_group(cursor: sqlite3.Cursor, queue_id: int, bucket: int, consumer: int) -> None:
    """Assign a bucket of message groups to a consumer, for which `may_claim_group` returned True."""
    cursor.execute("INSERT OR IGNORE INTO message_group VALUES (?, ?, ?)", (queue_id, bucket, consumer))


def release_groups(cursor: sqlite3.Cursor, consumer: int) -> bool:
    """Release the groups of a consumer that is closed; return True if it had any."""
    return cursor.execute("DELETE FROM message_group WHERE consumer = ?", (consumer,)).rowcount > 0


def remove_groups_of_queue(cursor: sqlite3.Cursor, queue_id: int) -> None:
    """Remove the groups of a queue that is deleted."""
    cursor.execute("DELETE FROM message_group WHERE mailbox = ?", (queue_id,))
