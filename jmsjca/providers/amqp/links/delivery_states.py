"""Delivery states as bytes: the outcomes of AMQP, alone or inside a transaction."""

from contextlib import suppress
from typing import Any

from proton import Condition, Delivery, symbol

from jmsjca.errors import MessageFormatError
from jmsjca.providers.amqp.codec.sections import fields_of
from jmsjca.providers.common.amqp_types import MALFORMED, Described, read

__all__ = [
    "ACCEPTED",
    "COORDINATOR_CAPABILITIES",
    "DECLARE",
    "DECLARED",
    "FAILURE_OUTCOMES",
    "NON_TERMINAL_STATES",
    "REJECTED",
    "TRANSACTIONAL",
    "declared_txn_id",
    "discharge",
    "outcome_of",
    "transactional_accepted",
    "transactional_accepted_wide",
    "transactional_outcome",
    "transactional_state",
]

# Descriptors of the AMQP 1.0 specification, part 4 (transactions) and part 3 (outcomes); its part 1 has the encodings.
DECLARED = 0x33
TRANSACTIONAL = 0x34

ACCEPTED: int = Delivery.ACCEPTED
REJECTED: int = Delivery.REJECTED
COORDINATOR_CAPABILITIES = symbol("amqp:local-transactions")

_VALUE = b"\0\x53\x77"  # begins a message of one value
_SHORT = 255  # the longest that a byte tells
_ACCEPTED = b"\0\x53\x24\x45"  # that outcome, encoded

#: The message that asks for a transaction.
DECLARE = _VALUE + b"\0\x53\x31\x45"

_OUTCOMES: dict[Any, int] = {
    0x24: Delivery.ACCEPTED,
    0x25: Delivery.REJECTED,
    0x26: Delivery.RELEASED,
    0x27: Delivery.MODIFIED,
}
NON_TERMINAL_STATES = {0, Delivery.RECEIVED}
"""States of a delivery that tell nothing final."""

FAILURE_OUTCOMES = {REJECTED, Delivery.RELEASED, Delivery.MODIFIED}
"""Outcomes of a delivery that was not taken."""

_OUTCOME_CODES: dict[Any, int] = {
    "amqp:accepted:list": 0x24,
    "amqp:rejected:list": 0x25,
    "amqp:released:list": 0x26,
    "amqp:modified:list": 0x27,
}


def discharge(transaction: bytes, fail: bool) -> bytes:
    """The message that ends a transaction."""
    return _VALUE + b"\0\x53\x32" + _list(_binary(transaction), b"\x41" if fail else b"\x42")


def transactional_state(transaction: bytes) -> bytes:
    """The fields of the state of a message that is sent in a transaction."""
    return _list(_binary(transaction))


def transactional_accepted(transaction: bytes) -> bytes:
    """The fields of the state of a delivery that is accepted if a transaction commits."""
    return _list(_binary(transaction), _ACCEPTED)


def transactional_accepted_wide(transaction: bytes) -> bytes:
    """What the broker tells of a message that it took in a transaction, as proton encodes that: with a long size."""
    return _long_list(_binary(transaction), _ACCEPTED)


def _list(*fields: bytes) -> bytes:
    size = sum(map(len, fields))
    if size < _SHORT:
        return bytes((0xC0, size + 1, len(fields))) + b"".join(fields)
    return _long_list(*fields)


def _long_list(*fields: bytes) -> bytes:
    size = sum(map(len, fields))
    return b"\xd0" + (size + 4).to_bytes(4, "big") + len(fields).to_bytes(4, "big") + b"".join(fields)


def _binary(value: bytes) -> bytes:
    if len(value) <= _SHORT:
        return bytes((0xA0, len(value))) + value
    return b"\xb0" + len(value).to_bytes(4, "big") + value


def outcome_of(delivery: Any) -> tuple[int | None, Any]:
    """The broker's outcome for a message that was sent, and the error condition of a rejection."""
    state: int = delivery.remote_state
    return (int(state) if state not in NON_TERMINAL_STATES else None), delivery.remote.condition


def transactional_outcome(state: bytes) -> tuple[int | None, Any]:
    """The same of a message that was sent in a transaction, from the fields of the state, encoded.

    Proton would make some twenty objects of each; the first answer of every transaction is looked at here.
    """
    try:
        outcome: Any = read(state)[0][1]
        if not isinstance(outcome, Described):
            return None, None
        descriptor: Any = outcome.descriptor
        return _OUTCOMES.get(_OUTCOME_CODES.get(descriptor) or descriptor), _reason(outcome.value)
    except MALFORMED:
        return None, None


def declared_txn_id(state: bytes) -> bytes:
    """The name of a transaction in the fields of the state that declares it, encoded; none if it has none."""
    try:
        name: Any = read(state)[0][0]
    except MALFORMED:
        return b""
    return name if isinstance(name, bytes) else b""


def _reason(outcome: Any) -> Condition | None:
    """The error in the fields of a rejection, if it has one."""
    error: Any = next(iter(outcome or ()), None)
    if isinstance(error, Described):
        with suppress(MessageFormatError):  # it holds no fields
            name, description = fields_of(error.value, 2)
            return Condition(str(name), str(description) if description else None)
    return None
