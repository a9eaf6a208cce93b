"""Management over HTTP: bounded requests over verified TLS, and the administration of ActiveMQ and RabbitMQ."""

import base64
import http.client
import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Protocol, cast
from urllib.parse import SplitResult, quote, urlsplit

from jmsjca.config import Credentials, DestinationSettings
from jmsjca.destinations import Destination, Queue, Subscription, destination
from jmsjca.errors import (
    ConnectionLostError,
    IllegalStateError,
    InvalidDestinationError,
    InvalidOptionError,
    JMSError,
    JMSSecurityError,
    NotSupportedError,
    excerpt,
)
from jmsjca.providers.common.network import NetworkOptions, tls_context
from jmsjca.spi import Activity, Consumer, Delivery, Depth, Unit

__all__ = ["JOLOKIA", "MANAGED", "ActiveMQAdmin", "AdministeredConnection", "HTTPManagement", "RabbitMQHTTPAdmin"]

_RESPONSE_BYTES = 64 * 1024 * 1024  # a listing of very many queues
_REFUSED = (401, 403)
_OK = 200


class HTTPManagement:
    """Sends requests to one URL, each on a connection of its own.

    Args:
        options: The options of the broker's URL; ``management_url`` is the URL of the requests.
        credentials: User name and password; None for anonymous requests.

    Raises:
        InvalidOptionError: The option is not a URL of HTTP.
        JMSSecurityError: The password would be sent without TLS.
    """

    def __init__(self, options: NetworkOptions, credentials: Credentials | None) -> None:
        url = _split_url(options.management_url or "")
        secure = url.scheme == "https"
        if credentials and credentials.password and not (secure or options.allow_insecure_login):
            raise JMSSecurityError(
                f"{url.scheme}://{url.hostname} would send the password of {credentials.user_name!r} in the clear. Use"
                " https in management_url, or, on a network that you trust, the option allow_insecure_login=true."
            )
        self._host, self._port = url.hostname or "", url.port
        self._path = url.path or "/"
        self._timeout = options.reply_timeout
        self._tls = tls_context(options) if secure else None
        self._headers = {"Content-Type": "application/json", "Origin": f"{url.scheme}://{url.netloc}"}
        if credentials is not None:
            text = f"{credentials.user_name}:{credentials.password or ''}"
            self._headers["Authorization"] = f"Basic {base64.b64encode(text.encode()).decode()}"

    def post(self, body: Any) -> Any:
        """Send a value as JSON, and return the value of the response.

        Raises:
            ConnectionLostError: The management cannot be reached, or did not respond in time.
            JMSSecurityError: It refuses the user, or its certificate is not trusted.
            JMSError: It responded with another status than 200, or with something else than JSON.
        """
        return self.request("POST", body=body)[1]

    def request(
        self, method: str, path: str = "", body: Any = None, *, expected: Collection[int] = (_OK,)
    ) -> tuple[int, Any]:
        """Send a request; return the status of the response and its value, None if it has none.

        Args:
            method: The method of HTTP.
            path: The rest after the path of the URL: percent-encoded, with the query.
            body: A value that is sent as JSON; None for none.
            expected: The statuses that are no error.

        Raises:
            ConnectionLostError: The management cannot be reached, or did not respond in time.
            JMSSecurityError: It refuses the user, or its certificate is not trusted.
            JMSError: It responded with another status, or with something else than JSON.
        """
        try:
            status, content = self._send(method, path, b"" if body is None else json.dumps(body).encode())
        except (OSError, http.client.HTTPException) as error:
            raise ConnectionLostError(f"The broker's management at {self._name} cannot be reached: {error}") from error
        if status in _REFUSED:
            raise JMSSecurityError(f"The broker's management at {self._name} refuses the user (status {status}).")
        if status not in expected:
            wanted = " or ".join(map(str, expected))
            raise JMSError(f"The broker's management at {self._name} answers with the status {status}, not {wanted}.")
        if len(content) > _RESPONSE_BYTES:
            raise JMSError(f"A response of the broker's management has more than {_RESPONSE_BYTES} bytes.")
        if not content and status != _OK:
            return status, None
        try:
            return status, json.loads(content)
        except (ValueError, RecursionError) as error:
            raise JMSError(f"A response of the broker's management at {self._name} is no JSON.") from error

    @property
    def _name(self) -> str:
        return f"{self._host}{'' if self._port is None else f':{self._port}'}{self._path}"

    def _send(self, method: str, path: str, body: bytes) -> tuple[int, bytes]:
        if self._tls is None:
            connection = http.client.HTTPConnection(self._host, self._port, timeout=self._timeout)
        else:
            connection = http.client.HTTPSConnection(self._host, self._port, timeout=self._timeout, context=self._tls)
        try:
            connection.request(method, self._path.removesuffix("/") + path if path else self._path, body, self._headers)
            response = connection.getresponse()
            return response.status, response.read(_RESPONSE_BYTES + 1)
        finally:
            connection.close()


def _split_url(text: str) -> SplitResult:
    """Return the parts of the option ``management_url``. Its errors show no user and no password."""
    form = "Option management_url is http://HOST:PORT/PATH or https://…, in ASCII, without a user and a query"
    try:
        url = urlsplit(text)
        port_is_valid = url.port is None or url.port > 0
    except ValueError:  # without the cause: its text may show the user and the password
        raise InvalidOptionError(f"{form}; its host or its port is invalid.") from None
    is_web = url.scheme in {"http", "https"} and url.hostname and port_is_valid
    if not is_web or url.username or url.query or not text.isascii():
        raise InvalidOptionError(f"{form}; it is {excerpt(f'{url.scheme}://{url.hostname}')}.")
    return url


JOLOKIA: Mapping[str, Any] = {
    "admin": True,
    "counts_held": True,
    "lists_destinations": True,
    "creates_queues": True,
    "counts_consumers": True,
    "counts_traffic": True,
}
"""The capabilities that Jolokia adds to a connection."""

_BROKERS = "org.apache.activemq:type=Broker,brokerName=*"
_ADVISORY = "ActiveMQ.Advisory."
_FORBIDDEN = re.compile(r"[,*>?]|\A\s|\s\Z")  # lists, wildcards, options, and blanks that the broker strips
_NOT_FOUND = 404
_NOTHING: Mapping[str, Any] = {}
_CHUNK = 20  # messages of one response, which has their bodies
_PATIENCE = 2.0  # seconds to wait for a message that is to be deleted; then another consumer has it

# The escapes of ActiveMQ's names of beans.
_ESCAPES = str.maketrans({"\\": "_", ":": "_", ",": "_", "'": "_", '"': "_", "?": "&qe;", "=": "&eq;", "*": "&ast;"})


class AdministeredConnection(Protocol):
    """The part of a connection that empties queues."""

    def consumer(self, source: Destination | Subscription) -> Consumer:
        """Open a consumer."""
        ...

    def unit(self, *, atomic: bool = True) -> Unit:
        """Open a unit of work."""
        ...


class ActiveMQAdmin:
    """Administers ActiveMQ Classic over Jolokia. The user needs the right to read and call its beans.

    Args:
        management: Sends the requests.
        connection: Receives messages that are to be deleted: the broker itself would delete those in use, too.
    """

    def __init__(self, management: HTTPManagement, connection: AdministeredConnection) -> None:
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
        return float(_number(self._respond({"type": "version"}), "timestamp"))

    def depth(self, source: Destination | Subscription) -> Depth:
        """Count the messages of a queue or a durable subscription. Delayed messages are not counted."""
        if isinstance(source, Subscription):
            found = self._subscription(source)
            waiting, held = (_number(found, name) for name in ("PendingQueueSize", "DispatchedQueueSize"))
            return Depth(waiting, held, 0)
        row = self._row(source)
        total, held = _number(row, "QueueSize"), _number(row, "InFlightCount")
        return Depth(max(total - held, 0), held, 0)

    def activity(self, source: Destination | Subscription) -> Activity:
        """Count the consumers of a queue or a durable subscription, and its messages since the broker was started."""
        if isinstance(source, Subscription):
            found = self._subscription(source)
            return Activity(int(found.get("Active") is True), *_numbers(found, "EnqueueCounter", "DequeueCounter"))
        return Activity(*_numbers(self._row(source), "ConsumerCount", "EnqueueCount", "DequeueCount"))

    def create(self, queue: Destination) -> None:
        """Create a queue; one that exists is no error.

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
        if _number(row, "ConsumerCount"):
            raise IllegalStateError(f"{queue} still has consumers; close them first.")
        self._call(self._broker_bean(), "removeQueue(java.lang.String)", queue.name)

    def purge(self, source: Destination | Subscription) -> int:
        """Delete the waiting messages of a queue; messages that a consumer holds stay.

        Raises:
            NotSupportedError: It is a subscription, whose messages the broker deletes only with the subscription.
        """
        if isinstance(source, Subscription):
            raise NotSupportedError(f"ActiveMQ does not purge {source}: remove it, or consume its messages.")
        left = ready = self.depth(source).ready
        consumer = self._connection.consumer(source) if ready else None
        while consumer is not None and left and (chunk := consumer.receive(left, _PATIENCE)):
            self._settle(chunk)
            left -= len(chunk)
        if consumer is not None:
            consumer.close()
        return ready - left

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

    def configure(self, address: Destination | None, settings: DestinationSettings) -> None:
        """Raise `NotSupportedError`: settings are policies of the broker's own configuration."""
        del settings
        raise NotSupportedError(f"Settings of {address} are made in the broker's own configuration.")

    def settings(self, address: Destination | None) -> DestinationSettings:
        """Raise `NotSupportedError`, as `configure` does."""
        raise NotSupportedError(f"Settings of {address} are part of the broker's own configuration.")

    def _settle(self, chunk: Sequence[Delivery]) -> None:
        unit = self._connection.unit(atomic=False)
        unit.take(chunk)
        unit.commit()

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
        if status == _OK:
            return response.get("value")
        if status == _NOT_FOUND and request["type"] == "read":
            return {}
        refused = status == 403  # noqa: PLR2004
        raise (JMSSecurityError if refused else JMSError)(
            f"The broker refuses {request.get('operation', request['type'])}: {str(response.get('error'))[:300]}"
        )


def _number(row: Mapping[str, Any], name: str) -> int:
    value = row.get(name, 0)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise JMSError(f"A response of the broker's management is invalid: {name} is {value!r:.100}, not a number.")
    return value


def _numbers(row: Mapping[str, Any], *names: str) -> list[int]:
    return [_number(row, name) for name in names]


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
_CREATED, _NO_CONTENT, _IN_USE = 201, 204, 400
_REMOVED_AT_ONCE = 500  # messages of one request that removes them
_REMOVAL = {"count": _REMOVED_AT_ONCE, "ackmode": "ack_requeue_false", "encoding": "base64", "truncate": 1}
_SETTLED = "ack", "get_no_ack", "deliver_no_ack"  # the last two: consumers that acknowledge nothing

_Row = Mapping[str, Any]
_EMPTY_ROW: _Row = {}


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
        arguments: Mapping[str, str] = _EMPTY_ROW,
        virtual_host: str = "/",
    ) -> None:
        self._management = management
        self._queue_name = queue_name
        self._arguments = dict(arguments)
        self._virtual_host = _segment(virtual_host)

    def destinations(self) -> Sequence[Destination]:
        """Return the queues, without those of one connection, and the topics that have subscribers."""
        queues = self._rows(f"/queues/{self._virtual_host}?columns=name,exclusive,auto_delete")
        names = [_text(row, "name") for row in queues if not (row.get("exclusive") or row.get("auto_delete"))]
        shared = {destination(name, "queue") for name in names}
        bindings = self._rows(f"/exchanges/{self._virtual_host}/{_TOPICS}/bindings/source")
        keys = {_text(row, "routing_key") for row in bindings}
        topics = {destination(key, "topic") for key in keys if key and not _WILDCARDS & set(key.split("."))}
        return sorted(shared | topics, key=str)

    def clock(self) -> None:
        """Return None: the API does not report the time."""

    def depth(self, source: Destination | Subscription) -> Depth:
        """Return the numbers of messages of a queue or a named subscription at the latest measurement."""
        row = self._find(self._queue_name(source), "messages_ready", "messages_unacknowledged") or _EMPTY_ROW
        return Depth(_count_in(row, "messages_ready"), _count_in(row, "messages_unacknowledged"), 0)

    def activity(self, source: Destination | Subscription) -> Activity:
        """Return the consumers and the traffic of a queue or a named subscription at the latest measurement."""
        row = self._find(self._queue_name(source), "consumer_details", "message_stats") or _EMPTY_ROW
        consumers, counted = row.get("consumer_details", []), row.get("message_stats", {})
        if not isinstance(consumers, list) or not isinstance(counted, dict):
            raise _strange(row)
        statistics = cast("_Row", counted)
        settled = sum(_count_in(statistics, name) for name in _SETTLED)
        return Activity(len(cast("list[object]", consumers)), _count_in(statistics, "publish"), settled)

    def policy_of(self, name: str) -> Mapping[str, Any]:
        """Return the settings of a queue by policies of the broker's operators, by their names."""
        found = (self._find(name, "effective_policy_definition") or {}).get("effective_policy_definition")
        return cast("_Row", found) if isinstance(found, dict) else {}  # a list if there are none

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


def _count_in(row: _Row, name: str) -> int:
    value = row.get(name, 0)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise _strange({name: value})
    return value


def _strange(value: object) -> JMSError:
    return JMSError(f"A response of the broker's management is invalid: {value!r:.200}. Is the URL that of its API?")
