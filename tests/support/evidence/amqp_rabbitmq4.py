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
        "Of messages of the priorities 0, 9, 5 and 4 a quorum queue delivers 9, 5, 0, 4: it has two levels. With"
        " queue_type=classic in the URL all ten are kept.",
        "rabbitmq.com/docs/quorum-queues, priorities: two, for up to 4 and from 5 on",
    ),
    CapabilityGap(
        "selectors",
        "attach(source with the filter jms-selector) -> attach with the same filter, and everything comes.",
        "rabbitmq.com/docs/stream-filtering: filters are for streams, and those with expressions came in 4.1 and 4.2",
    ),
    CapabilityGap("exact_selectors", "As selectors.", "The same"),
    CapabilityGap(
        "browse",
        "attach(source with distribution-mode=copy) -> attach with the same mode, and messages are taken.",
        "rabbitmq.com/docs/amqp does not mention distribution modes",
    ),
    CapabilityGap("browse_counts", "As browse.", "The same"),
    CapabilityGap(
        "volatile_reuse",
        "PUT of a quorum queue with auto_delete -> 400. The queue goes a minute after its last consumer (x-expires);"
        " a client that finds none declares it again, but right after a lost connection GET still lists its consumer.",
        "rabbitmq.com/docs/quorum-queues, feature matrix: not exclusive, and no auto-deletion",
    ),
    CapabilityGap(*LINK_OUTLIVES_CONSUMER, "AMQP 1.0, section 2.6.6: closing a link"),
    CapabilityGap(
        "client_ids",
        "open(container-id in use, desired-capabilities=[sole-connection-for-container]) -> open, for both.",
        "No page of RabbitMQ's knows the capability (4.0)",
    ),
    CapabilityGap(
        "duplicate_detection",
        "A second transfer with the same _AMQ_DUPL_ID -> disposition(accepted), and both are delivered.",
        "No page of RabbitMQ's knows the property, which is Artemis'",
    ),
    CapabilityGap(
        "no_local",
        "attach(source with the filter no-local) -> attach with the same filter, and own messages come.",
        "No page of RabbitMQ's knows the filter (4.0)",
    ),
    CapabilityGap("durable_no_local", "As no_local.", "The same"),
    CapabilityGap(
        "groups",
        "transfer of two messages with one group-id -> transfer, each to another consumer.",
        "No page of RabbitMQ's knows groups of queues (4.0)",
    ),
    CapabilityGap("groups_apart", "As groups.", "The same"),
    CapabilityGap(
        "counts_held",
        "GET /queues/NAME -> message_count, of those that wait: one that a link has got is not among them.",
        "rabbit_amqp_management, handle_http_req (4.0)",
    ),
    CapabilityGap(
        "lists_destinations",
        "GET /queues -> end(amqp:internal-error, function_clause): the node knows queues by their names alone.",
        "rabbit_amqp_management, handle_http_req (4.0)",
    ),
    CapabilityGap(
        "counts_traffic",
        "GET /queues/NAME -> message_count and consumer_count, and no counter of what came and went. Over HTTP, "
        "message_stats counts nothing that AMQP 1.0 clients send or receive.",
        "rabbit_amqp_management, encode_queue (4.0)",
    ),
    *protocol_gaps(
        delays="rabbitmq.com/docs/quorum-queues: what is returned is ready for redelivery at once",
        settings="rabbitmq.com/docs/policies: policies are set by rabbitmqctl or over HTTP",
    ),
)
