"""Selectors for Artemis: where it passes a selector on as it is, headers have other names than in JMS."""

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
    """Write a selector as Artemis' JMS client does.

    By the names of JMS a filter matches nothing, in silence. As in that client the two words for the delivery mode are
    exchanged in the whole selector, if it mentions the delivery mode at all.
    """
    names = _ARTEMIS_NAMES | (_ARTEMIS_DELIVERY_MODES if "JMSDeliveryMode" in identifiers_in(selector) else {})
    return _WORD.sub(lambda word: names.get(word[0], word[0]), selector)


def identifiers_in(selector: str) -> set[str]:
    """The names and words of a selector, without what stands in quotes."""
    return {word for word in _WORD.findall(selector) if not word.startswith("'")}
