"""Small files of a store, each a text with its checksum, so that an empty or damaged one is found."""

import re
from zlib import crc32

from jmsjca.errors import StoreError
from jmsjca.spark.store import Store

__all__ = ["create_sealed", "damaged", "read_sealed", "replace_sealed", "seal", "unseal"]

_SEAL = b"crc32:"
# The texts of version 1: a list of keys, the number of an epoch, or the id that Spark gives a query, which is a UUID.
_VERSION_1 = re.compile(rb"\[.*\]|[0-9]+|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.DOTALL)
_REMEDY = "Restore it from a backup, or see `jmsjca spark repair --help` for what can be repaired."


def create_sealed(store: Store, name: str, text: str, common: str | None = None) -> bool:
    """Create a file with a text and its checksum. Return False if it exists already.

    Args:
        store: The store.
        name: The name of the file.
        text: The text.
        common: The name of a file that has this text for many files: they may be lost when the machine crashes. None
            for a file of its own, which is durable.
    """
    data = seal(text.encode())
    if common is None:
        return store.create(name, lambda file: file.write(data))
    return store.create_like(name, data, common)


def replace_sealed(store: Store, name: str, text: str) -> None:
    """Replace a file by a text and its checksum."""
    store.replace(name, seal(text.encode()))


def read_sealed(store: Store, name: str) -> str | None:
    """Return a text that has a checksum; None if there is no file. The texts of version 1 have no checksum.

    Raises:
        StoreError: The file is empty or damaged.
    """
    try:
        with store.open(name) as file:
            data = file.read()
    except FileNotFoundError:
        return None
    if _VERSION_1.fullmatch(data):
        return data.decode(errors="replace")
    try:
        return unseal(data).decode()
    except ValueError as error:
        raise damaged(store, name, str(error)) from error


def damaged(store: Store, name: str, problem: str) -> StoreError:
    """Return the error for a file that cannot be used."""
    return StoreError(
        f"The file {store.address(name)} is damaged: {problem}. Without it jmsjca cannot know which messages were"
        f" processed. {_REMEDY}"
    )


def seal(data: bytes) -> bytes:
    """Return a short text with its checksum in front, so that a truncated text is found too."""
    return b"%b%08x %b" % (_SEAL, crc32(data), data)


def unseal(sealed: bytes) -> bytes:
    """Return the text that was sealed.

    Raises:
        ValueError: The checksum does not match, or is missing.
    """
    head, _, data = sealed.partition(b" ")
    if head != b"%b%08x" % (_SEAL, crc32(data)):
        raise ValueError("its checksum does not match" if sealed else "it is empty")
    return data
