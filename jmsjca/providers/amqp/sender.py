"""Sending: a link per destination, and what the broker says to each message."""

from collections import deque
from collections.abc import Sequence
from typing import Any

from jmsjca.errors import InvalidDestinationError, JMSError
from jmsjca.providers.amqp.addresses import Address
from jmsjca.providers.amqp.conditions import link_error
from jmsjca.providers.amqp.engine import Engine
from jmsjca.providers.amqp.link import LinkEnd
from jmsjca.providers.amqp.proton_calls import (
    Pointer,
    is_settled,
    pointer_to,
    public,
    remote_data,
    remote_state,
    send,
    settle,
)
from jmsjca.providers.amqp.sending import Sending
from jmsjca.providers.amqp.states import ACCEPTED, TRANSACTIONAL, outcome_of

__all__ = ["SendingLink"]


class SendingLink(LinkEnd):
    """A link to one destination.

    Args:
        engine: The connection.
        address: Where to.
        reply_timeout: Seconds to wait for the broker's answers.
    """

    def __init__(self, engine: Engine, address: Address, reply_timeout: float) -> None:
        address.check()
        super().__init__(engine, f"the sender to {address.name}", reply_timeout)
        self._address = address
        self._waiting: deque[tuple[bytes, Sending]] = deque()
        self._sent: dict[Pointer, Sending] = {}
        self._pointer: Pointer = None
        self._tag = 0

    def send(self, payloads: Sequence[bytes], sending: Sending) -> None:
        """Send encoded messages as credit allows. On the engine's thread."""
        if self.error is not None:
            sending.fail(self.error)
            return
        self._waiting.extend((payload, sending) for payload in payloads)
        self.on_flow()

    def on_flow(self) -> None:
        """Send what credit allows."""
        for _ in range(min(self._link.credit, len(self._waiting))):
            payload, sending = self._waiting.popleft()
            self._tag += 1
            self._sent[send(self._pointer, b"%d" % self._tag, payload, sending.state)] = sending

    def on_delivery(self, delivery: Pointer) -> bool:
        """The broker answered a message."""
        sending = self._sent.get(delivery)
        if sending is not None:
            state = remote_state(delivery)
            if state == ACCEPTED or (state == TRANSACTIONAL and self._is_taken(delivery, sending)):
                self._answered(delivery, sending, None)
            elif state or is_settled(delivery):
                self._hear(delivery, sending)
        return False

    def _is_taken(self, delivery: Pointer, sending: Sending) -> bool:
        """True if the broker says what it said before, when it took a message of the same transaction."""
        return bool(sending.taken) and remote_data(delivery, self._engine.buffer) == sending.taken

    def _hear(self, delivery: Pointer, sending: Sending) -> None:
        outcome, condition = outcome_of(public(delivery))
        if outcome is None and not is_settled(delivery):
            return
        if outcome != ACCEPTED:
            error = link_error(condition, f"{self._address.name} did not take a message")
            self._answered(delivery, sending, error)
            return
        sending.taken = remote_data(delivery, self._engine.buffer)
        self._answered(delivery, sending, None)

    def _answered(self, delivery: Pointer, sending: Sending, error: JMSError | None) -> None:
        del self._sent[delivery]
        settle(delivery)
        sending.answered(error)

    def _make(self, session: Any, name: str) -> Any:
        link = session.sender(name)
        self._pointer = pointer_to(link)
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
        for sending in [*self._sent.values(), *(sending for _, sending in self._waiting)]:
            sending.fail(error)
        self._waiting.clear()
        self._sent.clear()
