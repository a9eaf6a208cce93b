"""The observed evidence of what RabbitMQ 4 lacks over AMQP 1.0."""

from tests.support.evidence import CapabilityGap
from tests.support.evidence.amqp import LINK_OUTLIVES_CONSUMER, protocol_gaps

__all__ = ["GAPS"]

_LIMITS = "rabbitmq.com/docs/amqp, AMQP 1.0 limitations"

GAPS = (
    CapabilityGap(
        "transacted_receive",
        "attach(target=coordinator) -> end(amqp:not-implemented, Transactions not supported)",
        f"{_LIMITS}: transactions",
    ),
    CapabilityGap("transacted_send", "As transacted_receive.", "The same"),
    CapabilityGap("atomic", "As transacted_receive.", "The same"),
    CapabilityGap(
        "delivery_delay",
        "transfer with x-opt-delivery-time is delivered at once.",
        "rabbitmq.com/docs: delays need the plug-in for delayed messages",
    ),
    CapabilityGap(
        "priority",
        "A quorum queue delivers messages with the priorities 0, 9, 5 and 4 in the order 9, 5, 0, 4: it has two"
        " levels. With queue_type=classic in the URL a queue has ten levels.",
        "rabbitmq.com/docs/quorum-queues, priorities: two, for up to 4 and from 5 on",
    ),
    CapabilityGap(
        "selectors",
        "attach(source with the filter jms-selector) -> attach with the same filter, and all messages are delivered.",
        "rabbitmq.com/docs/stream-filtering: filters are for streams; 4.1 and 4.2 added filters with expressions",
    ),
    CapabilityGap("exact_selectors", "As selectors.", "The same"),
    CapabilityGap(
        "browse",
        "attach(source with distribution-mode=copy) -> attach with the same mode, and the messages are removed"
        " from the queue.",
        "rabbitmq.com/docs/amqp does not mention distribution modes",
    ),
    CapabilityGap("browse_counts", "As browse.", "The same"),
    CapabilityGap(
        "volatile_reuse",
        "PUT of a quorum queue with auto_delete -> 400. The queue is deleted a minute after its last consumer"
        " (x-expires). A client that finds the queue without a consumer declares it again; but right after a lost"
        " connection GET still lists the old consumer.",
        "rabbitmq.com/docs/quorum-queues, feature matrix: not exclusive, and no auto-deletion",
    ),
    CapabilityGap(*LINK_OUTLIVES_CONSUMER, "AMQP 1.0, section 2.6.6: closing a link"),
    CapabilityGap(
        "client_ids",
        "open(container-id in use, desired-capabilities=[sole-connection-for-container]) -> open, for both"
        " connections.",
        "No page of RabbitMQ mentions the capability (4.0)",
    ),
    CapabilityGap(
        "duplicate_detection",
        "A second transfer with the same _AMQ_DUPL_ID -> disposition(accepted), and both are delivered.",
        "No page of RabbitMQ mentions the property, which belongs to Artemis",
    ),
    CapabilityGap(
        "no_local",
        "attach(source with the filter no-local) -> attach with the same filter, and the consumer gets its own"
        " messages.",
        "No page of RabbitMQ mentions the filter (4.0)",
    ),
    CapabilityGap("durable_no_local", "As no_local.", "The same"),
    CapabilityGap(
        "groups",
        "transfer of two messages with one group-id -> each is transferred to another consumer.",
        "No page of RabbitMQ mentions groups of queues (4.0)",
    ),
    CapabilityGap("groups_apart", "As groups.", "The same"),
    CapabilityGap(
        "counts_held",
        "GET /queues/NAME -> message_count, which counts waiting messages only, not messages that a link has received.",
        "rabbit_amqp_management, handle_http_req (4.0)",
    ),
    CapabilityGap(
        "lists_destinations",
        "GET /queues -> end(amqp:internal-error, function_clause): the management finds a queue only by its name.",
        "rabbit_amqp_management, handle_http_req (4.0)",
    ),
    CapabilityGap(
        "counts_traffic",
        "GET /queues/NAME -> message_count and consumer_count, and no counter of added or removed messages. Over"
        " HTTP, message_stats does not count messages that AMQP 1.0 clients send or receive.",
        "rabbit_amqp_management, encode_queue (4.0)",
    ),
    *protocol_gaps(
        delays="rabbitmq.com/docs/quorum-queues: a returned message is ready for redelivery at once",
        settings="rabbitmq.com/docs/policies: policies are set by rabbitmqctl or over HTTP",
    ),
)
