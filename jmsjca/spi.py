"""The provider interface: the Protocols that all other code of jmsjca is written against.

The central concept is the unit: a record of the deliveries that it takes and the messages that it sends. Nothing
reaches the broker before `Unit.commit`, which writes everything at once; `Unit.rollback` releases the deliveries.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Literal, NamedTuple, Protocol, TypedDict, runtime_checkable

from jmsjca.config.clock import Clock
from jmsjca.config.connection_url import ConnectionURL, Credentials
from jmsjca.config.limits import Limits
from jmsjca.destinations import Destination, DestinationSettings, Subscription
from jmsjca.errors import JMSError
from jmsjca.messages.message import Message

__all__ = [
    "RARELY_REACHED",
    "Activity",
    "Admin",
    "Capabilities",
    "Connection",
    "Consumer",
    "Delivery",
    "DeliveryLimits",
    "Depth",
    "LimitedReturns",
    "ListsSubscriptions",
    "Order",
    "Provider",
    "RecordsOrigins",
    "ResizableConsumer",
    "Subscription",
    "Together",
    "TwoPhaseConnection",
    "TwoPhaseUnit",
    "Unit",
    "Xid",
    "together",
]


class Order(Enum):
    """The order in which a consumer's deliveries are settled."""

    PREFIX = 1  #: in the order of receipt; a rollback first releases all later deliveries
    ANY = 2  #: in any order
    MIXED = 3  #: in any order, but rolled back as with `PREFIX`


@dataclass(frozen=True, slots=True)
class Capabilities:
    """Features of a connection, as the broker in use has them. Missing features are refused, never weakened."""

    transacted_receive: bool = False  #: acknowledgements of a unit succeed or fail together
    transacted_send: bool = False  #: sends of a unit appear together or not at all
    atomic: bool = False  #: acknowledgements and sends of a unit happen together or not at all
    units: Literal["any", "receive"] = "any"  #: a unit takes any deliveries, or all of one receive
    give_back: Literal["uncounted", "counted", "local", "none"] = "none"  #: whether `Consumer.release` is counted
    exact_credit: bool = False  #: with ``window=0`` the broker sends only what `Consumer.receive` asks for
    redelivery_delay: bool = False  #: the broker can delay redelivery after a rollback
    delivery_delay: bool = False  #: the broker can delay delivery of a sent message
    delivery_count: bool = False  #: the broker counts deliveries: `Delivery.count`
    counts_handovers: bool = False  #: counted are only deliveries to a caller (`Consumer.hand_over`) and rollbacks
    counts_lost: bool = False  #: deliveries of a lost connection are redelivered, and counted if there is a count
    priority: bool = False  #: messages of higher priority are delivered first
    selectors: bool = False  #: consumers and browsers can filter
    exact_selectors: bool = False  #: selectors follow JMS or are refused: text is not a number, missing is unknown
    browse: bool = False  #: queues can be browsed
    browse_counts: bool = False  #: browsers return the delivery count that a consumer would get
    durable: bool = False  #: subscriptions outlive their consumers
    shared: bool = False  #: several consumers can share one subscription
    volatile_reuse: bool = False  #: a shared non-durable subscription's name is free once its last consumer closes
    subscription_lock: bool = False  #: an unshared durable subscription refuses a second consumer
    subscription_kinds: bool = False  #: a shared and an unshared durable subscription cannot have the same name
    ends_at_close: bool = False  #: closing a consumer ends its use of the subscription, even with deliveries in a unit
    client_ids: bool = False  #: a client id belongs to one connection at a time
    temporary: bool = False  #: destinations that exist as long as their connection
    temporary_guarded: bool = False  #: no other connection can consume from a temporary queue, even by name
    temporary_ends: bool = False  #: sends to a deleted temporary destination are refused
    no_local: bool = False  #: a subscriber can exclude messages that its own connection sends
    durable_no_local: bool = False  #: the same for durable subscriptions and all connections of the client id
    groups: bool = False  #: messages with the same ``JMSXGroupID`` go to one consumer while it is open
    groups_apart: bool = False  #: a group with a consumer that does not receive blocks no other group
    structured: bool = False  #: map, stream and object messages
    duplicate_detection: bool = False  #: a second message with the same ``_AMQ_DUPL_ID`` is dropped
    checks: bool = False  #: `Connection.check` finds out whether messages can be sent
    admin: bool = False  #: administration is available: `Connection.admin` is not None
    counts_held: bool = False  #: `Admin.depth` counts the messages that consumers hold
    lists_destinations: bool = False  #: `Admin.destinations` is available
    creates_queues: bool = False  #: `Admin.create` is available
    counts_consumers: bool = False  #: `Admin.activity` counts the consumers
    counts_traffic: bool = False  #: `Admin.activity` counts the messages that were added and settled
    configurable: bool = False  #: `Admin.configure` changes the settings of destinations
    shared_between_processes: bool = False  #: other processes can use the same destinations


@dataclass(frozen=True, slots=True)
class Depth:
    """Numbers of messages in a queue."""

    ready: int  #: waiting for a consumer
    held: int  #: delivered, but not settled
    scheduled: int  #: not due yet

    @property
    def total(self) -> int:
        """The total of all three."""
        return self.ready + self.held + self.scheduled


@dataclass(frozen=True, slots=True)
class Activity:
    """The use of a queue. The counters of messages start at any number: only differences have a meaning."""

    consumers: int | None = None  #: open consumers; None without the capability counts_consumers
    added: int | None = None  #: messages that came in; None without the capability counts_traffic
    settled: int | None = None  #: messages that consumers acknowledged; None without the capability counts_traffic


class Delivery(Protocol):
    """One received message. It belongs to no unit until a unit takes it."""

    @property
    def message(self) -> Message:
        """The message, decoded on first use. This may raise `MessageFormatError`; `Consumer.receive` never does.

        A provider may decode the headers on their first access; then that access raises the error.
        """
        ...

    @property
    def raw(self) -> bytes:
        """The body as received: always readable, for poison messages and for staging."""
        ...

    @property
    def size(self) -> int:
        """The size of the received message, headers and body, in bytes; always readable."""
        ...

    @property
    def digest(self) -> str:
        """A digest of the content: always readable, and equal for all deliveries of a message."""
        ...

    @property
    def count(self) -> int | None:
        """The delivery count, this delivery included; None if the broker does not count."""
        ...

    @property
    def redelivered(self) -> bool:
        """True if the message was delivered before."""
        ...

    def drop_content(self) -> None:
        """Free the memory of the message and its bytes after they were copied: no property can be read afterwards.

        The delivery can still be settled. It can be released if its consumer receives nothing more.
        """
        ...


class Unit(Protocol):
    """A unit of work; nothing reaches the broker before `commit`. Not reusable."""

    def take(self, deliveries: Sequence[Delivery]) -> None:
        """Add deliveries. `IllegalStateError` if one is settled or released, or belongs to another unit."""
        ...

    def send(self, message: Message, to: Destination) -> None:
        """Add a message to send, in its current state."""
        ...

    def commit(self, *, confirmed: bool = True, timeout: float | None = None) -> None:
        """Write everything. `TransactionRolledBackError`: it failed. `TransactionInDoubtError`: it may have failed."""
        ...

    def start_commit(self) -> Callable[[], None]:
        """Begin to commit a unit that took no delivery. Return a function that waits, and raises as `commit` does.

        The commits that one thread starts take effect in their order, and before any commit that it begins later.
        """
        ...

    def rollback(self, *, delay: float = 0.0, unused: Sequence[Delivery] = ()) -> None:
        """Send nothing; release the deliveries after ``delay`` seconds, counted except the unused ones."""
        ...


class Consumer(Protocol):
    """Receives messages from one source."""

    def receive(self, limit: int, timeout: float | None) -> Sequence[Delivery]:
        """Return up to ``limit`` deliveries; none after ``timeout`` seconds (None waits forever) or when woken."""
        ...

    def release(self, deliveries: Sequence[Delivery]) -> None:
        """Release deliveries that no unit took: uncounted if the broker supports it."""
        ...

    def hand_over(self, deliveries: Sequence[Delivery]) -> None:
        """Record that the application now receives deliveries. Called directly before that; never fails.

        With the capability counts_handovers, only these deliveries are counted if the process dies or the connection
        closes. Without it the call has no effect.
        """
        ...

    def drain(self) -> Sequence[Delivery]:
        """Stop the flow of messages, and return those that were already on their way."""
        ...

    def wake(self) -> None:
        """Wake a waiting `receive`, which then returns."""
        ...

    def close(self) -> None:
        """Release all deliveries that no unit took. The others stay in their units."""
        ...


@runtime_checkable
class ResizableConsumer(Consumer, Protocol):
    """A consumer with a variable window, used to receive messages alone that may end their process. Optional."""

    def resize(self, window: int) -> None:
        """Change the window; see `Connection.consumer`. Messages that have arrived stay, see `drain`."""
        ...


class Admin(Protocol):
    """Administration of the broker."""

    def destinations(self) -> Sequence[Destination]:
        """Return all queues and topics."""
        ...

    def clock(self) -> float | None:
        """Return the time of the broker's clock in seconds since 1970; None if the broker does not report it."""
        ...

    def depth(self, source: Destination | Subscription) -> Depth:
        """Return the numbers of messages of a queue or a durable subscription."""
        ...

    def activity(self, source: Destination | Subscription) -> Activity:
        """Return the use of a queue or a durable subscription."""
        ...

    def create(self, queue: Destination) -> None:
        """Create a queue, unless it exists. `InvalidDestinationError` for a topic: topics need no creation."""
        ...

    def remove(self, queue: Destination) -> None:
        """Delete a queue with its messages, as `Connection.remove` does."""
        ...

    def purge(self, source: Destination | Subscription) -> int:
        """Delete all waiting messages and return their number."""
        ...

    def configure(self, address: Destination | None, settings: DestinationSettings) -> None:
        """Set the settings of a destination; None for the default settings of all destinations."""
        ...

    def settings(self, address: Destination | None) -> DestinationSettings:
        """Return the effective settings of a destination, or the default settings (None)."""
        ...


@runtime_checkable
class RecordsOrigins(Protocol):
    """The administration of a broker that records the origins of its dead letters outside of the messages. Optional."""

    def origins(self, queue: Destination, message_ids: Sequence[str]) -> Mapping[str, Destination]:
        """Return, by message id, the destinations from which the broker moved messages into a queue, as far as known.

        ``message_ids`` are the messages to look up; a broker may know only some of them.
        """
        ...


@runtime_checkable
class ListsSubscriptions(Protocol):
    """The administration of a broker that lists its durable subscriptions. Optional."""

    def subscriptions(self) -> Sequence[Subscription]:
        """Return the durable subscriptions, shared ones also."""
        ...

    def browse(self, source: Subscription, *, selector: str | None = None) -> Iterator[Sequence[Delivery]]:
        """Browse a durable subscription, as `Connection.browse` browses a queue."""
        ...

    def unsubscribe(self, source: Subscription) -> None:
        """Delete a durable subscription with its messages. `IllegalStateError` if it has consumers."""
        ...


RARELY_REACHED = 100_000  #: a delivery limit that no message reaches by being prefetched and returned


@runtime_checkable
class DeliveryLimits(Protocol):
    """The administration of a broker that drops a message after it was returned several times. Optional."""

    def delivery_limit(self, queue: Destination) -> int | None:
        """Return how many times a message of a queue can be returned, including prefetched ones; None if unlimited."""
        ...


@runtime_checkable
class LimitedReturns(Protocol):
    """A consumer of a broker with `DeliveryLimits`. Optional."""

    @property
    def drops_returned(self) -> bool:
        """True if the broker may drop returned messages: receive no more than the handlers can process at once."""
        ...


class Together(TypedDict, total=False):
    """The argument ``together`` of `Connection.consumer`."""

    together: int


def together(connection: "Connection", deliveries: int) -> Together:
    """Return the argument for a provider that needs it; nothing for the others, which may not know it."""
    return {"together": deliveries} if connection.capabilities.units == "receive" else {}


class Connection(Protocol):
    """A connection. Thread-safe; never reconnects. Every call may raise `ConnectionLostError`."""

    @property
    def capabilities(self) -> Capabilities:
        """The features of this connection."""
        ...

    @property
    def broker(self) -> str:
        """The product and the version as the broker announces them; empty if it announces none."""
        ...

    def consumer(
        self,
        source: Destination | Subscription,
        *,
        selector: str | None = None,
        no_local: bool = False,
        order: Order = Order.PREFIX,
        window: int | None = None,
        together: int = 1,
    ) -> Consumer:
        """Create a consumer. ``window``: maximum prefetch; 0 is exact credit, None the provider's choice.

        ``together``: a hint that up to so many deliveries of one `Consumer.receive` end in one unit. It matters only
        with the capability ``units="receive"``: then a unit takes all deliveries of one call, or all outstanding ones
        with `Order.PREFIX`. Any other unit is refused with `NotSupportedError`, and its deliveries are released.
        """
        ...

    def browse(
        self, queue: Destination, *, selector: str | None = None, limit: int | None = None
    ) -> Iterator[Sequence[Delivery]]:
        """Browse a queue in chunks that no unit can take. A poison message does not hide later ones.

        Delivery count and redelivered flag are the values that a consumer would get now (capability browse_counts).
        """
        ...

    def unit(self, *, atomic: bool = True) -> Unit:
        """Create a unit. If it is not atomic, sends are confirmed first, and deliveries are acknowledged after that."""
        ...

    def check(self, target: Destination) -> None:
        """Raise `InvalidDestinationError` if messages cannot be sent there."""
        ...

    def temporary(self, kind: Literal["queue", "topic"]) -> Destination:
        """Create a destination that exists as long as this connection."""
        ...

    def remove(self, what: Destination | Subscription) -> None:
        """Delete a queue or a durable subscription with its messages."""
        ...

    def admin(self) -> Admin | None:
        """Return the administration of the broker; None if it offers none."""
        ...

    def close(self, timeout: float | None = None) -> None:
        """Close the connection and its consumers. Open units are lost: their deliveries are redelivered, counted.

        With a timeout of 0 the connection is aborted at once, in any state. This is done after an interrupted call,
        because its caller does not know how much of the call was done.
        """
        ...


class Provider(Protocol):
    """Opens connections for the schemes that it is registered for.

    Optional: ``connect_two_phase``, with the parameters of `connect` and ``decider``, the identity of the database that
    decides the units. It returns a `TwoPhaseConnection`.
    """

    def connect(
        self,
        url: ConnectionURL,
        credentials: Credentials | None,
        *,
        client_id: str | None,
        limits: Limits,
        clock: Clock,
        on_lost: Callable[[JMSError], None],
    ) -> Connection:
        """Connect to ``url.host`` and ``url.port``, in one attempt. ``on_lost`` is called when the connection breaks.

        The caller tries the other hosts of a fail-over list; a provider without hosts refuses ``url.others``.
        """
        ...


class Xid(NamedTuple):
    """The name of a prepared unit at the broker."""

    number: bytes  #: unique
    qualifier: bytes  #: names the database that decides the unit, and the broker

    def __str__(self) -> str:
        return f"{self.qualifier.hex()}:{self.number.hex()}"


class TwoPhaseUnit(Unit, Protocol):
    """A unit that can be prepared."""

    def prepare(self) -> Xid | None:
        """Write everything so that only `commit` or `rollback` may follow; None if there is nothing to commit.

        `TransactionRolledBackError`: it failed. After it, `commit` carries out a decision: it returns also if the
        connection is lost, because recovery commits the unit then.
        """
        ...

    def abandon(self) -> None:
        """Leave the prepared unit to recovery, and end its connection: a consumer may still have its deliveries."""
        ...


@runtime_checkable
class TwoPhaseConnection(Connection, Protocol):
    """A connection whose units can be prepared (XA). Optional.

    Attributes:
        decider: The database that decides the units of transactions; None at first.
    """

    decider: Any

    @property
    def qualifier(self) -> bytes | None:
        """The qualifier in the names of its units, which are of the class `TwoPhaseUnit`; None if they are not."""
        ...

    def prepared(self) -> Sequence[Xid]:
        """Return the prepared units of the broker that this library has made, also of other processes."""
        ...

    def end_prepared(self, xid: Xid, *, commits: bool) -> None:
        """Commit or roll back a prepared unit; no effect if it has ended. `JMSError`: it has ended otherwise."""
        ...
