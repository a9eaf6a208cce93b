"""The links that the units of a connection share: senders for destinations, a relay, and the coordinator."""

import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import Any, TypeVar

from jmsjca.destinations import Destination
from jmsjca.errors import ConnectionLostError, JMSError, TransactionInDoubtError
from jmsjca.providers.amqp.brokers.profile import AMQPBrokerProfile
from jmsjca.providers.amqp.codec.addresses import address_of
from jmsjca.providers.amqp.engine.engine import Engine
from jmsjca.providers.amqp.links.coordinator import CoordinatorLink
from jmsjca.providers.amqp.links.delivery_states import ACCEPTED
from jmsjca.providers.amqp.links.sender import AnonymousRelayLink, SendBatch, SenderLink, Then

__all__ = ["MAX_SENDER_LINKS", "LinkPool", "Outgoing", "_SenderLinks"]

T = TypeVar("T")

Outgoing = Mapping[Destination, Sequence[bytes]]  #: encoded messages by where they go

MAX_SENDER_LINKS = 64  #: so many destinations have a link of their own


class _SenderLinks:
    """The links over which units send. Whoever commits or prepares has them for himself meanwhile.

    The first destinations get links of their own: to attach one tells at once whether the broker lets us send there.
    What goes elsewhere is sent over one link to all destinations, if the broker has such a relay; else the link that
    was not used for longest makes room.

    Args:
        engine: The connection.
        broker: What is at the other end.
        reply_timeout: Seconds to wait for the broker's answers.
    """

    def __init__(self, engine: Engine, broker: AMQPBrokerProfile, reply_timeout: float) -> None:
        self._engine = engine
        self._broker = broker
        self._reply_timeout = reply_timeout
        self._relay: SenderLink | None = None
        self._links: dict[Destination, SenderLink] = {}  # the least recently used first

    def ensure_links(self, destinations: Collection[Destination], timeout: float) -> None:
        """See that there are links. What a relay serves is refused only when it is sent.

        Args:
            destinations: Where to.
            timeout: Seconds to wait for each link.

        Raises:
            InvalidDestinationError: The broker does not let us send there.
        """
        for to in destinations:
            self._link_to(to, timeout)

    def check(self, to: Destination, timeout: float) -> None:
        """Attach a link of its own to a destination, whatever it takes.

        Raises:
            InvalidDestinationError: The broker does not let us send there.
        """
        self._own_link_to(to, timeout)
        self._evict()

    def send(self, outgoing: Outgoing, transaction: bytes | None, timeout: float, then: Then | None = None) -> Any:
        """Send, and wait until the broker has taken everything.

        Args:
            outgoing: What to send.
            transaction: In which; None outside any.
            timeout: Seconds to wait for each answer.
            then: What follows at once on the engine's thread, and is waited for, too.

        Returns:
            The answer to that.

        Raises:
            TransactionInDoubtError: Some were or may have been sent, outside any transaction, and others not.
            JMSError: None were sent, or it happened in a transaction, which must be rolled back.
        """
        some, answer = False, None
        parts = list(_partitions(outgoing, len(outgoing) if self._broker.offers_relay else MAX_SENDER_LINKS))
        for part in parts:
            then_now = then if part is parts[-1] else None
            sending = SendBatch(
                sum(map(len, part.values())),
                transaction,
                self._engine.now,
                presettle=self._broker.presettles_in_transaction,
                then=then_now,
            )
            try:
                answer = self._send(part, sending, timeout)
            except ConnectionLostError:
                raise
            except JMSError as error:
                doubt = _in_doubt_reason(sending, some=some) if transaction is None else None
                if doubt is None:
                    raise
                raise TransactionInDoubtError(f"{doubt}: {error}") from error
            some = True
        return answer

    def _send(self, outgoing: Outgoing, sending: SendBatch, timeout: float) -> Any:
        links = [(self._link_to(to, timeout), to, payloads) for to, payloads in outgoing.items()]
        self._engine.submit_nowait(partial(_send_all, links, sending), sending.done)
        return self._engine.wait(sending.done, timeout, "the messages of a unit, or its end", lambda: sending.latest)

    def _link_to(self, to: Destination, timeout: float) -> SenderLink:
        if self._is_relayed(to):
            address_of(to, self._broker.naming).check()  # it would take a name that no consumer can have
            return self._relay_link(timeout)
        link = self._own_link_to(to, timeout)
        if not self._broker.offers_relay:
            self._evict()
        return link

    def _is_relayed(self, to: Destination) -> bool:
        return len(self._links) >= MAX_SENDER_LINKS and to not in self._links and self._broker.can_relay_to(to)

    def _relay_link(self, timeout: float) -> SenderLink:
        if self._relay is None or self._relay.error is not None:
            self._relay = self._attached(AnonymousRelayLink(self._engine, self._reply_timeout), timeout)
        return self._relay

    def _own_link_to(self, to: Destination, timeout: float) -> SenderLink:
        link = self._links.pop(to, None)
        if link is None or link.error is not None:
            address = address_of(to, self._broker.naming)
            link = self._attached(SenderLink(self._engine, address, self._reply_timeout), timeout)
        self._links[to] = link
        return link

    def _attached(self, link: SenderLink, timeout: float) -> SenderLink:
        link.attach(timeout)
        return link

    def _evict(self) -> None:
        while len(self._links) > MAX_SENDER_LINKS:
            oldest = self._links.pop(next(iter(self._links)))
            self._engine.call(oldest.detach)


def _partitions(outgoing: Outgoing, most: int) -> Iterator[Outgoing]:
    """The same in parts of so many destinations at most."""
    left = iter(outgoing.items())
    while part := dict(islice(left, most)):
        yield part


def _in_doubt_reason(sending: SendBatch, *, some: bool) -> str | None:
    """What makes the end of a failed unit doubtful, if anything does."""
    if some or sending.any_accepted:
        return "Some messages of the unit were sent, and others not"
    return "Some messages may have been sent" if sending.in_doubt else None


def _send_all(links: Sequence[tuple[SenderLink, Destination, Sequence[bytes]]], sending: SendBatch) -> None:
    for link, to, payloads in links:
        link.send(payloads, sending, to)


class LinkPool:
    """What units write with.

    Args:
        engine: The connection.
        broker: What is at the other end.
        reply_timeout: Seconds to wait for the broker's answers.

    Attributes:
        check: Raises `ConnectionLostError` if the connection is gone.
        mailbox: Its `error` tells that, too, and costs no call.
        committing: Held while a unit ends: two never overlap on a connection.
        closing: True once nothing new is to be begun.
    """

    def __init__(self, engine: Engine, broker: AMQPBrokerProfile, reply_timeout: float) -> None:
        self._engine = engine
        self._senders = _SenderLinks(engine, broker, reply_timeout)
        self._coordinator: CoordinatorLink | None = None
        self.commit_lock = threading.RLock()
        self.is_closing = False
        self.broker = broker
        self.check_open = engine.check_open
        self.task_queue = engine.task_queue
        self.reply_timeout = reply_timeout

    def submit_nowait(self, function: Callable[[], None], reply: "Future[Any]") -> None:
        """Run a function on the engine's thread; the reply hears of it if that fails or is never done."""
        self._engine.submit_nowait(function, reply)

    def wait(self, reply: "Future[T]", timeout: float, what: str) -> T:
        """Wait for an answer of the broker."""
        return self._engine.wait(reply, timeout, what)

    def abort(self, error: JMSError) -> None:
        """Give the connection up."""
        self._engine.abort(error)

    def abort_interrupted(self) -> None:
        """Give the connection up, as a unit was interrupted at its end: nobody knows how much of that is written."""
        self.abort(ConnectionLostError("The end of a unit was interrupted, by a signal handler for one."))

    def check_target(self, to: Destination) -> None:
        """Attach a sender to a destination.

        Raises:
            InvalidDestinationError: The broker does not let us send there.
        """
        self.check_open()
        with self.commit_lock:
            self._senders.check(to, self.reply_timeout)

    def ensure_links(self, destinations: Collection[Destination], timeout: float) -> None:
        """Attach the senders that are missing.

        Args:
            destinations: Where to.
            timeout: Seconds to wait for each.

        Raises:
            InvalidDestinationError: The broker does not let us send there.
        """
        self.check_open()
        self._senders.ensure_links(destinations, timeout)

    def send(self, outgoing: Outgoing, transaction: bytes | None, timeout: float, then: Then | None = None) -> Any:
        """Send encoded messages, and wait until the broker took them all; then for what follows."""
        return self._senders.send(outgoing, transaction, timeout, then)

    def declare(self, timeout: float) -> bytes:
        """Begin a transaction."""
        if self._coordinator is None or self._coordinator.error is not None:
            coordinator = CoordinatorLink(self._engine, self.reply_timeout)
            coordinator.attach(timeout)
            self._coordinator = coordinator
        return self._coordinator.declare(timeout)

    def check_coordinator(self) -> None:
        """Raise why the coordinator ended, if it did: then nothing can be committed."""
        if self._coordinator is not None and self._coordinator.error is not None:
            raise self._coordinator.error

    def discharge(self, transaction: bytes, reply: "Future[Any]", *, fail: bool = False) -> None:
        """End a transaction; the reply gets the broker's answer. On the engine's thread."""
        if self._coordinator is None:
            raise ConnectionLostError("There is no transaction to end.")
        self._coordinator.discharge(transaction, reply, fail=fail)

    def roll_back(self, transaction: bytes) -> bool:
        """End a transaction so that nothing of it happened; a lost connection does that, too.

        Returns:
            True if the broker says that it did.
        """
        reply: Future[Any] = Future()
        with suppress(JMSError):
            self.submit_nowait(lambda: self.discharge(transaction, reply, fail=True), reply)
            state, _ = self.wait(reply, self.reply_timeout, "a rollback")
            return bool(state == ACCEPTED)
        return False
