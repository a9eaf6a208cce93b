"""Which names a property may have (JMS 3.1, sections 3.5.1, 3.5.9, 3.5.10 and 3.8.1.1)."""

import re
from functools import lru_cache

from jmsjca.errors import MessageFormatError

__all__ = ["CLIENT_JMSX", "DELIVERY_COUNT", "KEYWORDS", "PROVIDER_JMSX", "check_name", "is_identifier"]

DELIVERY_COUNT = "JMSXDeliveryCount"
CLIENT_JMSX = {"JMSXGroupID": "string", "JMSXGroupSeq": "int"}
"""The properties of JMS that the sender sets, with their types."""
PROVIDER_JMSX = frozenset(
    {DELIVERY_COUNT, "JMSXUserID", "JMSXAppID", "JMSXProducerTXID", "JMSXConsumerTXID", "JMSXRcvTimestamp", "JMSXState"}
)
"""The properties of JMS that the provider sets."""

_ASCII = re.compile(r"[A-Za-z_$][\w$]*\Z", re.ASCII)
# By Unicode category, as Java has it, but for its invisible parts (control and format characters).
_START = {"Lu", "Ll", "Lt", "Lm", "Lo", "Nl", "Sc", "Pc"}
_PART = _START | {"Nd", "Mn", "Mc"}
KEYWORDS = frozenset({"NULL", "TRUE", "FALSE", "NOT", "AND", "OR", "BETWEEN", "LIKE", "IN", "IS", "ESCAPE"})
"""The words of the selector syntax, in capitals; it takes them in any case."""
# The vendor names of the JMSJCA manual hold dots.
_VENDOR = ("JMSJCA.", "JMS_")
_REMEMBERED = 128  # characters: strangers name the properties of messages that are passed on


def is_identifier(text: str) -> bool:
    """Tell whether a text is an identifier of the selector syntax: one of Java, and no keyword."""
    return (_ASCII.match(text) is not None or _is_foreign_identifier(text)) and text.upper() not in KEYWORDS


def check_name(name: str) -> None:
    """Refuse what cannot name a property that a client sets.

    Raises:
        MessageFormatError: It is no identifier, or belongs to JMS or to the provider.
    """
    _check_known(name) if len(name) <= _REMEMBERED else _check(name)


def _check(name: str) -> None:
    if not is_identifier(name.replace(".", "_") if _is_vendor_name(name) else name):
        raise MessageFormatError(
            f"{name!r:.100} cannot name a property: it must be an identifier as in Java, and no keyword of selectors."
        )
    if name.startswith("JMS") and not name.startswith(_VENDOR) and name not in CLIENT_JMSX:
        raise MessageFormatError(_reserved(name))


_check_known = lru_cache(1024)(_check)  # programs use few names, again and again


def _is_vendor_name(name: str) -> bool:
    return name.startswith(_VENDOR) and all(name.split("."))


def _reserved(name: str) -> str:
    if name in PROVIDER_JMSX:
        return f"{name} cannot name a property that you set: the provider does."
    return (
        f"{name!r:.100} cannot name a property: names that begin with JMS are reserved, but for JMS_<vendor>…,"
        f" {' and '.join(CLIENT_JMSX)}. Headers are attributes of the message."
    )


def _is_foreign_identifier(text: str) -> bool:
    from unicodedata import category  # noqa: PLC0415  # most names are ASCII

    categories = [category(character) for character in text]
    return bool(text) and categories[0] in _START and _PART.issuperset(categories)
