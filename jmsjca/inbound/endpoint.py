"""An endpoint: its settings, and what its deliveries share from one connection to the next."""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Literal, Protocol

from jmsjca import spi
from jmsjca.config import AcknowledgeMode, Clock, Limits
from jmsjca.destinations import Destination, Subscription, destination
from jmsjca.errors import ConnectionLostError, MessageFormatError
from jmsjca.hooks import HookChain
from jmsjca.inbound.acknowledgement_registry import HeldMessages
from jmsjca.inbound.handler import Handler
from jmsjca.inbound.handler_arguments import Given
from jmsjca.inbound.listener_context import entered
from jmsjca.inbound.statistics import Statistics
from jmsjca.messages import Outcome
from jmsjca.messages.delivery import original_message_id
from jmsjca.outbound.unit_of_work import UnitOfWork
from jmsjca.redelivery import Failure, RedeliveryHandler, RedeliveryPolicy

if TYPE_CHECKING:
    from jmsjca.config import ActivationSpec

__all__ = ["Endpoint", "InFlightUnit", "Mode", "Terms", "identity", "terms_of"]

_REMEMBERED = 5000

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


class InFlightUnit(Protocol):
    """A unit whose messages a handler is at work on, as far as its endpoint knows it.

    Attributes:
        deliveries: What the handler was called with, or was to be.
        abandoned: True if the connection is given up while the handler is at work.
        ended: True once it is settled.
    """

    deliveries: list[spi.Delivery]
    abandoned: bool
    ended: bool


class Endpoint:
    """A handler, the terms by which it gets messages, and what is remembered of these.

    Args:
        name: The display name.
        terms: How messages are delivered.
        handler: The user's function.
        statistics: Where to count.
        hooks: What surrounds the handler.
        limits: The bounds.
        clock: Where time comes from.
        request_stop: Stops the endpoint, soon, for a reason.
        activation: What stands for the endpoint where it is managed.
        mbean_name: The name under which it is managed.

    Attributes:
        redelivery: What is remembered of messages that come again.
        held: The messages that wait for an acknowledgement.
    """

    def __init__(
        self,
        name: str,
        terms: Terms,
        handler: Handler,
        *,
        statistics: Statistics,
        hooks: HookChain,
        limits: Limits,
        clock: Clock,
        request_stop: Callable[[str | None], None],
        activation: object = None,
        mbean_name: str | None = None,
    ) -> None:
        self.name = name
        self.terms = terms
        self.handler = handler
        self.statistics = statistics
        self.hooks = hooks
        self.limits = limits
        self.clock = clock
        self.request_stop = request_stop
        self.activation = activation
        self.mbean_name = mbean_name
        self.redelivery = RedeliveryHandler(terms.redelivery)
        self.held = HeldMessages()
        self._lock = Lock()
        self._still_running: dict[str, int] = {}
        self._abandoned = 0
        self._alone: OrderedDict[str, None] = OrderedDict()

    def open_unit(self, link: spi.Connection) -> UnitOfWork:
        """Open a unit: of all that the handler does, or of the receipt alone."""
        return UnitOfWork.begin(link) if self.terms.transacted else UnitOfWork(link.unit(atomic=False), atomic=False)

    def call(self, given: Given) -> object:
        """Call the handler, inside the hooks, which are inside the context."""
        if not self.terms.context_name:
            return self._call(given)
        with entered(self.terms.context_name):
            return self._call(given)

    def _call(self, given: Given) -> object:
        return self.hooks.deliver(self.name, given.message, lambda: self.handler(given))

    def count_of(self, message_id: str | None) -> int:
        """For the how-manieth time a message is seen redelivered."""
        known = self.redelivery.find_encounter(message_id)
        return 0 if known is None else known.count

    def remember_failure(self, deliveries: Sequence[spi.Delivery], error: BaseException) -> None:
        """Remember what the handler raised, until the messages come again."""
        failure = Failure.of(error)
        for delivery in deliveries:
            message_id = identity(delivery)
            if message_id is not None:
                self.redelivery.encounter(message_id).failure = failure

    def begin(self, hand: InFlightUnit, deliveries: Iterable[spi.Delivery]) -> None:
        """Note that a handler is about to see messages.

        Raises:
            ConnectionLostError: Their connection is given up, so that they come again.
        """
        with self._lock:
            if hand.abandoned:
                raise ConnectionLostError(f"{self.name} gave its connection up; the messages come again.")
            hand.deliveries.extend(deliveries)

    def settled(self, hand: InFlightUnit, outcome: Outcome) -> None:
        """Tell that a unit has ended."""
        with self._lock:
            hand.ended = True
            if outcome is Outcome.COMMITTED:
                self.statistics.committed()
            if hand.abandoned:
                self._abandoned -= 1
                self._no_longer_running(hand.deliveries)
        if outcome is not Outcome.COMMITTED and self.terms.alone and len(hand.deliveries) > 1:
            self._let_come_alone(hand.deliveries)
        self.hooks.settled(self.name, outcome, len(hand.deliveries))

    def comes_alone(self, delivery: spi.Delivery) -> bool:
        """Tell whether a message was in a failed batch, and is to be delivered by itself."""
        if not self._alone or not _was_delivered(delivery):
            return False
        return identity(delivery) in self._alone

    def abandon(self, hands: Iterable[InFlightUnit]) -> None:
        """Note units whose handlers are at work while their connection is given up: their messages come again."""
        with self._lock:
            for hand in hands:
                if hand.ended or hand.abandoned:
                    continue
                hand.abandoned = True
                self._abandoned += 1
                for message_id in filter(None, map(identity, hand.deliveries)):
                    self._still_running[message_id] = self._still_running.get(message_id, 0) + 1

    def still_running(self, delivery: spi.Delivery) -> bool:
        """Tell whether a handler is still at work on an earlier delivery of the same message."""
        return bool(self._still_running) and identity(delivery) in self._still_running

    @property
    def busy_elsewhere(self) -> int:
        """How many handlers are still at work for connections that are given up."""
        return self._abandoned

    def put_off(self, deliveries: Iterable[spi.Delivery], *, waited: bool = False) -> None:
        """Note that messages go back although they were counted: no handler saw them.

        Args:
            deliveries: Which.
            waited: True if they need not wait any more when they return.
        """
        for delivery in deliveries:
            if _was_delivered(delivery) and (message_id := identity(delivery)) is not None:
                self.redelivery.encounter(message_id).mark_returned(waited=waited)

    def went_back_uncounted(self, deliveries: Iterable[spi.Delivery]) -> None:
        """Note that the broker did not count what was put off."""
        for delivery in deliveries:
            if _was_delivered(delivery) and (known := self.redelivery.find_encounter(identity(delivery))) is not None:
                known.mark_returned_uncounted()

    def _no_longer_running(self, deliveries: Sequence[spi.Delivery]) -> None:
        for message_id in filter(None, map(identity, deliveries)):
            left = self._still_running.pop(message_id, 0) - 1
            if left > 0:
                self._still_running[message_id] = left

    def _let_come_alone(self, deliveries: Sequence[spi.Delivery]) -> None:
        with self._lock:
            for message_id in filter(None, map(identity, deliveries)):
                self._alone[message_id] = None
                self._alone.move_to_end(message_id)
            while len(self._alone) > _REMEMBERED:
                self._alone.popitem(last=False)


def identity(delivery: spi.Delivery) -> str | None:
    """Tell which message it is: its id; what cannot be decoded is known by its bytes."""
    try:
        return original_message_id(delivery.message)
    except MessageFormatError:
        from hashlib import sha256  # noqa: PLC0415  # loads OpenSSL, for few messages

        return f"undecodable:{sha256(delivery.raw).hexdigest()}"


def _was_delivered(delivery: spi.Delivery) -> bool:
    return delivery.redelivered or (delivery.count or 0) > 1
