"""An endpoint: its settings, and the state that is kept between connections."""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from threading import Lock
from typing import TYPE_CHECKING, Literal, Protocol, Self
from uuid import uuid4

from jmsjca import spi
from jmsjca.config.clock import Clock
from jmsjca.config.limits import AcknowledgeMode, Limits
from jmsjca.config.naming import NamingContext, resolve_destination
from jmsjca.destinations import Destination, Subscription, Topic
from jmsjca.errors import ConfigurationError, ConnectionLostError, IllegalStateError, MessageFormatError
from jmsjca.hooks import HookChain
from jmsjca.inbound.concurrency import RateLimit
from jmsjca.inbound.handler import Handler
from jmsjca.inbound.handler_arguments import Invocation
from jmsjca.inbound.listener_log import EventSource, RepeatLimit, log_context
from jmsjca.inbound.listener_unit import Inbox, InboxUnit, begin_container_transaction
from jmsjca.inbound.statistics import StatisticsRecorder
from jmsjca.messages.delivery import Outcome, Settlement, original_message_id
from jmsjca.outbound.delivery_sends import SendScope
from jmsjca.outbound.unit_of_work import UnitOfWork
from jmsjca.redelivery.decision import RedeliveryHandler
from jmsjca.redelivery.encounter import Failure, UnsettledMessages
from jmsjca.redelivery.policy import RedeliveryPolicy

if TYPE_CHECKING:
    from jmsjca.config.activation_spec import ActivationSpec
    from jmsjca.transactions.inbox import ListenerInbox

__all__ = [
    "AcknowledgementRegistry",
    "Activity",
    "Endpoint",
    "EndpointSettings",
    "HeldMessage",
    "InFlightUnit",
    "Mode",
    "Stall",
    "Step",
    "message_identity",
    "readable_message_id",
    "several_deliveries",
    "was_delivered_before",
]

_REMEMBERED = 5000

Mode = Literal["serial", "cc", "sync"]


_NO_POLICY = RedeliveryPolicy.parse("")


@dataclass(frozen=True, slots=True)
class EndpointSettings:
    """The settings of an endpoint.

    Attributes:
        source: The destination or subscription to consume from.
        destination: The destination of the source, for the properties of a moved message.
        selector: The message selector; None for all messages.
        mode: The concurrency mode.
        pool_size: The maximum number of concurrent handlers; 1 in serial mode.
        batch_size: The maximum number of messages of a batch; 0 without batches.
        split_failed_batches: True if the messages of a failed batch are redelivered one by one.
        hold_until_ack: True if a unit is settled when its messages are acknowledged, instead of when the handler
            returns.
        max_outstanding: The maximum number of units that wait for acknowledgement or for the end of a delay.
        acknowledgement_timeout: Seconds after which a held unit is rolled back; None means never.
        transacted: True if the receipt and the handler's sends are one unit; else the handler's session sends at once.
        requires_atomic_unit: True if the handler sends in the unit of every message, so that a broker without that
            capability is refused.
        joined: True if the unit is part of a container-managed transaction.
        locator: The name of the locator of the thread's transaction manager; None for the manager of the package.
        confirm_commits: False to not wait until the broker confirms an acknowledgement.
        redelivery: The redelivery policy.
        redirect_moved: True to move messages without properties about their origin.
        receive_timeout: Seconds that a receiver waits for a message before it checks whether to continue.
        minimal_reconnect_logging: True to log only the first of several failures to connect.
        minimal_reconnect_logging_ds: The same for durable subscriptions, which another node may have.
        subscription_name: The name of a durable subscription; None for no subscription.
        client_id: The client id of the connection.
        given_client_id: The client id of the spec, for the properties of a moved message; None if it has none.
        rate_limit: The maximum number of messages a second; None for no limit.
        context_name: The context name for log records of the handler.
        naming: The context in which the handler's sessions look up ``lookup://`` names.
    """

    source: Destination | Subscription
    destination: Destination
    selector: str | None = None
    mode: Mode = "serial"
    pool_size: int = 1
    batch_size: int = 0
    split_failed_batches: bool = False
    hold_until_ack: bool = False
    max_outstanding: int = 10
    acknowledgement_timeout: float | None = None
    transacted: bool = True
    requires_atomic_unit: bool = False
    joined: bool = False
    locator: str | None = None
    confirm_commits: bool = True
    redelivery: RedeliveryPolicy = _NO_POLICY
    redirect_moved: bool = False
    receive_timeout: float = 10.0
    minimal_reconnect_logging: bool = False
    minimal_reconnect_logging_ds: bool = False
    subscription_name: str | None = None
    client_id: str | None = None
    given_client_id: str | None = None
    rate_limit: float | None = None
    context_name: str | None = None
    naming: NamingContext = field(default_factory=NamingContext.default, repr=False, compare=False)

    @property
    def inbox_name(self) -> str:
        """The name of the listener in an inbox: its queue or its durable subscription."""
        parts = [str(self.destination), self.client_id, self.subscription_name]
        return "/".join(part for part in parts if part)

    @classmethod
    def of(
        cls, spec: "ActivationSpec", *, requires_atomic_unit: bool = False, naming: NamingContext | None = None
    ) -> Self:
        """Return the settings of a spec to which the options were applied. No other code reads the options.

        Args:
            spec: The spec.
            requires_atomic_unit: As the attribute.
            naming: The context for ``lookup://`` names; None for `NamingContext.default`.

        Raises:
            NameNotFoundError: The name of the destination, or of the target of a move, is not bound.
            InvalidDestinationError: The object bound to the name is not a destination of this kind.
        """
        naming = naming or NamingContext.default()
        resolve = partial(resolve_destination, naming=naming)
        place = resolve(spec.destination, spec.destination_type)
        source, options = _resolved_source(spec.source(), place), spec.inbound_options
        mode: Mode = spec.concurrency_mode
        return cls(
            source=source,
            destination=place,
            selector=spec.selector,
            mode=mode,
            pool_size=_pool_size(mode, spec),
            batch_size=spec.batch_size if spec.batch_size > 1 else 0,
            split_failed_batches=spec.split_failed_batches,
            hold_until_ack=spec.hold_until_ack,
            max_outstanding=spec.max_outstanding,
            acknowledgement_timeout=spec.acknowledgement_timeout,
            transacted=spec.transaction in ("local", "required"),
            requires_atomic_unit=requires_atomic_unit,
            joined=spec.transaction == "required",
            locator=options.locator,
            confirm_commits=spec.transaction != "none" or spec.acknowledge_mode is not AcknowledgeMode.DUPS_OK,
            redelivery=spec.redelivery_policy.resolving(resolve),
            naming=naming,
            redirect_moved=options.redelivery_redirect,
            receive_timeout=options.receive_timeout,
            minimal_reconnect_logging=options.minimal_reconnect_logging,
            minimal_reconnect_logging_ds=options.minimal_reconnect_logging_ds,
            subscription_name=source.name if isinstance(source, Subscription) else None,
            client_id=spec.effective_client_id,
            given_client_id=spec.client_id,
            rate_limit=spec.rate_limit,
            context_name=spec.context_name,
        )


def _resolved_source(source: Destination | Subscription, place: Destination) -> Destination | Subscription:
    return replace(source, topic=Topic(place.name)) if isinstance(source, Subscription) else place


def _pool_size(mode: Mode, spec: "ActivationSpec") -> int:
    """Return 1 in mode serial, and for topics in mode sync: each of several receivers would get every message.

    Receivers of a shared subscription share its messages.
    """
    one = mode == "serial" or (mode == "sync" and spec.destination_type == "topic" and not spec.subscription_shared)
    return 1 if one else spec.endpoint_pool_max_size


class InFlightUnit:
    """A unit with an active handler: the state that its endpoint keeps.

    Attributes:
        deliveries: The messages passed to the handler so far.
        abandoned: True if the connection was closed while the handler was active.
        ended: True once the unit is settled.
        hand_overs_recorded: True once the hand-overs of its messages were recorded, see `Endpoint.record_hand_overs`.
        unit: The unit of work.
    """

    deliveries: list[spi.Delivery]
    abandoned = ended = hand_overs_recorded = False
    unit: UnitOfWork


class Endpoint:
    """A handler, its settings, and the state of its messages that is kept between connections.

    Args:
        name: The display name.
        settings: How messages are delivered.
        handler: The user's function.
        statistics: The counters.
        hooks: Called around the handler.
        limits: The bounds of each connection.
        clock: The source of time.
        request_stop: Stops the endpoint without blocking; its argument is the reason for the log.
        activation: The activation, for management.
        mbean_name: The name under which the endpoint is managed; None for no name.
        adapter: The name of the adapter, for log records.
        inbox: Recognises messages with committed work; None for no inbox.
        scope: The senders that join the unit of a delivery; None for no senders.

    Attributes:
        scope: As given; None if sends cannot join a unit.
        inbox: The inbox of this listener, or None.
        redelivery: The state of redelivered messages.
        unsettled: The messages that were delivered and not settled.
        untried: The messages that were returned before their handler saw them, and must be delayed.
        held: The messages that wait for an acknowledgement.
        activity: The handlers and settlements in progress.
        rate: Spreads the messages over time.
        log_source: The fields that all log records of the endpoint have.
        failures: Limits the log records about failures of the handler.
        rollbacks: Limits the log records about units that were rolled back at their commit.
        isolates_suspects: True if suspects are delivered alone, see `is_suspect`.
        paused: True while no messages are received although the connection is open.
        open_unit: Opens a unit, of everything that the handler does or of the receipt alone.
        begin_transaction: Begins the container-managed transaction of a unit; None if units end on their own.
    """

    def __init__(
        self,
        name: str,
        settings: EndpointSettings,
        handler: Handler,
        *,
        statistics: StatisticsRecorder,
        hooks: HookChain,
        limits: Limits,
        clock: Clock,
        request_stop: Callable[[str | None], None],
        activation: object = None,
        mbean_name: str | None = None,
        adapter: str = "",
        inbox: Inbox | None = None,
        scope: SendScope | None = None,
    ) -> None:
        self.name = name
        self.scope = scope if settings.transacted else None
        self.inbox: ListenerInbox | None = (
            None if inbox is None else inbox.of_listener(settings.inbox_name, handler.event_loop)
        )
        self.settings = settings
        self.handler = handler
        self.statistics = statistics
        self.hooks = hooks
        self.limits = limits
        self.clock = clock
        self.request_stop = request_stop
        self.activation = activation
        self.mbean_name = mbean_name
        self.redelivery = RedeliveryHandler(settings.redelivery)
        self.unsettled, self.untried = UnsettledMessages(), UnsettledMessages()
        self.held = AcknowledgementRegistry(self.unsettled)
        self.activity, self.rate = Activity(clock), RateLimit(settings.rate_limit, clock)
        self.log_source = EventSource(adapter, name, str(settings.destination))
        self.failures, self.rollbacks = RepeatLimit(clock), RepeatLimit(clock)
        self.paused = self.isolates_suspects = False
        self.open_unit: Callable[[spi.Connection], UnitOfWork] = partial(
            UnitOfWork.begin if inbox is None else InboxUnit.begin, sends=settings.transacted
        )
        self.begin_transaction = partial(begin_container_transaction, settings.locator) if settings.joined else None
        self._lock = Lock()
        self._still_running: dict[str, int] = {}
        self._abandoned_count = 0
        self._to_split: OrderedDict[str, None] = OrderedDict()

    def call(self, invocation: Invocation) -> object:
        """Call the handler inside the hooks, with the context name set for all of them."""
        if not self.settings.context_name:
            # Usually there are no hooks, and then a call has no overhead.
            return self._call_in_hooks(invocation) if self.hooks.wrap_deliveries else self.handler(invocation)
        with log_context(self.settings.context_name):
            return self._call_in_hooks(invocation)

    def _call_in_hooks(self, invocation: Invocation) -> object:
        return self.hooks.deliver(self.name, invocation.message, lambda: self.handler(invocation))

    def redelivery_count_of(self, message_id: str | None) -> int:
        """Return the number of redeliveries seen so far; 0 on the first delivery."""
        known = self.redelivery.find_encounter(message_id)
        return 0 if known is None else known.count

    def remember_failure(self, deliveries: Sequence[spi.Delivery], error: BaseException) -> None:
        """Store the handler's error until the messages are redelivered."""
        failure = Failure.of(error)
        for delivery in deliveries:
            self.redelivery.encounter(message_identity(delivery)).failure = failure

    def register(self, unit: InFlightUnit, deliveries: Iterable[spi.Delivery]) -> None:
        """Add messages to a unit before the handler sees them.

        Raises:
            ConnectionLostError: The connection is abandoned. The messages are redelivered.
        """
        with self._lock:
            if unit.abandoned:
                raise ConnectionLostError(f"{self.name} abandoned its connection; the messages are redelivered.")
            unit.deliveries.extend(deliveries)

    def record_settlement(self, unit: InFlightUnit, outcome: Outcome) -> None:
        """Record the end of a unit: count it, and call the hooks."""
        with self._lock:
            unit.ended = True
            self.statistics.record_settlement(outcome, len(unit.deliveries))
            if unit.abandoned:
                self._abandoned_count -= 1
                self._remove_running(unit.deliveries)
        if outcome is not Outcome.COMMITTED:
            self.unsettled.add(map(message_identity, unit.deliveries))
        elif self.unsettled.known:
            self.unsettled.discard([message_identity(each) for each in unit.deliveries if self.has_delivered(each)])
        if outcome is not Outcome.COMMITTED and self.settings.split_failed_batches and len(unit.deliveries) > 1:
            self._mark_to_split(unit.deliveries)
        if self.hooks.observe_settlements:
            self.hooks.settled(self.name, outcome, len(unit.deliveries))

    def must_be_delivered_alone(self, delivery: spi.Delivery) -> bool:
        """Return True if a message was in a failed batch or is suspect."""
        if self.is_suspect(delivery):
            return True
        if not self._to_split or not self.has_delivered(delivery):
            return False
        return message_identity(delivery) in self._to_split

    def is_suspect(self, delivery: spi.Delivery) -> bool:
        """Return True if the broker reports an earlier delivery, and no handler of this process failed on the message.

        The message may have ended another process. Suspects are delivered alone, with nothing prefetched, so that the
        broker's counts of other messages do not rise if that happens again.
        """
        if not self.isolates_suspects or not was_delivered_before(delivery):
            return False
        return not self.redelivery.was_handed_over(message_identity(delivery))

    def record_hand_overs(self, unit: InFlightUnit) -> None:
        """Record once that a handler received the messages of a unit, except the unused ones, and did not commit."""
        if not unit.hand_overs_recorded:
            unit.hand_overs_recorded = True
            for delivery in unit.deliveries:
                if delivery not in unit.unit.unused:
                    self.redelivery.encounter(message_identity(delivery)).record_hand_over()

    def abandon(self, units: Iterable[InFlightUnit]) -> None:
        """Mark units with active handlers when their connection is closed: their messages are redelivered."""
        with self._lock:
            for unit in units:
                if unit.ended or unit.abandoned:
                    continue
                if not unit.unit.unused:  # otherwise the end of the unit records whether the handler had the messages
                    self.record_hand_overs(unit)
                unit.abandoned = True
                self._abandoned_count += 1
                for message_id in map(message_identity, unit.deliveries):
                    self._still_running[message_id] = self._still_running.get(message_id, 0) + 1

    def has_delivered(self, delivery: spi.Delivery) -> bool:
        """Return True if a message is redelivered, according to the broker or to the memory of this process."""
        return was_delivered_before(delivery) or self.remembers(delivery)

    def has_seen(self, delivery: spi.Delivery) -> bool:
        """Return True if this process knows a message, although the broker delivers it as new."""
        if not (self._still_running or self.unsettled.known or self.untried.known):  # the usual case
            return False
        return self.remembers(delivery) or message_identity(delivery) in self.untried

    def remembers(self, delivery: spi.Delivery) -> bool:
        """Return True if a message was delivered before, even if the broker may have forgotten it."""
        if self.unsettled.may_look_new and message_identity(delivery) in self.unsettled:
            return True
        return self.is_still_running(delivery)

    def is_still_running(self, delivery: spi.Delivery) -> bool:
        """Return True if a handler is still processing an earlier delivery of the same message."""
        return bool(self._still_running) and message_identity(delivery) in self._still_running

    @property
    def abandoned_messages(self) -> int:
        """The number of messages that handlers are still processing for abandoned connections."""
        with self._lock:
            return sum(self._still_running.values())

    @property
    def abandoned_handlers(self) -> int:
        """The number of handlers that are still active for abandoned connections."""
        return self._abandoned_count

    def mark_returned(
        self, deliveries: Iterable[spi.Delivery], *, waited: bool = False, uncounted: bool = False
    ) -> None:
        """Record that messages are returned although the broker counted their delivery: no handler saw them.

        Args:
            deliveries: The returned messages.
            waited: True if they must not be delayed again when they are redelivered.
            uncounted: True if the broker does not count the returned deliveries.
        """
        for delivery in deliveries:
            if self.has_delivered(delivery):
                encounter = self.redelivery.encounter(message_identity(delivery))
                encounter.mark_returned(waited=waited, uncounted=uncounted)

    def mark_untried(self, deliveries: Iterable[spi.Delivery], *, uncounted: bool) -> None:
        """Record that messages are returned before their handler saw them, even if this is their first delivery.

        Args:
            deliveries: The returned messages.
            uncounted: As for `mark_returned`.
        """
        for identity in map(message_identity, deliveries):
            self.redelivery.encounter(identity).mark_returned(uncounted=uncounted)
            self.untried.add([identity])

    def mark_return_failed(self, deliveries: Iterable[spi.Delivery]) -> None:
        """Record that the broker may count deliveries, because the messages could not be returned."""
        for delivery in deliveries:
            known = self.redelivery.find_encounter(message_identity(delivery))
            if known is not None:
                known.mark_return_failed()

    def _remove_running(self, deliveries: Sequence[spi.Delivery]) -> None:
        for message_id in map(message_identity, deliveries):
            left = self._still_running.pop(message_id, 0) - 1
            if left > 0:
                self._still_running[message_id] = left

    def _mark_to_split(self, deliveries: Sequence[spi.Delivery]) -> None:
        with self._lock:
            for message_id in map(message_identity, deliveries):
                self._to_split[message_id] = None
                self._to_split.move_to_end(message_id)
            while len(self._to_split) > _REMEMBERED:
                self._to_split.popitem(last=False)


def message_identity(delivery: spi.Delivery) -> str:
    """Return the id of a message. If it has no readable id, return a digest of its content."""
    return readable_message_id(delivery) or f"content:{delivery.digest}"


def readable_message_id(delivery: spi.Delivery) -> str | None:
    """Return the id of a message; None if it has no id, or its id cannot be decoded."""
    try:
        return original_message_id(delivery.message)
    except MessageFormatError:
        return None


def was_delivered_before(delivery: spi.Delivery) -> bool:
    """Return True if the broker reports that a message is redelivered."""
    return delivery.redelivered or (delivery.count or 0) > 1


Step = Literal["handler", "settlement", "delay", "handler of a lost connection"]
"""The step that a unit is waiting for."""


@dataclass(frozen=True, slots=True)
class Stall:
    """A reason why messages do not flow.

    Attributes:
        reason: The reason, as text.
        since: The time when it began, of the monotonic clock.
    """

    reason: str
    since: float


class Activity:
    """Records the current steps of an endpoint's units. Thread-safe: each unit writes its own entry.

    It is written for each message, so it uses no lock: single operations of a dictionary are atomic.

    Args:
        clock: The source of time.

    Attributes:
        last_progress: The time when a handler last returned, or a unit was last settled, of the monotonic clock.
    """

    __slots__ = ("_clock", "_steps", "last_progress")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._steps: dict[object, tuple[Step, float]] = {}
        self.last_progress = clock.monotonic()

    def begin(self, unit: object, step: Step) -> float:
        """Record that a unit begins a step, and return the time. The new step replaces an earlier one of the unit."""
        now = self._clock.monotonic()
        self._steps[unit] = (step, now)
        return now

    def end(self, unit: object) -> None:
        """Record that the unit's step has ended."""
        self._steps.pop(unit, None)
        self.last_progress = self._clock.monotonic()

    def now(self) -> float:
        """Return the time of the monotonic clock."""
        return self._clock.monotonic()

    @property
    def units(self) -> int:
        """The number of units with a step in progress."""
        return len(self._steps)

    def steps(self) -> list[tuple[Step, float]]:
        """Return the steps in progress, with the times at which they began."""
        return list(self._steps.values())


_ACTIONS = {"jbxcommit": False, "jbxrollback": True}
_REMEMBERED_IDS = 2000  # two ids for each delivery


class HeldMessage(Protocol):
    """A message that waits for its acknowledgement, reduced to what the registry uses."""

    delivery_id: str | None
    """The id of the delivery. The registry sets it."""

    @property
    def message_id(self) -> str | None:
        """The message id; None if the message has none."""
        ...

    @property
    def acknowledged(self) -> bool:
        """True once the message is acknowledged."""
        ...

    def acknowledge(self) -> Settlement:
        """Acknowledge the message; never blocks."""
        ...

    def set_rollback_only(self) -> None:
        """Mark the unit of the message for rollback."""
        ...


class AcknowledgementRegistry:
    """The held deliveries of one endpoint, as used by the acknowledge activity of Jitterbit's connector.

    Each delivery has its own id. The id of its message is accepted only while the endpoint knows no other delivery of
    that message: otherwise acknowledging an expired delivery would settle its redelivery.

    The registry remembers the outcomes of at least the last 1,000 deliveries, so that the error for a late
    acknowledgement can name the outcome.

    Args:
        unsettled: The ids of messages that the endpoint delivered and did not settle.
    """

    def __init__(self, unsettled: UnsettledMessages | None = None) -> None:
        self._lock = Lock()
        self._unsettled = UnsettledMessages() if unsettled is None else unsettled
        self._ids = map(f"ID:delivery-{uuid4().hex}-{{}}".format, count(1))
        self._held: dict[str | None, HeldMessage] = {}  # by delivery id
        self._latest: dict[str, HeldMessage] = {}  # by message id
        self._repeated: set[str] = set()  # the message ids in `_latest` that were delivered before
        self._ended: dict[str | None, Outcome] = {}  # by either id
        self._ended_before: dict[str | None, Outcome] = {}  # the previous generation

    def register(self, context: HeldMessage) -> None:
        """Register a held delivery, and set its id."""
        with self._lock:
            context.delivery_id, message_id = next(self._ids), context.message_id
            self._held[context.delivery_id] = context
            if message_id is None:
                return
            if self.has_delivered(message_id):
                self._repeated.add(message_id)
            self._latest[message_id] = context

    def unregister(self, contexts: Sequence[HeldMessage], outcome: Outcome | None) -> None:
        """Remove the deliveries of a settled unit, and remember its outcome."""
        with self._lock:
            for each in contexts:
                ended = [each.delivery_id]
                self._held.pop(each.delivery_id, None)  # lack of memory may have kept it out
                if each.message_id is not None and self._latest.get(each.message_id) is each:
                    del self._latest[each.message_id]
                    self._repeated.discard(each.message_id)
                    ended.append(each.message_id)
                self._remember(ended, outcome or Outcome.LOST)

    def is_held(self, held_id: str) -> bool:
        """Return True while a delivery waits for its acknowledgement, or for the acknowledgement of others of its unit.

        Args:
            held_id: The id of the delivery or of its message.
        """
        return held_id in self._held or held_id in self._latest

    def has_delivered(self, message_id: str) -> bool:
        """Return True if the endpoint remembers a delivery of a message."""
        return any(message_id in known for known in (self._latest, self._ended, self._ended_before, self._unsettled))

    def settle(self, held_id: str, action: str) -> Settlement:
        """Acknowledge a held message, or first mark its unit for rollback. Never blocks.

        Args:
            held_id: The id of the delivery, or the id of the message if it was delivered once.
            action: "JBXCommit" or "JBXRollback", in upper or lower case.

        Returns:
            The settlement of the message's unit.

        Raises:
            ConfigurationError: The action is neither of the two.
            IllegalStateError: No such message is held: it was never held, its unit is settled, or it is already
                acknowledged. Or the id belongs to a message with several deliveries.
        """
        roll_back = _ACTIONS.get(action.lower())
        if roll_back is None:
            raise ConfigurationError(f"The action is 'JBXCommit' or 'JBXRollback', not {action[:50]!r}.")
        context = self._find(held_id)
        if roll_back:
            context.set_rollback_only()
        return context.acknowledge()

    def _find(self, held_id: str) -> HeldMessage:
        with self._lock:
            context = self._held.get(held_id) or self._latest.get(held_id)
            ended = self._ended.get(held_id) or self._ended_before.get(held_id)
            repeated = held_id in self._repeated
        if repeated:
            raise several_deliveries(held_id)
        if context is not None and not context.acknowledged:
            return context
        if context is not None:
            raise IllegalStateError(f"The message {held_id[:100]!r} is acknowledged already.")
        if ended is not None:
            raise IllegalStateError(f"The message {held_id[:100]!r} is settled already: {ended.value}.")
        raise IllegalStateError(
            f"No message {held_id[:100]!r} is held. Only messages that were delivered with hold_until_ack and"
            " are not settled yet are."
        )

    def _remember(self, ids: Iterable[str | None], outcome: Outcome) -> None:
        self._ended.update(dict.fromkeys(ids, outcome))
        if len(self._ended) >= _REMEMBERED_IDS:
            self._ended_before, self._ended = self._ended, {}


def several_deliveries(message_id: str) -> IllegalStateError:
    """Return the error for the id of a message with several deliveries, because it does not identify one of them."""
    return IllegalStateError(
        f"The message {message_id[:100]!r} was delivered several times, so its id does not say which delivery is meant:"
        " settle it by the delivery_id of the received message."
    )
