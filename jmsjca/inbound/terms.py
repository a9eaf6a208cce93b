"""The terms by which an endpoint delivers: what of its activation spec the deliveries need to know."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from jmsjca.config import AcknowledgeMode
from jmsjca.destinations import Destination, Subscription, destination
from jmsjca.redelivery import RedeliveryPolicy

if TYPE_CHECKING:
    from jmsjca.config import ActivationSpec

__all__ = ["Mode", "Terms", "terms_of"]

Mode = Literal["serial", "cc", "sync"]


_NOTHING = RedeliveryPolicy.parse("")


@dataclass(frozen=True, slots=True)
class Terms:
    """How an endpoint delivers.

    Attributes:
        source: What is consumed from.
        destination: The same, as a moved message tells it.
        selector: Which messages.
        mode: The concurrency mode.
        pool_size: How many handlers may be at work at one time; 1 in serial mode.
        batch_size: How many messages a batch has at most; 0 if there are no batches.
        alone: True if the messages of a failed batch come again one by one.
        hold: True if a message is settled when somebody acknowledges it.
        max_outstanding: How many units may wait for that, or for the end of a delay.
        acknowledgement_timeout: Seconds after which a unit that waits is rolled back; None for never.
        transacted: True if what is received and what the handler sends is one unit.
        forwards: True if the handler sends in the unit of every message, so that nothing else will do.
        confirmed: False if nobody waits until the broker has noted an acknowledgement.
        redelivery: What is done with messages that come again.
        redirect: True if a moved message is not to tell where it was.
        receive_timeout: Seconds that a receiver waits for a message before it looks whether to go on.
        subscription_name: That of a durable subscription.
        client_id: That of the connection.
        context_name: What surrounds each call of the handler in the log.
    """

    source: Destination | Subscription
    destination: Destination
    selector: str | None = None
    mode: Mode = "serial"
    pool_size: int = 1
    batch_size: int = 0
    alone: bool = False
    hold: bool = False
    max_outstanding: int = 10
    acknowledgement_timeout: float | None = None
    transacted: bool = True
    forwards: bool = False
    confirmed: bool = True
    redelivery: RedeliveryPolicy = _NOTHING
    redirect: bool = False
    receive_timeout: float = 10.0
    subscription_name: str | None = None
    client_id: str | None = None
    context_name: str | None = None


def terms_of(spec: "ActivationSpec") -> Terms:
    """Read the terms from a spec in which the options are in force."""
    source, options = spec.source(), spec.inbound_options
    mode: Mode = spec.concurrency_mode
    return Terms(
        source=source,
        destination=destination(spec.destination, spec.destination_type),
        selector=spec.selector,
        mode=mode,
        pool_size=_pool_size(mode, spec),
        batch_size=spec.batch_size if spec.batch_size > 1 else 0,
        alone=spec.split_failed_batches,
        hold=spec.hold_until_ack,
        max_outstanding=spec.max_outstanding,
        acknowledgement_timeout=spec.acknowledgement_timeout,
        transacted=spec.transaction != "none",
        confirmed=spec.transaction != "none" or spec.acknowledge_mode is not AcknowledgeMode.DUPS_OK,
        redelivery=spec.redelivery_policy,
        redirect=options.redelivery_redirect,
        receive_timeout=options.receive_timeout,
        subscription_name=source.name if isinstance(source, Subscription) else None,
        client_id=spec.effective_client_id,
        context_name=spec.context_name,
    )


def _pool_size(mode: Mode, spec: "ActivationSpec") -> int:
    """One where order counts, and one receiver of a topic: each of several would get every message."""
    one = mode == "serial" or (mode == "sync" and spec.destination_type == "topic")
    return 1 if one else spec.endpoint_pool_max_size
