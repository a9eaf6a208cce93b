"""AMQP management: requests to a broker's management address over a pair of links, and their checked responses."""

import threading
import uuid
from collections import deque
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

from proton import symbol

from jmsjca.destinations import Destination, Queue
from jmsjca.errors import (
    ConnectionLostError,
    JMSError,
    JMSSecurityError,
    TransactionInDoubtError,
    TransactionRolledBackError,
)
from jmsjca.messages import Message
from jmsjca.providers.amqp.codec.addresses import ReceiveContext
from jmsjca.providers.amqp.codec.decoder import UNDECODABLE
from jmsjca.providers.amqp.codec.sections import APPLICATION_PROPERTIES, VALUE, EncodedMessage
from jmsjca.providers.amqp.delivery import ReceivedMessage
from jmsjca.providers.amqp.engine.engine import Engine
from jmsjca.providers.amqp.engine.proton_ffi import SENDER_SETTLED, DeliveryTags, Pointer, pointer_to, send, settle
from jmsjca.providers.amqp.links.link import Link
from jmsjca.providers.amqp.links.receiver import LimitExceededError, TransferReader
from jmsjca.providers.brokers.management import discard, unexpected_response
from jmsjca.spi import Connection, Consumer, Delivery

__all__ = ["ManagementClient", "ManagementResponse", "RequestLink"]

_CORRELATION_ID, _CREATION_TIME = 5, 9  # which of the properties they are


@dataclass(frozen=True, slots=True)
class ManagementResponse:
    """A response of the broker's management.

    Args:
        properties: The application properties.
        body: The value of the body, of any AMQP type.
        created: The creation time, in seconds since 1970; None without one.
    """

    properties: Mapping[str, Any]
    body: Any
    created: float | None = None


class ManagementClient:
    """Sends one management request at a time, and receives the responses on its own temporary queue.

    Args:
        connection: The connection to the broker.
        address: The broker's management address.
        timeout: Seconds to wait for a response.
    """

    def __init__(self, connection: Connection, address: str, timeout: float) -> None:
        self._connection = connection
        self._address = Queue(address)
        self._timeout = timeout
        self._lock = threading.Lock()
        self._reply_to: Destination | None = None
        self._reply_consumer: Consumer | None = None

    def request(self, request: Message) -> ManagementResponse:
        """Send a request and wait for its response.

        Raises:
            JMSSecurityError: The user may not send management requests.
            ConnectionLostError: The connection broke; the broker may have performed the request.
            JMSError: The broker did not respond in time.
        """
        with self._lock:
            replies = self._open_reply_queue()
            request.reply_to = self._reply_to
            request.correlation_id = uuid.uuid4().hex
            self._send(request)
            return self._await_response(request.correlation_id, replies)

    def discard(self, queue: Queue, limit: int) -> int:
        """Receive and acknowledge at most `limit` messages of a queue; return their number."""
        return discard(self._connection, queue, limit, 0)

    def _settle(self, chunk: Sequence[Delivery]) -> None:
        unit = self._connection.unit(atomic=False)
        unit.take(chunk)
        unit.commit()

    def _open_reply_queue(self) -> Consumer:
        if self._reply_consumer is None:
            reply_to = self._connection.temporary("queue")
            try:
                self._reply_consumer = self._connection.consumer(reply_to)
            except JMSError:
                self._remove_reply_queue(reply_to)
                raise
            self._reply_to = reply_to
        return self._reply_consumer

    def _send(self, request: Message) -> None:
        unit = self._connection.unit(atomic=False)
        unit.send(request, self._address)
        try:
            unit.commit()
        except TransactionRolledBackError as error:
            raise JMSSecurityError(
                f"This user may not send management requests to {self._address.name}; grant the permission, or do"
                f" without: {error}"
            ) from error
        except TransactionInDoubtError as error:
            raise ConnectionLostError(
                f"The connection broke during a management request, which the broker may have performed: {error}"
            ) from error

    def _await_response(self, correlation: str, replies: Consumer) -> ManagementResponse:
        """Wait for the response to a request; late responses to earlier requests are skipped."""
        while chunk := self._receive_reply(replies):
            self._settle(chunk)
            answer = _parse_response(cast("ReceivedMessage", chunk[0]).encoded, correlation)
            if answer is not None:
                return answer
        raise JMSError(f"The broker's management did not answer within {self._timeout:g} s.")

    def _receive_reply(self, replies: Consumer) -> Sequence[Delivery]:
        """Receive a response; an error drops the reply queue, as an oversized response would fail its next consumer."""
        try:
            return replies.receive(1, self._timeout)
        except JMSError:
            self._drop_reply_queue(replies)
            raise

    def _drop_reply_queue(self, replies: Consumer) -> None:
        """Discard the reply queue, so that the next request creates a new one."""
        reply_to, self._reply_to, self._reply_consumer = self._reply_to, None, None
        with suppress(JMSError):
            replies.close()
        if reply_to is not None:
            self._remove_reply_queue(reply_to)

    def _remove_reply_queue(self, reply_to: Destination) -> None:
        with suppress(JMSError):
            self._connection.remove(reply_to)


def _parse_response(encoded: bytes, correlation: str) -> ManagementResponse | None:
    """Return the response in a message; None if it belongs to another request."""
    try:
        found = EncodedMessage(encoded, ReceiveContext(None))
        if found.fields[_CORRELATION_ID] != correlation:
            return None
        created = found.fields[_CREATION_TIME]
        return ManagementResponse(
            found.map_of_section(APPLICATION_PROPERTIES),
            found.value_of(VALUE),
            created / 1000 if isinstance(created, int) else None,
        )
    except UNDECODABLE as error:
        raise unexpected_response("a message,", encoded) from error


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
        except LimitExceededError as excess:
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
