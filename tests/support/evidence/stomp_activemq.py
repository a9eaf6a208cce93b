"""The gaps of ActiveMQ Classic over STOMP."""

from tests.support.evidence import CapabilityGap
from tests.support.evidence.stomp import EVERYWHERE, GROUPS_WAIT, TEXT_IS_NUMBER

__all__ = ["GAPS"]

GAPS = (
    CapabilityGap(
        "give_back",
        "NACK -> RECEIPT, and the broker moves the message to the dead-letter queue. BEGIN, ACK, ABORT ->"
        " RECEIPT, and the message is not delivered again while its subscription exists. UNSUBSCRIBE -> RECEIPT,"
        " and all unsettled messages go to other consumers, in order, with redelivered:true; a later ACK gets a"
        " RECEIPT and settles nothing.",
        "StompSubscription.onStompMessageNack: POISON_ACK_TYPE (6.3)",
    ),
    CapabilityGap(
        "exact_credit",
        "With activemq.prefetchSize:1 the broker sends one message before the client asks, and the next one after"
        " each ACK. With activemq.prefetchSize:0 it sends no message, because no frame requests one.",
        "activemq.apache.org/stomp: prefetchSize; ProtocolConverter.onStompSubscribe (6.3)",
    ),
    CapabilityGap(
        "delivery_delay",
        "AMQ_SCHEDULED_DELAY delays a message if the broker has schedulerSupport, which is not the default."
        " Otherwise the message is delivered at once, and no answer shows which.",
        "activemq.apache.org/delay-and-schedule-message-delivery",
    ),
    CapabilityGap(
        "priority",
        "Messages are delivered in the order of the sends: queues follow priorities only with prioritizedMessages.",
        "activemq.apache.org/how-can-i-support-priority-queues",
    ),
    CapabilityGap(
        "browse",
        "SUBSCRIBE with browser:true -> 400 of 401 messages, and then `browser:end`: one page, and no frame"
        " requests the next one. It also shows messages that a consumer holds.",
        "activemq.apache.org/per-destination-policies: maxBrowsePageSize",
    ),
    CapabilityGap(
        "duplicate_detection",
        "A second SEND with the same _AMQ_DUPL_ID is delivered like the first.",
        "The property belongs to Artemis; ActiveMQ recognises only its own producer ids",
    ),
    CapabilityGap(
        "shared",
        "SUBSCRIBE with the activemq.subscriptionName of another consumer -> ERROR Durable consumer is in use.",
        "TopicRegion.addConsumer (6.3)",
    ),
    CapabilityGap(
        "durable_no_local",
        "With activemq.noLocal:true a consumer does not get messages of the same connection. But messages that its"
        " client sends while the durable subscription has no consumer are added to the subscription.",
        "JMS 3.1, section 8.3.3, requires another behaviour",
    ),
    CapabilityGap(
        "temporary_guarded",
        "SUBSCRIBE /queue/ID:… with the name of another connection's temporary queue -> RECEIPT: the broker uses"
        " another queue with that name. SUBSCRIBE /remote-temp-queue/ID:… -> ERROR.",
        "activemq.apache.org/stomp: temp destinations",
    ),
    CapabilityGap(
        "temporary_ends",
        "SEND to a temporary queue of an ended connection -> ERROR. But no frame deletes a temporary queue"
        " earlier: a message that is sent to a deleted one is confirmed, and is lost with the connection.",
        "activemq.apache.org/stomp: temp destinations",
    ),
    GROUPS_WAIT,
    TEXT_IS_NUMBER,
    *EVERYWHERE,
)
