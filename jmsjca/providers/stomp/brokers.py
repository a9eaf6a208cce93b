"""What each broker can do over STOMP, and what it did where it cannot."""

from jmsjca.providers.evidence import Broker, Gap
from jmsjca.spi import Capabilities

__all__ = ["ACTIVEMQ", "ARTEMIS", "BROKERS", "RABBITMQ", "UNKNOWN"]

_NO_COUNT = Gap(
    "delivery_count",
    "MESSAGE says redelivered:true from the second delivery on, and no header counts. Delivery.count is a lower bound:"
    " 1, or 2 with that header, and one more for each rollback here.",
    "STOMP 1.2, MESSAGE: no such header",
)
_NO_DELAY = Gap(
    "redelivery_delay",
    "NACK and ABORT know no delay; a rolled-back message stays with this client, where no broker holds it.",
    "STOMP 1.2, NACK and ABORT",
)
_NO_BROWSE_COUNTS = Gap("browse_counts", "As browse.", "The same")
_NO_SHARED = Gap("shared", "SUBSCRIBE knows no shared subscription.", "STOMP 1.2, SUBSCRIBE")
_NO_ADMIN = Gap("admin", "STOMP has no frame that asks for queues or depths.", "STOMP 1.2, client frames")
_NO_TEMPORARY = Gap(
    "temporary",
    "SEND with reply-to:/temp-queue/x makes a queue whose real name the client that made it is never told.",
    "STOMP 1.2 knows none; each broker has its own extension. Not offered in this release",
)
_NO_LOCAL = Gap(
    "no_local", "Not asked for: no case of the contract suite proves it.", "Not offered over STOMP in this release"
)
_NO_CHECK = Gap(
    "checks",
    "No frame asks whether SEND would be accepted; the first SEND tells, and its ERROR may end the connection.",
    "STOMP 1.2, client frames",
)
_TEXT_IS_NUMBER = Gap(
    "exact_selectors",
    "SEND with n:2, SUBSCRIBE with the selector n = 2 -> MESSAGE: headers are text, so a text compares as the number"
    " that it holds. Artemis also knows no JMSMessageID: AMQUserID is null.",
    "activemq.apache.org/stomp: selectors; Artemis manual: convert_string_expressions",
)
_NOT_YET = tuple(
    Gap(capability, seen, "Not offered over STOMP in this release")
    for capability, seen in (
        ("subscription_lock", "Not asked for: nothing tells whether a second subscriber is refused or takes over."),
        ("client_ids", "Not asked for: a client id that is in use is not refused."),
        ("groups", "Not asked for: no case of the contract suite proves it."),
        ("structured", "Not sent: only text, bytes and plain messages are encoded and decoded."),
        ("configurable", "The protocol has no frame that changes what a destination does; its operator does that."),
    )
)
_EVERYWHERE = (
    _NO_CHECK,
    _NO_COUNT,
    _NO_BROWSE_COUNTS,
    _NO_DELAY,
    _NO_SHARED,
    _NO_ADMIN,
    _NO_TEMPORARY,
    _NO_LOCAL,
    *_NOT_YET,
)

ACTIVEMQ = Broker(
    "ActiveMQ",
    "STOMP",
    "6.3.1",
    Capabilities(
        transacted_receive=True,
        transacted_send=True,
        atomic=True,
        give_back="local",
        counts_lost=True,
        selectors=True,
        durable=True,
        shared_between_processes=True,
    ),
    (
        Gap(
            "give_back",
            "NACK -> RECEIPT, and the message is gone to the dead-letter queue. BEGIN, ACK, ABORT -> RECEIPT, and it is"
            " not sent again as long as its subscription lives. UNSUBSCRIBE -> RECEIPT: all that was unsettled goes to"
            " others, in order, redelivered:true; an ACK after it gets its RECEIPT and settles nothing.",
            "StompSubscription.onStompMessageNack: POISON_ACK_TYPE (6.3)",
        ),
        Gap(
            "exact_credit",
            "activemq.prefetchSize:1 sends one message before anybody asks, and the next one at each ACK;"
            " activemq.prefetchSize:0 sends none at all: there is no frame that pulls.",
            "activemq.apache.org/stomp: prefetchSize; ProtocolConverter.onStompSubscribe (6.3)",
        ),
        Gap(
            "delivery_delay",
            "AMQ_SCHEDULED_DELAY holds a message where schedulerSupport is set, which is not the default; else it comes"
            " at once, and nothing tells which.",
            "activemq.apache.org/delay-and-schedule-message-delivery",
        ),
        Gap(
            "priority",
            "Messages come in the order of sending: queues mind priorities only with prioritizedMessages.",
            "activemq.apache.org/how-can-i-support-priority-queues",
        ),
        Gap(
            "browse",
            "SUBSCRIBE with browser:true also shows what a consumer holds: with a, b, c queued and a held, MESSAGE a,"
            " b, c and then browser:end.",
            "StompQueueBrowserSubscription and Queue.iterate (6.3)",
        ),
        Gap(
            "duplicate_detection",
            "A second SEND with the same _AMQ_DUPL_ID is delivered like the first.",
            "The property is Artemis'; ActiveMQ audits only its own producer ids",
        ),
        _TEXT_IS_NUMBER,
        *_EVERYWHERE,
    ),
)
ARTEMIS = Broker(
    "ActiveMQ-Artemis",
    "STOMP",
    "2.56.0",
    Capabilities(
        transacted_send=True,
        give_back="local",
        counts_lost=True,
        selectors=True,
        delivery_delay=True,
        priority=True,
        durable=True,
        duplicate_detection=True,
        shared_between_processes=True,
    ),
    (
        Gap(
            "transacted_receive",
            "BEGIN, ACK with a transaction, ABORT -> RECEIPT, and the message is acknowledged all the same.",
            "StompFrameHandlerV12.onAck: stompTXAckNorSupported (2.44); manual: transactional acknowledgements are not"
            " supported",
        ),
        Gap(
            "atomic",
            "As transacted_receive: an ACK is no part of the transaction that it names.",
            "StompFrameHandlerV12.onAck (2.44)",
        ),
        Gap(
            "give_back",
            "NACK -> RECEIPT, and the message is gone: it is handled as an ACK. UNSUBSCRIBE gives all that was"
            " unsettled to others, in order, redelivered:false; an ACK after it -> ERROR AMQ339018, and the"
            " connection closes.",
            "StompFrameHandlerV11.onNack (2.44)",
        ),
        Gap(
            "exact_credit",
            "consumer-window-size counts bytes, and 0 sends one message before anybody asks.",
            "StompSession.addSubscription: receiveCredits(1) (2.44)",
        ),
        Gap(
            "browse",
            "SUBSCRIBE knows no browser; StompSession makes every consumer with browseOnly=false.",
            "StompSession.addSubscription (2.44)",
        ),
        _TEXT_IS_NUMBER,
        *_EVERYWHERE,
    ),
)
RABBITMQ = Broker(
    "RabbitMQ",
    "STOMP",
    "3.10.8",
    Capabilities(give_back="local", counts_lost=True, durable=True, shared_between_processes=True),
    (
        Gap(
            "transacted_receive",
            "COMMIT carries the noted frames out one by one; an ERROR among them stops none of the others.",
            "rabbit_stomp_processor:commit_transaction (3.10)",
        ),
        Gap(
            "transacted_send",
            "As transacted_receive. The RECEIPT of COMMIT comes before messages are safe; those of the SENDs do not.",
            "rabbit_stomp_processor:commit_transaction and do_receipt (3.10)",
        ),
        Gap(
            "atomic",
            "As transacted_receive.",
            "rabbit_stomp_processor:commit_transaction (3.10)",
        ),
        Gap(
            "give_back",
            "NACK puts a message back in its place, and the broker sends it to the same subscription again at once,"
            " redelivered:true: given back it would come as if it had been tried. UNSUBSCRIBE gives nothing back; an"
            " ACK after it -> ERROR Subscription not found.",
            "rabbit_stomp_processor:ack_action (3.10)",
        ),
        Gap(
            "exact_credit",
            "prefetch-count:1 sends one message before anybody asks; 0 means without limit.",
            "rabbitmq.com/stomp: prefetch-count",
        ),
        Gap(
            "delivery_delay",
            "SEND has no header for it; a plug-in adds an exchange that can.",
            "rabbitmq.com/stomp: SEND headers",
        ),
        Gap(
            "priority",
            "Messages come in the order of sending: a queue minds priorities only if whoever declares it first says"
            " x-max-priority, and all others must then say the same.",
            "rabbitmq.com/priority",
        ),
        Gap("selectors", "SUBSCRIBE with a selector delivers everything.", "rabbitmq.com/stomp: no such header"),
        Gap("exact_selectors", "As selectors.", "The same"),
        Gap("browse", "SUBSCRIBE knows no browser.", "rabbitmq.com/stomp: no such header"),
        Gap(
            "duplicate_detection",
            "A second SEND with the same _AMQ_DUPL_ID is delivered like the first.",
            "The property is Artemis'",
        ),
        *_EVERYWHERE,
    ),
)
UNKNOWN = Broker("an unknown broker", "STOMP", "", Capabilities(give_back="local", shared_between_processes=True))

BROKERS = (ACTIVEMQ, ARTEMIS, RABBITMQ)
