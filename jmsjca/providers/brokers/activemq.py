"""Known behaviour of ActiveMQ Classic over both protocols: its capabilities, and its administration over Jolokia."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

from jmsjca.destinations import Destination, Queue, Subscription, destination
from jmsjca.errors import (
    IllegalStateError,
    InvalidDestinationError,
    JMSError,
    JMSSecurityError,
    NotSupportedError,
)
from jmsjca.providers.brokers.management import NOT_FOUND, OK, HTTPManagement, SettingsElsewhere, discard, number_in
from jmsjca.spi import Activity, Capabilities, Connection, Depth

__all__ = ["OVER_AMQP", "OVER_STOMP", "RELEASE", "ActiveMQAdmin"]

RELEASE = "6.3.1"  # that the tests run against

OVER_AMQP = Capabilities(
    transacted_receive=True,
    transacted_send=True,
    atomic=True,
    give_back="local",
    counts_lost=True,
    selectors=True,
    exact_selectors=True,
    browse=True,
    durable=True,
    client_ids=True,
    checks=True,
    subscription_lock=True,
    temporary=True,
    temporary_guarded=True,
    temporary_ends=True,
    no_local=True,
    groups=True,
    groups_apart=True,
    shared_between_processes=True,
    structured=True,
)
OVER_STOMP = Capabilities(
    transacted_receive=True,
    transacted_send=True,
    atomic=True,
    give_back="local",
    counts_lost=True,
    selectors=True,
    durable=True,
    subscription_lock=True,
    client_ids=True,
    temporary=True,
    no_local=True,
    structured=True,
    shared_between_processes=True,
)

_FORBIDDEN_STATUS = 403
_BROKERS = "org.apache.activemq:type=Broker,brokerName=*"
_ADVISORY = "ActiveMQ.Advisory."
_FORBIDDEN = re.compile(r"[,*>?]|\A\s|\s\Z")  # lists, wildcards, options, and blanks that the broker strips
_NOTHING: Mapping[str, Any] = {}
_CHUNK = 20  # messages of one response, which has their bodies
_PATIENCE = 2.0  # seconds to wait for a message that is to be deleted; then another consumer has it

# The escapes of ActiveMQ's names of beans.
_ESCAPES = str.maketrans({"\\": "_", ":": "_", ",": "_", "'": "_", '"': "_", "?": "&qe;", "=": "&eq;", "*": "&ast;"})


class ActiveMQAdmin(SettingsElsewhere):
    """Administers ActiveMQ Classic over Jolokia. The user needs the right to read and call its beans.

    Args:
        management: Sends the requests.
        connection: Receives the messages to delete, because the broker would also delete messages in use.
    """

    def __init__(self, management: HTTPManagement, connection: Connection) -> None:
        self._management = management
        self._connection = connection
        self._broker: str | None = None

    def destinations(self) -> Sequence[Destination]:
        """Return all queues and topics, but for temporary ones and the broker's own advisories."""
        queues = {destination(name, "queue") for name in self._names("Queue") if name}
        topics = {
            destination(name, "topic") for name in self._names("Topic") if name and not name.startswith(_ADVISORY)
        }
        return sorted(queues | topics, key=str)

    def clock(self) -> float:
        """Return the time of the broker's clock, in whole seconds: Jolokia stamps each response with it."""
        return float(number_in(self._respond({"type": "version"}), "timestamp"))

    def depth(self, source: Destination | Subscription) -> Depth:
        """Count the messages of a queue or a durable subscription. Delayed messages are not counted."""
        if isinstance(source, Subscription):
            found = self._subscription(source)
            waiting, held = (number_in(found, name) for name in ("PendingQueueSize", "DispatchedQueueSize"))
            return Depth(waiting, held, 0)
        row = self._row(source)
        total, held = number_in(row, "QueueSize"), number_in(row, "InFlightCount")
        return Depth(max(total - held, 0), held, 0)

    def activity(self, source: Destination | Subscription) -> Activity:
        """Count the consumers of a queue or a durable subscription, and its messages since the broker was started."""
        if isinstance(source, Subscription):
            found = self._subscription(source)
            return Activity(int(found.get("Active") is True), *_numbers(found, "EnqueueCounter", "DequeueCounter"))
        return Activity(*_numbers(self._row(source), "ConsumerCount", "EnqueueCount", "DequeueCount"))

    def create(self, queue: Destination) -> None:
        """Create a queue. An existing queue is not an error.

        Raises:
            InvalidDestinationError: It is a topic, temporary, or has a name that the broker would interpret.
        """
        if not isinstance(queue, Queue) or queue.temporary or _FORBIDDEN.search(queue.name):
            raise InvalidDestinationError(f"{queue} cannot be created here: only queues with a plain name are.")
        self._call(self._broker_bean(), "addQueue(java.lang.String)", queue.name)

    def remove(self, queue: Destination) -> None:
        """Delete a queue with its messages.

        Raises:
            InvalidDestinationError: The queue does not exist, or is temporary.
            IllegalStateError: The queue has consumers.
        """
        row = self._row(queue) if isinstance(queue, Queue) and not queue.temporary else _NOTHING
        if not row:
            raise InvalidDestinationError(f"There is no {queue} to remove, or it is another connection's.")
        if number_in(row, "ConsumerCount"):
            raise IllegalStateError(f"{queue} still has consumers; close them first.")
        self._call(self._broker_bean(), "removeQueue(java.lang.String)", queue.name)

    def purge(self, source: Destination | Subscription) -> int:
        """Delete the waiting messages of a queue; messages that a consumer holds stay.

        Raises:
            NotSupportedError: It is a subscription: the broker deletes its messages only with the subscription.
        """
        if isinstance(source, Subscription):
            raise NotSupportedError(f"ActiveMQ does not purge {source}: remove it, or consume its messages.")
        return discard(self._connection, source, self.depth(source).ready, _PATIENCE)

    def origins(self, queue: Destination, message_ids: Sequence[str]) -> Mapping[str, Destination]:
        """Return where dead letters came from, by message id: what the broker moves, it names in its management only.

        The management shows the first messages of a queue, 400 as a rule (``maxBrowsePageSize`` of the broker).
        """
        bean, found = self._bean("Queue", queue.name.translate(_ESCAPES)), dict[str, Destination]()
        for start in range(0, len(message_ids), _CHUNK):
            ids = ", ".join("'" + each.replace("'", "''") + "'" for each in message_ids[start : start + _CHUNK])
            rows = self._call(bean, "browse(java.lang.String)", f"JMSMessageID IN ({ids})")
            for row in cast("list[Mapping[str, Any]]", rows if isinstance(rows, list) else []):
                kind, _, name = str(row.get("OriginalDestination")).partition("://")
                if kind in {"queue", "topic"} and name:
                    found[str(row.get("JMSMessageID"))] = destination(name, kind)
        return found

    def _names(self, kind: str) -> list[str]:
        return [str(row.get("Name", "")) for row in self._read(self._bean(kind, "*"), "Name").values()]

    def _row(self, source: Destination) -> Mapping[str, Any]:
        """Return the attributes of a queue; none if it does not exist."""
        if not isinstance(source, Queue):
            raise InvalidDestinationError(f"{source} stores no messages itself; name one of its subscriptions.")
        names = "Name", "QueueSize", "InFlightCount", "ConsumerCount", "EnqueueCount", "DequeueCount"
        rows = self._read(self._bean("Queue", source.name.translate(_ESCAPES)), *names).values()
        return next((row for row in rows if row.get("Name") == source.name), _NOTHING)

    def _subscription(self, source: Subscription) -> Mapping[str, Any]:
        bean = self._subscription_bean(source)
        names = "PendingQueueSize", "DispatchedQueueSize", "EnqueueCounter", "DequeueCounter", "Active"
        return next(iter(self._read(bean, *names).values()), _NOTHING) if bean else _NOTHING

    def _subscription_bean(self, source: Subscription) -> str | None:
        pattern = f"{self._bean('Topic', '*')},endpoint=Consumer,*"
        for bean, row in self._read(pattern, "SubscriptionName", "ClientId").items():
            if (row.get("SubscriptionName"), row.get("ClientId")) == (source.name, source.client_id):
                return bean
        return None

    def _bean(self, kind: str, name: str) -> str:
        return f"{self._broker_bean()},destinationType={kind},destinationName={name}"

    def _broker_bean(self) -> str:
        if self._broker is None:
            found = self._request({"type": "search", "mbean": _BROKERS})
            if not isinstance(found, list) or len(cast("list[object]", found)) != 1:
                raise JMSError(f"The broker's management offers {found!r:.200}, not one broker.")
            self._broker = str(cast("list[object]", found)[0])
        return self._broker

    def _read(self, pattern: str, *attributes: str) -> Mapping[str, Mapping[str, Any]]:
        """Return attributes of each bean that a pattern matches."""
        found = self._request({"type": "read", "mbean": pattern, "attribute": list(attributes)})
        if not isinstance(found, dict):
            raise JMSError(f"The broker's management answers {pattern!r:.200} with {found!r:.100}, not with beans.")
        rows = cast("dict[str, Any]", found)
        if "*" not in pattern:
            return {pattern: rows}
        return {bean: cast("dict[str, Any]", row) for bean, row in rows.items() if isinstance(row, dict)}

    def _call(self, bean: str, operation: str, *arguments: str) -> Any:
        return self._request({"type": "exec", "mbean": bean, "operation": operation, "arguments": list(arguments)})

    def _respond(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        answer = self._management.post(request)
        if not isinstance(answer, dict):
            raise JMSError(f"The broker's management answers {answer!r:.200}, not with a map.")
        return cast("dict[str, Any]", answer)

    def _request(self, request: Mapping[str, Any]) -> Any:
        response = self._respond(request)
        status = response.get("status")
        if status == OK:
            return response.get("value")
        if status == NOT_FOUND and request["type"] == "read":
            return {}
        refused = status == _FORBIDDEN_STATUS
        raise (JMSSecurityError if refused else JMSError)(
            f"The broker refuses {request.get('operation', request['type'])}: {str(response.get('error'))[:300]}"
        )


def _numbers(row: Mapping[str, Any], *names: str) -> list[int]:
    return [number_in(row, name) for name in names]
