"""Apache Artemis over AMQP 1.0: capabilities, and its management messages."""

import json
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from jmsjca.config import DestinationSettings
from jmsjca.destinations import Destination, Queue, Subscription, Topic, destination
from jmsjca.errors import IllegalStateError, InvalidDestinationError, JMSError, JMSSecurityError, NotSupportedError
from jmsjca.messages import TextMessage
from jmsjca.providers.amqp.admin import ManagementClient
from jmsjca.providers.amqp.codec.addresses import SubscriptionQueue
from jmsjca.providers.amqp.codec.jms_mapping import (
    ENCODED_ID_PREFIX,
    ID_KINDS,
    ID_PREFIX,
    amqp_id_in_selector,
    amqp_id_text,
    to_jms_message_id,
)
from jmsjca.providers.brokers.artemis import (
    MANAGEMENT_ADDRESS,
    OVER_AMQP,
    RELEASE,
    SUCCEEDED,
    operation_headers,
    queue_filter,
    to_exact_artemis_filter,
)
from jmsjca.providers.brokers.management import (
    ResponseFields,
    SettingsElsewhere,
    creatable_name,
    expect_list,
    expect_number,
    unexpected_response,
)
from jmsjca.providers.brokers.profile import AMQPBrokerProfile
from jmsjca.selectors.rewriting import EngineValues
from jmsjca.spi import Activity, Connection, Delivery, Depth

__all__ = ["ARTEMIS", "ArtemisAdmin"]

_PAGE_ROWS = 500
_MAX_PAGES = 2000
_ATTEMPTS = 20
_REMOVED_MEANWHILE = "Cannot invoke"  # the failure of a list (2.56) from which a queue is removed while it is made
_DEFAULT_MAX_DELIVERIES = 10  # by the broker's default
_ADDRESS_FIELDS = ("deadLetterAddress", "expiryAddress")
_GLOBAL = ":global"  # the end of the names of shared subscriptions without a client id
_NO_FILTER = {"field": "", "operation": "", "value": ""}


class ArtemisAdmin(SettingsElsewhere):
    """Administers Artemis over AMQP. The user needs the permission ``manage`` on the management address.

    Args:
        client: Sends the management requests.
        connection: Browses the queues of subscriptions.
    """

    def __init__(self, client: ManagementClient, connection: Connection) -> None:
        self._client = client
        self._connection = connection

    @classmethod
    def connect(cls, connection: Connection, timeout: float) -> "ArtemisAdmin":
        """Administer the broker of a connection, with a timeout in seconds for each response."""
        return cls(ManagementClient(connection, MANAGEMENT_ADDRESS, timeout), connection)

    def destinations(self) -> Sequence[Destination]:
        """Return all queues, and the topics with subscriptions; those without a name are unusable and left out."""
        addresses = self._rows("listAddresses", _NO_FILTER)
        temporary = {row.text("name") for row in addresses if row.get("temporary") == "true"}
        rows = (row for row in self._rows("listQueues", _NO_FILTER) if row.text("name") and row.text("address"))
        found = {_destination(row, temporary) for row in rows}
        return sorted(found, key=str)

    def subscriptions(self) -> Sequence[Subscription]:
        """Return the durable subscriptions.

        The broker keeps client id and name as one text. A client id is taken to end at the first dot.
        """
        rows = self._rows("listQueues", _NO_FILTER)
        return [_subscription(row) for row in rows if row.text("routingType") != "ANYCAST" and _is_durable(row)]

    def browse(self, source: Subscription, *, selector: str | None = None) -> Iterator[Sequence[Delivery]]:
        """Yield the waiting messages of a durable subscription in order, in chunks."""
        return self._connection.browse(
            SubscriptionQueue(f"{source.topic.name}::{_queue_name(source)}"), selector=selector
        )

    def unsubscribe(self, source: Subscription) -> None:
        """Delete a durable subscription with its messages.

        Raises:
            InvalidDestinationError: There is no such subscription.
            IllegalStateError: It has consumers.
        """
        row = self._row(source)
        if row is None:
            raise InvalidDestinationError(f"There is no {source} to remove.")
        if row.number("consumerCount"):
            raise IllegalStateError(f"{source} still has consumers; close them first.")
        self._request("broker", "destroyQueue", _queue_name(source))

    def clock(self) -> float:
        """Return the time of the broker's clock."""
        return expect_number("of milliseconds", self._request("broker", "getCurrentTimeMillis")) / 1000

    def depth(self, source: Destination | Subscription) -> Depth:
        """Count the messages of a queue or a named subscription."""
        row = self._row(source)
        if row is None:
            return Depth(0, 0, 0)
        total, held, scheduled = (row.number(name) for name in ("messageCount", "deliveringCount", "scheduledCount"))
        return Depth(total - held - scheduled, held, scheduled)

    def activity(self, source: Destination | Subscription) -> Activity:
        """Count the consumers of a queue or a named subscription, and its messages since the broker has loaded it."""
        row = self._row(source)
        if row is None:
            return Activity(0, 0, 0)
        return Activity(row.number("consumerCount"), row.number("messagesAdded"), row.number("messagesAcked"))

    def create(self, queue: Destination) -> None:
        """Create a durable queue. An existing queue is not an error.

        Raises:
            InvalidDestinationError: It is a topic, or temporary.
        """
        name = creatable_name(queue)
        wanted = {
            "name": name,
            "address": name,
            "routing-type": "ANYCAST",
            "durable": True,
            "auto-create-address": True,
        }
        self._request("broker", "createQueue", json.dumps(wanted), True)

    def purge(self, source: Destination | Subscription) -> int:
        """Delete the waiting messages; messages that a consumer holds stay."""
        if self._row(source) is None:
            return 0
        return expect_number("of messages", self._request(f"queue.{_queue_name(source)}", "removeAllMessages"))

    def remove(self, queue: Destination) -> None:
        """Delete a queue with its messages.

        Raises:
            InvalidDestinationError: The queue does not exist, or is temporary.
            IllegalStateError: The queue has consumers.
        """
        row = self._row(queue) if isinstance(queue, Queue) else None
        if row is None or row.text("temporary") == "true":
            raise InvalidDestinationError(f"There is no {queue} to remove, or it is another connection's.")
        if row.number("consumerCount"):
            raise IllegalStateError(f"{queue} still has consumers; close them first.")
        self._request("broker", "destroyQueue", queue.name)

    def settings(self, address: Destination | None) -> DestinationSettings:
        """Return the settings of an address; None asks for the default settings."""
        name = "#" if address is None else address.name
        return _settings(ResponseFields(_parse_json(self._request("broker", "getAddressSettingsAsJSON", name))))

    def _row(self, source: Destination | Subscription) -> ResponseFields | None:
        if isinstance(source, Destination) and not isinstance(source, Queue):
            raise InvalidDestinationError(f"{source} stores no messages itself; name one of its subscriptions.")
        name = _queue_name(source)
        return next((row for row in self._rows("listQueues", queue_filter(name)) if row.text("name") == name), None)

    def _rows(self, operation: str, options: dict[str, str]) -> Iterator[ResponseFields]:
        for page in range(1, _MAX_PAGES + 1):
            answer = self._page(operation, options, page)
            rows = answer.list("data")
            yield from map(ResponseFields, rows)
            if not rows or answer.number("count") <= page * _PAGE_ROWS:
                return
        raise JMSError(f"The broker's management returns more than {_MAX_PAGES * _PAGE_ROWS} rows of {operation}.")

    def _page(self, operation: str, options: dict[str, str], page: int) -> ResponseFields:
        for _ in range(_ATTEMPTS - 1):
            try:
                return self._ask_for_page(operation, options, page)
            except JMSError as error:
                if _REMOVED_MEANWHILE not in str(error):
                    raise
        return self._ask_for_page(operation, options, page)

    def _ask_for_page(self, operation: str, options: dict[str, str], page: int) -> ResponseFields:
        return ResponseFields(_parse_json(self._request("broker", operation, json.dumps(options), page, _PAGE_ROWS)))

    def _request(self, resource: str, operation: str, *arguments: Any) -> Any:
        request = TextMessage(json.dumps(arguments), properties=operation_headers(resource, operation))
        answer = self._client.request(request)
        result = next(iter(expect_list("of results", _parse_json(answer.body or "[]"))), None)
        if answer.properties.get(SUCCEEDED) is True:
            return result
        refused = "AMQ229032" in str(result) or "AMQ229213" in str(result)  # no permission
        raise (JMSSecurityError if refused else JMSError)(f"The broker refuses {operation}: {str(result)[:500]}")


def _parse_json(text: Any) -> Any:
    try:
        return json.loads(text)
    except (RecursionError, TypeError, ValueError) as error:
        raise unexpected_response("JSON,", text) from error


def _settings(found: ResponseFields) -> DestinationSettings:
    most = found.get("maxDeliveryAttempts")  # newer releases omit settings that are not configured
    most = (
        _DEFAULT_MAX_DELIVERIES if most is None else None if most == -1 else expect_number("of attempts", most) or None
    )
    dead, expired = (destination(found.text(name), "queue") if found.get(name) else None for name in _ADDRESS_FIELDS)
    exclusive = found.get("defaultExclusiveQueue") is True
    return DestinationSettings(most, dead if most else None, expired, exclusive)


def _queue_name(source: Destination | Subscription) -> str:
    """Return the name of the queue with the messages; for a subscription as in `AmqpSupport.createQueueName`."""
    if isinstance(source, Destination):
        return source.name
    kind = ":shared-volatile" if source.volatile else ""
    if source.client_id is None:
        return f"{source.name}{kind}{_GLOBAL}"
    return f"{source.client_id}.{source.name}{kind}"


def _is_durable(row: ResponseFields) -> bool:
    name = row.text("name")
    return row.get("durable") == "true" and ("." in name or name.endswith(_GLOBAL)) and ":shared-volatile" not in name


def _subscription(row: ResponseFields) -> Subscription:
    """Return the subscription whose messages a queue holds; `_queue_name` has the inverse."""
    topic, name = Topic(row.text("address")), row.text("name")
    if name.endswith(_GLOBAL):
        return Subscription(topic, name.removesuffix(_GLOBAL), shared=True)
    client_id, _, rest = name.partition(".")
    return Subscription(topic, rest, client_id)


def _destination(row: ResponseFields, temporary: set[str]) -> Destination:
    kind = "queue" if row.text("routingType") == "ANYCAST" else "topic"
    name = row.text("name" if kind == "queue" else "address")
    return destination(name, kind, temporary=row.text("address") in temporary)


def _message_id(text: str) -> str:
    """Return a message id as the engine shows it: with "ID:", and without its type."""
    shown = amqp_id_text(amqp_id_in_selector(text, to_jms_message_id))
    return shown if shown.startswith(ID_PREFIX) or not text.startswith(ID_PREFIX) else ID_PREFIX + shown


def _correlation_id(text: str) -> str:
    """Return a correlation id as the engine shows it: as JMS does, unless it is bytes, which no text is equal to."""
    if isinstance(amqp_id_in_selector(text), bytes):
        raise NotSupportedError("Artemis cannot select by a correlation id of bytes: select by a property.")
    return text


_IDS = {
    "JMSMessageID": EngineValues(_message_id, start=ID_PREFIX, differing=((ENCODED_ID_PREFIX, None),)),
    "JMSCorrelationID": EngineValues(_correlation_id, differing=(ID_KINDS[2],)),
}

ARTEMIS = AMQPBrokerProfile(
    "Apache Artemis",
    "AMQP",
    RELEASE,
    OVER_AMQP,
    product="apache-activemq-artemis",
    naming="capability",
    duplicate_ids_before_transaction=True,
    translate_selector=partial(to_exact_artemis_filter, ids=_IDS),
    in_use_texts=("AMQ229200", "AMQ229082"),
    other_kind_texts=("is not configured for queue support", "is not configured for topic support"),
    relay_exclusions=(MANAGEMENT_ADDRESS,),
    refuses_links_to_missing=False,
    create_admin=ArtemisAdmin.connect,
    required_offers={
        "client_ids": "sole-connection-for-container",
        "delivery_delay": "DELAYED_DELIVERY",
        "shared": "SHARED-SUBS",
    },
)
