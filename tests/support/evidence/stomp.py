"""The gaps that all or several brokers have over STOMP."""

from tests.support.evidence import CapabilityGap

__all__ = ["EVERYWHERE", "GROUPS_WAIT", "NO_LOCAL", "NO_TEMPORARY", "TEXT_IS_NUMBER", "TWO_CLIENTS"]

_NO_COUNT = CapabilityGap(
    "delivery_count",
    "From the second delivery on MESSAGE has redelivered:true, but no header has the count. Delivery.count is"
    " a lower bound: 1, or 2 with that header, plus 1 for each rollback of this consumer.",
    "STOMP 1.2, MESSAGE: no such header",
)
_NO_HANDOVER = CapabilityGap(
    "counts_handovers",
    "No frame shows whether an application got a MESSAGE that was delivered before: a prefetched message has"
    " the same mark, redelivered:true.",
    "STOMP 1.2, client frames",
)
_NO_DELAY = CapabilityGap(
    "redelivery_delay",
    "NACK and ABORT have no delay. A rolled-back message stays with this client, so the broker cannot delay it.",
    "STOMP 1.2, NACK and ABORT",
)
_NO_BROWSE_COUNTS = CapabilityGap("browse_counts", "As browse.", "The same")
_NO_ADMIN = CapabilityGap("admin", "STOMP has no frame that asks for queues or depths.", "STOMP 1.2, client frames")
_NO_CHECK = CapabilityGap(
    "checks",
    "No frame asks whether SEND would be accepted; only the first SEND shows it, and its ERROR may end the connection.",
    "STOMP 1.2, client frames",
)
TEXT_IS_NUMBER = CapabilityGap(
    "exact_selectors",
    "SEND with n:2, SUBSCRIBE with the selector n = 2 -> MESSAGE: headers are text, and the broker compares a"
    " text that looks like a number as a number. On Artemis JMSMessageID is also missing: AMQUserID is null.",
    "activemq.apache.org/stomp: selectors; Artemis manual: convert_string_expressions",
)
_NOT_CONFIGURABLE = CapabilityGap(
    "configurable",
    "STOMP has no frame that changes the settings of a destination; the operator of the broker does that.",
    "STOMP 1.2, client frames",
)
TWO_CLIENTS = CapabilityGap(
    "client_ids",
    "CONNECT with the client-id of another connection -> CONNECTED, and both connections continue.",
    "STOMP 1.2, CONNECT: no such header",
)
GROUPS_WAIT = CapabilityGap(
    "groups",
    "With two subscriptions of one connection, all messages of one JMSXGroupID go to the first. jmsjca opens"
    " several subscriptions for a consumer that holds many messages, so a group would wait for the wrong"
    " subscription.",
    "STOMP 1.2: no frame enlarges the window of a subscription",
)
_FURTHER = (
    _NO_HANDOVER,
    CapabilityGap("volatile_reuse", "As shared.", "The same"),
    CapabilityGap("subscription_kinds", "As shared.", "The same"),
    CapabilityGap(
        "ends_at_close",
        "UNSUBSCRIBE returns unsettled messages, so a closed consumer stays until its units have ended.",
        "STOMP 1.2, UNSUBSCRIBE",
    ),
    CapabilityGap("groups_apart", "As groups.", "The same"),
    CapabilityGap("counts_held", "As admin.", "The same"),
    CapabilityGap("lists_destinations", "As admin.", "The same"),
    CapabilityGap("creates_queues", "As admin.", "The same"),
    CapabilityGap("counts_consumers", "As admin.", "The same"),
    CapabilityGap("counts_traffic", "As admin.", "The same"),
)
NO_LOCAL = CapabilityGap("durable_no_local", "As no_local.", "The same")
NO_TEMPORARY = (
    CapabilityGap("temporary_guarded", "As temporary.", "The same"),
    CapabilityGap("temporary_ends", "As temporary.", "The same"),
)
EVERYWHERE = (_NO_CHECK, _NO_COUNT, _NO_BROWSE_COUNTS, _NO_DELAY, _NO_ADMIN, _NOT_CONFIGURABLE, *_FURTHER)
