"""The gaps of brokers over their own clients of Java. Those of JMS itself are the same for all."""

from tests.support.evidence import CapabilityGap

__all__ = ["GAPS"]

_UNTRIED = "Not tested with this client yet, so the provider refuses it."
_UNTRIED_REFERENCE = "Other clients of the same broker may have it: see their columns"


def _untried(*names):
    return tuple(CapabilityGap(name, _UNTRIED, _UNTRIED_REFERENCE) for name in names)


_NO_ADMIN = tuple(
    CapabilityGap(name, "JMS has no call for it.", "JMS 3.1")
    for name in (
        "admin",
        "counts_held",
        "lists_destinations",
        "creates_queues",
        "counts_consumers",
        "counts_traffic",
        "configurable",
    )
)
_OF_JMS = (
    CapabilityGap(
        "units",
        "Session.commit() -> all messages that the session has received are acknowledged. So each unit has a"
        " separate session. It takes all outstanding messages where the order is kept, elsewhere the messages of"
        " one receive. Other units are refused: they would need two sessions, and a crash between the two commits"
        " would leave half a unit.",
        "JMS 3.1, section 6.2.7",
    ),
    CapabilityGap(
        "give_back",
        "Session.rollback() or close() with a received message -> it is redelivered with JMSXDeliveryCount 2, then"
        " with 3. No call returns a message uncounted.",
        "JMS 3.1, section 3.5.11: the count of delivery attempts",
    ),
    CapabilityGap("redelivery_delay", "Session.rollback() has no delay.", "JMS 3.1, section 6.2.7"),
    CapabilityGap(
        "counts_handovers",
        "JMSXDeliveryCount counts each receive(), whether the application sees the message or not.",
        "JMS 3.1, section 3.5.11",
    ),
    *_NO_ADMIN,
)
_GROUPS = (
    CapabilityGap(
        "groups",
        "A consumer has a session for each open unit, and a broker binds a group to one of them.",
        "JMS 3.1, section 3.5.10, leaves groups to the broker",
    ),
    CapabilityGap("groups_apart", "As groups.", "The same"),
)

GAPS = {
    "Core": (
        *_OF_JMS,
        *_GROUPS,
        CapabilityGap(
            "browse_counts",
            "QueueBrowser hides messages that a consumer has received, and shows JMSXDeliveryCount 0 after a rollback.",
            "Neither the client's documentation nor JMS 3.1, section 6.1.2, mentions it",
        ),
        CapabilityGap(
            "checks",
            "createProducer() for a name that does not exist creates the queue, if the user has the permission. So"
            " the call cannot check whether the queue exists.",
            "auto-create-queues (2.56.0)",
        ),
        CapabilityGap(
            "temporary_ends",
            "A send to a deleted temporary queue creates a permanent queue of that name.",
            "auto-create-queues (2.56.0)",
        ),
        *_untried(
            "volatile_reuse",
            "subscription_kinds",
            "ends_at_close",
            "temporary_guarded",
            "duplicate_detection",
        ),
    ),
    "OpenWire": (
        *_OF_JMS,
        *_GROUPS,
        CapabilityGap(
            "delivery_delay",
            "setDeliveryDelay(1000) -> UnsupportedOperationException.",
            "activemq-client 6.3.1, ActiveMQMessageProducer",
        ),
        CapabilityGap(
            "shared",
            "createSharedConsumer() -> UnsupportedOperationException.",
            "activemq-client 6.3.1, ActiveMQSession",
        ),
        CapabilityGap("volatile_reuse", "As shared.", "The same"),
        CapabilityGap("subscription_kinds", "As shared.", "The same"),
        CapabilityGap(
            "priority",
            "Messages of the priorities 2 and 8 -> in the order in which they were sent.",
            "prioritizedMessages is false unless a policy sets it",
        ),
        CapabilityGap(
            "browse_counts",
            "QueueBrowser of a message that was rolled back -> no JMSXDeliveryCount of the next delivery.",
            "Neither the client's documentation nor JMS 3.1, section 6.1.2, mentions it",
        ),
        *_untried("ends_at_close", "temporary_ends", "durable_no_local", "duplicate_detection"),
    ),
    "AMQP 1.0 through Qpid JMS": (
        *_OF_JMS,
        *_GROUPS,
        CapabilityGap(
            "delivery_delay",
            "The queues of the tests have no holdOnPublishEnabled, without which Broker-J ignores a delay.",
            "Broker-J, queue attribute holdOnPublishEnabled",
        ),
        CapabilityGap(
            "priority",
            "Messages of the priorities 2 and 8 -> in the order in which they were sent.",
            "Broker-J, queue type priority",
        ),
        CapabilityGap(
            "exact_selectors",
            "Selectors are evaluated by the broker as over AMQP 1.0 without Java, with the same differences.",
            "See the gap of Apache Qpid Broker-J over AMQP 1.0",
        ),
        CapabilityGap(
            "browse_counts",
            "QueueBrowser hides messages that a consumer has received.",
            "Neither the client's documentation nor JMS 3.1, section 6.1.2, mentions it",
        ),
        *_untried(
            "volatile_reuse",
            "subscription_lock",
            "subscription_kinds",
            "ends_at_close",
            "temporary_guarded",
            "temporary_ends",
            "no_local",
            "durable_no_local",
            "duplicate_detection",
            "checks",
        ),
    ),
}
