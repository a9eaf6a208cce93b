"""Transactions: the link to the broker's coordinator (AMQP 1.0 part 4), and transactions declared in advance."""

import threading
from collections.abc import Mapping
from concurrent.futures import Future
from functools import partial
from typing import Any, NamedTuple, cast

from jmsjca.errors import JMSError, NotSupportedError, TransactionRolledBackError
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

__all__ = ["IDLE_SECONDS", "CoordinatorLink", "PredeclaredTransaction", "_Declaration"]

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
        """Discharge a transaction. If transactions follow each other, declare the next one, too. Engine thread only.

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
