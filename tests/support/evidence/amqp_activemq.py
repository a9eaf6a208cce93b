"""The observed evidence of what ActiveMQ Classic lacks over AMQP 1.0."""

from tests.support.evidence import CapabilityGap
from tests.support.evidence.amqp import LINK_OUTLIVES_CONSUMER, protocol_gaps

__all__ = ["GAPS"]


GAPS = (
    CapabilityGap(
        "give_back",
        "disposition(released) or disposition(modified, delivery-failed) -> the broker sends the message again"
        " over the same link, after the messages that it sent in between; no other consumer gets the message"
        " before detach.",
        "activemq.apache.org/amqp does not mention outcomes (6.3)",
    ),
    CapabilityGap(
        "exact_credit",
        "flow(drain=true), while the last requested message is on its way -> no answer. The broker reserves one"
        " more message for this link, until the link gives credit again or ends.",
        "activemq.apache.org/amqp, Prefetch Size and Credit: credit is honoured; it does not mention drain (6.3)",
    ),
    CapabilityGap(
        "delivery_count",
        "After modified(delivery-failed) and detach the next link gets transfer with delivery-count=0. Only"
        " messages that a broken connection held are redelivered with delivery-count=1, whether an application saw"
        " them or not.",
        "activemq.apache.org/amqp has a header.deliveryCount, and does not say when it grows (6.3)",
    ),
    CapabilityGap("browse_counts", "As delivery_count.", "The same"),
    CapabilityGap(
        "delivery_delay",
        "A transfer with x-opt-delivery-time is delayed if the broker has schedulerSupport, which is not the"
        " default. Otherwise it is delivered at once, and no answer shows which.",
        "activemq.apache.org/delay-and-schedule-message-delivery",
    ),
    CapabilityGap(
        "priority",
        "Messages are delivered in the order of the sends: queues follow priorities only with prioritizedMessages.",
        "activemq.apache.org/how-can-i-support-priority-queues",
    ),
    CapabilityGap(
        "duplicate_detection",
        "A second transfer with the same _AMQ_DUPL_ID -> disposition(accepted), and both are delivered.",
        "Artemis' manual, duplicate detection, has the property; no page of ActiveMQ mentions it (6.3)",
    ),
    CapabilityGap(
        "shared",
        "attach(source with the capabilities shared and global), twice -> attach, attach; each gets every message.",
        "activemq.apache.org/components/classic/documentation/jms2: shared topic consumers are not implemented"
        " (AMQ-8323)",
    ),
    CapabilityGap("volatile_reuse", "As shared.", "The same"),
    CapabilityGap("subscription_kinds", "As shared.", "The same"),
    CapabilityGap(
        *LINK_OUTLIVES_CONSUMER,
        "activemq.apache.org/virtual-destinations: one consumer for a client id and a name at any time",
    ),
    CapabilityGap(
        "durable_no_local",
        "attach(durable=2, no-local-filter), detach; another connection with the client id sends -> the"
        " subscription gets the message.",
        "activemq.apache.org/destination-options has noLocal, and does not mention durable subscriptions (6.3)",
    ),
    CapabilityGap(
        "admin",
        "transfer to ActiveMQ.Statistics.Broker with reply-to -> accepted, and no answer: the broker treats it as"
        " an ordinary queue.",
        "activemq.apache.org/statisticsplugin: only with statisticsBrokerPlugin, which is not the default",
    ),
    CapabilityGap("counts_held", "As admin.", "The same"),
    CapabilityGap("lists_destinations", "As admin.", "The same"),
    CapabilityGap("creates_queues", "As admin.", "The same"),
    CapabilityGap("counts_consumers", "As admin.", "The same"),
    CapabilityGap("counts_traffic", "As admin.", "The same"),
    *protocol_gaps(
        delays="activemq.apache.org, redelivery policy: a feature of the client library, or of a plug-in of the broker",
        settings="activemq.apache.org, per destination policies: in the broker's configuration",
    ),
)
