"""Frames of AMQP by hand."""

import struct


def frame(
    performative: int, fields: bytes, count: int, channel: int = 0, *, kind: int = 0, payload: bytes = b""
) -> bytes:
    """A frame by hand."""
    body = bytes([0, 0x53, performative, 0xC0, len(fields) + 1, count]) + fields + payload
    return struct.pack(">IBBH", 8 + len(body), 2, kind, channel) + body


def transfer(number: int, payload: bytes, *, more: bool = False, aborted: bool = False, channel: int = 0) -> bytes:
    """A transfer frame on the session's first link."""
    flags = b"\x42" + (b"\x41" if more else b"\x42") + b"\x40\x40\x40" + (b"\x41" if aborted else b"\x42")
    identity = b"\x43" + b"\x70" + number.to_bytes(4, "big") + b"\xa0\4" + number.to_bytes(4, "big") + b"\x43"
    return frame(0x14, identity + flags, 10, channel, payload=payload)
