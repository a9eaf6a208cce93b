"""Digests of stored messages, so that what a disk or a memory has changed is noticed before anybody works with it.

SQLite has checksums for its journal only: a bit that flips in the file itself would arrive as part of a message.
"""

from zlib import crc32

from jmsjca.errors import MessageFormatError

__all__ = ["check_digest", "digest_of", "relabelled"]


def digest_of(headers: bytes, body: bytes | None) -> int:
    """The digest of a message as it is stored."""
    return crc32(headers) ^ crc32(body or b"")


def relabelled(digest: int | None, before: bytes, after: bytes) -> int | None:
    """The digest with other headers: it is right if it was right before, so that no damage is hidden."""
    return None if digest is None else digest ^ crc32(before) ^ crc32(after)


def check_digest(digest: int | None, headers: bytes, body: bytes | None) -> None:
    """Make sure that a message is what was stored. In memory there are no digests, nor in files of the first release.

    Raises:
        MessageFormatError: It is not.
    """
    if digest is not None and digest != digest_of(headers, body):
        raise MessageFormatError("The stored message is damaged: its bytes are not those that were sent.")
