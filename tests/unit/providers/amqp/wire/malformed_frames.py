"""Frames that are none, or hold what they should not: each with a name, made from the frames of an orderly broker."""

import struct

from amqp_peer.encoding import Described, Symbol, UInt, ULong, encode
from amqp_peer.frames import frame
from amqp_peer.performatives import (
    SENDER,
    Accepted,
    Attach,
    Begin,
    Close,
    Detach,
    Disposition,
    End,
    Error,
    Flow,
    Mechanisms,
    Open,
    Outcome,
    Source,
    Target,
    Transfer,
)
from amqp_peer.script import WINDOW

from tests.unit.providers.amqp.wire.cut_account import encoded

__all__ = ["VECTORS"]

ORDERLY = (
    Open(container_id="again", max_frame_size=512, channel_max=1, idle_time_out=1, properties={Symbol("a"): 1}),
    Begin(remote_channel=0, next_outgoing_id=0, incoming_window=WINDOW, outgoing_window=WINDOW, handle_max=1),
    Attach(name="a", handle=1, role=SENDER, source=Source(address="a"), target=Target(address="a")),
    Flow(next_incoming_id=0, incoming_window=1, next_outgoing_id=0, outgoing_window=1, handle=0, link_credit=1),
    Transfer(handle=0, delivery_id=0, delivery_tag=b"0", message_format=0, state=Accepted()),
    Disposition(role=SENDER, first=0, last=1, settled=True, state=Accepted()),
    Detach(handle=0, closed=True, error=Error(condition="a", description="b", info={})),
    End(error=Error(condition="a", description="b", info={})),
    Close(error=Error(condition="a", description="b", info={})),
)
STRANGE = {
    "true": True,
    "text": "text",
    "bytes": b"\xff\xfe",
    "negative": -1,
    "most": UInt(0xFFFFFFFF),
    "list": [1, [2]],
    "map": {"a": {1: None}},
    "described": Described("what", Described(ULong(0x7FFFFFFFFFFFFFFF), None)),
}
BODIES = {
    "nothing": b"",
    "no descriptor": b"\xa1\x02hi",
    "half a descriptor": b"\0",
    "descriptor without a value": b"\0\x53\x10",
    "unknown type": b"\0\x53\x10\xff",
    "list beyond the frame": b"\0\x53\x10\xd0\xff\xff\xff\xff\0\0\0\1\x40",
    "list of more than it holds": b"\0\x53\x10\xc0\x02\xff\x40",
    "list smaller than its count": b"\0\x53\x10\xd0\0\0\0\0\0\0\0\1",
    "map of three": b"\0\x53\x10\xc0\x0c\x0a" + b"\x40" * 9 + b"\xc1\x04\x03\x40\x40\x40",
    "array of four billion nulls": b"\0\x53\x10\xc0\x14\x06" + b"\x40" * 5 + b"\xf0\0\0\0\x05\xff\xff\xff\xff\x40",
    "array of arrays": b"\0\x53\x10\xc0\x0f\x06" + b"\x40" * 5 + b"\xe0\x06\x01\xe0\x04\x01\xe0\x02\x01",
    "array of lists": b"\0\x53\x10\xc0\x14\x06" + b"\x40" * 5 + b"\xf0\0\0\0\x05\x7f\xff\xff\xff\x45",
    "text that is no UTF-8": b"\0\x53\x10\xc0\x06\x01\xa1\x02\xff\xfe",
    "descriptor of a descriptor": b"\0" * 200 + b"\x53\x10\x45",
    "lists in lists": b"\0\x53\x10" + b"\xd0\0\0\x10\0\0\0\0\1" * 400,
    "a hundred fields": encode(Described(ULong(0x10), ["x"] * 100)),
    "performative as a map": encode(Described(ULong(0x14), {"handle": 0})),
    "performative as a text": encode(Described(ULong(0x14), "transfer")),
    "performative by an unknown name": encode(Described(Symbol("amqp:unknown:list"), [0])),
    "performative by a number of its own": encode(Described(-1, [0])),
}


def _raw(size, offset=2, kind=0, channel=0, body=b""):
    return struct.pack(">IBBH", size, offset, kind, channel) + body


def _headers():
    for size in range(8):
        yield f"size {size}", _raw(size)
    for size in (0x10001, 0x40001, 0x7FFFFFFF, 0xFFFFFFFF):
        yield f"size {size}", _raw(size, body=bytes(100))
    body = encode(Flow().described())
    for offset in (0, 1, 4, 255):
        yield f"offset {offset}", _raw(8 + len(body), offset, body=body)
    for kind in (1, 2, 3, 255):
        yield f"kind {kind}", _raw(8 + len(body), kind=kind, body=body)
    for channel in (1, 0x7FFF, 0xFFFF):
        yield f"channel {channel}", _raw(8 + len(body), channel=channel, body=body)
    yield "heartbeat with an extended header", _raw(12, 3, body=bytes(4))


def _bodies():
    for name, body in BODIES.items():
        yield name, _raw(8 + len(body), body=body)
    for code in (*range(0x10), *range(0x19, 0x24), 0x28, 0x29, 0x30, 0x34, 0x70, 0x78, 0xFF):
        yield (
            f"performative {code:#x}",
            _raw(12, body=b"\0\x53" + bytes([code, 0x45])),
        )


def _fields():
    for body in ORDERLY:
        fields = body.described().value
        for index in range(len(fields)):
            for name, strange in STRANGE.items():
                changed = encode(Described(ULong(body.CODE), [*fields[:index], strange, *fields[index + 1 :]]))
                yield f"{type(body).__name__} field {index} is {name}", _raw(8 + len(changed), body=changed)


def _pieces():
    for body in ORDERLY:
        data = encode(body.described())
        for end in range(1, len(data), 7):
            yield f"{type(body).__name__} up to byte {end}", _raw(8 + end, body=data[:end])


def _out_of_order():
    message = encoded("x")
    yield "transfer on no link", frame(Transfer(handle=7, delivery_id=0, delivery_tag=b"0"), payload=message)
    yield "transfer without a number", frame(Transfer(handle=0), payload=message)
    yield "transfer of a number beyond", frame(Transfer(handle=0, delivery_id=9, delivery_tag=b"9"), payload=message)
    yield "transfer without a tag", frame(Transfer(handle=0, delivery_id=0), payload=message)
    yield "transfer of a long tag", frame(Transfer(handle=0, delivery_id=0, delivery_tag=bytes(1000)), payload=message)
    yield "transfer of nothing", frame(Transfer(handle=0, delivery_id=0, delivery_tag=b"0"))
    yield "transfer that is aborted", frame(Transfer(handle=0, delivery_id=0, delivery_tag=b"0", aborted=True))
    yield "detach of no link", frame(Detach(handle=99, closed=True))
    yield "end of no session", frame(End(), 77)
    yield "attach in no session", frame(Attach(name="a", handle=0, role=SENDER), 77)
    yield "attach of a link again", frame(Attach(name="a", handle=0, role=SENDER))
    yield "flow for no link", frame(Flow(next_incoming_id=0, incoming_window=1, handle=99, link_credit=1))
    yield "flow from a receiver", frame(Flow(next_incoming_id=0, incoming_window=1, handle=0, link_credit=1000))
    for first, last in ((0, 0xFFFFFFFF), (0xFFFFFFFF, 0), (5, 1), (0, 0x7FFFFFFF)):
        yield f"settlement {first}-{last}", frame(Disposition(role=True, first=first, last=last, settled=True))
    yield "mechanisms", frame(Mechanisms(offered=[Symbol("PLAIN")]))
    yield "outcome", frame(Outcome(code=1))
    yield "twice closed", frame(Close()) + frame(Close())
    yield "closed, then a message", frame(Close()) + frame(Transfer(handle=0, delivery_id=0, delivery_tag=b"0"))


VECTORS = {name: data for part in (_headers, _bodies, _fields, _pieces, _out_of_order) for name, data in part()}
