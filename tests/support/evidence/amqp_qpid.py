"""The observed evidence of what Qpid Broker-J lacks over AMQP 1.0."""

from tests.support.evidence import CapabilityGap
from tests.support.evidence.amqp import LINK_OUTLIVES_CONSUMER, protocol_gaps

__all__ = ["GAPS"]


GAPS = (
    CapabilityGap(
        "delivery_delay",
        "transfer with x-opt-delivery-time -> detach(amqp:precondition-failed, Not accepted by queue): only"
        " queues with holdOnPublishEnabled delay messages; this is not the default.",
        "Broker-J manual, queue attribute holdOnPublishEnabled",
    ),
    CapabilityGap(
        "priority",
        "Messages are delivered in the order of the sends: only queues of the type priority follow priorities.",
        "Broker-J manual, queue types",
    ),
    CapabilityGap(
        "exact_selectors",
        "attach(source with the filter jms-selector colour <> 'red') -> transfer, also of messages without the"
        " property colour.",
        "Broker-J's manual does not mention missing properties: = and <> treat them as a separate value (10.1)",
    ),
    CapabilityGap(
        "duplicate_detection",
        "A second transfer with the same _AMQ_DUPL_ID -> disposition(accepted), and both are delivered.",
        "Artemis' manual, duplicate detection, has the property; Broker-J's manual does not mention it (10.1)",
    ),
    CapabilityGap(
        "checks",
        "attach to a queue that an access rule protects from publishing -> attach with its target; transfer ->"
        " detach(amqp:not-allowed).",
        "Broker-J manual, access control: PUBLISH is checked for each message",
    ),
    CapabilityGap(
        *LINK_OUTLIVES_CONSUMER,
        "AMQP 1.0, section 2.6.1: `detach(amqp:link:stolen)` for the older of two links of one name",
    ),
    CapabilityGap(
        "durable_no_local",
        "attach(durable=2, no-local-filter), detach; another client sends; attach -> no message of the other client.",
        "Broker-J's manual does not mention the filter; the filter lets no message pass while the queue has no"
        " consumer (10.1)",
    ),
    CapabilityGap(
        "groups",
        "transfer of two messages with one group-id -> each is transferred to another consumer.",
        "Broker-J manual, message grouping: only queues with a messageGroupType have groups",
    ),
    CapabilityGap("groups_apart", "As groups.", "The same"),
    *protocol_gaps(
        delays="Broker-J's manual, queues: has maximum delivery attempts, and does not mention a delay between them",
        settings="Broker-J's manual, managing entities: its management sets the attributes of a queue",
    ),
)
