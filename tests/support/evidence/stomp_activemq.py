"""The gaps of ActiveMQ Classic over STOMP."""

from tests.support.evidence import CapabilityGap
from tests.support.evidence.stomp import EVERYWHERE, GROUPS_WAIT, TEXT_IS_NUMBER

__all__ = ["GAPS"]

GAPS = (
    CapabilityGap(
        "give_back",
        "NACK -> RECEIPT, and the message is gone to the dead-letter queue. BEGIN, ACK, ABORT -> RECEIPT, and it is"
        " not sent again as long as its subscription lives. UNSUBSCRIBE -> RECEIPT: all that was unsettled goes to"
        " others, in order, redelivered:true; an ACK after it gets its RECEIPT and settles nothing.",
        "StompSubscription.onStompMessageNack: POISON_ACK_TYPE (6.3)",
    ),
    CapabilityGap(
        "exact_credit",
        "activemq.prefetchSize:1 sends one message before the client asks, and the next one at each ACK;"
        " activemq.prefetchSize:0 sends none at all: there is no frame that pulls.",
        "activemq.apache.org/stomp: prefetchSize; ProtocolConverter.onStompSubscribe (6.3)",
    ),
    CapabilityGap(
        "delivery_delay",
        "AMQ_SCHEDULED_DELAY holds a message where schedulerSupport is set, which is not the default; else it comes"
        " at once, and no answer shows which.",
        "activemq.apache.org/delay-and-schedule-message-delivery",
    ),
    CapabilityGap(
        "priority",
        "Messages come in the order of sending: queues mind priorities only with prioritizedMessages.",
        "activemq.apache.org/how-can-i-support-priority-queues",
    ),
    CapabilityGap(
        "browse",
        "SUBSCRIBE with browser:true -> 400 of 401 messages, and then `browser:end`: a page, and nothing asks for the"
        " next one. It also shows what a consumer holds.",
        "activemq.apache.org/per-destination-policies: maxBrowsePageSize",
    ),
    CapabilityGap(
        "duplicate_detection",
        "A second SEND with the same _AMQ_DUPL_ID is delivered like the first.",
        "The property is Artemis'; ActiveMQ audits only its own producer ids",
    ),
    CapabilityGap(
        "shared",
        "SUBSCRIBE with the activemq.subscriptionName of another consumer -> ERROR Durable consumer is in use.",
        "TopicRegion.addConsumer (6.3)",
    ),
    CapabilityGap(
        "durable_no_local",
        "activemq.noLocal:true spares a consumer its own connection's messages, but what its client sends to its"
        " durable subscription without a consumer is added to that.",
        "JMS 3.1, section 8.3.3, wants it otherwise",
    ),
    CapabilityGap(
        "temporary_guarded",
        "SUBSCRIBE /queue/ID:… with the name of another connection's temporary queue -> RECEIPT: it is a queue of its"
        " own with that name. SUBSCRIBE /remote-temp-queue/ID:… -> ERROR.",
        "activemq.apache.org/stomp: temp destinations",
    ),
    CapabilityGap(
        "temporary_ends",
        "SEND to one of an ended connection -> ERROR. But no frame deletes one before that: what others send to a"
        " deleted one is confirmed, and goes with the connection.",
        "activemq.apache.org/stomp: temp destinations",
    ),
    GROUPS_WAIT,
    TEXT_IS_NUMBER,
    *EVERYWHERE,
)
