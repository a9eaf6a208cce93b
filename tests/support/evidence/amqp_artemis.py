"""The observed evidence of what Apache Artemis lacks over AMQP 1.0."""

from tests.support.evidence import CapabilityGap
from tests.support.evidence.amqp import LINK_OUTLIVES_CONSUMER, protocol_gaps

__all__ = ["GAPS"]


GAPS = (
    CapabilityGap(
        "counts_lost",
        "Messages of a broken connection are redelivered with delivery-count=0 as a rule, and now and then with 1.",
        "Artemis' manual, undelivered messages: the count is kept for rolled-back messages, not for delivered ones",
    ),
    CapabilityGap(
        "browse_counts",
        "A browser gets transfer with the delivery-count that the last consumer got: still 0 after one delivery.",
        "Artemis' manual does not mention the counts that browsers get (2.56)",
    ),
    CapabilityGap(
        "volatile_reuse",
        "detach of the last link of a shared subscription -> detach; attach by the same name at once -> attach, but"
        " nothing comes: the queue behind it is removed later, under the new link.",
        "Artemis' manual, address model: protocols make and remove such queues; it does not say when (2.56)",
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
        "Artemis' manual, security: permissions go by addresses and roles; it has no owners of addresses",
    ),
    CapabilityGap(
        "temporary_ends",
        "attach(target=a temporary queue that is gone) -> attach; transfer -> accepted, into a queue of that name.",
        "Artemis' manual, address settings: auto-create-queues, which is the default",
    ),
    CapabilityGap(
        "groups_apart",
        "While a consumer without credit has the group of the first message, flow(link-credit=1) of another gets"
        " nothing, of whatever group.",
        "Artemis' manual, message grouping: messages of a group at the head hold up those behind them",
    ),
    *protocol_gaps(
        delays="Artemis' manual, undelivered messages: redelivery-delay is a setting of addresses",
        settings="Artemis' manual, address settings: by its configuration or its management",
    ),
)
