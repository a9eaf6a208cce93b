"""The gaps of RabbitMQ over STOMP."""

from tests.support.evidence import CapabilityGap
from tests.support.evidence.stomp import EVERYWHERE, NO_LOCAL, NO_TEMPORARY, TWO_CLIENTS

__all__ = ["GAPS"]

GAPS = (
    CapabilityGap(
        "transacted_receive",
        "COMMIT carries the noted frames out one by one; an ERROR among them stops none of the others.",
        "rabbit_stomp_processor:commit_transaction (3.10)",
    ),
    CapabilityGap(
        "transacted_send",
        "As transacted_receive. The RECEIPT of COMMIT comes before messages are safe; the RECEIPTs of SENDs do not.",
        "rabbit_stomp_processor:commit_transaction and do_receipt (3.10)",
    ),
    CapabilityGap(
        "atomic",
        "As transacted_receive.",
        "rabbit_stomp_processor:commit_transaction (3.10)",
    ),
    CapabilityGap(
        "give_back",
        "NACK puts a message back in its place, and the broker sends it to the same subscription again at once,"
        " redelivered:true: a released message would look like a failed one. UNSUBSCRIBE returns no messages; an"
        " ACK after it -> ERROR Subscription not found.",
        "rabbit_stomp_processor:ack_action (3.10)",
    ),
    CapabilityGap(
        "exact_credit",
        "prefetch-count:1 sends one message before the client asks; 0 means without limit.",
        "rabbitmq.com/stomp: prefetch-count",
    ),
    CapabilityGap(
        "delivery_delay",
        "SEND has no header for it; a plug-in adds an exchange that can.",
        "rabbitmq.com/stomp: SEND headers",
    ),
    CapabilityGap(
        "priority",
        "Messages come in the order of sending: a queue minds priorities only if its first declaration has"
        " x-max-priority, and all others must then have the same.",
        "rabbitmq.com/priority",
    ),
    CapabilityGap("selectors", "SUBSCRIBE with a selector delivers everything.", "rabbitmq.com/stomp: no such header"),
    CapabilityGap("exact_selectors", "As selectors.", "The same"),
    CapabilityGap("browse", "SUBSCRIBE knows no browser.", "rabbitmq.com/stomp: no such header"),
    CapabilityGap(
        "duplicate_detection",
        "A second SEND with the same _AMQ_DUPL_ID is delivered like the first.",
        "The property is Artemis'",
    ),
    CapabilityGap(
        "shared",
        "SUBSCRIBE with an x-queue-name and auto-delete shares a queue; but one more SUBSCRIBE with it to another"
        " topic -> RECEIPT, and all its consumers get both topics.",
        "rabbitmq.com/stomp: x-queue-name",
    ),
    CapabilityGap(
        "subscription_lock",
        "SUBSCRIBE to the queue of a durable subscription that has a consumer -> RECEIPT, and each gets a part."
        " Over one connection the second is refused here.",
        "rabbitmq.com/stomp: durable topic subscriptions",
    ),
    CapabilityGap(
        "no_local",
        "SUBSCRIBE with no-local:true -> MESSAGE of the same connection.",
        "rabbitmq.com/stomp: no such header",
    ),
    CapabilityGap(
        "temporary",
        "SEND with reply-to:/temp-queue/x makes a queue that acknowledges by itself. SEND to it when its connection"
        " is gone -> RECEIPT, and the message with it.",
        "rabbitmq.com/stomp: temp queue destinations",
    ),
    CapabilityGap(
        "groups",
        "Messages of one JMSXGroupID go to two subscriptions in turn.",
        "rabbitmq.com/consumers: no such property",
    ),
    TWO_CLIENTS,
    NO_LOCAL,
    *NO_TEMPORARY,
    *EVERYWHERE,
)
