"""The observed evidence of what Apache Artemis lacks over AMQP 1.0."""

from tests.support.evidence import CapabilityGap
from tests.support.evidence.amqp import LINK_OUTLIVES_CONSUMER, protocol_gaps

__all__ = ["GAPS"]


GAPS = (
    CapabilityGap(
        "counts_lost",
        "Messages of a broken connection are usually redelivered with delivery-count=0, sometimes with 1.",
        "Artemis' manual, undelivered messages: the count is kept for rolled-back messages, not for delivered ones",
    ),
    CapabilityGap(
        "browse_counts",
        "A browser gets transfer with the delivery-count that the last consumer got: still 0 after one delivery.",
        "Artemis' manual does not mention the counts that browsers get (2.56)",
    ),
    CapabilityGap(
        "volatile_reuse",
        "detach of the last link of a shared subscription -> detach; an attach with the same name right after"
        " that -> attach, but no messages: the broker removes the queue of the subscription later, although the"
        " new link uses it.",
        "Artemis' manual, address model: protocols create and remove such queues; it does not say when (2.56)",
    ),
    CapabilityGap(
        "subscription_kinds",
        "attach(shared, durable=2, name=s), detach, attach(durable=2, name=s) -> attach, to the same queue.",
        "Artemis' manual, AMQP and multicast addresses: the queue is named by the container id and the link's name",
    ),
    CapabilityGap(
        *LINK_OUTLIVES_CONSUMER,
        "Artemis' manual, address model: subscriptions that are not shared have a max-consumers of 1",
    ),
    CapabilityGap(
        "temporary_guarded",
        "attach(source=the name of another connection's temporary queue) -> attach, and its messages.",
        "Artemis' manual, security: permissions are set for addresses and roles; an address has no owner",
    ),
    CapabilityGap(
        "temporary_ends",
        "attach(target=a deleted temporary queue) -> attach; transfer -> accepted, into a new queue of that name.",
        "Artemis' manual, address settings: auto-create-queues, which is the default",
    ),
    CapabilityGap(
        "groups_apart",
        "While a consumer without credit has the group of the first message, another consumer with"
        " flow(link-credit=1) gets no message of any group.",
        "Artemis' manual, message grouping: messages of a group at the head of the queue block later messages",
    ),
    *protocol_gaps(
        delays="Artemis' manual, undelivered messages: redelivery-delay is a setting of addresses",
        settings="Artemis' manual, address settings: by its configuration or its management",
    ),
)
