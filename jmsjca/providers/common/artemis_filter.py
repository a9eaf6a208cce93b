"""JMS selectors in the header names of Artemis, for protocols over which Artemis does not translate them."""

import re

__all__ = ["identifiers_in", "to_artemis_filter"]

_WORD = re.compile(r"'(?:[^']|'')*'|(?:[^\W\d]|\$)[\w$]*")
_ARTEMIS_NAMES = {
    "JMSDeliveryMode": "AMQDurable",
    "JMSMessageID": "AMQUserID",
    "JMSPriority": "AMQPriority",
    "JMSTimestamp": "AMQTimestamp",
}
_ARTEMIS_DELIVERY_MODES = {"'PERSISTENT'": "'DURABLE'", "'NON_PERSISTENT'": "'NON_DURABLE'"}


def to_artemis_filter(selector: str) -> str:
    """Return a selector with the header names of Artemis, as Artemis' JMS client writes it.

    A filter with the JMS names matches nothing, without an error. As in that client, both delivery mode literals are
    replaced in the whole selector if it mentions JMSDeliveryMode.
    """
    names = _ARTEMIS_NAMES | (_ARTEMIS_DELIVERY_MODES if "JMSDeliveryMode" in identifiers_in(selector) else {})
    return _WORD.sub(lambda word: names.get(word[0], word[0]), selector)


def identifiers_in(selector: str) -> set[str]:
    """Return the identifiers and keywords of a selector, without string literals."""
    return {word for word in _WORD.findall(selector) if not word.startswith("'")}
