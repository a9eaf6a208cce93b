"""Deliveries below proton's public objects, as `proton_calls`: settled, sent, and what the broker says to them."""

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from proton import Delivery

from jmsjca.providers.amqp.proton_calls import Buffer, Pointer, advance, ffi, lib

__all__ = [
    "Settle",
    "Tags",
    "accept",
    "accept_in",
    "fail",
    "fields_of",
    "is_settled",
    "release",
    "remote_data",
    "remote_state",
    "says",
    "send",
    "settle",
]

Settle: TypeAlias = Callable[[Iterable[Pointer]], None]  #: gives deliveries a state, and settles them, in order

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


def fail(deliveries: Iterable[Pointer]) -> None:
    """Say that handling deliveries failed: the broker counts it."""
    for delivery in deliveries:
        lib.pn_disposition_set_failed(_local(delivery), True)
        _update(delivery, _MODIFIED)
        settle(delivery)


def accept_in(state: bytes) -> Settle:
    """Say that deliveries were handled, if a transaction commits.

    Args:
        state: The fields of the transactional state, encoded.
    """
    fields = fields_of(state)

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


class Tags:
    """Numbers that name the deliveries of a link.

    Attributes:
        number: The one in use, where `tag` has it.
        tag: The same, as proton takes it.
    """

    def __init__(self) -> None:
        self.number: Any = ffi.new("uint64_t[1]")
        self.tag: Any = ffi.new("pn_delivery_tag_t *", (_TAG_BYTES, ffi.cast("char *", self.number)))[0]


def send(
    link: Pointer, tags: Tags, payloads: Iterable[bytes], state: Pointer | None = None, settled: int = 0
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


def fields_of(state: bytes) -> Pointer:
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


def says(told: bytes, buffer: Buffer) -> Callable[[Pointer], bool]:
    """What tells whether the broker's state of a delivery is one that it told before: these fields, encoded.

    It costs a third of `remote_data`, and is False if nothing was told.
    """
    size, start, room, content = len(told), buffer.start, buffer.size, buffer.content

    def says_the_same(delivery: Pointer) -> bool:
        return size > 0 and _encode(_data_of(_remote(delivery)), start, room) == size and content[:size] == told

    return says_the_same
