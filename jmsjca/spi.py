"""The provider interface: the Protocols that the rest of jmsjca is written against.

Everything rests on the unit: a note of the deliveries that it takes and the messages that it sends. Nothing reaches
the broker before `Unit.commit`, which writes all of it in one burst; `Unit.rollback` gives the deliveries back.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Literal, Protocol

from jmsjca.config import Clock, ConnectionURL, Credentials, DestinationSettings, Limits
from jmsjca.destinations import Destination, Subscription
from jmsjca.errors import JMSError
from jmsjca.messages import Message

__all__ = ["Admin", "Capabilities", "Connection", "Consumer", "Delivery", "Depth", "Order", "Provider", "Unit"]


class Order(Enum):
    """How a consumer's deliveries are settled."""

    PREFIX = 1  #: in the order of receipt; a rollback first takes back whatever came later
    ANY = 2  #: in any order
    MIXED = 3  #: in any order, but rolled back as in `PREFIX`


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a connection can do, settled from what the broker really is. The rest is refused, never weakened."""

    transacted_receive: bool = False  #: acknowledgements of a unit succeed or fail together
    transacted_send: bool = False  #: sends of a unit appear together or not at all
    atomic: bool = False  #: acknowledgements and sends of a unit are one
    give_back: Literal["uncounted", "counted", "local", "none"] = "none"  #: what returning an unused delivery does
    exact_credit: bool = False  #: ``window=0`` takes what `Consumer.receive` asks for and no more
    redelivery_delay: bool = False  #: the broker holds a rolled-back message for a time
    delivery_delay: bool = False  #: the broker holds a sent message for a time
    delivery_count: bool = False  #: `Delivery.count` comes from the broker
    counts_lost: bool = False  #: what a lost connection held comes again as redelivered, counted where there is a count
    priority: bool = False  #: messages of higher priority overtake those of lower
    selectors: bool = False  #: consumers and browsers can filter
    exact_selectors: bool = False  #: they do it by the rules of JMS: text is no number, what is missing is unknown
    browse: bool = False  #: a queue can be looked at
    browse_counts: bool = False  #: browsers show the count that a consumer would get
    durable: bool = False  #: subscriptions outlive their consumers
    shared: bool = False  #: several consumers can share one subscription
    volatile_reuse: bool = False  #: the name of a shared one that is not durable is free when its last consumer is gone
    subscription_lock: bool = False  #: a durable subscription that is not shared refuses a second consumer
    subscription_kinds: bool = False  #: a shared and an unshared durable subscription cannot have one name
    ends_at_close: bool = False  #: a closed consumer has left its subscription, even if a unit holds messages of it
    client_ids: bool = False  #: a client id belongs to one connection at a time
    temporary: bool = False  #: destinations that live as long as their connection
    temporary_guarded: bool = False  #: a temporary queue lets no other connection consume, even by its plain name
    temporary_ends: bool = False  #: what is sent to a temporary destination that is gone is refused
    no_local: bool = False  #: a subscriber can be spared what its own connection sends
    durable_no_local: bool = False  #: the same for durable subscriptions: what any connection of the client id sends
    groups: bool = False  #: messages with one ``JMSXGroupID`` go to one consumer, as long as it is there
    groups_apart: bool = False  #: a group whose consumer does not ask holds up no other
    structured: bool = False  #: map, stream and object messages
    duplicate_detection: bool = False  #: a message sent again with the same ``_AMQ_DUPL_ID`` is dropped
    checks: bool = False  #: `Connection.check` finds out whether messages can be sent
    admin: bool = False  #: an operator can look inside: `Connection.admin` is not None
    configurable: bool = False  #: `Admin.configure` sets what a destination does with its messages
    shared_between_processes: bool = False  #: other processes reach the same destinations


@dataclass(frozen=True, slots=True)
class Depth:
    """How many messages a queue holds."""

    ready: int  #: waiting for a consumer
    held: int  #: delivered, not settled
    scheduled: int  #: not due yet

    @property
    def total(self) -> int:
        """All of them."""
        return self.ready + self.held + self.scheduled


class Delivery(Protocol):
    """One received message; nobody's until a unit takes it."""

    @property
    def message(self) -> Message:
        """The message, decoded on first use: `MessageFormatError` is raised here, never by `Consumer.receive`.

        A provider may leave the headers until the first of them is asked for; then it is raised there.
        """
        ...

    @property
    def raw(self) -> bytes:
        """The body as it came: always readable, for poison and for staging."""
        ...

    @property
    def count(self) -> int | None:
        """How often it was delivered, this time included; None if the broker does not count."""
        ...

    @property
    def redelivered(self) -> bool:
        """True if it was delivered before."""
        ...


class Unit(Protocol):
    """A note; nothing reaches the broker before `commit`. Used once."""

    def take(self, deliveries: Sequence[Delivery]) -> None:
        """Note deliveries to settle. `IllegalStateError` if one is settled, given back or another unit's."""
        ...

    def send(self, message: Message, to: Destination) -> None:
        """Note a message to send, as it is now."""
        ...

    def commit(self, *, confirmed: bool = True, timeout: float | None = None) -> None:
        """Write it all. `TransactionRolledBackError`: it did not happen; `TransactionInDoubtError`: it may have."""
        ...

    def rollback(self, *, delay: float = 0.0, unused: Sequence[Delivery] = ()) -> None:
        """Send nothing; give the deliveries back after so many seconds, counted but for the unused ones."""
        ...


class Consumer(Protocol):
    """Takes messages from one source."""

    def receive(self, limit: int, timeout: float | None) -> Sequence[Delivery]:
        """Take a chunk of at most so many messages; empty after so many seconds, or when woken. None: wait for ever."""
        ...

    def release(self, deliveries: Sequence[Delivery]) -> None:
        """Return deliveries that no unit took: uncounted where the broker can."""
        ...

    def drain(self) -> Sequence[Delivery]:
        """Ask for no more, and give what was on its way."""
        ...

    def wake(self) -> None:
        """Let a waiting `receive` return."""
        ...

    def close(self) -> None:
        """Give back what no unit took; what a unit took stays with the unit."""
        ...


class Admin(Protocol):
    """What the broker lets an operator see and do."""

    def destinations(self) -> Sequence[Destination]:
        """All queues and topics."""
        ...

    def depth(self, source: Destination | Subscription) -> Depth:
        """Count the messages of a queue or a durable subscription."""
        ...

    def purge(self, source: Destination | Subscription) -> int:
        """Remove what waits there, and tell how many messages that were."""
        ...

    def configure(self, address: Destination | None, settings: DestinationSettings) -> None:
        """Set what a destination, or every one that has no settings of its own (None), does with its messages."""
        ...

    def settings(self, address: Destination | None) -> DestinationSettings:
        """Tell what holds for a destination."""
        ...


class Connection(Protocol):
    """One attempt, thread-safe; every call may raise `ConnectionLostError`."""

    @property
    def capabilities(self) -> Capabilities:
        """What this connection can do."""
        ...

    def consumer(
        self,
        source: Destination | Subscription,
        *,
        selector: str | None = None,
        no_local: bool = False,
        order: Order = Order.PREFIX,
        window: int | None = None,
    ) -> Consumer:
        """Consume. The window is how many messages are taken ahead; 0 is exact credit, None the provider's choice."""
        ...

    def browse(
        self, queue: Destination, *, selector: str | None = None, limit: int | None = None
    ) -> Iterator[Sequence[Delivery]]:
        """Look at what waits in a queue, chunk by chunk; no unit takes it. Poison does not hide what is behind it.

        Count and redelivered are those that a consumer would get now (capability browse_counts).
        """
        ...

    def unit(self, *, atomic: bool = True) -> Unit:
        """Open a unit. Not atomic: sends are confirmed first, then deliveries acknowledged."""
        ...

    def check(self, target: Destination) -> None:
        """Raise `InvalidDestinationError` if messages cannot be sent there."""
        ...

    def temporary(self, kind: Literal["queue", "topic"]) -> Destination:
        """Make a destination that lives as long as this connection."""
        ...

    def remove(self, what: Destination | Subscription) -> None:
        """Remove a queue or a durable subscription with what waits there."""
        ...

    def admin(self) -> Admin | None:
        """The operator's view; None if the broker offers none."""
        ...

    def close(self, timeout: float | None = None) -> None:
        """Close consumers; open units are lost: what they took comes again, counted."""
        ...


class Provider(Protocol):
    """Makes connections for the schemes that it is registered for."""

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

        Whoever calls tries the other hosts of a fail-over list; a provider without hosts refuses ``url.others``.
        """
        ...
