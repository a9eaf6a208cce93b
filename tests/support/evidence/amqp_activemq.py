"""The observed evidence of what ActiveMQ Classic lacks over AMQP 1.0."""

from tests.support.evidence import CapabilityGap
from tests.support.evidence.amqp import LINK_OUTLIVES_CONSUMER, protocol_gaps

__all__ = ["GAPS"]


GAPS = (
    CapabilityGap(
        "give_back",
        "disposition(released) or disposition(modified, delivery-failed) -> the broker sends the message again over"
        " the same link, after what it sent in between; no other consumer gets it before detach.",
        "activemq.apache.org/amqp does not mention outcomes (6.3)",
    ),
    CapabilityGap(
        "exact_credit",
        "flow(drain=true) that crosses the last message asked for -> no answer; the broker chooses one message"
        " more, and keeps it for this link until its next credit or its end.",
        "activemq.apache.org/amqp, Prefetch Size and Credit: credit is honoured; it does not mention drain (6.3)",
    ),
    CapabilityGap(
        "delivery_count",
        "After modified(delivery-failed) and detach the next link gets transfer with delivery-count=0. Only what a"
        " broken connection held comes with delivery-count=1, looked at or not.",
        "activemq.apache.org/amqp has a header.deliveryCount, and does not say when it rises (6.3)",
    ),
    CapabilityGap("browse_counts", "As delivery_count.", "The same"),
    CapabilityGap(
        "delivery_delay",
        "transfer with x-opt-delivery-time is held where schedulerSupport is set, which is not the default; else it"
        " comes at once, and no answer shows which.",
        "activemq.apache.org/delay-and-schedule-message-delivery",
    ),
    CapabilityGap(
        "priority",
        "Messages come in the order of sending: queues mind priorities only with prioritizedMessages.",
        "activemq.apache.org/how-can-i-support-priority-queues",
    ),
    CapabilityGap(
        "duplicate_detection",
        "A second transfer with the same _AMQ_DUPL_ID -> disposition(accepted), and both are delivered.",
        "Artemis' manual, duplicate detection, has the property; no page of ActiveMQ's knows it (6.3)",
    ),
    CapabilityGap(
        "shared",
        "attach(source with the capabilities shared and global), twice -> attach, attach; each gets every message.",
        "activemq.apache.org/components/classic/documentation/jms2: shared topic consumers are not done (AMQ-8323)",
    ),
    CapabilityGap("volatile_reuse", "As shared.", "The same"),
    CapabilityGap("subscription_kinds", "As shared.", "The same"),
    CapabilityGap(
        *LINK_OUTLIVES_CONSUMER,
        "activemq.apache.org/virtual-destinations: one consumer for a client id and a name at any time",
    ),
    CapabilityGap(
        "durable_no_local",
        "attach(durable=2, no-local-filter), detach; another connection of the client id sends, and gets it.",
        "activemq.apache.org/destination-options has noLocal, and does not mention durable subscriptions (6.3)",
    ),
    CapabilityGap(
        "admin",
        "transfer to ActiveMQ.Statistics.Broker with reply-to -> accepted, and no answer: it is just a queue.",
        "activemq.apache.org/statisticsplugin: only with statisticsBrokerPlugin, which is not the default",
    ),
    CapabilityGap("counts_held", "As admin.", "The same"),
    CapabilityGap("lists_destinations", "As admin.", "The same"),
    CapabilityGap("creates_queues", "As admin.", "The same"),
    CapabilityGap("counts_consumers", "As admin.", "The same"),
    CapabilityGap("counts_traffic", "As admin.", "The same"),
    *protocol_gaps(
        delays="activemq.apache.org, redelivery policy: it is the client library's, or a plug-in's of the broker",
        settings="activemq.apache.org, per destination policies: in the broker's configuration",
    ),
)
