"""Which names a selector may hold (JMS 3.1, section 3.8.1.1)."""

from jmsjca.messages.names import is_identifier

__all__ = ["HEADERS", "objection_to"]

HEADERS = ("JMSCorrelationID", "JMSDeliveryMode", "JMSMessageID", "JMSPriority", "JMSTimestamp", "JMSType")
"""The headers that a selector may name; all other identifiers are properties."""


def objection_to(name: str) -> str:
    """Say why a name cannot be selected; empty if it can."""
    if not is_identifier(name):
        return f"{name[:100]!r} is no identifier as in Java"
    if name.startswith("JMS") and name not in HEADERS and not name.startswith(("JMSX", "JMS_")):
        return f"{name[:100]} is not for selectors; of the headers these are: {', '.join(HEADERS)}"
    return ""
