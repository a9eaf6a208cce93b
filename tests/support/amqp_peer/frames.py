"""Frames: a size, an offset, a channel, a performative and the bytes behind it."""

import struct
from typing import NamedTuple

from amqp_peer.encoding import Composite, composed, decode, encode
from amqp_peer.performatives import Init, Mechanisms, Outcome

__all__ = ["AMQP", "SASL", "Frame", "Header", "frame", "read_frames"]

_SASL_TYPES = (Mechanisms, Init, Outcome)


class Header(bytes):
    """The eight bytes with which each layer begins."""

    __slots__ = ()


AMQP, SASL = Header(b"AMQP\0\1\0\0"), Header(b"AMQP\3\1\0\0")


class Frame(NamedTuple):
    """One frame; without a body it is a heartbeat."""

    body: Composite | None
    channel: int = 0
    payload: bytes = b""

    def __str__(self):
        behind = f" + {len(self.payload)} bytes" if self.payload else ""
        return f"{self.channel}: {self.body}{behind}" if self.body else "heartbeat"


def frame(body, channel=0, payload=b""):
    """The bytes of a frame."""
    data = (encode(body) if body else b"") + payload
    return struct.pack(">IBBH", 8 + len(data), 2, isinstance(body, _SASL_TYPES), channel) + data


def read_frames(buffer):
    """Take the headers and frames that are whole from the front of a bytearray."""
    while len(buffer) >= 8:
        size = 8 if buffer.startswith(b"AMQP") else int.from_bytes(buffer[:4], "big")
        if len(buffer) < size:
            return
        data = bytes(buffer[:size])
        del buffer[:size]
        yield Header(data) if data.startswith(b"AMQP") else _parsed(data)


def _parsed(data):
    at, channel = data[4] * 4, int.from_bytes(data[6:8], "big")
    if at == len(data):
        return Frame(None, channel)
    body, end = decode(data, at)
    return Frame(composed(body), channel, data[end:])
