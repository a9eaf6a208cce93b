"""Known behaviour of RabbitMQ 3 and 4 over both protocols: capabilities, names, and the administration over HTTP.

RabbitMQ 4 is administered in two ways. Over AMQP its management node creates, looks up, empties and removes a queue on
the connection that there is anyway, as it is at the moment: without that no queue could be used. The node lists no
queues, and counts neither held messages nor traffic. Only the API over HTTP does, at another URL that a user must name
(``management_url``), and with figures that are up to five seconds old.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast
from urllib.parse import quote

from jmsjca.destinations import Destination, Queue, Subscription, destination
from jmsjca.errors import IllegalStateError, InvalidDestinationError, JMSError
from jmsjca.providers.brokers.management import NOT_FOUND, OK, HTTPManagement, SettingsElsewhere, number_in
from jmsjca.spi import Activity, Capabilities, Depth

__all__ = ["OVER_AMQP", "OVER_AMQP_4", "OVER_STOMP", "TOPICS", "RabbitMQHTTPAdmin"]

OVER_AMQP = Capabilities(
    give_back="local", counts_lost=True, checks=True, shared_between_processes=True, structured=True
)
"""Of the plug-in for AMQP 1.0 of RabbitMQ 3."""

OVER_AMQP_4 = Capabilities(
    give_back="uncounted",
    exact_credit=True,
    delivery_count=True,
    counts_lost=True,
    durable=True,
    shared=True,
    subscription_lock=True,
    subscription_kinds=True,
    temporary=True,
    temporary_guarded=True,
    temporary_ends=True,
    checks=True,
    admin=True,
    creates_queues=True,
    counts_consumers=True,
    shared_between_processes=True,
    structured=True,
)
"""Of RabbitMQ 4, with quorum queues."""

OVER_STOMP = Capabilities(
    give_back="local", counts_lost=True, durable=True, structured=True, shared_between_processes=True
)
"""Of the plug-in for STOMP of both."""

TOPICS = "amq.topic"
"""The exchange of all topics, over each protocol."""

_WILDCARDS = {"*", "#"}
_CREATED, _NO_CONTENT, _IN_USE = 201, 204, 400
_REMOVED_AT_ONCE = 500  # messages of one request that removes them
_REMOVAL = {"count": _REMOVED_AT_ONCE, "ackmode": "ack_requeue_false", "encoding": "base64", "truncate": 1}
_SETTLED = "ack", "get_no_ack", "deliver_no_ack"  # the last two: consumers that acknowledge nothing

_Row = Mapping[str, Any]
_EMPTY_ROW: _Row = {}


class RabbitMQHTTPAdmin(SettingsElsewhere):
    """Administers a virtual host of RabbitMQ over HTTP. The user needs the tag ``management``.

    The broker measures depths, consumers and traffic every five seconds, and shows the latest measurement. Names and
    the number of purged messages are current.

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
        arguments: Mapping[str, str] = _EMPTY_ROW,
        virtual_host: str = "/",
    ) -> None:
        self._management = management
        self._queue_name = queue_name
        self._arguments = dict(arguments)
        self._virtual_host = _segment(virtual_host)

    def destinations(self) -> Sequence[Destination]:
        """Return the queues, except queues that belong to one connection, and the topics that have subscribers."""
        queues = self._rows(f"/queues/{self._virtual_host}?columns=name,exclusive,auto_delete")
        names = [_text(row, "name") for row in queues if not (row.get("exclusive") or row.get("auto_delete"))]
        shared = {destination(name, "queue") for name in names}
        bindings = self._rows(f"/exchanges/{self._virtual_host}/{TOPICS}/bindings/source")
        keys = {_text(row, "routing_key") for row in bindings}
        topics = {destination(key, "topic") for key in keys if key and not _WILDCARDS & set(key.split("."))}
        return sorted(shared | topics, key=str)

    def clock(self) -> None:
        """Return None: the API does not report the time."""

    def depth(self, source: Destination | Subscription) -> Depth:
        """Return the numbers of messages of a queue or a named subscription at the latest measurement."""
        row = self._find(self._queue_name(source), "messages_ready", "messages_unacknowledged") or _EMPTY_ROW
        return Depth(number_in(row, "messages_ready"), number_in(row, "messages_unacknowledged"), 0)

    def activity(self, source: Destination | Subscription) -> Activity:
        """Return the consumers and the traffic of a queue or a named subscription at the latest measurement."""
        row = self._find(self._queue_name(source), "consumer_details", "message_stats") or _EMPTY_ROW
        consumers, counted = row.get("consumer_details", []), row.get("message_stats", {})
        if not isinstance(consumers, list) or not isinstance(counted, dict):
            raise _strange(row)
        statistics = cast("_Row", counted)
        settled = sum(number_in(statistics, name) for name in _SETTLED)
        return Activity(len(cast("list[object]", consumers)), number_in(statistics, "publish"), settled)

    def policy_of(self, name: str) -> Mapping[str, Any]:
        """Return the settings of a queue by policies of the broker's operators, by their names."""
        found = (self._find(name, "effective_policy_definition") or {}).get("effective_policy_definition")
        return cast("_Row", found) if isinstance(found, dict) else {}  # RabbitMQ returns a list without policies

    def create(self, queue: Destination) -> None:
        """Create a durable queue. An existing queue is not an error.

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
            # The broker checks the current consumers itself, but only of classic queues.
            path = self._path(name) + ("?if-unused=true" if row.get("type") == "classic" else "")
            status, _ = self._management.request("DELETE", path, expected=(_NO_CONTENT, _IN_USE, NOT_FOUND))
            refused = status == _IN_USE
        if refused:
            raise IllegalStateError(f"{queue} still has consumers; close them first.")

    def purge(self, source: Destination | Subscription) -> int:
        """Delete the waiting messages of a queue or a named subscription; messages that a consumer holds stay."""
        path, count = f"{self._path(self._queue_name(source))}/get", 0
        while True:
            status, removed = self._management.request("POST", path, _REMOVAL, expected=(OK, NOT_FOUND))
            if status == NOT_FOUND:
                return count
            if not isinstance(removed, list):
                raise _strange(removed)
            number = len(cast("list[object]", removed))
            if not number:
                return count
            count += number

    def _name_of_queue(self, queue: Destination) -> str:
        if not isinstance(queue, Queue) or queue.temporary:
            raise InvalidDestinationError(f"{queue} is not created or removed here: only queues with a name are.")
        return self._queue_name(queue)

    def _path(self, name: str) -> str:
        return f"/queues/{self._virtual_host}/{_segment(name)}"

    def _find(self, name: str, *columns: str) -> _Row | None:
        """Return some columns of a queue; None if it does not exist."""
        path = f"{self._path(name)}?columns={','.join(('name', *columns))}"  # never none: that would be a list
        status, row = self._management.request("GET", path, expected=(OK, NOT_FOUND))
        if status == NOT_FOUND:
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


def _strange(value: object) -> JMSError:
    return JMSError(f"A response of the broker's management is invalid: {value!r:.200}. Is the URL that of its API?")
