"""Whether bytes are a message: proton takes what it can read for one, and silently drops the rest."""

from proton import ProtonException

__all__ = ["UNDECODABLE", "bare", "check_sections"]

_DESCRIBED = 0
_SMALL_ULONG = 0x53
_HEAD = range(0x70, 0x73)  # header, delivery annotations, message annotations
_FIXED = {0x4: 0, 0x5: 1, 0x6: 2, 0x7: 4, 0x8: 8, 0x9: 16}  # how many bytes follow, by the upper half of the first one
_SIZED = {0xA: 1, 0xC: 1, 0xE: 1, 0xB: 4, 0xD: 4, 0xF: 4}  # how many bytes tell how many follow

# What the bytes of a message may provoke in the decoder: they may be anything, as deep and as large as they like.
UNDECODABLE = (
    ProtonException,
    ArithmeticError,
    AttributeError,
    LookupError,
    OSError,
    RecursionError,
    TypeError,
    ValueError,
)


def check_sections(raw: bytes) -> None:
    """Go from section to section to the last byte; what is inside of them is the decoder's business.

    Raises:
        ValueError: The bytes do not end where a section does, or there is none.
        LookupError: The same, or there is no type of AMQP with that code.
    """
    at = 0
    while at < len(raw):
        if raw[at] != _DESCRIBED:
            raise ValueError(f"no section begins at byte {at}")
        at = _end(raw, at)
    if at != len(raw) or not raw:
        raise ValueError("the message is cut off")


def bare(raw: bytes) -> bytes:
    """What of a message stays the same on its way (AMQP 1.0, section 3.2): all behind its header and annotations."""
    at = 0
    try:
        while raw[at] == _DESCRIBED and raw[at + 1] == _SMALL_ULONG and raw[at + 2] in _HEAD:
            at = _end(raw, at)
    except LookupError:
        return raw
    return raw[at:]


def _end(raw: bytes, at: int) -> int:
    """Where the value ends that begins here."""
    code = raw[at]
    if code == _DESCRIBED:
        return _end(raw, _end(raw, at + 1))
    at, kind = at + 1, code >> 4
    if kind in _FIXED:
        return at + _FIXED[kind]
    width = _SIZED[kind]
    return at + width + int.from_bytes(raw[at : at + width], "big")
