"""The observed evidence of what RabbitMQ lacks over AMQP 1.0."""

from tests.support.evidence import CapabilityGap
from tests.support.evidence.amqp import protocol_gaps

__all__ = ["GAPS"]

_README = "README of RabbitMQ's plugin rabbitmq_amqp1_0 (3.10)"

GAPS = (
    CapabilityGap(
        "transacted_receive",
        "attach(target=coordinator) -> end(amqp:not-implemented, Transactions not supported)",
        f"{_README}, unsupported: transactions",
    ),
    CapabilityGap("transacted_send", "As transacted_receive.", "The same"),
    CapabilityGap("atomic", "As transacted_receive.", "The same"),
    CapabilityGap(
        "give_back",
        "disposition(released) -> the message is redelivered, also to others, with first-acquirer=false, whether"
        " it was processed or not; disposition(modified) -> end(amqp:invalid-field, Unrecognised state).",
        ", unsupported: the outcome modified; first-acquirer means: not redelivered",
    ),
    CapabilityGap(
        "exact_credit",
        "flow(drain=true) -> end(amqp:internal-error, function_clause, send_drained). flow(link-credit=0) is"
        " answered before the messages that are in flight.",
        f"{_README}, does not mention drain",
    ),
    CapabilityGap(
        "delivery_count",
        "The header of a message that was released has first-acquirer=false and no delivery-count.",
        f"{_README}, message properties: delivery-count is left null",
    ),
    CapabilityGap(
        "delivery_delay",
        "transfer with x-opt-delivery-time is delivered at once.",
        "rabbitmq.com: delays need the plugin for delayed messages",
    ),
    CapabilityGap(
        "priority",
        "Messages are delivered in the order of the sends: a queue follows priorities only if it was declared"
        " with x-max-priority, which a link cannot request.",
        "rabbitmq.com/priority",
    ),
    CapabilityGap(
        "selectors",
        "attach(source with the filter jms-selector) -> attach with the same filter, and all messages are delivered.",
        f"{_README}, unsupported: filters",
    ),
    CapabilityGap("exact_selectors", "As selectors.", "The same"),
    CapabilityGap(
        "browse",
        "attach(source with distribution-mode=copy) -> attach with the same mode, and the messages are removed"
        " from the queue.",
        f"{_README}, does not mention distribution modes",
    ),
    CapabilityGap("browse_counts", "As browse.", "The same"),
    CapabilityGap(
        "durable",
        "attach(source=/topic/x, durable=2, expiry-policy=never), detach -> the broker deletes the queue of the"
        " link, so messages that are sent before the next attach are lost.",
        f"{_README}, unsupported: expiry policies other than link-detach",
    ),
    CapabilityGap(
        "client_ids",
        "open(container-id in use, desired-capabilities=[sole-connection-for-container]) -> open, for both"
        " connections.",
        "No page of RabbitMQ mentions the capability (3.10)",
    ),
    CapabilityGap(
        "duplicate_detection",
        "A second transfer with the same _AMQ_DUPL_ID -> disposition(accepted), and both are delivered.",
        ", does not mention the property, which belongs to Artemis",
    ),
    CapabilityGap(
        "shared",
        "attach(source with the capabilities shared and global), twice -> attach, attach; each gets every message.",
        f"{_README}, routing and addressing: each link to a topic consumes from its own temporary queue",
    ),
    CapabilityGap("volatile_reuse", "As shared.", "The same"),
    CapabilityGap("subscription_kinds", "As shared.", "The same"),
    CapabilityGap("subscription_lock", "As durable.", "The same"),
    CapabilityGap("ends_at_close", "As durable.", "The same"),
    CapabilityGap(
        "temporary",
        "attach(target with dynamic=true) -> end(amqp:not-implemented, Dynamic targets not supported)",
        f"{_README}, does not mention dynamic termini",
    ),
    CapabilityGap("temporary_guarded", "As temporary.", "The same"),
    CapabilityGap("temporary_ends", "As temporary.", "The same"),
    CapabilityGap(
        "no_local",
        "attach(source with the filter no-local) -> attach with the same filter, and the consumer gets its own"
        " messages.",
        f"{_README}, unsupported: filters",
    ),
    CapabilityGap("durable_no_local", "As no_local.", "The same"),
    CapabilityGap(
        "groups",
        "transfer of two messages with one group-id -> each is transferred to another consumer.",
        "No page of RabbitMQ mentions groups of queues (3.10)",
    ),
    CapabilityGap("groups_apart", "As groups.", "The same"),
    CapabilityGap(
        "admin",
        "attach(target=/management) -> end(amqp:invalid-field, unknown_destination)",
        "rabbitmq.com/management: over HTTP only (3.10)",
    ),
    CapabilityGap("counts_held", "As admin.", "The same"),
    CapabilityGap("lists_destinations", "As admin.", "The same"),
    CapabilityGap("creates_queues", "As admin.", "The same"),
    CapabilityGap("counts_consumers", "As admin.", "The same"),
    CapabilityGap("counts_traffic", "As admin.", "The same"),
    *protocol_gaps(
        delays="rabbitmq.com/nack: a requeued message is ready for redelivery at once",
        settings="rabbitmq.com/parameters: policies are set by rabbitmqctl or the HTTP API",
    ),
)
