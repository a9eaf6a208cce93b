"""A pair of links over which requests are sent and their responses arrive."""

from collections import deque
from concurrent.futures import Future
from functools import partial
from typing import Any

from proton import symbol

from jmsjca.errors import JMSError
from jmsjca.providers.amqp.engine.engine import Engine
from jmsjca.providers.amqp.engine.proton_ffi import (
    SENDER_SETTLED,
    DeliveryTags,
    Pointer,
    pointer_to,
    send,
    settle,
)
from jmsjca.providers.amqp.links.link import Link
from jmsjca.providers.amqp.links.receiver import LimitExceeded, TransferReader

__all__ = ["RequestLink"]

_PAIRED = symbol("paired")
_AWAITED = "; it may take no requests, as during an alarm for memory or disk space"
_CREDIT = 8  # responses that the broker may send; more than requests that are sent at a time


class RequestLink(Link):
    """Two links of one name to one node (AMQP Link Pairing 1.0). Requests are answered in order.

    Args:
        engine: The connection's engine.
        address: The address of the node.
        reply_timeout: Seconds to wait for the broker's replies.
        message_bytes: Size of the largest response accepted.
    """

    def __init__(self, engine: Engine, address: str, reply_timeout: float, message_bytes: int) -> None:
        super().__init__(engine, f"the requests to {address}", reply_timeout)
        self._address = address
        self._message_bytes = message_bytes
        self._sender: Any = None
        self._tags = DeliveryTags()
        self._reader: TransferReader
        self._queued: deque[tuple[bytes, Future[bytes]]] = deque()  # without credit or room for a response
        self._pending: deque[Future[bytes]] = deque()

    def request(self, encoded: bytes, timeout: float) -> bytes:
        """Send an encoded request, and return the encoded response. The timeout is in seconds.

        Raises:
            JMSError: The broker ended the link because of the request, or did not respond in time.
        """
        response: Future[bytes] = Future()
        self._engine.submit_nowait(partial(self._enqueue, encoded, response), response)
        return self._engine.wait(response, timeout, f"the response of {self._address}{_AWAITED}")

    def on_attached(self) -> None:
        """The broker attached one of the links. Both are needed."""
        if self._link.remote_source.address and self._sender.remote_target.address:
            super().on_attached()

    def on_flow(self) -> None:
        """Send the requests for which there is credit now."""
        while self._queued and self._sender.credit > 0 and len(self._pending) < _CREDIT:
            encoded, response = self._queued.popleft()
            self._pending.append(response)
            send(pointer_to(self._sender), self._tags, [encoded], settled=1)

    def on_delivery(self, delivery: Pointer) -> bool:
        """Responses arrived."""
        del delivery
        try:
            arrived = self._reader.read(len(self._pending))
        except LimitExceeded as excess:
            self._fail(JMSError(f"{excess.what} came from {self._address}{excess.remedy}."))
            self.detach()
            return True
        for each, encoded in zip(arrived.deliveries, arrived.messages, strict=True):
            settle(each)
            self._link.flow(1)
            self._pending.popleft().set_result(encoded)
        self.on_flow()
        return True

    def _enqueue(self, encoded: bytes, response: "Future[bytes]") -> None:
        if self.error is not None:
            response.set_exception(self.error)
            return
        self._queued.append((encoded, response))
        self.on_flow()

    def _create(self, session: Any, name: str) -> Any:
        receiver, sender = session.receiver(name), session.sender(name)
        for link, node, own in ((receiver, "source", "target"), (sender, "target", "source")):
            getattr(link, node).address = self._address
            getattr(link, own).address = name
            link.snd_settle_mode = SENDER_SETTLED
            link.properties = {_PAIRED: True}
        receiver.max_message_size = self._message_bytes
        self._reader = TransferReader(pointer_to(receiver), self._engine.buffer, self._message_bytes)
        self._sender = sender
        self._engine.sessions.register(sender, self)
        sender.open()
        receiver.flow(_CREDIT)
        return receiver

    def detach(self) -> None:
        """Detach both links."""
        if not self._locally_detached.done():
            self._sender.close()
        super().detach()

    def _is_refused(self) -> bool:
        return False

    def _fail(self, error: JMSError) -> None:
        super()._fail(error)
        waiting = [*self._pending, *(response for _, response in self._queued)]
        self._pending.clear()
        self._queued.clear()
        for response in waiting:
            response.set_exception(error)

    def _release(self) -> None:
        if self._sender is not None:
            self._engine.sessions.unregister(self._sender)
        super()._release()
        self._sender = None
