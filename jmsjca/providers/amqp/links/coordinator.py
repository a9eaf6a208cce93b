"""Transactions: the link to the broker's coordinator (AMQP 1.0, part 4), and transactions declared in advance."""

import threading
from collections.abc import Mapping
from concurrent.futures import Future
from functools import partial
from typing import Any, NamedTuple, cast

from jmsjca.errors import JMSError, NotSupportedError, TransactionRolledBackError
from jmsjca.providers.amqp.engine.engine import Engine
from jmsjca.providers.amqp.engine.proton_ffi import (
    COORDINATOR,
    Pointer,
    Tags,
    is_settled,
    pointer_to,
    public,
    remote_data,
    remote_state,
    send,
    settle,
)
from jmsjca.providers.amqp.errors import text_of
from jmsjca.providers.amqp.links.delivery_states import (
    ACCEPTED,
    COORDINATOR_CAPABILITIES,
    DECLARE,
    DECLARED,
    NO_OUTCOMES,
    REJECTED,
    discharge,
    transaction_in,
)
from jmsjca.providers.amqp.links.link import LinkEnd

__all__ = ["IDLE_SECONDS", "Coordinator", "Declared", "DeclaredAhead"]

#: How long a transaction waits for its use. Brokers end those that take long; this one ends unused.
IDLE_SECONDS = 1.0

_ROLLED_BACK = "amqp:transaction:rollback"


class Coordinator(LinkEnd):
    """Declares and discharges transactions, one after the other.

    Args:
        engine: The connection.
        reply_timeout: Seconds to wait for the broker's answers.
    """

    def __init__(self, engine: Engine, reply_timeout: float) -> None:
        super().__init__(engine, "the link to the transaction coordinator", reply_timeout)
        self._replies: dict[Pointer, Future[Any]] = {}
        self._ahead = DeclaredAhead()
        self._watches = False
        self._tags = Tags()

    def declare(self, timeout: float) -> bytes:
        """Begin a transaction.

        Args:
            timeout: Seconds to wait for the broker.

        Raises:
            JMSError: The broker refuses, or the connection is lost.
        """
        reply: Future[Any] | None = self._ahead.take()
        if reply is None:
            reply = Future[Any]()
            self._engine.tell(partial(self._ask, {DECLARE: reply}), reply)
        state, transaction = self._engine.wait(reply, timeout, "the declaration of a transaction")
        if state != DECLARED or not transaction:
            reason = transaction or "it has no name"
            raise TransactionRolledBackError(f"The broker did not declare a transaction: {reason}")
        return cast("bytes", transaction)

    def discharge(self, transaction: bytes, reply: "Future[Any]", *, fail: bool) -> None:
        """End a transaction; where one follows the other, declare the next one, too. On the engine's thread.

        Args:
            transaction: Which.
            reply: Gets the broker's answer: its state, and the text of its reason.
            fail: True to roll it back.
        """
        now, end = self._engine.now(), discharge(transaction, fail)
        if not self._ahead.is_busy(now) or fail:
            self._ask({end: reply})
            return
        ahead: Future[Any] = Future()
        self._ask({end: reply, DECLARE: ahead})
        self._ahead.put(ahead, now)
        if not self._watches:
            self._watch()

    def _watch(self) -> None:
        """End the next transaction if nobody uses it."""
        unused = self._ahead.take_if_idle(self._engine.now())
        if unused is not None:
            unused.add_done_callback(self._roll_back)
        due = self._ahead.due()
        self._watches = due is not None
        if due is not None:
            self._engine.at(due, self._watch)

    def _roll_back(self, reply: "Future[Any]") -> None:
        if self.error is not None:
            return
        state, transaction = reply.result()
        if state == DECLARED and transaction:
            self._ask({discharge(transaction, fail=True): Future()})

    def on_delivery(self, delivery: Pointer) -> bool:
        """The coordinator answered."""
        told = remote_state(delivery)
        state = 0 if told in NO_OUTCOMES else told
        if delivery in self._replies and (state or is_settled(delivery)):
            self._replies.pop(delivery).set_result((state, self._said(delivery, state)))
            settle(delivery)
        return False

    def on_close(self, condition: Any) -> None:
        """The broker ended the link: so it may say that it rolled back instead (AMQP 1.0, part 4, section 4.3)."""
        if condition is not None and condition.name == _ROLLED_BACK:
            asked = next((reply for reply in self._replies.values() if not reply.done()), None)
            if asked is not None:
                asked.set_result((REJECTED, text_of(condition)))
        super().on_close(condition)

    def _said(self, delivery: Pointer, state: int) -> bytes | str:
        """The name of the transaction that is declared, or the reason of a refusal."""
        if state == DECLARED:
            return transaction_in(remote_data(delivery, self._engine.buffer))
        return "" if state == ACCEPTED else text_of(public(delivery).remote.condition)

    def _ask(self, questions: "Mapping[bytes, Future[Any]]") -> None:
        if self.error is not None:
            raise self.error
        self._replies.update(zip(send(pointer_to(self._link), self._tags, questions), questions.values(), strict=True))

    def _make(self, session: Any, name: str) -> Any:
        link = session.sender(name)
        link.target.type = COORDINATOR
        link.target.capabilities.put_object(COORDINATOR_CAPABILITIES)
        link.source.address = name
        return link

    def _is_refused(self) -> bool:
        return bool(self._link.remote_target.type != COORDINATOR)

    def _objection(self) -> JMSError | None:
        offered = _names_in(self._link.remote_target.capabilities)
        if not offered or COORDINATOR_CAPABILITIES in offered:
            return None
        return NotSupportedError(f"The broker has no local transactions over AMQP, but {', '.join(sorted(offered))}.")

    def _refusal(self, condition: Any) -> JMSError:
        if self._opened.done():
            return super()._refusal(condition)
        return NotSupportedError(f"The broker has no transactions over AMQP: {text_of(condition)}")

    def _fail(self, error: JMSError) -> None:
        super()._fail(error)
        for reply in self._replies.values():
            if not reply.done():  # else it is told already
                reply.set_exception(error)
        self._replies.clear()


def _names_in(data: Any) -> set[str]:
    """The symbols of which proton tells: one, or an array of them."""
    found = data.get_object() if data.next() else ()
    return {found} if isinstance(found, str) else set(map(str, getattr(found, "elements", found) or ()))


class Declared(NamedTuple):
    """A transaction that nobody uses yet.

    Args:
        reply: Gets the broker's answer.
        until: When it has waited long enough.
    """

    reply: "Future[Any]"
    until: float


class DeclaredAhead:
    """At most one transaction; who takes it out has it alone."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: Declared | None = None
        self._ended = float("-inf")

    def is_busy(self, now: float) -> bool:
        """True if a transaction ended shortly before this one: then another one will follow."""
        before, self._ended = self._ended, now
        return now - before < IDLE_SECONDS

    def put(self, reply: "Future[Any]", now: float) -> None:
        """Keep one that is being declared."""
        with self._lock:
            self._waiting = Declared(reply, now + IDLE_SECONDS)

    def take(self) -> "Future[Any] | None":
        """Use it, if there is one."""
        with self._lock:
            waiting, self._waiting = self._waiting, None
        return waiting.reply if waiting else None

    def take_if_idle(self, now: float) -> "Future[Any] | None":
        """Take it to end it, if nobody has used it for long enough."""
        with self._lock:
            if self._waiting is None or now < self._waiting.until:
                return None
        return self.take()

    def due(self) -> float | None:
        """When it will have waited long enough; None if there is none."""
        waiting = self._waiting
        return waiting.until if waiting else None
