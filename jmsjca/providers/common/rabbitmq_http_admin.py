"""The administration of RabbitMQ over the HTTP API of its management plug-in."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast
from urllib.parse import quote

from jmsjca.config import DestinationSettings
from jmsjca.destinations import Destination, Queue, Subscription, Topic
from jmsjca.errors import IllegalStateError, InvalidDestinationError, JMSError, NotSupportedError
from jmsjca.providers.common.http_management import HTTPManagement
from jmsjca.spi import Activity, Depth

__all__ = ["MANAGED", "RabbitMQHTTPAdmin"]

MANAGED: Mapping[str, Any] = {
    "admin": True,
    "counts_held": True,
    "lists_destinations": True,
    "creates_queues": True,
    "counts_consumers": True,
    "counts_traffic": True,
}
"""The capabilities that the HTTP API adds to a connection."""

_TOPICS = "amq.topic"
_WILDCARDS = {"*", "#"}
_OK, _CREATED, _NO_CONTENT, _IN_USE, _NOT_FOUND = 200, 201, 204, 400, 404
_CHUNK = 500  # messages of one request that removes them
_REMOVAL = {"count": _CHUNK, "ackmode": "ack_requeue_false", "encoding": "base64", "truncate": 1}
_SETTLED = "ack", "get_no_ack", "deliver_no_ack"  # the last two: consumers that acknowledge nothing

_Row = Mapping[str, Any]
_NOTHING: _Row = {}


class RabbitMQHTTPAdmin:
    """Administers a virtual host of RabbitMQ over HTTP. The user needs the tag ``management``.

    The broker measures depths, consumers and traffic every five seconds, and shows the latest measurement. Names, and
    the number of purged messages, are those of the moment.

    Args:
        management: Sends the requests; its URL ends with ``/api``.
        queue_name: Returns the name of the broker's queue of a queue or a named subscription, or raises
            `InvalidDestinationError`.
        arguments: The arguments of queues that are created.
        virtual_host: The name of the virtual host.
    """

    def __init__(
        self,
        management: HTTPManagement,
        queue_name: Callable[[Destination | Subscription], str],
        *,
        arguments: Mapping[str, str] = _NOTHING,
        virtual_host: str = "/",
    ) -> None:
        self._management = management
        self._queue_name = queue_name
        self._arguments = dict(arguments)
        self._virtual_host = _segment(virtual_host)

    def destinations(self) -> Sequence[Destination]:
        """Return the queues, without those of one connection, and the topics that have subscribers."""
        queues = self._rows(f"/queues/{self._virtual_host}?columns=name,exclusive,auto_delete")
        shared = {Queue(_text(row, "name")) for row in queues if not (row.get("exclusive") or row.get("auto_delete"))}
        bindings = self._rows(f"/exchanges/{self._virtual_host}/{_TOPICS}/bindings/source")
        keys = {_text(row, "routing_key") for row in bindings}
        topics = {Topic(key) for key in keys if key and not _WILDCARDS & set(key.split("."))}
        return sorted(shared | topics, key=str)

    def clock(self) -> None:
        """Return None: the API does not report the time."""

    def depth(self, source: Destination | Subscription) -> Depth:
        """Return the numbers of messages of a queue or a named subscription at the latest measurement."""
        row = self._find(self._queue_name(source), "messages_ready", "messages_unacknowledged") or _NOTHING
        return Depth(_number(row, "messages_ready"), _number(row, "messages_unacknowledged"), 0)

    def activity(self, source: Destination | Subscription) -> Activity:
        """Return the consumers and the traffic of a queue or a named subscription at the latest measurement."""
        row = self._find(self._queue_name(source), "consumer_details", "message_stats") or _NOTHING
        consumers, counted = row.get("consumer_details", []), row.get("message_stats", {})
        if not isinstance(consumers, list) or not isinstance(counted, dict):
            raise _strange(row)
        statistics = cast("_Row", counted)
        settled = sum(_number(statistics, name) for name in _SETTLED)
        return Activity(len(cast("list[object]", consumers)), _number(statistics, "publish"), settled)

    def create(self, queue: Destination) -> None:
        """Create a durable queue; one that exists is no error.

        Raises:
            InvalidDestinationError: It is a topic, or temporary; or the name cannot be used over this protocol.
        """
        name = self._name_of_queue(queue)
        if self._find(name) is None:
            body = {"durable": True, "auto_delete": False, "arguments": self._arguments}
            self._management.request("PUT", self._path(name), body, expected=(_CREATED, _NO_CONTENT))

    def remove(self, queue: Destination) -> None:
        """Delete a queue with its messages.

        Raises:
            InvalidDestinationError: The queue does not exist, or is temporary.
            IllegalStateError: The queue has consumers.
        """
        name = self._name_of_queue(queue)
        row = self._find(name, "consumer_details", "exclusive", "type")
        if row is None or row.get("exclusive"):
            raise InvalidDestinationError(f"There is no {queue} to remove, or it is another connection's.")
        refused = bool(row.get("consumer_details"))
        if not refused:
            # The broker itself looks at the consumers of the moment, but not at those of other types of queues.
            path = self._path(name) + ("?if-unused=true" if row.get("type") == "classic" else "")
            status, _ = self._management.request("DELETE", path, expected=(_NO_CONTENT, _IN_USE, _NOT_FOUND))
            refused = status == _IN_USE
        if refused:
            raise IllegalStateError(f"{queue} still has consumers; close them first.")

    def purge(self, source: Destination | Subscription) -> int:
        """Delete the waiting messages of a queue or a named subscription; messages that a consumer holds stay."""
        path, count = f"{self._path(self._queue_name(source))}/get", 0
        while True:
            status, removed = self._management.request("POST", path, _REMOVAL, expected=(_OK, _NOT_FOUND))
            if status == _NOT_FOUND:
                return count
            if not isinstance(removed, list):
                raise _strange(removed)
            number = len(cast("list[object]", removed))
            if not number:
                return count
            count += number

    def configure(self, address: Destination | None, settings: DestinationSettings) -> None:
        """Raise `NotSupportedError`: settings are arguments of a queue's declaration, or policies of the broker."""
        del settings
        raise NotSupportedError(f"Settings of {address} are made by a policy in the broker.")

    def settings(self, address: Destination | None) -> DestinationSettings:
        """Raise `NotSupportedError`, as `configure` does."""
        raise NotSupportedError(f"Settings of {address} are policies in the broker.")

    def _name_of_queue(self, queue: Destination) -> str:
        if not isinstance(queue, Queue) or queue.temporary:
            raise InvalidDestinationError(f"{queue} is not created or removed here: only queues with a name are.")
        return self._queue_name(queue)

    def _path(self, name: str) -> str:
        return f"/queues/{self._virtual_host}/{_segment(name)}"

    def _find(self, name: str, *columns: str) -> _Row | None:
        """Return some columns of a queue; None if it does not exist."""
        path = f"{self._path(name)}?columns={','.join(('name', *columns))}"  # never none: that would be a list
        status, row = self._management.request("GET", path, expected=(_OK, _NOT_FOUND))
        if status == _NOT_FOUND:
            return None
        if not isinstance(row, dict):
            raise _strange(row)
        return cast("_Row", row)

    def _rows(self, path: str) -> list[_Row]:
        _, rows = self._management.request("GET", path)
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in cast("list[object]", rows)):
            raise _strange(cast("object", rows))
        return cast("list[_Row]", rows)


def _segment(name: str) -> str:
    return quote(name, safe="", errors="surrogatepass")


def _text(row: _Row, name: str) -> str:
    value = row.get(name)
    if not isinstance(value, str):
        raise _strange(row)
    return value


def _number(row: _Row, name: str) -> int:
    value = row.get(name, 0)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise _strange({name: value})
    return value


def _strange(value: object) -> JMSError:
    return JMSError(f"A response of the broker's management is invalid: {value!r:.200}. Is the URL that of its API?")
