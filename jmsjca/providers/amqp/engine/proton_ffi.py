"""Proton's engine below its public objects: functions of its C library, deliveries, constants.

What of python-qpid-proton is not its public API is named only here.

Proton's public objects make a Python object, and dictionaries for it, of every event and delivery, which costs some
fifty microseconds a message; the functions of its C library that they wrap cost a fifth of one. `cproton_ffi` gives no
promise, therefore the package is pinned, and `check_version` refuses what was not tested. Proton attaches its constants
to its classes when it is imported, unseen by type checkers.

A pointer to a delivery is good until the delivery is settled, or its link or connection is freed, and everything here
belongs on the thread that has the connection. Proton uses its objects again, and what it shows of its memory changes
with the next call: bytes are copied before anything else happens.
"""

from collections.abc import Callable, Iterable
from functools import partial
from importlib import import_module
from typing import Any, TypeAlias

import proton
from proton import SASL, UNDESCRIBED, Data, Delivery, Endpoint, Link, Terminus

from jmsjca.errors import ConfigurationError

__all__ = [
    "ABORTED",
    "CONFIGURATION",
    "COORDINATOR",
    "COPY",
    "DELIVERIES",
    "EXPIRE_NEVER",
    "EXPIRE_WITH_LINK",
    "RECEIVER_SETTLES_FIRST",
    "REMOTE_CLOSED",
    "SASL_OK",
    "SENDER_UNSETTLED",
    "SYMBOL_ARRAY",
    "TERMINUS_UNSPECIFIED",
    "Buffer",
    "DeliveryTags",
    "Disposition",
    "Pointer",
    "accept",
    "accept_in_transaction",
    "advance",
    "capacity",
    "check_version",
    "current",
    "decode_state",
    "delivery_of",
    "event_type",
    "ffi",
    "is_closed",
    "is_partial",
    "is_settled",
    "lib",
    "link_of",
    "modify_failed",
    "next_event",
    "peek",
    "pending",
    "pointer_to",
    "pop",
    "pop_event",
    "push",
    "receive_function",
    "release",
    "remote_data",
    "remote_state",
    "remote_state_matcher",
    "send",
    "session_of",
    "settle",
    "tick",
    "wrap_delivery",
]

_cproton: Any = import_module("cproton_ffi")  # nothing tells type checkers what is in it
ffi: Any = _cproton.ffi
lib: Any = _cproton.lib

_TESTED_RELEASE = (0, 40)
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
    if _VERSION[:2] != _TESTED_RELEASE:
        raise ConfigurationError(
            "AMQP needs python-qpid-proton {}.{}, and {}.{}.{} is installed: ".format(*_TESTED_RELEASE, *_VERSION)
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


def wrap_delivery(delivery: Pointer) -> Any:
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


def receive_function(link: Pointer, buffer: Buffer) -> Callable[[], int]:
    """What moves bytes of a link's current delivery to a buffer.

    It tells how many bytes: `ABORTED` if the broker gave the message up in the middle, otherwise negative at its end.
    """
    return partial(lib.pn_link_recv, link, buffer.start, buffer.size)


_data: Any = Data
_endpoint: Any = Endpoint
_link: Any = Link
_sasl: Any = SASL
_terminus: Any = Terminus

SASL_OK: int = _sasl.OK
RECEIVER_SETTLES_FIRST: int = _link.RCV_FIRST
REMOTE_CLOSED: int = _endpoint.REMOTE_CLOSED
SENDER_UNSETTLED: int = _link.SND_UNSETTLED
CONFIGURATION: int = _terminus.CONFIGURATION
COORDINATOR: int = _terminus.COORDINATOR
COPY: int = _terminus.DIST_MODE_COPY
DELIVERIES: int = _terminus.DELIVERIES
EXPIRE_NEVER: int = _terminus.EXPIRE_NEVER
EXPIRE_WITH_LINK: int = _terminus.EXPIRE_WITH_LINK
TERMINUS_UNSPECIFIED: int = _terminus.UNSPECIFIED
SYMBOL_ARRAY: tuple[Any, int] = (UNDESCRIBED, _data.SYMBOL)  # what an array of symbols begins with

Disposition: TypeAlias = Callable[[Iterable[Pointer]], None]  #: gives deliveries a state, and settles them, in order

_TRANSACTIONAL = 0x34
_ACCEPTED: int = Delivery.ACCEPTED
_RELEASED: int = Delivery.RELEASED
_MODIFIED: int = Delivery.MODIFIED
_TAG_BYTES = 8

# Settling. Proton makes one frame of many that are accepted, or released, one after the other.
settle: Callable[[Pointer], None] = lib.pn_delivery_settle
_update = lib.pn_delivery_update
_local = lib.pn_delivery_local
_data_of = lib.pn_disposition_data
_copy = lib.pn_data_copy


def accept(deliveries: Iterable[Pointer]) -> None:
    """Say that deliveries were handled."""
    for delivery in deliveries:
        _update(delivery, _ACCEPTED)
        settle(delivery)


def release(deliveries: Iterable[Pointer]) -> None:
    """Say that nobody looked at deliveries."""
    for delivery in deliveries:
        _update(delivery, _RELEASED)
        settle(delivery)


def modify_failed(deliveries: Iterable[Pointer]) -> None:
    """Say that handling deliveries failed: the broker counts it."""
    for delivery in deliveries:
        lib.pn_disposition_set_failed(_local(delivery), True)
        _update(delivery, _MODIFIED)
        settle(delivery)


def accept_in_transaction(state: bytes) -> Disposition:
    """Say that deliveries were handled, if a transaction commits.

    Args:
        state: The fields of the transactional state, encoded.
    """
    fields = decode_state(state)

    def accept_all(deliveries: Iterable[Pointer]) -> None:
        for delivery in deliveries:
            _copy(_data_of(_local(delivery)), fields)
            _update(delivery, _TRANSACTIONAL)
            settle(delivery)

    return accept_all


# Sending, and what the broker says to it.
remote_state: Callable[[Pointer], int] = lib.pn_delivery_remote_state
is_settled: Callable[[Pointer], bool] = lib.pn_delivery_settled
_remote = lib.pn_delivery_remote
_encode = lib.pn_data_encode
_new_delivery = lib.pn_delivery
_send = lib.pn_link_send


class DeliveryTags:
    """Numbers that name the deliveries of a link.

    Attributes:
        number: The one in use, where `tag` has it.
        tag: The same, as proton takes it.
    """

    def __init__(self) -> None:
        self.number: Any = ffi.new("uint64_t[1]")
        self.tag: Any = ffi.new("pn_delivery_tag_t *", (_TAG_BYTES, ffi.cast("char *", self.number)))[0]


def send(
    link: Pointer, tags: DeliveryTags, payloads: Iterable[bytes], state: Pointer | None = None, settled: int = 0
) -> list[Pointer]:
    """Send encoded messages.

    Args:
        link: The sender.
        tags: Those of the link.
        payloads: The messages.
        state: The fields of the transactional state; None outside any transaction.
        settled: How many of the first the broker is not to answer.

    Returns:
        The deliveries that it answers.
    """
    deliveries: list[Pointer] = []
    number, tag = tags.number, tags.tag
    for place, payload in enumerate(payloads):
        number[0] += 1
        delivery = _new_delivery(link, tag)  # which copies the tag
        if state is not None:
            _copy(_data_of(_local(delivery)), state)
            _update(delivery, _TRANSACTIONAL)
        _send(link, payload, len(payload))
        if place < settled:
            settle(delivery)  # and go on to the next one, as `advance` does
        else:
            advance(link)
            deliveries.append(delivery)
    return deliveries


def decode_state(state: bytes) -> Pointer:
    """The fields of a state as proton has them: to copy those takes less than to decode them for each delivery.

    Args:
        state: The same, encoded.
    """
    fields = ffi.gc(lib.pn_data(0), lib.pn_data_free)
    lib.pn_data_decode(fields, state, len(state))
    return fields


def remote_data(delivery: Pointer, buffer: Buffer) -> bytes:
    """The fields of the broker's state, encoded; nothing if there are none: no frame is longer than the buffer."""
    size = _encode(_data_of(_remote(delivery)), buffer.start, buffer.size)
    return buffer.copy(size) if size > 0 else b""


def remote_state_matcher(told: bytes, buffer: Buffer) -> Callable[[Pointer], bool]:
    """What tells whether the broker's state of a delivery is one that it told before: these fields, encoded.

    It costs a third of `remote_data`, and is False if nothing was told.
    """
    size, start, room, content = len(told), buffer.start, buffer.size, buffer.content

    def says_the_same(delivery: Pointer) -> bool:
        return size > 0 and _encode(_data_of(_remote(delivery)), start, room) == size and content[:size] == told

    return says_the_same
