"""Delivery states as bytes: the outcomes of AMQP, alone or in a transactional state."""

from contextlib import suppress
from typing import Any

from proton import Condition, Delivery, symbol

from jmsjca.errors import MessageFormatError
from jmsjca.providers.amqp.codec.sections import fields_of
from jmsjca.providers.common.amqp_types import MALFORMED, Described, binary, list_of, read

__all__ = [
    "ACCEPTED",
    "COORDINATOR_CAPABILITIES",
    "DECLARE",
    "DECLARED",
    "FAILURE_OUTCOMES",
    "NON_TERMINAL_STATES",
    "REJECTED",
    "RELEASED",
    "TRANSACTIONAL",
    "declared_txn_id",
    "discharge",
    "outcome_of",
    "transactional_accepted",
    "transactional_accepted_wide",
    "transactional_outcome",
    "transactional_state",
]

# Descriptors: AMQP 1.0 part 4 (transactions) and part 3 (outcomes). Encodings: part 1.
DECLARED = 0x33
TRANSACTIONAL = 0x34

ACCEPTED: int = Delivery.ACCEPTED
REJECTED: int = Delivery.REJECTED
RELEASED: int = Delivery.RELEASED
COORDINATOR_CAPABILITIES = symbol("amqp:local-transactions")

_VALUE = b"\0\x53\x77"  # the amqp-value section, which holds one value
_ACCEPTED = b"\0\x53\x24\x45"  # that outcome, encoded

#: The message that declares a transaction.
DECLARE = _VALUE + b"\0\x53\x31\x45"

_OUTCOMES: dict[Any, int] = {
    0x24: Delivery.ACCEPTED,
    0x25: Delivery.REJECTED,
    0x26: Delivery.RELEASED,
    0x27: Delivery.MODIFIED,
}
NON_TERMINAL_STATES = {0, Delivery.RECEIVED}
"""States that are no outcome."""

FAILURE_OUTCOMES = {REJECTED, Delivery.RELEASED, Delivery.MODIFIED}
"""Outcomes of a message that was not accepted."""

_OUTCOME_CODES: dict[Any, int] = {
    "amqp:accepted:list": 0x24,
    "amqp:rejected:list": 0x25,
    "amqp:released:list": 0x26,
    "amqp:modified:list": 0x27,
}


def discharge(transaction: bytes, fail: bool) -> bytes:
    """Return the message that discharges a transaction."""
    return _VALUE + b"\0\x53\x32" + list_of([binary(transaction), b"\x41" if fail else b"\x42"])


def transactional_state(transaction: bytes) -> bytes:
    """Return the fields of the state of a message sent in a transaction."""
    return list_of([binary(transaction)])


def transactional_accepted(transaction: bytes) -> bytes:
    """Return the fields of the state of a delivery that is accepted in a transaction."""
    return list_of([binary(transaction), _ACCEPTED])


def transactional_accepted_wide(transaction: bytes) -> bytes:
    """Return the state of a message that the broker accepted in a transaction, as a list with a 32-bit size.

    This is how proton encodes it.
    """
    return _long_list(binary(transaction), _ACCEPTED)


def _long_list(*fields: bytes) -> bytes:
    size = sum(map(len, fields))
    return b"\xd0" + (size + 4).to_bytes(4, "big") + len(fields).to_bytes(4, "big") + b"".join(fields)


def outcome_of(delivery: Any) -> tuple[int | None, Any]:
    """Return the broker's outcome of a sent message, None without one, and the error condition of a rejection."""
    state: int = delivery.remote_state
    return (int(state) if state not in NON_TERMINAL_STATES else None), delivery.remote.condition


def transactional_outcome(state: bytes) -> tuple[int | None, Any]:
    """Return the same for a message sent in a transaction, from the encoded fields of its state.

    Proton would create some 20 objects for each. Only the first outcome in a transaction is decoded.
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
    """Return the id in the encoded fields of the state declared; empty without one."""
    try:
        name: Any = read(state)[0][0]
    except MALFORMED:
        return b""
    return name if isinstance(name, bytes) else b""


def _reason(outcome: Any) -> Condition | None:
    """Return the error in the fields of a rejection, if there is one."""
    error: Any = next(iter(outcome or ()), None)
    if isinstance(error, Described):
        with suppress(MessageFormatError):  # the list holds other types than an error does
            name, description = fields_of(error.value, 2)
            return Condition(str(name), str(description) if description else None)
    return None
