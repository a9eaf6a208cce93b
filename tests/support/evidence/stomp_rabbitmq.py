"""The gaps of RabbitMQ over STOMP."""

from tests.support.evidence import CapabilityGap
from tests.support.evidence.stomp import EVERYWHERE, NO_LOCAL, NO_TEMPORARY, TWO_CLIENTS

__all__ = ["GAPS"]

GAPS = (
    CapabilityGap(
        "transacted_receive",
        "COMMIT executes the recorded frames one by one; an ERROR of one frame does not stop the others.",
        "rabbit_stomp_processor:commit_transaction (3.10)",
    ),
    CapabilityGap(
        "transacted_send",
        "As transacted_receive. The RECEIPT of a COMMIT arrives before the messages are on disk, the RECEIPT of a"
        " SEND after that.",
        "rabbit_stomp_processor:commit_transaction and do_receipt (3.10)",
    ),
    CapabilityGap("atomic", "As transacted_receive.", "The same"),
    CapabilityGap(
        "give_back",
        "NACK requeues a message in its place, and the broker sends it to the same subscription again at once,"
        " with redelivered:true: a released message would look like a failed one. UNSUBSCRIBE requeues no"
        " messages; a later ACK -> ERROR Subscription not found.",
        "rabbit_stomp_processor:ack_action (3.10)",
    ),
    CapabilityGap(
        "exact_credit",
        "With prefetch-count:1 the broker sends one message before the client asks; 0 means without limit.",
        "rabbitmq.com/stomp: prefetch-count",
    ),
    CapabilityGap(
        "delivery_delay",
        "SEND has no header for it; a plug-in adds an exchange that delays messages.",
        "rabbitmq.com/stomp: SEND headers",
    ),
    CapabilityGap(
        "priority",
        "Messages are delivered in the order of the sends: a queue follows priorities only if its first"
        " declaration has x-max-priority, and all later declarations must then have the same value.",
        "rabbitmq.com/priority",
    ),
    CapabilityGap("selectors", "SUBSCRIBE with a selector -> all messages.", "rabbitmq.com/stomp: no such header"),
    CapabilityGap("exact_selectors", "As selectors.", "The same"),
    CapabilityGap("browse", "SUBSCRIBE has no header for browsing.", "rabbitmq.com/stomp: no such header"),
    CapabilityGap(
        "duplicate_detection",
        "A second SEND with the same _AMQ_DUPL_ID is delivered like the first.",
        "The property belongs to Artemis",
    ),
    CapabilityGap(
        "shared",
        "SUBSCRIBE with an x-queue-name and auto-delete shares a queue; but another SUBSCRIBE with the same name"
        " to another topic -> RECEIPT, and all consumers get the messages of both topics.",
        "rabbitmq.com/stomp: x-queue-name",
    ),
    CapabilityGap(
        "subscription_lock",
        "SUBSCRIBE to the queue of a durable subscription that has a consumer -> RECEIPT, and each consumer gets"
        " a part of the messages. jmsjca refuses a second consumer of one connection.",
        "rabbitmq.com/stomp: durable topic subscriptions",
    ),
    CapabilityGap(
        "no_local",
        "SUBSCRIBE with no-local:true -> MESSAGE of the same connection.",
        "rabbitmq.com/stomp: no such header",
    ),
    CapabilityGap(
        "temporary",
        "SEND with reply-to:/temp-queue/x creates a queue with automatic acknowledgement. SEND to"
        " it after its connection has ended -> RECEIPT, and the message is lost.",
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
