"""Which headers are properties: all but those of STOMP, of the brokers and of our own."""

__all__ = ["ABSENT", "OURS", "is_property"]

OURS = "_jmsjca"
"""The header that holds what no other can; numbered if there are several."""

ABSENT = "no "
"""What stands there before the kind of a message that has no body, which an empty one does not tell."""

_LONGEST = 2000
_RESERVED = frozenset(
    (
        *("ack", "browser", "ciphertext", "client-id", "content-encoding", "content-length", "content-type"),
        *("correlation-id", "destination", "destination-type", "durable", "auto-delete", "exclusive", "expiration"),
        *("expires", "heart-beat", "host", "id", "ingress-timestamp", "login", "message", "message-id"),
        *("no-local", "original-destination", "originalDestination", "passcode", "persistent", "prefetch-count"),
        *("priority", "receipt", "receipt-id", "redelivered", "reply-to", "requeue", "selector", "server", "session"),
        *("subscription", "subscription-type", "timestamp", "transaction", "transformation", "transformation-error"),
        *("type", "user-id", "app-id", "version", "JMSXUserID", "JMSXDeliveryCount", "AMQ_SCHEDULED_TIME"),
        *("AMQ_SCHEDULED_DELAY", "AMQ_SCHEDULED_CRON", "AMQ_SCHEDULED_PERIOD", "AMQ_SCHEDULED_REPEAT"),
    )
)
_RESERVED_BEGINNINGS = (
    OURS,
    "_AMQ_",
    "__AMQ",
    "_HQ_",
    "JMS_AMQP_",
    "NATIVE_MESSAGE_ID",
    "x-",
    "amq-",
    "amqp-",
    "activemq.",
)
_EXCEPTIONS = {"_AMQ_DUPL_ID"}


def is_property(name: str) -> bool:
    """True if a header of this name is a property, and a property of this name may become a header."""
    if name in _RESERVED or len(name) > _LONGEST:
        return False
    return name in _EXCEPTIONS or not name.startswith(_RESERVED_BEGINNINGS)
