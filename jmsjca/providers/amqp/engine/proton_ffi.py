"""Every private or untyped name of proton: functions of its C library, deliveries, constants.

No other module uses a name of python-qpid-proton that is not part of its public API.

Proton's public objects create a Python object, and dictionaries for it, for each event and delivery, which costs some
50 microseconds per message; the C functions that they wrap cost a fifth of one. The names of the module `cproton_ffi`
are not guaranteed by proton. Therefore pyproject.toml accepts one minor release of the package, and the import of this
module fails for any other, and with the names that are missing. Proton attaches its constants to its classes at import,
where type checkers do not see them.

A pointer to a delivery is valid until the delivery is settled, or its link or connection is freed. Everything here
belongs on the engine thread. Proton reuses its objects, and the memory that it exposes changes with the next call:
copy bytes before anything else happens.
"""

import atexit
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
    "SENDER_SETTLED",
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

_proton: Any = proton
_VERSION: tuple[int, int, int] = _proton.VERSION
_TESTED_RELEASE = (0, 40)
_REQUIREMENT = "python-qpid-proton~=0.40.0"  # as in pyproject.toml


def _unusable(missing: str) -> ConfigurationError:
    installed = ".".join(map(str, _VERSION))
    return ConfigurationError(
        f'AMQP needs {_REQUIREMENT}, and {installed} is installed{missing}: pip install "jmsjca[amqp]"'
    )


if _VERSION[:2] != _TESTED_RELEASE:
    raise _unusable("")
try:
    _cproton: Any = import_module("cproton_ffi")  # untyped
    ffi: Any = _cproton.ffi
    lib: Any = _cproton.lib
except (ImportError, AttributeError) as error:
    raise _unusable(f", which has another inside: {error}") from error

# At exit proton would release the Python objects of its C objects while connections are in use: by a thread, or by a
# function that was registered before proton was imported, and so runs later. Then the process would abort.
_release_at_exit: Any = getattr(import_module("cproton"), "clear_retained_objects", None)
atexit.unregister(_release_at_exit)

_missing: list[str] = []


def _found(owner: Any, name: str) -> Any:
    """Return an attribute of proton's, or record that the installed release does not have it."""
    found = getattr(owner, name, None)
    if found is None:
        _missing.append(name)
    return found


def _function(name: str) -> Any:
    return _found(lib, name)


ABORTED = -11
"""Returned in place of a size: the broker aborted the transfer."""

Pointer: TypeAlias = Any  #: to an object of proton's; two pointers to the same object are equal


class Buffer:
    """Memory that both Python and proton access without copying.

    Args:
        size: Its size in bytes.

    Attributes:
        content: The memory; a slice of it is a copy.
        view: The same memory as a memoryview, for sockets.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.start: Pointer = ffi.new("char[]", size)
        self.content: Any = ffi.buffer(self.start)
        self.view = memoryview(self.content)

    def copy(self, size: int) -> bytes:
        """Return a copy of the first bytes."""
        copy: bytes = self.content[:size]
        return copy


def pointer_to(wrapped: Any) -> Pointer:
    """Return the pointer that a public object of proton's wraps."""
    return wrapped._impl  # noqa: SLF001  # proton has no public way to it


_wrap_delivery = _found(_proton.Delivery, "wrap")


def wrap_delivery(delivery: Pointer) -> Any:
    """Return proton's public object of a delivery."""
    return _wrap_delivery(delivery)


# Transport: bytes in, bytes out.
is_closed: Callable[[Pointer], bool] = _function("pn_transport_closed")
#: Bytes that it accepts; negative if it has stopped reading.
capacity: Callable[[Pointer], int] = _function("pn_transport_capacity")
tick: Callable[[Pointer, int], int] = _function("pn_transport_tick")  #: milliseconds of one monotonic clock
_push = _function("pn_transport_push")
_peek = _function("pn_transport_peek")


def push(transport: Pointer, buffer: Buffer, begin: int, end: int) -> int:
    """Pass a part of a buffer to the transport.

    Return the number of bytes it accepted; negative if it has stopped reading.
    """
    return int(_push(transport, buffer.start + begin, end - begin))


def peek(transport: Pointer, buffer: Buffer) -> int:
    """Copy pending output to a buffer. Return the number of bytes; negative if the transport has stopped writing."""
    size = pending(transport)
    return int(_peek(transport, buffer.start, min(size, buffer.size))) if size > 0 else size


pending: Callable[[Pointer], int] = _function("pn_transport_pending")
pop: Callable[[Pointer, int], None] = _function("pn_transport_pop")

# Events. `next_event` returns a null pointer, which is false, if there are no more.
next_event: Callable[[Pointer], Pointer] = _function("pn_collector_peek")
pop_event: Callable[[Pointer], bool] = _function("pn_collector_pop")
event_type: Callable[[Pointer], int] = _function("pn_event_type")
link_of: Callable[[Pointer], Pointer] = _function("pn_event_link")
session_of: Callable[[Pointer], Pointer] = _function("pn_event_session")
delivery_of: Callable[[Pointer], Pointer] = _function("pn_event_delivery")

# Receiving. `current` is the next delivery to read, or null.
current: Callable[[Pointer], Pointer] = _function("pn_link_current")
advance: Callable[[Pointer], bool] = _function("pn_link_advance")
is_partial: Callable[[Pointer], bool] = _function("pn_delivery_partial")
_receive = _function("pn_link_recv")


def receive_function(link: Pointer, buffer: Buffer) -> Callable[[], int]:
    """Return a function that copies bytes of a link's current delivery to a buffer.

    The function returns the number of bytes, `ABORTED` if the broker aborted the transfer, or another negative number
    at the end of the message.
    """
    return partial(_receive, link, buffer.start, buffer.size)


_data: Any = Data
_endpoint: Any = Endpoint
_link: Any = Link
_sasl: Any = SASL
_terminus: Any = Terminus

SASL_OK: int = _sasl.OK
RECEIVER_SETTLES_FIRST: int = _link.RCV_FIRST
REMOTE_CLOSED: int = _endpoint.REMOTE_CLOSED
SENDER_SETTLED: int = _link.SND_SETTLED
SENDER_UNSETTLED: int = _link.SND_UNSETTLED
CONFIGURATION: int = _terminus.CONFIGURATION
COORDINATOR: int = _terminus.COORDINATOR
COPY: int = _terminus.DIST_MODE_COPY
DELIVERIES: int = _terminus.DELIVERIES
EXPIRE_NEVER: int = _terminus.EXPIRE_NEVER
EXPIRE_WITH_LINK: int = _terminus.EXPIRE_WITH_LINK
TERMINUS_UNSPECIFIED: int = _terminus.UNSPECIFIED
SYMBOL_ARRAY: tuple[Any, int] = (UNDESCRIBED, _data.SYMBOL)  # how an array of symbols begins

Disposition: TypeAlias = Callable[[Iterable[Pointer]], None]  #: gives deliveries an outcome and settles them, in order

_TRANSACTIONAL = 0x34
_ACCEPTED: int = Delivery.ACCEPTED
_RELEASED: int = Delivery.RELEASED
_MODIFIED: int = Delivery.MODIFIED
_TAG_BYTES = 8

# Settling. Proton encodes consecutive deliveries with the same outcome, accepted or released, as one disposition frame.
settle: Callable[[Pointer], None] = _function("pn_delivery_settle")
_update = _function("pn_delivery_update")
_local = _function("pn_delivery_local")
_data_of = _function("pn_disposition_data")
_copy = _function("pn_data_copy")
_set_failed = _function("pn_disposition_set_failed")


def accept(deliveries: Iterable[Pointer]) -> None:
    """Accept and settle deliveries."""
    for delivery in deliveries:
        _update(delivery, _ACCEPTED)
        settle(delivery)


def release(deliveries: Iterable[Pointer]) -> None:
    """Release and settle deliveries: they were not processed."""
    for delivery in deliveries:
        _update(delivery, _RELEASED)
        settle(delivery)


def modify_failed(deliveries: Iterable[Pointer]) -> None:
    """Settle deliveries as modified with delivery-failed, which the broker counts."""
    for delivery in deliveries:
        _set_failed(_local(delivery), True)
        _update(delivery, _MODIFIED)
        settle(delivery)


def accept_in_transaction(state: bytes) -> Disposition:
    """Return a disposition that accepts deliveries in a transaction.

    Args:
        state: The fields of the transactional state, encoded.
    """
    fields = decode_state(state)

    def _accept_all(deliveries: Iterable[Pointer]) -> None:
        for delivery in deliveries:
            _copy(_data_of(_local(delivery)), fields)
            _update(delivery, _TRANSACTIONAL)
            settle(delivery)

    return _accept_all


# Sending, and the broker's outcomes.
remote_state: Callable[[Pointer], int] = _function("pn_delivery_remote_state")
is_settled: Callable[[Pointer], bool] = _function("pn_delivery_settled")
_remote = _function("pn_delivery_remote")
_encode = _function("pn_data_encode")
_new_delivery = _function("pn_delivery")
_send = _function("pn_link_send")
_new_data = _function("pn_data")
_free_data = _function("pn_data_free")
_decode = _function("pn_data_decode")


class DeliveryTags:
    """Numbers that identify the deliveries of a link.

    Attributes:
        number: The current number, in the memory that `tag` points to.
        tag: The same as proton's delivery tag.
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
        tags: The delivery tags of the link.
        payloads: The messages.
        state: The fields of the transactional state; None outside a transaction.
        settled: Number of messages, from the first, that are sent settled: the broker reports no outcome of them.

    Returns:
        The unsettled deliveries.
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
            settle(delivery)  # and move on to the next one, as `advance` does
        else:
            advance(link)
            deliveries.append(delivery)
    return deliveries


def decode_state(state: bytes) -> Pointer:
    """Decode the fields of a state into proton's data: copying these costs less than decoding them for each delivery.

    Args:
        state: The fields, encoded.
    """
    fields = ffi.gc(_new_data(0), _free_data)
    _decode(fields, state, len(state))
    return fields


def remote_data(delivery: Pointer, buffer: Buffer) -> bytes:
    """Return the encoded fields of the broker's state; empty without fields. No frame is longer than the buffer."""
    size = _encode(_data_of(_remote(delivery)), buffer.start, buffer.size)
    return buffer.copy(size) if size > 0 else b""


def remote_state_matcher(fields: bytes, buffer: Buffer) -> Callable[[Pointer], bool]:
    """Return a function that tests whether the broker's state of a delivery consists of these encoded fields.

    The test costs a third of `remote_data`. It is always False for no fields.
    """
    size, start, room, content = len(fields), buffer.start, buffer.size, buffer.content

    def _matches(delivery: Pointer) -> bool:
        return size > 0 and _encode(_data_of(_remote(delivery)), start, room) == size and content[:size] == fields

    return _matches


for _name in ("uint64_t[1]", "pn_delivery_tag_t *"):
    try:
        ffi.typeof(_name)
    except (ffi.error, KeyError):
        _missing.append(_name)
for _wrapper in (proton.Collector, proton.Transport, proton.Connection):
    _found(_wrapper(), "_impl")  # freed at once: at the exit of the interpreter proton would complain
if _missing:
    raise _unusable(f", which lacks {', '.join(dict.fromkeys(_missing))}")
