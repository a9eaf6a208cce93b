"""Strings of a peer that are UTF-8, or Java's modified UTF-8 where they are not.

ActiveMQ keeps strings as `DataOutput.writeUTF` of Java writes them, and may pass those bytes on in AMQP strings: NUL is
0xC0 0x80, and a character beyond 16 bits is a pair of surrogates of three bytes each.
"""

__all__ = ["decode_modified", "decode_string"]

_NUL = b"\xc0\x80"
_LAST_OF_16_BITS = "\uffff"


def decode_string(encoded: bytes) -> str:
    """Return a string from UTF-8, or from modified UTF-8 if it is not valid UTF-8.

    Raises:
        UnicodeDecodeError: The bytes are neither.
    """
    try:
        return encoded.decode()
    except UnicodeDecodeError as error:
        return decode_modified(encoded, error)


def decode_modified(encoded: bytes, error: UnicodeDecodeError) -> str:
    """Return a string from modified UTF-8.

    An unpaired surrogate is refused, although Java writes it: the string could not be sent on as UTF-8.

    Args:
        encoded: Bytes that are not UTF-8.
        error: Raised if they are not modified UTF-8 either; it names the first byte that is not UTF-8.

    Raises:
        UnicodeDecodeError: The bytes are not modified UTF-8.
    """
    try:
        units = encoded.replace(_NUL, b"\0").decode("utf-8", "surrogatepass")
        if b"\0" not in encoded and max(units) <= _LAST_OF_16_BITS:
            return units.encode("utf-16-be", "surrogatepass").decode("utf-16-be")
    except UnicodeDecodeError:
        pass
    raise error
