"""Known behaviour of Apache Artemis over both protocols: capabilities, management messages, and names in filters."""

import re
from collections.abc import Mapping

from jmsjca.selectors.rewriting import EngineValues, rewrite
from jmsjca.spi import Capabilities

__all__ = [
    "MANAGEMENT_ADDRESS",
    "OVER_AMQP",
    "OVER_STOMP",
    "RELEASE",
    "SUCCEEDED",
    "identifiers_in",
    "operation_headers",
    "queue_filter",
    "to_artemis_filter",
    "to_exact_artemis_filter",
]

RELEASE = "2.56.0"  # that the tests run against

OVER_AMQP = Capabilities(
    transacted_receive=True,
    transacted_send=True,
    atomic=True,
    give_back="uncounted",
    exact_credit=True,
    delivery_delay=True,
    delivery_count=True,
    priority=True,
    selectors=True,
    exact_selectors=True,
    browse=True,
    durable=True,
    client_ids=True,
    duplicate_detection=True,
    checks=True,
    shared=True,
    subscription_lock=True,
    temporary=True,
    no_local=True,
    durable_no_local=True,
    groups=True,
    admin=True,
    counts_held=True,
    lists_destinations=True,
    creates_queues=True,
    counts_consumers=True,
    counts_traffic=True,
    shared_between_processes=True,
    structured=True,
)
OVER_STOMP = Capabilities(
    transacted_send=True,
    give_back="local",
    counts_lost=True,
    selectors=True,
    delivery_delay=True,
    priority=True,
    durable=True,
    duplicate_detection=True,
    structured=True,
    shared_between_processes=True,
)

MANAGEMENT_ADDRESS = "activemq.management"
"""Takes management messages: the arguments of an operation as a JSON list, and the headers `operation_headers`."""

SUCCEEDED = "_AMQ_OperationSucceeded"
"""The property of an answer, whose body is a JSON list with the result, or with the error."""


def operation_headers(resource: str, operation: str) -> dict[str, str]:
    """Return the properties of a message that requests an operation of a resource of the broker."""
    return {"_AMQ_ResourceName": resource, "_AMQ_OperationName": operation}


def queue_filter(name: str) -> dict[str, str]:
    """Return the options of a list that holds one queue."""
    return {"field": "name", "operation": "EQUALS", "value": name}


_WORD = re.compile(r"'(?:[^']|'')*'|(?:[^\W\d]|\$)[\w$]*")
_ARTEMIS_NAMES = {
    "JMSDeliveryMode": "AMQDurable",
    "JMSMessageID": "AMQUserID",
    "JMSPriority": "AMQPriority",
    "JMSTimestamp": "AMQTimestamp",
}
_ARTEMIS_DELIVERY_MODES = {"PERSISTENT": "DURABLE", "NON_PERSISTENT": "NON_DURABLE"}
_DELIVERY_MODES = EngineValues(lambda mode: _ARTEMIS_DELIVERY_MODES.get(mode, ""), tuple(_ARTEMIS_DELIVERY_MODES))
_QUOTED_DELIVERY_MODES = {f"'{jms}'": f"'{artemis}'" for jms, artemis in _ARTEMIS_DELIVERY_MODES.items()}


def to_exact_artemis_filter(selector: str, ids: Mapping[str, EngineValues]) -> str:
    """Return a filter that selects what the selector says, where properties keep their types.

    Args:
        selector: The selector.
        ids: How the filter's engine shows the values of headers with ids.

    Raises:
        InvalidSelectorError: The selector is invalid.
        NotSupportedError: Artemis cannot decide the selector as JMS says.
    """
    return rewrite(selector, _ARTEMIS_NAMES, {"JMSDeliveryMode": _DELIVERY_MODES, **ids})


def to_artemis_filter(selector: str) -> str:
    """Return a selector with the header names of Artemis, as Artemis' JMS client writes it.

    A filter with the JMS names matches nothing, without an error. As in that client, both delivery mode literals are
    replaced in the whole selector if it mentions JMSDeliveryMode.
    """
    names = _ARTEMIS_NAMES | (_QUOTED_DELIVERY_MODES if "JMSDeliveryMode" in identifiers_in(selector) else {})
    return _WORD.sub(lambda word: names.get(word[0], word[0]), selector)


def identifiers_in(selector: str) -> set[str]:
    """Return the identifiers and keywords of a selector, without string literals."""
    return {word for word in _WORD.findall(selector) if not word.startswith("'")}
