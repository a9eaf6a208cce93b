"""What Apache Artemis can do over AMQP 1.0, and what it did where it cannot."""

from jmsjca.providers.amqp.artemis_admin import ADDRESS
from jmsjca.providers.amqp.broker import AMQPBroker
from jmsjca.providers.amqp.gaps import ENDS_LATE, everywhere
from jmsjca.providers.artemis import as_filter
from jmsjca.providers.evidence import Broker, Gap
from jmsjca.spi import Capabilities

__all__ = ["ARTEMIS"]


_DATA = Broker(
    "Apache Artemis",
    "AMQP",
    "2.56.0",
    Capabilities(
        transacted_receive=True,
        transacted_send=True,
        atomic=True,
        give_back="uncounted",
        exact_credit=True,
        delivery_delay=True,
        delivery_count=True,
        priority=True,
        selectors=True,
        exact_selectors=True,
        browse=True,
        durable=True,
        client_ids=True,
        duplicate_detection=True,
        checks=True,
        shared=True,
        subscription_lock=True,
        temporary=True,
        no_local=True,
        durable_no_local=True,
        groups=True,
        admin=True,
        shared_between_processes=True,
        structured=True,
    ),
    (
        Gap(
            "counts_lost",
            "What a broken connection held comes with delivery-count=0 as a rule, and now and then with 1.",
            "Artemis' manual, undelivered messages: the count is kept of what is rolled back, not of what is delivered",
        ),
        Gap(
            "browse_counts",
            "A browser gets transfer with the delivery-count that the last consumer got: still 0 after one delivery.",
            "Artemis' manual tells nothing of the counts that browsers get (2.56)",
        ),
        Gap(
            "volatile_reuse",
            "detach of the last link of a shared subscription -> detach; attach by the same name at once -> attach, but"
            " nothing comes: the queue behind it is removed later, under the new link.",
            "Artemis' manual, address model: protocols make and remove such queues; it does not tell when (2.56)",
        ),
        Gap(
            "subscription_kinds",
            "attach(shared, durable=2, name=s), detach, attach(durable=2, name=s) -> attach, to the same queue.",
            "Artemis' manual, AMQP and multicast addresses: the queue is named by the container id and the link's name",
        ),
        Gap(*ENDS_LATE, "Artemis' manual, address model: subscriptions that are not shared have a max-consumers of 1"),
        Gap(
            "temporary_guarded",
            "attach(source=the name of another connection's temporary queue) -> attach, and its messages.",
            "Artemis' manual, security: permissions go by addresses and roles; whose an address is it does not tell",
        ),
        Gap(
            "temporary_ends",
            "attach(target=a temporary queue that is gone) -> attach; transfer -> accepted, into a queue of that name.",
            "Artemis' manual, address settings: auto-create-queues, which is the default",
        ),
        Gap(
            "groups_apart",
            "While a consumer without credit has the group of the first message, flow(link-credit=1) of another gets"
            " nothing, of whatever group.",
            "Artemis' manual, message grouping: messages of a group at the head hold up those behind them",
        ),
        *everywhere(
            delays="Artemis' manual, undelivered messages: redelivery-delay is a setting of addresses",
            settings="Artemis' manual, address settings: by its configuration or its management",
        ),
    ),
)

ARTEMIS = AMQPBroker(
    "apache-activemq-artemis",
    "capability",
    _DATA,
    ids_first=True,
    filter_of=as_filter,
    in_use=("AMQ229200", "AMQ229082"),
    other_kind=("is not configured for queue support", "is not configured for topic support"),
    unrelayed=(ADDRESS,),
    offers={
        "client_ids": "sole-connection-for-container",
        "delivery_delay": "DELAYED_DELIVERY",
        "shared": "SHARED-SUBS",
    },
)
