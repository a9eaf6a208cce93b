"""Transactions: the link to the broker's coordinator (AMQP 1.0, part 4)."""

from concurrent.futures import Future
from typing import Any

from proton import Message

from jmsjca.errors import JMSError, NotSupportedError, TransactionRolledBackError
from jmsjca.providers.amqp.conditions import text_of
from jmsjca.providers.amqp.constants import COORDINATOR
from jmsjca.providers.amqp.engine import Engine
from jmsjca.providers.amqp.link import LinkEnd
from jmsjca.providers.amqp.states import COORDINATOR_CAPABILITIES, DECLARED, declare, discharge

__all__ = ["Coordinator"]


class Coordinator(LinkEnd):
    """Declares and discharges transactions, one after the other.

    Args:
        engine: The connection.
        reply_timeout: Seconds to wait for the broker's answers.
    """

    def __init__(self, engine: Engine, reply_timeout: float) -> None:
        super().__init__(engine, "the link to the transaction coordinator", reply_timeout)
        self._replies: set[Future[Any]] = set()

    def declare(self, timeout: float) -> bytes:
        """Begin a transaction.

        Args:
            timeout: Seconds to wait for the broker.

        Raises:
            JMSError: The broker refuses, or the connection is lost.
        """
        reply: Future[Any] = Future()
        self._engine.call(lambda: self._ask(declare(), reply))
        state, transaction = self._engine.wait(reply, timeout, "the declaration of a transaction")
        if state != DECLARED:
            raise TransactionRolledBackError(f"The broker did not declare a transaction: {transaction}")
        return bytes(transaction)

    def discharge(self, transaction: bytes, *, fail: bool) -> "Future[Any]":
        """End a transaction. On the engine's thread.

        Returns:
            The broker's answer: its state, and the text of its reason.
        """
        reply: Future[Any] = Future()
        self._ask(discharge(transaction, fail), reply)
        return reply

    def on_delivery(self, delivery: Any) -> None:
        """The coordinator answered."""
        state = delivery.remote_state
        if not state and not delivery.settled:
            return
        reply: Future[Any] = delivery.reply
        if state == DECLARED:
            reply.set_result((state, bytes(delivery.remote.data[0])))
        else:
            reply.set_result((state, text_of(delivery.remote.condition)))
        self._replies.discard(reply)
        delivery.settle()

    def _ask(self, body: Any, reply: "Future[Any]") -> None:
        if self.error is not None:
            reply.set_exception(self.error)
            return
        self._replies.add(reply)
        self._link.send(Message(body=body, inferred=True)).reply = reply

    def _make(self, session: Any, name: str) -> Any:
        link = session.sender(name)
        link.target.type = COORDINATOR
        link.target.capabilities.put_object(COORDINATOR_CAPABILITIES)
        link.source.address = name
        return link

    def _is_refused(self) -> bool:
        return bool(self._link.remote_target.type != COORDINATOR)

    def _refusal(self, condition: Any) -> JMSError:
        if self._opened.done():
            return super()._refusal(condition)
        return NotSupportedError(f"The broker has no transactions over AMQP: {text_of(condition)}")

    def _fail(self, error: JMSError) -> None:
        super()._fail(error)
        for reply in self._replies:
            if not reply.done():
                reply.set_exception(error)
        self._replies.clear()
