"""Delivery states on the wire: the outcomes of AMQP, alone or inside a transaction."""

from collections.abc import Callable
from typing import Any

from proton import Condition, Delivery, Described, symbol, ulong

__all__ = [
    "ACCEPTED",
    "COORDINATOR_CAPABILITIES",
    "DECLARED",
    "TRANSACTIONAL",
    "accept",
    "accept_in",
    "declare",
    "discharge",
    "fail",
    "outcome_of",
    "release",
]

# Descriptors of the AMQP 1.0 specification, part 4 (transactions) and part 3 (outcomes).
_DECLARE = ulong(0x31)
_DISCHARGE = ulong(0x32)
DECLARED = 0x33
TRANSACTIONAL = 0x34
_ACCEPTED = ulong(0x24)

ACCEPTED: int = Delivery.ACCEPTED
COORDINATOR_CAPABILITIES = symbol("amqp:local-transactions")

_OUTCOMES: dict[Any, int] = {
    0x24: Delivery.ACCEPTED,
    0x25: Delivery.REJECTED,
    0x26: Delivery.RELEASED,
    0x27: Delivery.MODIFIED,
}
_NAMES: dict[Any, int] = {
    "amqp:accepted:list": 0x24,
    "amqp:rejected:list": 0x25,
    "amqp:released:list": 0x26,
    "amqp:modified:list": 0x27,
}


def declare() -> Described:
    """The body that asks for a transaction."""
    return Described(_DECLARE, [])


def discharge(transaction: bytes, fail: bool) -> Described:
    """The body that ends a transaction."""
    return Described(_DISCHARGE, [transaction, fail])


def accept(delivery: Any) -> None:
    """Say that a delivery was handled."""
    delivery.update(Delivery.ACCEPTED)


def release(delivery: Any) -> None:
    """Say that nobody looked at a delivery."""
    delivery.update(Delivery.RELEASED)


def fail(delivery: Any) -> None:
    """Say that handling a delivery failed: the broker counts it."""
    delivery.local.failed = True
    delivery.update(Delivery.MODIFIED)


def accept_in(transaction: bytes) -> Callable[[Any], None]:
    """Say that a delivery was handled, if the transaction commits."""

    def update(delivery: Any) -> None:
        """Accept one delivery in the transaction."""
        delivery.local.data = [transaction, Described(_ACCEPTED, [])]
        delivery.update(TRANSACTIONAL)

    return update


def outcome_of(delivery: Any) -> tuple[int | None, Any]:
    """The broker's outcome for a message that was sent, and the error condition of a rejection.

    Within a transaction the outcome is a field of the transactional state.
    """
    state: int = delivery.remote_state
    if state != TRANSACTIONAL:
        return (int(state) or None), delivery.remote.condition
    fields: list[Any] = delivery.remote.data or []
    outcome: Any = fields[1] if len(fields) > 1 else None
    if not isinstance(outcome, Described):
        return None, None
    descriptor: Any = outcome.descriptor
    return _OUTCOMES.get(_NAMES.get(descriptor) or descriptor), _reason(outcome.value)


def _reason(outcome: Any) -> Condition | None:
    """The error in the fields of a rejection, if it has one."""
    error: Any = next(iter(outcome or ()), None)
    if not isinstance(error, Described) or not isinstance(error.value, list):
        return None
    name, description = [*error.value, None, None][:2]
    return Condition(str(name), str(description) if description else None)
