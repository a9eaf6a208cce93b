"""The gaps of Apache Artemis over STOMP."""

from tests.support.evidence import CapabilityGap
from tests.support.evidence.stomp import EVERYWHERE, GROUPS_WAIT, NO_LOCAL, NO_TEMPORARY, TEXT_IS_NUMBER, TWO_CLIENTS

__all__ = ["GAPS"]

GAPS = (
    CapabilityGap(
        "transacted_receive",
        "BEGIN, ACK with a transaction, ABORT -> RECEIPT, and the message is acknowledged all the same.",
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
        "NACK -> RECEIPT, and the message is gone: it is handled as an ACK. UNSUBSCRIBE gives all that was"
        " unsettled to others, in order, redelivered:false; an ACK after it -> ERROR AMQ339018, and the"
        " connection closes.",
        "StompFrameHandlerV11.onNack (2.44)",
    ),
    CapabilityGap(
        "exact_credit",
        "consumer-window-size counts bytes, and 0 sends one message before the client asks.",
        "StompSession.addSubscription: receiveCredits(1) (2.44)",
    ),
    CapabilityGap(
        "browse",
        "SUBSCRIBE knows no browser; StompSession makes every consumer with browseOnly=false.",
        "StompSession.addSubscription (2.44)",
    ),
    CapabilityGap(
        "shared",
        "SUBSCRIBE with a durable-subscription-name that is in use -> RECEIPT, and both get parts; but without a"
        " client-id -> ERROR, and no kind of subscription ends with its last consumer.",
        "Artemis manual: durable subscriptions over STOMP",
    ),
    CapabilityGap(
        "subscription_lock",
        "SUBSCRIBE to a durable subscription that has a consumer -> RECEIPT, and each gets a part. Over one"
        " connection the second is refused here.",
        "Artemis manual: durable subscriptions over STOMP",
    ),
    CapabilityGap(
        "no_local",
        "With no-local:true a message comes all the same if its own connection sent it in a transaction.",
        "Artemis manual: no-local, without a word on transactions",
    ),
    CapabilityGap(
        "temporary",
        "SUBSCRIBE /temp-queue/x -> RECEIPT, over two connections: it is an address like any other, and stays.",
        "Artemis manual: STOMP; no such prefix",
    ),
    TWO_CLIENTS,
    NO_LOCAL,
    *NO_TEMPORARY,
    GROUPS_WAIT,
    TEXT_IS_NUMBER,
    *EVERYWHERE,
)
