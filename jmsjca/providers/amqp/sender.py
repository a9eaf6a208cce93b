"""Sending: a link per destination, and what the broker says to each message."""

from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any

from proton import Delivery

from jmsjca.errors import InvalidDestinationError, JMSError
from jmsjca.providers.amqp.addresses import Address
from jmsjca.providers.amqp.conditions import link_error
from jmsjca.providers.amqp.engine import Engine
from jmsjca.providers.amqp.link import LinkEnd
from jmsjca.providers.amqp.states import TRANSACTIONAL, outcome_of

__all__ = ["Sending", "SendingLink"]


class Sending:
    """Messages on their way; done when the broker has said something to each.

    Args:
        count: How many messages.
        transaction: The id of the transaction that they are sent in.
    """

    def __init__(self, count: int, transaction: bytes | None) -> None:
        self._missing = count
        self._error: JMSError | None = None
        self.transaction = transaction
        self.done: Future[None] = Future()
        self._end_if_complete()

    def answered(self, error: JMSError | None) -> None:
        """Note what the broker said to one message: an error, or that it took it."""
        self._missing -= 1
        self._error = self._error or error
        self._end_if_complete()

    def fail(self, error: JMSError) -> None:
        """Note that no more answers come."""
        if not self.done.done():
            self.done.set_exception(error)

    def _end_if_complete(self) -> None:
        if self._missing or self.done.done():
            return
        if self._error is not None:
            self.done.set_exception(self._error)
        else:
            self.done.set_result(None)


class SendingLink(LinkEnd):
    """A link to one destination.

    Args:
        engine: The connection.
        address: Where to.
        reply_timeout: Seconds to wait for the broker's answers.
    """

    def __init__(self, engine: Engine, address: Address, reply_timeout: float) -> None:
        super().__init__(engine, f"the sender to {address.name}", reply_timeout)
        self._address = address
        self._waiting: deque[tuple[bytes, Sending]] = deque()
        self._unanswered: dict[Sending, int] = {}
        self._tag = 0

    def send(self, payloads: Sequence[bytes], sending: Sending) -> None:
        """Send encoded messages as credit allows. On the engine's thread."""
        if self.error is not None:
            sending.fail(self.error)
            return
        self._unanswered[sending] = len(payloads)
        self._waiting.extend((payload, sending) for payload in payloads)
        self.on_flow()

    def on_flow(self) -> None:
        """Send what credit allows."""
        while self._waiting and self._link.credit > 0:
            self._transfer(*self._waiting.popleft())

    def on_delivery(self, delivery: Any) -> None:
        """The broker answered a message."""
        outcome, condition = outcome_of(delivery)
        if outcome is None and not delivery.settled:
            return
        sending: Sending = delivery.sending
        delivery.settle()
        self._unanswered[sending] -= 1
        if not self._unanswered[sending]:
            del self._unanswered[sending]
        taken = outcome == Delivery.ACCEPTED
        sending.answered(None if taken else link_error(condition, f"{self._address.name} did not take a message"))

    def _transfer(self, payload: bytes, sending: Sending) -> None:
        self._tag += 1
        delivery = self._link.delivery(str(self._tag))
        delivery.sending = sending
        if sending.transaction is not None:
            delivery.local.data = [sending.transaction]
            delivery.update(TRANSACTIONAL)
        self._link.stream(payload)
        self._link.advance()

    def _make(self, session: Any, name: str) -> Any:
        link = session.sender(name)
        self._address.apply(link.target)
        link.source.address = name
        return link

    def _is_refused(self) -> bool:
        return self._link.remote_target.address is None

    def _refusal(self, condition: Any) -> JMSError:
        error = super()._refusal(condition)
        untold = type(error) is JMSError and not self._opened.done()
        return InvalidDestinationError(str(error)) if untold else error

    def _fail(self, error: JMSError) -> None:
        super()._fail(error)
        self._waiting.clear()
        for sending in self._unanswered:
            sending.fail(error)
        self._unanswered.clear()
