"""The links that the units of a connection share: senders, a relay, and the coordinator of transactions."""

import threading
from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from functools import partial
from itertools import islice
from typing import Any, NamedTuple, cast

from jmsjca.destinations import Destination
from jmsjca.errors import (
    ConnectionLostError,
    JMSError,
    NotSupportedError,
    TransactionInDoubtError,
    TransactionRolledBackError,
)
from jmsjca.providers.amqp.codec.addresses import address_of
from jmsjca.providers.amqp.engine.engine import Engine
from jmsjca.providers.amqp.engine.proton_ffi import (
    COORDINATOR,
    DeliveryTags,
    Pointer,
    is_settled,
    pointer_to,
    remote_data,
    remote_state,
    send,
    settle,
    wrap_delivery,
)
from jmsjca.providers.amqp.errors import condition_text
from jmsjca.providers.amqp.links.delivery_states import (
    ACCEPTED,
    COORDINATOR_CAPABILITIES,
    DECLARE,
    DECLARED,
    NON_TERMINAL_STATES,
    REJECTED,
    declared_txn_id,
    discharge,
)
from jmsjca.providers.amqp.links.link import Link
from jmsjca.providers.amqp.links.sender import AnonymousRelayLink, SendBatch, SenderLink, Then
from jmsjca.providers.brokers.profile import MAX_SENDER_LINKS, AMQPBrokerProfile
from jmsjca.providers.brokers.rabbitmq_amqp import RabbitMQTopology

__all__ = [
    "IDLE_SECONDS",
    "MAX_SENDER_LINKS",
    "CoordinatorLink",
    "LinkPool",
    "Outgoing",
    "PredeclaredTransaction",
    "_Declaration",
]

Outgoing = Mapping[Destination, Sequence[bytes]]  #: encoded messages by destination

_AWAITED = "the messages of a unit, or its end; it may give no credit, as during an alarm for memory or disk space"


class LinkPool:
    """The sender links and the coordinator link of a connection. Use it while holding `commit_lock`.

    Each of the first destinations gets its own link, so that the broker refuses an invalid one at once. Messages
    to further destinations are sent over one link to all destinations, if the broker offers such a relay. Otherwise the
    least recently used link is detached.

    Args:
        engine: The connection's engine.
        broker: The profile of the broker.
        reply_timeout: Seconds to wait for the broker's replies.
        topology: Declares queues before messages are sent to them; None if the broker creates them.

    Attributes:
        engine: The same.
        broker: The same.
        reply_timeout: The same.
        topology: The same.
        commit_lock: Held while a unit ends: the ends of two units never overlap on a connection.
        is_closing: True once the connection closes; no new unit may begin.
    """

    def __init__(
        self,
        engine: Engine,
        broker: AMQPBrokerProfile,
        reply_timeout: float,
        topology: RabbitMQTopology | None = None,
    ) -> None:
        self.engine = engine
        self.broker = broker
        self.reply_timeout = reply_timeout
        self.topology = topology
        self.commit_lock = threading.RLock()
        self.is_closing = False
        self._coordinator: CoordinatorLink | None = None
        self._relay: SenderLink | None = None
        self._senders: dict[Destination, SenderLink] = {}  # the least recently used first

    def attach_own_link(self, to: Destination) -> None:
        """Attach a separate sender link for a destination, even if the broker offers a relay.

        Raises:
            InvalidDestinationError: The broker refuses the destination.
        """
        self.engine.check_open()
        with self.commit_lock:
            if self.topology is not None:
                self.topology.ensure_target(to, self.reply_timeout)
            self._own_link_to(to, self.reply_timeout)
            self._evict()

    def ensure_links(self, destinations: Collection[Destination], timeout: float) -> None:
        """Attach the missing sender links. A destination that the relay serves is refused only by a send.

        Args:
            destinations: The destinations.
            timeout: Seconds to wait for each link.

        Raises:
            InvalidDestinationError: The broker refuses a destination.
        """
        self.engine.check_open()
        for to in destinations:
            self._link_to(to, timeout)

    def send(self, outgoing: Outgoing, transaction: bytes | None, timeout: float, then: Then | None = None) -> Any:
        """Send messages and wait until the broker has accepted all of them.

        Args:
            outgoing: The messages.
            transaction: The transaction's id; None outside a transaction.
            timeout: Seconds to wait for each outcome.
            then: Runs on the engine thread afterwards. The call also waits for it.

        Returns:
            The result of `then`.

        Raises:
            TransactionInDoubtError: Outside a transaction, and some messages were sent or may have been sent.
            JMSError: No message was sent; or some were, in a transaction, which must be rolled back.
        """
        any_sent, result = False, None
        parts = list(_partitions(outgoing, len(outgoing) if self.broker.offers_relay else self.broker.max_sender_links))
        for part in parts:
            batch = SendBatch(
                sum(map(len, part.values())),
                transaction,
                self.engine.now,
                presettle=self.broker.presettles_in_transaction,
                then=then if part is parts[-1] else None,
            )
            with _in_doubt_if_sent(batch, any_sent=any_sent):
                result = self._send(part, batch, timeout)
            any_sent = True
        return result

    def start_send(self, outgoing: Outgoing, timeout: float) -> SendBatch:
        """Send messages to at most `MAX_SENDER_LINKS` destinations, outside a transaction, without waiting.

        Args:
            outgoing: The messages.
            timeout: Seconds to wait for each missing link.

        Returns:
            The messages with their outcome, for `await_sent`.
        """
        batch = SendBatch(sum(map(len, outgoing.values())), None, self.engine.now)
        self._start(outgoing, batch, timeout, urgent=False)
        return batch

    def await_sent(self, batch: SendBatch, timeout: float) -> None:
        """Wait until the broker has accepted all messages of `start_send`.

        Args:
            batch: The messages.
            timeout: Seconds to wait for each outcome.

        Raises:
            TransactionInDoubtError: Some messages were sent or may have been sent.
            JMSError: No message was sent, or the connection is lost.
        """
        if not batch.begun:
            self.engine.task_queue.wake()  # `start_send` did not: the engine may wait for more messages
        with _in_doubt_if_sent(batch, any_sent=False):
            self._await(batch, timeout)

    def declare(self, timeout: float) -> bytes:
        """Declare a transaction and return its id.

        Raises:
            JMSError: The broker refuses, or the connection is lost.
        """
        if self._coordinator is None or self._coordinator.error is not None:
            coordinator = CoordinatorLink(self.engine, self.reply_timeout)
            coordinator.attach(timeout)
            self._coordinator = coordinator
        return self._coordinator.declare(timeout)

    @property
    def coordinator_error(self) -> JMSError | None:
        """The error of the coordinator link if it has ended: its transactions ended with it."""
        return None if self._coordinator is None else self._coordinator.error

    def discharge(self, transaction: bytes, reply: "Future[Any]", *, fail: bool = False) -> None:
        """Discharge a transaction. The reply gets the broker's outcome. Engine thread only."""
        if self._coordinator is None:
            raise ConnectionLostError("There is no transaction to discharge.")
        self._coordinator.discharge(transaction, reply, fail=fail)

    def roll_back(self, transaction: bytes) -> bool:
        """Roll a transaction back. The broker also rolls it back if the connection is lost.

        Returns:
            True if the broker confirmed it.
        """
        reply: Future[Any] = Future()
        with suppress(JMSError):
            self.engine.submit_nowait(lambda: self.discharge(transaction, reply, fail=True), reply)
            state, _ = self.engine.wait(reply, self.reply_timeout, "a rollback")
            return bool(state == ACCEPTED)
        return False

    def _send(self, outgoing: Outgoing, batch: SendBatch, timeout: float) -> Any:
        self._start(outgoing, batch, timeout, urgent=True)
        return self._await(batch, timeout)

    def _start(self, outgoing: Outgoing, batch: SendBatch, timeout: float, *, urgent: bool) -> None:
        links = [(self._link_to(to, timeout), to, payloads) for to, payloads in outgoing.items()]
        self.engine.submit_nowait(partial(_write, links, batch), batch.done, urgent=urgent)

    def _await(self, batch: SendBatch, timeout: float) -> Any:
        try:
            return self.engine.wait(batch.done, timeout, _AWAITED, lambda: batch.latest)
        except JMSError:
            if self.topology is not None:
                self.topology.forget_targets()  # a queue may have been deleted
            self._detach_temporary()
            raise

    def _detach_temporary(self) -> None:
        """Detach the links to temporary destinations: one may be gone, which ActiveMQ reports to a new link only."""
        with self.commit_lock, suppress(JMSError):
            for to in [each for each in self._senders if each.temporary]:
                if self.engine.call(self._senders[to].detach_if_idle):
                    del self._senders[to]

    def _link_to(self, to: Destination, timeout: float) -> SenderLink:
        if self.topology is not None:
            self.topology.ensure_target(to, timeout)
        if self._is_relayed(to):
            address_of(to, self.broker.naming).check()  # a relay accepts names that no consumer can have
            return self._relay_link(timeout)
        link = self._own_link_to(to, timeout)
        if not self.broker.offers_relay:
            self._evict()
        return link

    def _is_relayed(self, to: Destination) -> bool:
        broker = self.broker
        return len(self._senders) >= broker.max_sender_links and to not in self._senders and broker.can_relay_to(to)

    @property
    def _returns_unroutable(self) -> bool:
        return self.topology is not None

    def _relay_link(self, timeout: float) -> SenderLink:
        if self._relay is None or self._relay.error is not None:
            relay = AnonymousRelayLink(self.engine, self.reply_timeout, returns_unroutable=self._returns_unroutable)
            relay.attach(timeout)
            self._relay = relay
        return self._relay

    def _own_link_to(self, to: Destination, timeout: float) -> SenderLink:
        link = self._senders.pop(to, None)
        if link is None or link.error is not None:
            address, returns = address_of(to, self.broker.naming), self._returns_unroutable
            link = SenderLink(self.engine, address, self.reply_timeout, returns_unroutable=returns)
            link.attach(timeout)
        self._senders[to] = link
        return link

    def _evict(self) -> None:
        """Detach the least recently used links. Those with messages in flight stay until a later call."""
        surplus = len(self._senders) - self.broker.max_sender_links
        for to, link in list(self._senders.items())[: len(self._senders) - 1 if surplus > 0 else 0]:
            if surplus > 0 and self.engine.call(link.detach_if_idle):
                del self._senders[to]
                surplus -= 1


def _partitions(outgoing: Outgoing, size: int) -> Iterator[Outgoing]:
    """Split messages into parts of at most `size` destinations."""
    left = iter(outgoing.items())
    while part := dict(islice(left, size)):
        yield part


@contextmanager
def _in_doubt_if_sent(batch: SendBatch, *, any_sent: bool) -> Generator[None]:
    """Raise `TransactionInDoubtError` for an error outside a transaction if messages may have been sent."""
    try:
        yield
    except ConnectionLostError:
        raise
    except JMSError as error:
        doubt = _in_doubt_reason(batch, any_sent=any_sent) if batch.state is None else None
        if doubt is None:
            raise
        raise TransactionInDoubtError(f"{doubt}: {error}") from error


def _in_doubt_reason(batch: SendBatch, *, any_sent: bool) -> str | None:
    """Return why a failed unit is in doubt; None if nothing of it was sent."""
    if any_sent or batch.any_accepted:
        return "Some messages of the unit were sent, and others not"
    return "Some messages may have been sent" if batch.in_doubt else None


def _write(links: Sequence[tuple[SenderLink, Destination, Sequence[bytes]]], batch: SendBatch) -> None:
    for link, to, payloads in links:
        link.send(payloads, batch, to)


#: Seconds until an unused transaction is rolled back. Brokers end transactions that stay open for long.
IDLE_SECONDS = 1.0

_ROLLED_BACK = "amqp:transaction:rollback"


class CoordinatorLink(Link):
    """Declares and discharges transactions, one after the other.

    Args:
        engine: The connection's engine.
        reply_timeout: Seconds to wait for the broker's replies.
    """

    def __init__(self, engine: Engine, reply_timeout: float) -> None:
        super().__init__(engine, "the link to the transaction coordinator", reply_timeout)
        self._replies: dict[Pointer, Future[Any]] = {}
        self._predeclared = PredeclaredTransaction()
        self._expiry_scheduled = False
        self._tags = DeliveryTags()

    def declare(self, timeout: float) -> bytes:
        """Declare a transaction, or use the predeclared one. Return its id.

        Args:
            timeout: Seconds to wait for the broker.

        Raises:
            JMSError: The broker refuses, or the connection is lost.
        """
        reply: Future[Any] | None = self._predeclared.take()
        if reply is None:
            reply = Future[Any]()
            self._engine.submit_nowait(partial(self._request, {DECLARE: reply}), reply)
        state, transaction = self._engine.wait(reply, timeout, "the declaration of a transaction")
        if state != DECLARED or not transaction:
            reason = transaction or "it has no id"
            raise TransactionRolledBackError(f"The broker did not declare a transaction: {reason}")
        return cast("bytes", transaction)

    def discharge(self, transaction: bytes, reply: "Future[Any]", *, fail: bool) -> None:
        """Discharge a transaction, and declare the next one if transactions follow each other. Engine thread only.

        Args:
            transaction: Its id.
            reply: Gets the broker's outcome, and the text of its reason.
            fail: True to roll back.
        """
        now, end = self._engine.now(), discharge(transaction, fail)
        if not self._predeclared.is_busy(now) or fail:
            self._request({end: reply})
            return
        ahead: Future[Any] = Future()
        self._request({end: reply, DECLARE: ahead})
        self._predeclared.store(ahead, now)
        if not self._expiry_scheduled:
            self._expire_unused()

    def _expire_unused(self) -> None:
        """Roll the predeclared transaction back if it has not been used in time."""
        unused = self._predeclared.take_expired(self._engine.now())
        if unused is not None:
            unused.add_done_callback(self._roll_back_unused)
        due = self._predeclared.expiry()
        self._expiry_scheduled = due is not None
        if due is not None:
            self._engine.call_at(due, self._expire_unused)

    def _roll_back_unused(self, reply: "Future[Any]") -> None:
        if self.error is not None:
            return
        state, transaction = reply.result()
        if state == DECLARED and transaction:
            self._request({discharge(transaction, fail=True): Future()})

    def on_delivery(self, delivery: Pointer) -> bool:
        """The coordinator reported an outcome."""
        state = remote_state(delivery)
        state = 0 if state in NON_TERMINAL_STATES else state
        if delivery in self._replies and (state or is_settled(delivery)):
            self._replies.pop(delivery).set_result((state, self._reply_payload(delivery, state)))
            settle(delivery)
        return False

    def on_closed(self, condition: Any) -> None:
        """The broker ended the link, which may report a rollback instead of an outcome (AMQP 1.0 section 4.3)."""
        if condition is not None and condition.name == _ROLLED_BACK:
            asked = next((reply for reply in self._replies.values() if not reply.done()), None)
            if asked is not None:
                asked.set_result((REJECTED, condition_text(condition)))
        super().on_closed(condition)

    def _reply_payload(self, delivery: Pointer, state: int) -> bytes | str:
        """Return the id of a declared transaction, or the reason of a refusal."""
        if state == DECLARED:
            return declared_txn_id(remote_data(delivery, self._engine.buffer))
        return "" if state == ACCEPTED else condition_text(wrap_delivery(delivery).remote.condition)

    def _request(self, questions: "Mapping[bytes, Future[Any]]") -> None:
        if self.error is not None:
            raise self.error
        self._replies.update(zip(send(pointer_to(self._link), self._tags, questions), questions.values(), strict=True))

    def _create(self, session: Any, name: str) -> Any:
        link = session.sender(name)
        link.target.type = COORDINATOR
        link.target.capabilities.put_object(COORDINATOR_CAPABILITIES)
        link.source.address = name
        return link

    def _is_refused(self) -> bool:
        return bool(self._link.remote_target.type != COORDINATOR)

    def _attach_error(self) -> JMSError | None:
        offered = _symbols_in(self._link.remote_target.capabilities)
        if not offered or COORDINATOR_CAPABILITIES in offered:
            return None
        return NotSupportedError(
            f"The broker offers no local transactions over AMQP, only {', '.join(sorted(offered))}."
        )

    def _refusal_error(self, condition: Any) -> JMSError:
        if self._attached.done():
            return super()._refusal_error(condition)
        return NotSupportedError(f"The broker has no transactions over AMQP: {condition_text(condition)}")

    def _fail(self, error: JMSError) -> None:
        super()._fail(error)
        for reply in self._replies.values():
            if not reply.done():  # otherwise the outcome is known
                reply.set_exception(error)
        self._replies.clear()


def _symbols_in(data: Any) -> set[str]:
    """Return the symbols in proton's data: one, or an array."""
    found = data.get_object() if data.next() else ()
    return {found} if isinstance(found, str) else set(map(str, getattr(found, "elements", found) or ()))


class _Declaration(NamedTuple):
    """A predeclared transaction.

    Args:
        reply: Gets the broker's reply.
        expiry: When it is rolled back unused.
    """

    reply: "Future[Any]"
    expiry: float


class PredeclaredTransaction:
    """Declares the next transaction together with the discharge of the current one, which saves a round trip.

    Holds at most one transaction. Only one thread can take it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._stored: _Declaration | None = None
        self._last_discharge = float("-inf")

    def is_busy(self, now: float) -> bool:
        """Return True if the previous transaction ended less than `IDLE_SECONDS` ago, so that another one is likely."""
        before, self._last_discharge = self._last_discharge, now
        return now - before < IDLE_SECONDS

    def store(self, reply: "Future[Any]", now: float) -> None:
        """Store a transaction after its declaration is written."""
        with self._lock:
            self._stored = _Declaration(reply, now + IDLE_SECONDS)

    def take(self) -> "Future[Any] | None":
        """Take the stored transaction, if there is one."""
        with self._lock:
            waiting, self._stored = self._stored, None
        return waiting.reply if waiting else None

    def take_expired(self, now: float) -> "Future[Any] | None":
        """Take the stored transaction if its expiry has passed, to roll it back."""
        with self._lock:
            if self._stored is None or now < self._stored.expiry:
                return None
        return self.take()

    def expiry(self) -> float | None:
        """Return when the stored transaction expires; None without one."""
        waiting = self._stored
        return waiting.expiry if waiting else None
