"""Proton's engine below its public objects.

What of python-qpid-proton is not its public API is named only here, and in `proton_deliveries`.

Proton's public objects make a Python object, and dictionaries for it, of every event and delivery, which costs some
fifty microseconds a message; the functions of its C library that they wrap cost a fifth of one. `cproton_ffi` gives no
promise, therefore the package is pinned, and `check_version` refuses what was not tested.

A pointer to a delivery is good until the delivery is settled, or its link or connection is freed, and everything here
belongs on the thread that has the connection. Proton uses its objects again, and what it shows of its memory changes
with the next call: bytes are copied before anything else happens.
"""

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any, TypeAlias

import proton

from jmsjca.errors import ConfigurationError

__all__ = [
    "ABORTED",
    "Buffer",
    "Pointer",
    "advance",
    "capacity",
    "check_version",
    "current",
    "delivery_of",
    "event_type",
    "ffi",
    "is_closed",
    "is_partial",
    "lib",
    "link_of",
    "next_event",
    "peek",
    "pending",
    "pointer_to",
    "pop",
    "pop_event",
    "public",
    "push",
    "receiving",
    "session_of",
    "tick",
]

_inside: Any = import_module("cproton_ffi")  # nothing tells type checkers what is in it
ffi: Any = _inside.ffi
lib: Any = _inside.lib

_TESTED = (0, 40)
_proton: Any = proton
_VERSION: tuple[int, int, int] = _proton.VERSION

ABORTED = -11
"""In place of a size: the broker gave the message up in the middle."""

_delivery: Any = _proton.Delivery

Pointer: TypeAlias = Any  #: to an object of proton's; equal to another to the same


def check_version() -> None:
    """Refuse a version of proton whose inside may be another.

    Raises:
        ConfigurationError: It is one that was not tested.
    """
    if _VERSION[:2] != _TESTED:
        raise ConfigurationError(
            "AMQP needs python-qpid-proton {}.{}, and {}.{}.{} is installed: ".format(*_TESTED, *_VERSION)
            + 'pip install "jmsjca[amqp]"'
        )


class Buffer:
    """Memory that both sides reach without copying.

    Args:
        size: How many bytes.

    Attributes:
        content: What is in it: a slice of that is a copy.
        view: The same for sockets.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.start: Pointer = ffi.new("char[]", size)
        self.content: Any = ffi.buffer(self.start)
        self.view = memoryview(self.content)

    def copy(self, size: int) -> bytes:
        """The first bytes."""
        copy: bytes = self.content[:size]
        return copy


def pointer_to(wrapped: Any) -> Pointer:
    """What a public object of proton's stands for."""
    return wrapped._impl  # noqa: SLF001  # there is no other way down


def public(delivery: Pointer) -> Any:
    """Proton's public object of a delivery."""
    return _delivery.wrap(delivery)


# A transport: bytes in, bytes out.


is_closed: Callable[[Pointer], bool] = lib.pn_transport_closed
capacity: Callable[[Pointer], int] = lib.pn_transport_capacity  #: how many bytes it takes; negative if it reads no more
_tick = lib.pn_transport_tick


def tick(transport: Pointer, now: float) -> float:
    """Let the transport do what time asks for; gives when it wants that again, 0 for never. Seconds of one clock."""
    return float(_tick(transport, int(now * 1000)) / 1000)


def push(transport: Pointer, buffer: Buffer, begin: int, end: int) -> int:
    """Let the transport read a part of a buffer; how many bytes it took, negative if it reads no more."""
    return int(lib.pn_transport_push(transport, buffer.start + begin, end - begin))


def peek(transport: Pointer, buffer: Buffer) -> int:
    """Copy what the transport wants to write to a buffer; how many bytes, negative if it writes no more."""
    size = pending(transport)
    return int(lib.pn_transport_peek(transport, buffer.start, min(size, buffer.size))) if size > 0 else size


pending: Callable[[Pointer], int] = lib.pn_transport_pending  # how many bytes are encoded: all that there are, or full
pop: Callable[[Pointer, int], None] = lib.pn_transport_pop

# Events. `next_event` gives a null pointer, which is false, if there are no more.

next_event: Callable[[Pointer], Pointer] = lib.pn_collector_peek
pop_event: Callable[[Pointer], bool] = lib.pn_collector_pop
event_type: Callable[[Pointer], int] = lib.pn_event_type
link_of: Callable[[Pointer], Pointer] = lib.pn_event_link
session_of: Callable[[Pointer], Pointer] = lib.pn_event_session
delivery_of: Callable[[Pointer], Pointer] = lib.pn_event_delivery

# Receiving. `current` is the delivery that is next to be read, null if there is none.

current: Callable[[Pointer], Pointer] = lib.pn_link_current
advance: Callable[[Pointer], bool] = lib.pn_link_advance
is_partial: Callable[[Pointer], bool] = lib.pn_delivery_partial


def receiving(link: Pointer, buffer: Buffer) -> Callable[[], int]:
    """What moves bytes of a link's current delivery to a buffer.

    It tells how many bytes: `ABORTED` if the broker gave the message up in the middle, otherwise negative at its end.
    """
    return partial(lib.pn_link_recv, link, buffer.start, buffer.size)
