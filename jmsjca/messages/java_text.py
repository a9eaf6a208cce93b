"""Text as Java's ``writeUTF`` writes it: UTF-8 of each 16-bit half of a character, and NUL in two bytes."""

__all__ = ["decode", "encode"]

_NUL = b"\xc0\x80"


def encode(text: str) -> bytes:
    """Encode a text, without its length."""
    halves = text.encode("utf-16-be", "surrogatepass")
    units = (int.from_bytes(halves[n : n + 2], "big") for n in range(0, len(halves), 2))
    return "".join(map(chr, units)).encode("utf-8", "surrogatepass").replace(b"\0", _NUL)


def decode(data: bytes) -> str:
    """Decode a text.

    Raises:
        UnicodeDecodeError: The bytes are none.
    """
    halves = data.replace(_NUL, b"\0").decode("utf-8", "surrogatepass").encode("utf-16-be", "surrogatepass")
    return halves.decode("utf-16-be", "surrogatepass")
