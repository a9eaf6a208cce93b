"""The gaps of Open MQ over STOMP."""

from tests.support.evidence import CapabilityGap
from tests.support.evidence.stomp import EVERYWHERE, NO_TEMPORARY

__all__ = ["GAPS"]

GAPS = (
    CapabilityGap(
        "transacted_receive",
        "ACK with a transaction, of a message of a SUBSCRIBE without one -> ERROR BSS4031. A subscription with a"
        " transaction in its SUBSCRIBE gets messages only while a transaction is open, and an ACK settles all messages"
        " up to its own.",
        "StompTransactedSession.ack and .run (6.5.1, 6.7.0)",
    ),
    CapabilityGap("atomic", "As transacted_receive.", "The same"),
    CapabilityGap(
        "give_back",
        "NACK -> ERROR BSS4038, and the connection closes. UNSUBSCRIBE -> RECEIPT, and all unsettled messages go"
        " to other consumers, in order, with redelivered:true; a later ACK -> ERROR BSS4021.",
        "StompMessageDispatchFilter.handleRead; StompConnectionImpl.ack: not implemented (6.5.1)",
    ),
    CapabilityGap(
        "exact_credit",
        "SUBSCRIBE to a queue of 20,000 messages -> all 20,000 messages, before one is acknowledged: SUBSCRIBE"
        " has no header for a window, and the bridge's consumerFlowLimit does not count messages that wait for an"
        " ACK.",
        "StompSubscriberSession.onMessage (6.5.1)",
    ),
    CapabilityGap(
        "counts_lost",
        "Two messages, ACK of the second one in the mode client-individual, and the connection is cut -> the"
        " first one is redelivered with redelivered:false. In the mode client it is redelivered with"
        " redelivered:true.",
        "JMS 3.1, section 3.4.7, requires another behaviour",
    ),
    CapabilityGap(
        "delivery_count",
        "MESSAGE has JMSXDeliveryCount, but messages as described for counts_lost are redelivered with 1."
        " Delivery.count is a lower bound: 1, or 2 with redelivered:true, plus 1 for each rollback of this consumer.",
        "As counts_lost",
    ),
    CapabilityGap("delivery_delay", "SEND has no header for it.", "StompFrameMessage.SendHeader (6.5.1)"),
    CapabilityGap(
        "selectors",
        "SEND with n:2, SUBSCRIBE with the selector n = 2 -> nothing: all headers become text properties, and text is"
        " not a number unless the broker has imq.selector.convertTypes, which its documentation does not mention.",
        "StompSenderSession.setProperty; Selector.java: convertTypes (6.5.1)",
    ),
    CapabilityGap("exact_selectors", "As selectors.", "The same"),
    CapabilityGap("browse", "SUBSCRIBE has no header for browsing.", "StompFrameMessage.SubscribeHeader (6.5.1)"),
    CapabilityGap(
        "duplicate_detection",
        "A second SEND with the same _AMQ_DUPL_ID is delivered like the first.",
        "The property belongs to Artemis",
    ),
    CapabilityGap(
        "shared",
        "SUBSCRIBE with the durable-subscriber-name of another consumer -> ERROR B4095, already active.",
        "StompSubscriberSession.createSubscriber: createDurableSubscriber (6.5.1)",
    ),
    CapabilityGap(
        "temporary",
        "SEND with reply-to:/temp-queue/x creates a temporary queue, and writes its name into the delivered"
        " message. Over any other connection, SEND to that name -> ERROR TemporaryQueue not found.",
        "StompProtocolHandler.getMQTempStompDestination (6.5.1)",
    ),
    *NO_TEMPORARY,
    CapabilityGap(
        "groups",
        "Messages of one JMSXGroupID go to two subscriptions in turn.",
        "Nothing in its source reads the property (6.5.1)",
    ),
    *(gap for gap in EVERYWHERE if gap.capability != "delivery_count"),
)
