"""What a provider offers: the Protocols that the rest of jmsjca is written against, on one screen.

Everything rests on the unit: a note of the deliveries that it takes and the messages that it sends. Nothing reaches
the broker before `Unit.commit`, which writes all of it in one burst; `Unit.rollback` gives the deliveries back.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Literal, Protocol

from jmsjca.config import Clock, ConnectionURL, Credentials, Limits
from jmsjca.destinations import Destination, Subscription
from jmsjca.errors import JMSError
from jmsjca.messages import Message

__all__ = ["Admin", "Capabilities", "Connection", "Consumer", "Delivery", "Depth", "Order", "Provider", "Unit"]


class Order(Enum):
    """How a consumer's deliveries are settled."""

    PREFIX = 1  #: in the order of receipt; a rollback first takes back whatever came later
    ANY = 2  #: in any order


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
    selectors: bool = False  #: consumers and browsers can filter
    browse: bool = False  #: a queue can be looked at
    durable: bool = False  #: subscriptions outlive their consumers
    shared: bool = False  #: several consumers can share one subscription
    temporary: bool = False  #: destinations that live as long as their connection
    no_local: bool = False  #: a subscriber can be spared what its own connection sends
    duplicate_detection: bool = False  #: a message sent again with the same ``_AMQ_DUPL_ID`` is dropped
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
    def message(self) -> Message: ...  # decoded on first use: MessageFormatError here, never in receive()
    @property
    def raw(self) -> bytes: ...  # always readable: poison, staging
    @property
    def count(self) -> int | None: ...  # deliveries, this one included; None: the broker does not count
    @property
    def redelivered(self) -> bool: ...


class Unit(Protocol):
    """A note; nothing reaches the broker before `commit`. Used once."""

    def take(self, deliveries: Sequence[Delivery]) -> None: ...
    def send(self, message: Message, to: Destination) -> None: ...
    def commit(self, *, confirmed: bool = True, timeout: float | None = None) -> None: ...
    def rollback(self, *, delay: float = 0.0, unused: Sequence[Delivery] = ()) -> None: ...  # counted, but `unused`


class Consumer(Protocol):
    """Takes messages from one source."""

    def receive(self, limit: int, timeout: float | None) -> Sequence[Delivery]: ...  # a chunk; [] on timeout or wake
    def give_back(self, deliveries: Sequence[Delivery]) -> None: ...  # uncounted where the broker can
    def drain(self) -> Sequence[Delivery]: ...  # credit to 0; what was on its way
    def wake(self) -> None: ...
    def close(self) -> None: ...  # gives back what no unit took


class Admin(Protocol):
    """What the broker lets an operator see and do."""

    def destinations(self) -> Sequence[Destination]: ...
    def depth(self, source: Destination | Subscription) -> Depth: ...
    def purge(self, source: Destination | Subscription) -> int: ...  # how many messages it removed


class Connection(Protocol):
    """One attempt, thread-safe; every call may raise ConnectionLostError."""

    @property
    def capabilities(self) -> Capabilities: ...
    def consumer(
        self,
        source: Destination | Subscription,
        *,
        selector: str | None = None,
        no_local: bool = False,
        order: Order = Order.PREFIX,
        window: int | None = None,  # messages taken ahead; 0: exact credit
    ) -> Consumer: ...
    def browse(
        self, queue: Destination, *, selector: str | None = None, limit: int | None = None
    ) -> Iterator[Sequence[Message]]: ...
    def unit(self, *, atomic: bool = True) -> Unit: ...  # False: sends confirmed first, acknowledgements after
    def check(self, target: Destination) -> None: ...
    def temporary(self, kind: Literal["queue", "topic"]) -> Destination: ...
    def remove(self, what: Destination | Subscription) -> None: ...
    def admin(self) -> Admin | None: ...
    def close(self, timeout: float | None = None) -> None: ...


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
        lost: Callable[[JMSError], None],
    ) -> Connection: ...
