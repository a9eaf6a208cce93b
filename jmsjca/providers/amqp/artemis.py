"""What Apache Artemis can do over AMQP 1.0, and what it did where it cannot."""

from jmsjca.providers.amqp.artemis_admin import ADDRESS
from jmsjca.providers.amqp.broker import AMQPBroker
from jmsjca.providers.amqp.gaps import ENDS_LATE, EVERYWHERE
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
            "ServerConsumerImpl.close(failed): counts depend on how the broker hears of the break (2.56)",
        ),
        Gap(
            "browse_counts",
            "A browser gets transfer with the delivery-count that the last consumer got: still 0 after one delivery.",
            "ServerConsumerImpl.handle counts where it delivers, not where it browses; AMQP tells one less (2.56)",
        ),
        Gap(
            "volatile_reuse",
            "detach of the last link of a shared subscription -> detach; attach by the same name at once -> attach, but"
            " nothing comes: the queue behind it is removed later, under the new link.",
            "TransientQueueManagerImpl: destroyQueue on another thread, whoever consumes by then (2.56)",
        ),
        Gap(
            "subscription_kinds",
            "attach(shared, durable=2, name=s), detach, attach(durable=2, name=s) -> attach, to the same queue.",
            "AmqpSupport.createQueueName: client id and name for both (2.56)",
        ),
        Gap(*ENDS_LATE, "DefaultSenderController: AMQ229200, maximum consumer limit (2.56)"),
        Gap(
            "temporary_guarded",
            "attach(source=the name of another connection's temporary queue) -> attach, and its messages.",
            "DefaultSenderController asks for a queue of that name and not whose it is (2.56)",
        ),
        Gap(
            "temporary_ends",
            "attach(target=a temporary queue that is gone) -> attach; transfer -> accepted, into a queue of that name.",
            "Artemis manual, address settings: auto-create-queues, which is the default",
        ),
        Gap(
            "groups_apart",
            "While a consumer without credit has the group of the first message, flow(link-credit=1) of another gets"
            " nothing, of whatever group.",
            "QueueImpl.deliver: a busy consumer of a group ends the round (2.56)",
        ),
        *EVERYWHERE,
    ),
)

ARTEMIS = AMQPBroker(
    "apache-activemq-artemis",
    "capability",
    _DATA,
    ids_first=True,
    filter_of=as_filter,
    in_use=("AMQ229200", "AMQ229082"),
    unrelayed=(ADDRESS,),
    offers={
        "client_ids": "sole-connection-for-container",
        "delivery_delay": "DELAYED_DELIVERY",
        "shared": "SHARED-SUBS",
    },
)
