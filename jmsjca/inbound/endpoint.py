"""What the deliveries of an activation share, from one connection to the next."""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from threading import Lock
from typing import TYPE_CHECKING

from jmsjca import spi
from jmsjca.config import AcknowledgeMode, Clock, Limits
from jmsjca.errors import ConnectionLostError, MessageFormatError
from jmsjca.hooks import HookChain
from jmsjca.inbound.context import entered
from jmsjca.inbound.handlers import Handler
from jmsjca.inbound.parameters import Given
from jmsjca.inbound.registry import HeldMessages
from jmsjca.inbound.statistics import Statistics
from jmsjca.inbound.terms import Terms
from jmsjca.messages import Outcome
from jmsjca.outbound import Session
from jmsjca.outbound.flow import Flow
from jmsjca.outbound.ground import Ground
from jmsjca.outbound.work import WorkUnit
from jmsjca.redelivery import Failure, RedeliveryHandler

if TYPE_CHECKING:
    from jmsjca.inbound.in_hand import InHand

__all__ = ["Endpoint", "identity"]

_REMEMBERED = 5000


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

    def open_unit(self, link: spi.Connection) -> WorkUnit:
        """Open a unit: of all that the handler does, or of the receipt alone."""
        return WorkUnit.opened_on(link) if self.terms.transacted else WorkUnit(link.unit(atomic=False), atomic=False)

    def session_of(self, hand: "InHand") -> Session:
        """Make the session of a handler: it sends in the unit, or at once where there are no transactions."""
        if self.terms.transacted:
            return Session.joined_to(hand.link, hand.work, self.limits, self.hooks)
        ground = Ground(hand.link, self.limits, Flow(running=True), hooks=self.hooks)
        return Session(ground, transacted=False, acknowledge_mode=AcknowledgeMode.AUTO)

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
        known = self.redelivery.known(message_id)
        return 0 if known is None else known.count

    def remember_failure(self, deliveries: Sequence[spi.Delivery], error: BaseException) -> None:
        """Remember what the handler raised, until the messages come again."""
        failure = Failure.of(error)
        for delivery in deliveries:
            message_id = identity(delivery)
            if message_id is not None:
                self.redelivery.encounter(message_id).failure = failure

    def begin(self, hand: "InHand", deliveries: Iterable[spi.Delivery]) -> None:
        """Note that a handler is about to see messages.

        Raises:
            ConnectionLostError: Their connection is given up, so that they come again.
        """
        with self._lock:
            if hand.abandoned:
                raise ConnectionLostError(f"{self.name} gave its connection up; the messages come again.")
            hand.deliveries.extend(deliveries)

    def settled(self, hand: "InHand", outcome: Outcome) -> None:
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

    def abandon(self, hands: Iterable["InHand"]) -> None:
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
                self.redelivery.encounter(message_id).put_off(waited=waited)

    def went_back_uncounted(self, deliveries: Iterable[spi.Delivery]) -> None:
        """Note that the broker did not count what was put off."""
        for delivery in deliveries:
            if _was_delivered(delivery) and (known := self.redelivery.known(identity(delivery))) is not None:
                known.went_back_uncounted()

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
        return delivery.message.delivered_id
    except MessageFormatError:
        from hashlib import sha256  # noqa: PLC0415  # loads OpenSSL, for few messages

        return f"undecodable:{sha256(delivery.raw).hexdigest()}"


def _was_delivered(delivery: spi.Delivery) -> bool:
    return delivery.redelivered or (delivery.count or 0) > 1
