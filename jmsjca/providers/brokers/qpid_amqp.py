"""Qpid Broker-J over AMQP 1.0: capabilities, and its virtual host's management."""

import re
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from jmsjca.destinations import Destination, Queue, Subscription, destination
from jmsjca.errors import (
    IllegalStateError,
    InvalidDestinationError,
    JMSError,
    JMSSecurityError,
    MessageFormatError,
)
from jmsjca.messages import MapMessage
from jmsjca.providers.amqp.admin import ManagementClient, ManagementResponse
from jmsjca.providers.amqp.codec.jms_mapping import amqp_id_text, to_amqp_id
from jmsjca.providers.brokers.management import (
    ResponseFields,
    SettingsElsewhere,
    creatable_name,
    expect_list,
    expect_number,
)
from jmsjca.providers.brokers.profile import AMQPBrokerProfile
from jmsjca.selectors.syntax import read_string, write_literal
from jmsjca.spi import Activity, Capabilities, Connection, Depth

__all__ = ["QPID", "QpidAdmin"]


_ADDRESS = "$management"

_MANAGEMENT_NODE, _QUEUE, _EXCHANGE = "org.amqp.management", "org.apache.qpid.Queue", "org.apache.qpid.Exchange"
_DELETE_WITH_LINK = "DELETE_ON_CREATING_LINK_CLOSE"
_SUBSCRIPTION_PREFIX = "qpidsub_/"
_BAD_REQUEST, _FORBIDDEN, _NOT_FOUND = 400, 403, 404
_ESCAPES = str.maketrans({"_": "__", ".": "_:", "(": "_O", ")": "_C", "<": "_L", ">": "_R"})


class QpidAdmin(SettingsElsewhere):
    """Administers a virtual host of Broker-J over AMQP. The user needs the permission to manage it.

    Args:
        client: Sends the management requests.
    """

    def __init__(self, client: ManagementClient) -> None:
        self._client = client

    @classmethod
    def connect(cls, connection: Connection, timeout: float) -> "QpidAdmin":
        """Administer the broker of a connection, with a timeout in seconds for each response."""
        return cls(ManagementClient(connection, _ADDRESS, timeout))

    def destinations(self) -> Sequence[Destination]:
        """Return all queues, the topics with subscriptions, and all temporary topics.

        Destinations without a name are left out: other clients can create them, but they are unusable.
        """
        found = {
            destination(row.text("name"), "queue", temporary=_is_owned_by_link(row))
            for row in self._query(_QUEUE)
            if row.text("name") and not row.text("name").startswith(_SUBSCRIPTION_PREFIX)
        }
        made = {destination(name, "topic", temporary=True) for name in self._link_owned_names(_EXCHANGE) if name}
        _, exchange = self._request(_EXCHANGE, "READ", {**_path("amq.topic"), "actuals": "false"})
        bindings = map(ResponseFields, expect_list("bindings", ResponseFields(exchange).get("bindings") or []))
        topics = {destination(key, "topic") for binding in bindings if (key := binding.text("bindingKey"))}
        return sorted(found | made | topics, key=str)

    def clock(self) -> float | None:
        """Return the time of the broker's clock, which is the creation time of its responses."""
        return self._ask(_EXCHANGE, "READ", {**_path("amq.direct"), "actuals": "true"}).created

    def depth(self, source: Destination | Subscription) -> Depth:
        """Count the messages of a queue or a named subscription."""
        counts = self._counts(source)
        if counts is None:
            return Depth(0, 0, 0)
        held = counts.number("unacknowledgedMessages")
        return Depth(counts.number("queueDepthMessages") - held, held, 0)

    def activity(self, source: Destination | Subscription) -> Activity:
        """Count the consumers of a queue or a named subscription, and its messages since the broker has loaded it."""
        counts = self._counts(source)
        if counts is None:
            return Activity(0, 0, 0)
        names = "consumerCount", "totalEnqueuedMessages", "totalDequeuedMessages"
        return Activity(*map(counts.number, names))

    def create(self, queue: Destination) -> None:
        """Create a durable queue. An existing queue is not an error.

        Raises:
            InvalidDestinationError: It is a topic, or temporary.
        """
        name = creatable_name(queue)
        if self._counts(queue) is None:
            self._request(_QUEUE, "CREATE", {}, {"name": name, "durable": "true"})

    def purge(self, source: Destination | Subscription) -> int:
        """Delete the waiting messages; messages that a consumer holds stay.

        Raises:
            IllegalStateError: A consumer holds messages of the subscription; the broker would delete them.
        """
        depth = self.depth(source)
        if isinstance(source, Queue):
            return self._client.discard(source, depth.ready)
        if depth.held:
            raise IllegalStateError(
                f"{depth.held} messages of {source} are in use and would be deleted, too; close its consumers first."
            )
        where = self._locate(source) if depth.ready else None
        return expect_number("of messages", self._request(_QUEUE, "clearQueue", where)[1]) if where else 0

    def remove(self, queue: Destination) -> None:
        """Delete a queue with its messages.

        Raises:
            InvalidDestinationError: The queue does not exist, or is temporary.
            IllegalStateError: The queue has consumers.
        """
        own = isinstance(queue, Queue) and queue.name not in self._link_owned_names(_QUEUE)
        counts = self._counts(queue) if own else None
        if counts is None:
            raise InvalidDestinationError(f"There is no {queue} to remove, or it is another connection's.")
        if counts.number("consumerCount"):
            raise IllegalStateError(f"{queue} still has consumers; close them first.")
        self._request(_QUEUE, "DELETE", _path(queue.name))

    def _counts(self, source: Destination | Subscription) -> ResponseFields | None:
        where = self._locate(source)
        status, counts = self._request(_QUEUE, "getStatistics", where) if where else (_NOT_FOUND, None)
        return None if status == _NOT_FOUND else ResponseFields(counts)

    def _locate(self, source: Destination | Subscription) -> dict[str, str] | None:
        """Return the reference to the queue with the messages. The name of a subscription's queue is not a path."""
        if isinstance(source, Queue):
            return _path(source.name)
        if isinstance(source, Destination):
            raise InvalidDestinationError(f"{source} stores no messages itself; name one of its subscriptions.")
        name = _queue_name(source)
        return next(
            ({"identity": row.text("identity")} for row in self._query(_QUEUE) if row.text("name") == name), None
        )

    def _link_owned_names(self, kind: str) -> set[str]:
        return {row.text("name") for row in self._query(kind) if _is_owned_by_link(row)}

    def _query(self, kind: str) -> list[ResponseFields]:
        """Return the attributes of each object of a type."""
        table = ResponseFields(self._request(_MANAGEMENT_NODE, "QUERY", {"entityType": kind, "identity": "self"})[1])
        names = [str(name) for name in table.list("attributeNames")]
        return [
            ResponseFields(dict(zip(names, expect_list("of attributes", row), strict=False)))
            for row in table.list("results")
        ]

    def _ask(
        self, kind: str, operation: str, further: dict[str, str], body: dict[str, str] | None = None
    ) -> ManagementResponse:
        return self._client.request(
            MapMessage(body or {}, properties={"type": kind, "operation": operation, **further})
        )

    def _request(
        self, kind: str, operation: str, further: dict[str, str], body: dict[str, str] | None = None
    ) -> tuple[int, Any]:
        """Perform an operation; return its status and result."""
        answer = self._ask(kind, operation, further, body)
        status = answer.properties.get("statusCode")
        if not isinstance(status, int):
            raise JMSError(f"The broker's management responded to {operation} without a status.")
        if status >= _BAD_REQUEST and status != _NOT_FOUND:
            refused = status == _FORBIDDEN
            raise (JMSSecurityError if refused else JMSError)(
                f"The broker refuses {operation}: {str(answer.properties.get('statusDescription'))[:500]}"
            )
        return int(status), answer.body


def _is_owned_by_link(row: ResponseFields) -> bool:
    return bool(row.get("lifetimePolicy") == _DELETE_WITH_LINK)


def _path(name: str) -> dict[str, str]:
    return {"index": "object-path", "key": name}


def _queue_name(source: Subscription) -> str:
    """Return the name of the queue with the messages, built as in `ExchangeSendingDestination`."""
    owner = "_global_" if source.client_id is None else source.client_id.translate(_ESCAPES)
    kind = "nondurable" if source.volatile else "durable"
    return f"{_SUBSCRIPTION_PREFIX}{owner}_/{str(source.name).translate(_ESCAPES)}_/{kind}"


_STRING_LITERAL = re.compile(r"'(?:[^']|'')*'")
_ID_NAMES = re.compile(r"(?<![\w$])JMS(?:Message|Correlation)ID(?![\w$])")


def _translate_ids(selector: str) -> str:
    """Return a selector with ids as the broker shows them: the AMQP value as text, without its type."""
    if not _ID_NAMES.search(_STRING_LITERAL.sub("''", selector)):
        return selector
    return _STRING_LITERAL.sub(_translate_id, selector)


def _translate_id(literal: re.Match[str]) -> str:
    with suppress(MessageFormatError):
        return write_literal(amqp_id_text(to_amqp_id(read_string(literal[0]))))
    return literal[0]


QPID = AMQPBrokerProfile(
    "Apache Qpid Broker-J",
    "AMQP",
    "10.1.0",
    Capabilities(
        transacted_receive=True,
        transacted_send=True,
        atomic=True,
        give_back="uncounted",
        exact_credit=True,
        delivery_count=True,
        counts_lost=True,
        selectors=True,
        browse=True,
        browse_counts=True,
        durable=True,
        client_ids=True,
        shared=True,
        volatile_reuse=True,
        subscription_lock=True,
        subscription_kinds=True,
        temporary=True,
        temporary_guarded=True,
        temporary_ends=True,
        no_local=True,
        admin=True,
        counts_held=True,
        lists_destinations=True,
        creates_queues=True,
        counts_consumers=True,
        counts_traffic=True,
        shared_between_processes=True,
        structured=True,
    ),
    product="Apache Qpid Broker-J Core",
    naming="exchange",
    presettles_in_transaction=True,
    translate_selector=_translate_ids,
    create_admin=QpidAdmin.connect,
    required_offers={"client_ids": "sole-connection-for-container", "shared": "SHARED-SUBS"},
)
