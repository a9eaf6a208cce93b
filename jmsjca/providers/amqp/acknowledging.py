"""Deliveries of a unit acknowledged outside any transaction: the broker is told soon, or waited for."""

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from jmsjca.errors import JMSError, TransactionInDoubtError
from jmsjca.providers.amqp.consumer import AMQPConsumer
from jmsjca.providers.amqp.delivery import AMQPDelivery
from jmsjca.providers.amqp.proof import prove
from jmsjca.providers.amqp.proton_deliveries import accept

if TYPE_CHECKING:
    from jmsjca.providers.amqp.wire import Wire

__all__ = ["acknowledge", "acknowledge_soon", "let_go"]

Taken: TypeAlias = Mapping[AMQPConsumer, Sequence[AMQPDelivery]]  #: by their consumers


def acknowledge(wire: "Wire", taken: Taken, seconds: float) -> None:
    """Acknowledge, and wait until the broker has noted it. The deliveries are nobody's afterwards.

    Args:
        wire: The connection's links.
        taken: The deliveries.
        seconds: How long to wait for each answer of the broker.

    Raises:
        TransactionInDoubtError: It may not have happened.
    """
    proofs: list[Future[None]] = [Future() for _ in taken]
    try:
        wire.tell(partial(_accept_and_ask, taken, proofs), proofs[0])
        for each in proofs:
            wire.wait(each, seconds, "the acknowledgement of messages")
    except JMSError as error:
        raise _in_doubt(error) from error
    finally:
        let_go(taken)


def acknowledge_soon(taken: Taken) -> None:
    """Acknowledge without waiting; that may get lost. The deliveries are nobody's afterwards.

    Raises:
        TransactionInDoubtError: That it did get lost is known already.
    """
    try:
        for consumer, deliveries in taken.items():
            consumer.accept_soon(deliveries)
        for consumer in taken:
            consumer.check_link()
    except JMSError as error:
        raise _in_doubt(error) from error
    finally:
        let_go(taken)


def let_go(taken: Taken) -> None:
    """Nothing more is to be done; whether the links of closed consumers end well changes nothing for their unit."""
    for consumer, deliveries in taken.items():
        consumer.let_go(deliveries)
        if consumer.closed:
            with suppress(JMSError):
                consumer.end_if_done()


def _accept_and_ask(taken: Taken, proofs: "Sequence[Future[None]]") -> None:
    """Acknowledge what can be: a link that has ended holds up no other, and tells why. On the engine's thread."""
    for consumer, deliveries in taken.items():
        with suppress(JMSError):
            consumer.settle(deliveries, accept)
    for consumer, each in zip(taken, proofs, strict=True):
        prove(consumer, each)


def _in_doubt(error: JMSError) -> TransactionInDoubtError:
    return TransactionInDoubtError(f"The broker did not confirm the acknowledgements: {error}")
