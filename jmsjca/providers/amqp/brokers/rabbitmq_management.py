"""RabbitMQ's management over AMQP 1.0: HTTP requests and responses as messages to the node ``/management``."""

import threading
import uuid
from typing import Any

from proton import Message

from jmsjca.errors import IllegalStateError, InvalidDestinationError, JMSError, ResourceAllocationError
from jmsjca.providers.amqp.admin import ResponseFields, expect_number, unexpected_response
from jmsjca.providers.amqp.codec.addresses import ReceiveContext, encoded_name
from jmsjca.providers.amqp.codec.decoder import UNDECODABLE
from jmsjca.providers.amqp.codec.sections import VALUE, EncodedMessage
from jmsjca.providers.amqp.engine.engine import Engine
from jmsjca.providers.amqp.links.request_link import RequestLink

__all__ = ["ManagementNode"]

_ADDRESS = "/management"
_RESPONSE_BYTES = 1024 * 1024
_SUBJECT, _CORRELATION_ID = 3, 5  # which of the properties they are
_NO_BODY = b"\0\x53\x77\x40"  # the AMQP value null, which proton leaves out

_SUCCESS, _CREATED, _FORBIDDEN, _NOT_FOUND, _CONFLICT = range(200, 300), 201, 403, 404, 409
_ERRORS: dict[int, type[JMSError]] = {
    _FORBIDDEN: InvalidDestinationError,  # the name is reserved; a user without the right gets no response
    _NOT_FOUND: InvalidDestinationError,
    _CONFLICT: IllegalStateError,
}


class ManagementNode:
    """Sends requests to the broker's management. Thread-safe; requests are sent one at a time.

    Args:
        engine: The connection's engine.
        timeout: Seconds to wait for a response.
    """

    def __init__(self, engine: Engine, timeout: float) -> None:
        self._engine = engine
        self._timeout = timeout
        self._lock = threading.Lock()
        self._link: RequestLink | None = None

    def find_queue(self, name: str, timeout: float | None = None) -> ResponseFields | None:
        """Return the state of a queue; None if it does not exist."""
        status, found = self._request("GET", _queue_path(name), timeout=timeout)
        if status == _NOT_FOUND:
            return None
        return ResponseFields(_checked(status, found, f"to look up the queue {name!r}"))

    def declare_queue(
        self,
        name: str,
        arguments: dict[str, Any],
        *,
        exclusive: bool = False,
        auto_delete: bool = False,
        timeout: float | None = None,
    ) -> tuple[bool, ResponseFields]:
        """Declare a durable queue; return whether it is new, and its state.

        Raises:
            InvalidDestinationError: The broker reserves the name.
            IllegalStateError: The queue exists with other arguments.
        """
        body = {"durable": True, "exclusive": exclusive, "auto_delete": auto_delete, "arguments": arguments}
        status, found = self._request("PUT", _queue_path(name), body, timeout)
        fields = ResponseFields(_checked(status, found, f"to declare the queue {name!r}"))
        return status == _CREATED, fields

    def delete_queue(self, name: str) -> None:
        """Delete a queue with its messages; one that does not exist is no error."""
        status, found = self._request("DELETE", _queue_path(name))
        _checked(status, found, f"to delete the queue {name!r}")

    def purge_queue(self, name: str) -> int:
        """Delete the waiting messages of a queue; return their number."""
        status, found = self._request("DELETE", f"{_queue_path(name)}/messages")
        fields = ResponseFields(_checked(status, found, f"to purge the queue {name!r}"))
        return expect_number("of messages", fields.get("message_count"))

    def declare_exchange(self, name: str, kind: str) -> None:
        """Declare an exchange that is deleted with its last binding."""
        body: dict[str, Any] = {"type": kind, "durable": True, "auto_delete": True, "internal": False, "arguments": {}}
        status, found = self._request("PUT", f"/exchanges/{encoded_name(name)}", body)
        _checked(status, found, f"to declare the exchange {name!r}")

    def delete_exchange(self, name: str) -> None:
        """Delete an exchange."""
        status, found = self._request("DELETE", f"/exchanges/{encoded_name(name)}")
        _checked(status, found, f"to delete the exchange {name!r}")

    def bind(self, queue: str, exchange: str, key: str) -> None:
        """Bind a queue to an exchange."""
        body: dict[str, Any] = {"source": exchange, "destination_queue": queue, "binding_key": key, "arguments": {}}
        status, found = self._request("POST", "/bindings", body)
        _checked(status, found, f"to bind the queue {queue!r}")

    def is_bound(self, queue: str, exchange: str, key: str) -> bool:
        """Return True if a queue is bound to an exchange with this key."""
        query = f"src={encoded_name(exchange)}&dstq={encoded_name(queue)}&key={encoded_name(key)}"
        status, found = self._request("GET", f"/bindings?{query}")
        bindings = _checked(status, found, f"to look up the bindings of {queue!r}")
        if not isinstance(bindings, list):
            raise unexpected_response("a list, bindings,", bindings)
        return len(bindings) > 0  # pyright: ignore[reportUnknownArgumentType]  # of anything

    def _request(self, method: str, path: str, body: Any = None, timeout: float | None = None) -> tuple[int, Any]:
        """Return the status and the body of a response. The timeout is in seconds; None for that of the connection."""
        seconds = self._timeout if timeout is None else min(timeout, self._timeout)
        identity = uuid.uuid4().hex
        message = Message(body, id=identity, address=path, subject=method, reply_to="$me")
        encoded = bytes(message.encode()) + (_NO_BODY if body is None else b"")
        with self._lock:
            response = self._attached_link(seconds).request(encoded, seconds)
        return _parse(response, identity)

    def _attached_link(self, timeout: float) -> RequestLink:
        if self._link is None or self._link.error is not None:
            link = RequestLink(self._engine, _ADDRESS, self._timeout, _RESPONSE_BYTES)
            link.attach(timeout)
            self._link = link
        return self._link


def _queue_path(name: str) -> str:
    return f"/queues/{encoded_name(name)}"


def _parse(response: bytes, identity: str) -> tuple[int, Any]:
    try:
        found = EncodedMessage(response, ReceiveContext(None))
        if found.fields[_CORRELATION_ID] != identity:
            raise unexpected_response(f"the correlation id {identity}", found.fields[_CORRELATION_ID])
        return expect_number("the status,", found.fields[_SUBJECT]), found.value_of(VALUE)
    except UNDECODABLE as error:
        raise unexpected_response("a message,", response) from error


def _checked(status: int, body: Any, what: str) -> Any:
    """Return the body of a response; raise an error if the broker refused the request."""
    if status in _SUCCESS:
        return body
    text = str(body)[:500]
    if status == _FORBIDDEN and "limit" in text:
        raise ResourceAllocationError(f"The broker refuses {what}: {text}")
    raise _ERRORS.get(status, JMSError)(f"The broker refuses {what} ({status}): {text}")
