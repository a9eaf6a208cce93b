"""JMS selectors in the header names of Artemis, for protocols over which Artemis does not translate them."""

import re

from jmsjca.selectors.rewriting import rewrite

__all__ = ["identifiers_in", "to_artemis_filter", "to_exact_artemis_filter"]

_WORD = re.compile(r"'(?:[^']|'')*'|(?:[^\W\d]|\$)[\w$]*")
_ARTEMIS_NAMES = {
    "JMSDeliveryMode": "AMQDurable",
    "JMSMessageID": "AMQUserID",
    "JMSPriority": "AMQPriority",
    "JMSTimestamp": "AMQTimestamp",
}
_ARTEMIS_DELIVERY_MODES = {"PERSISTENT": "DURABLE", "NON_PERSISTENT": "NON_DURABLE"}
_QUOTED_DELIVERY_MODES = {f"'{jms}'": f"'{artemis}'" for jms, artemis in _ARTEMIS_DELIVERY_MODES.items()}


def to_exact_artemis_filter(selector: str) -> str:
    """Return a filter that selects what the selector says, where properties keep their types.

    Raises:
        InvalidSelectorError: The selector is invalid.
        NotSupportedError: Artemis cannot decide the selector as JMS says.
    """
    return rewrite(selector, _ARTEMIS_NAMES, _ARTEMIS_DELIVERY_MODES)


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
