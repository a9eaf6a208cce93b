"""The gaps of Apache Artemis over STOMP."""

from tests.support.evidence import CapabilityGap
from tests.support.evidence.stomp import EVERYWHERE, GROUPS_WAIT, NO_LOCAL, NO_TEMPORARY, TEXT_IS_NUMBER, TWO_CLIENTS

__all__ = ["GAPS"]

GAPS = (
    CapabilityGap(
        "transacted_receive",
        "BEGIN, ACK with a transaction, ABORT -> RECEIPT, and the message is acknowledged although the"
        " transaction was aborted.",
        "StompFrameHandlerV12.onAck: stompTXAckNorSupported (2.44); manual: transactional acknowledgements are not"
        " supported",
    ),
    CapabilityGap(
        "atomic",
        "As transacted_receive: an ACK is not part of the transaction that it names.",
        "StompFrameHandlerV12.onAck (2.44)",
    ),
    CapabilityGap(
        "give_back",
        "NACK -> RECEIPT, and the broker handles it like an ACK: the message is deleted. UNSUBSCRIBE -> all"
        " unsettled messages go to other consumers, in order, with redelivered:false; a later ACK -> ERROR"
        " AMQ339018, and the connection is closed.",
        "StompFrameHandlerV11.onNack (2.44)",
    ),
    CapabilityGap(
        "exact_credit",
        "consumer-window-size counts bytes. With 0 the broker sends one message before the client asks.",
        "StompSession.addSubscription: receiveCredits(1) (2.44)",
    ),
    CapabilityGap(
        "browse",
        "SUBSCRIBE has no header for browsing; StompSession creates each consumer with browseOnly=false.",
        "StompSession.addSubscription (2.44)",
    ),
    CapabilityGap(
        "shared",
        "SUBSCRIBE with a durable-subscription-name that is in use -> RECEIPT, and each consumer gets a part of"
        " the messages. But without a client-id -> ERROR, and no subscription ends with its last consumer.",
        "Artemis manual: durable subscriptions over STOMP",
    ),
    CapabilityGap(
        "subscription_lock",
        "SUBSCRIBE to a durable subscription that has a consumer -> RECEIPT, and each consumer gets a part of the"
        " messages. jmsjca refuses a second consumer of one connection.",
        "Artemis manual: durable subscriptions over STOMP",
    ),
    CapabilityGap(
        "no_local",
        "With no-local:true a consumer still gets a message that its own connection sent in a transaction.",
        "Artemis manual: no-local; it does not mention transactions",
    ),
    CapabilityGap(
        "temporary",
        "SUBSCRIBE /temp-queue/x -> RECEIPT, over two connections: the address is an ordinary one, and stays.",
        "Artemis manual: STOMP; no such prefix",
    ),
    TWO_CLIENTS,
    NO_LOCAL,
    *NO_TEMPORARY,
    GROUPS_WAIT,
    TEXT_IS_NUMBER,
    *EVERYWHERE,
)
