"""What Qpid Broker-J can do over AMQP 1.0, and what it did where it cannot."""

from jmsjca.providers.amqp.broker import AMQPBroker
from jmsjca.providers.amqp.gaps import ENDS_LATE, everywhere
from jmsjca.providers.evidence import Broker, Gap
from jmsjca.spi import Capabilities

__all__ = ["QPID"]

_DATA = Broker(
    "Apache Qpid Broker-J",
    "AMQP",
    "10.1.0",
    Capabilities(
        transacted_receive=True,
        transacted_send=True,
        atomic=True,
        give_back="uncounted",
        exact_credit=True,
        delivery_count=True,
        counts_lost=True,
        selectors=True,
        browse=True,
        browse_counts=True,
        durable=True,
        client_ids=True,
        shared=True,
        volatile_reuse=True,
        subscription_lock=True,
        subscription_kinds=True,
        temporary=True,
        temporary_guarded=True,
        temporary_ends=True,
        no_local=True,
        admin=True,
        shared_between_processes=True,
        structured=True,
    ),
    (
        Gap(
            "delivery_delay",
            "transfer with x-opt-delivery-time -> detach(amqp:precondition-failed, Not accepted by queue): only queues"
            " with holdOnPublishEnabled hold messages, and that is not the default.",
            "Broker-J manual, queue attribute holdOnPublishEnabled",
        ),
        Gap(
            "priority",
            "Messages come in the order of sending: only queues of the type priority mind priorities.",
            "Broker-J manual, queue types",
        ),
        Gap(
            "exact_selectors",
            "attach(source with the filter jms-selector colour <> 'red') -> transfer of messages that have no colour,"
            " too.",
            "Broker-J's manual tells nothing of missing properties: to = and <> they are a value of their own (10.1)",
        ),
        Gap(
            "duplicate_detection",
            "A second transfer with the same _AMQ_DUPL_ID -> disposition(accepted), and both are delivered.",
            "Artemis' manual, duplicate detection, has the property; Broker-J's does not know it (10.1)",
        ),
        Gap(
            "checks",
            "attach to a queue that an access rule protects from publishing -> attach with its target; transfer ->"
            " detach(amqp:not-allowed).",
            "Broker-J manual, access control: PUBLISH is asked for each message",
        ),
        Gap(*ENDS_LATE, "AMQP 1.0, section 2.6.1: detach(amqp:link:stolen) for the older of two links of one name"),
        Gap(
            "durable_no_local",
            "attach(durable=2, no-local-filter), detach; another client sends; attach -> nothing comes of that.",
            "Broker-J's manual tells nothing of the filter; a queue without consumers lets nothing pass it (10.1)",
        ),
        Gap(
            "groups",
            "transfer of two messages with one group-id -> transfer, each to another consumer.",
            "Broker-J manual, message grouping: only queues with a messageGroupType mind groups",
        ),
        Gap("groups_apart", "As groups.", "The same"),
        *everywhere(
            delays="Broker-J's manual, queues: has maximum delivery attempts, and tells of no delay between them",
            settings="Broker-J's manual, managing entities: its management sets the attributes of a queue",
        ),
    ),
)

QPID = AMQPBroker(
    "Apache Qpid Broker-J Core",
    "exchange",
    _DATA,
    settled_sends=True,
    offers={"client_ids": "sole-connection-for-container", "shared": "SHARED-SUBS"},
)
