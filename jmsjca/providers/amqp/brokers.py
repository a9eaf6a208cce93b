"""The brokers that speak AMQP 1.0: what each can do, and what it did where it cannot."""

from collections.abc import Callable
from dataclasses import dataclass

from jmsjca.providers.amqp.addresses import Naming
from jmsjca.providers.artemis import as_filter
from jmsjca.providers.evidence import Broker, Gap
from jmsjca.spi import Capabilities

__all__ = ["BROKERS", "AMQPBroker", "broker_of"]

_NO_DELAY = Gap(
    "redelivery_delay",
    "The outcome modified has delivery-failed, undeliverable-here and annotations, and no delay.",
    "AMQP 1.0, section 3.4.5",
)
_NO_ADMIN = Gap(
    "admin",
    "AMQP 1.0 has no performative that asks for queues or depths; each broker has management messages of its own.",
    "Not offered over AMQP in this release",
)
_NO_TEMPORARY = Gap(
    "temporary", "Not asked for: no dynamic terminus is attached.", "Not offered over AMQP in this release"
)
_NO_SHARED = Gap("shared", "Not asked for: no source asks for it.", "Not offered over AMQP in this release")
_NO_LOCAL = Gap(
    "no_local", "Not asked for: no source has the filter apache.org:no-local-filter.", "Not offered in this release"
)
_NOT_YET = tuple(
    Gap(capability, seen, "Not offered over AMQP in this release")
    for capability, seen in (
        ("subscription_lock", "Not asked for: nothing tells whether a second subscriber is refused or takes over."),
        ("groups", "Not asked for: no case of the contract suite proves it."),
        ("structured", "Not sent: only text, bytes and plain messages are encoded and decoded."),
        ("configurable", "The protocol has no frame that changes what a destination does; its operator does that."),
    )
)
_EVERYWHERE = (_NO_DELAY, _NO_ADMIN, _NO_TEMPORARY, _NO_SHARED, _NO_LOCAL, *_NOT_YET)


@dataclass(frozen=True, slots=True)
class AMQPBroker:
    """A broker, by the product name in its open frame.

    Args:
        product: The name.
        naming: How it names destinations.
        data: What it can do.
        drains: True if it understands drain.
        counts: True if it fills in how often a message was delivered before; else it marks the first delivery.
        ids_first: True if a transaction rolls back for a message whose duplicate id is known. Then messages with such
            an id are sent before the transaction: sending them again is harmless.
        filter_of: Writes a selector as the broker wants it.
    """

    product: str
    naming: Naming
    data: Broker
    drains: bool = True
    counts: bool = True
    ids_first: bool = False
    filter_of: Callable[[str], str] = str


_ARTEMIS = Broker(
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
        shared_between_processes=True,
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
        *_EVERYWHERE,
    ),
)
_ACTIVEMQ = Broker(
    "Apache ActiveMQ Classic",
    "AMQP",
    "6.3.1",
    Capabilities(
        transacted_receive=True,
        transacted_send=True,
        atomic=True,
        give_back="local",
        counts_lost=True,
        selectors=True,
        exact_selectors=True,
        browse=True,
        durable=True,
        client_ids=True,
        checks=True,
        shared_between_processes=True,
    ),
    (
        Gap(
            "give_back",
            "disposition(released) or disposition(modified, delivery-failed) -> the broker sends the message again over"
            " the same link, behind what it sent meanwhile; nobody else gets it before detach.",
            "AmqpSender.settle with ackType -1: onMessageDispatch (6.3)",
        ),
        Gap(
            "exact_credit",
            "flow(drain=true) that crosses the last message asked for -> no answer; the broker chooses one message"
            " more, and keeps it for this link until its next credit or its end.",
            "AmqpSender.flow: a MessagePull for each drain (6.3)",
        ),
        Gap(
            "delivery_count",
            "After modified(delivery-failed) and detach the next link gets transfer with delivery-count=0. Only what a"
            " broken connection held comes with delivery-count=1, looked at or not.",
            "AmqpSender.detach: RemoveInfo with lastDeliveredSequenceId; Queue.removeSubscription (6.3)",
        ),
        Gap("browse_counts", "As delivery_count.", "The same"),
        Gap(
            "delivery_delay",
            "transfer with x-opt-delivery-time is held where schedulerSupport is set, which is not the default; else it"
            " comes at once, and nothing tells which.",
            "activemq.apache.org/delay-and-schedule-message-delivery",
        ),
        Gap(
            "priority",
            "Messages come in the order of sending: queues mind priorities only with prioritizedMessages.",
            "activemq.apache.org/how-can-i-support-priority-queues",
        ),
        Gap(
            "duplicate_detection",
            "A second transfer with the same _AMQ_DUPL_ID -> disposition(accepted), and both are delivered.",
            "The property is Artemis'; ActiveMQ audits only its own producer ids",
        ),
        *_EVERYWHERE,
    ),
)
_QPID = Broker(
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
        shared_between_processes=True,
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
            "Broker-J: to = and <> a missing property is a value of its own; to all other operators it is unknown",
        ),
        Gap(
            "duplicate_detection",
            "A second transfer with the same _AMQ_DUPL_ID -> disposition(accepted), and both are delivered.",
            "The property is Artemis'",
        ),
        Gap(
            "checks",
            "attach to a queue that an access rule protects from publishing -> attach with its target; transfer ->"
            " detach(amqp:not-allowed).",
            "Broker-J manual, access control: PUBLISH is asked for each message",
        ),
        *_EVERYWHERE,
    ),
)
_RABBITMQ = Broker(
    "RabbitMQ",
    "AMQP",
    "3.10.8",
    Capabilities(give_back="local", counts_lost=True, checks=True, shared_between_processes=True),
    (
        Gap(
            "transacted_receive",
            "attach(target=coordinator) -> end(amqp:not-implemented, Transactions not supported)",
            "github.com/rabbitmq/rabbitmq-amqp1.0, README, unsupported: transactions",
        ),
        Gap("transacted_send", "As transacted_receive.", "The same"),
        Gap("atomic", "As transacted_receive.", "The same"),
        Gap(
            "give_back",
            "disposition(released) -> the message comes again, also to others, with first-acquirer=false, whether"
            " anybody looked at it or not; disposition(modified) -> end(amqp:invalid-field, Unrecognised state).",
            "rabbit_amqp1_0_session_process: handle_control of disposition (3.10)",
        ),
        Gap(
            "exact_credit",
            "flow(drain=true) -> end(amqp:internal-error, function_clause, send_drained). flow(link-credit=0) is"
            " answered before the messages that are under way.",
            "rabbit_classic_queue:handle_event (3.10)",
        ),
        Gap(
            "delivery_count",
            "The header of a message that was released has first-acquirer=false and no delivery-count.",
            "rabbit_amqp1_0_message: header from redelivered (3.10)",
        ),
        Gap(
            "delivery_delay",
            "transfer with x-opt-delivery-time is delivered at once.",
            "rabbitmq.com: delays need the plugin for delayed messages",
        ),
        Gap(
            "priority",
            "Messages come in the order of sending: a queue minds priorities only if it was declared with"
            " x-max-priority, which a link cannot ask for.",
            "rabbitmq.com/priority",
        ),
        Gap(
            "selectors",
            "attach(source with the filter jms-selector) -> attach with the same filter, and everything comes.",
            "github.com/rabbitmq/rabbitmq-amqp1.0, README, unsupported: filters",
        ),
        Gap("exact_selectors", "As selectors.", "The same"),
        Gap(
            "browse",
            "attach(source with distribution-mode=copy) -> attach with the same mode, and messages are taken.",
            "github.com/rabbitmq/rabbitmq-amqp1.0, README",
        ),
        Gap("browse_counts", "As browse.", "The same"),
        Gap(
            "durable",
            "attach(source=/topic/x, durable=2, expiry-policy=never), detach -> the queue behind it is gone, and with"
            " it what is sent before the next attach.",
            "github.com/rabbitmq/rabbitmq-amqp1.0, README, unsupported: resuming links",
        ),
        Gap(
            "client_ids",
            "open(container-id in use, desired-capabilities=[sole-connection-for-container]) -> open, for both.",
            "No page of RabbitMQ's knows the capability (3.10)",
        ),
        Gap(
            "duplicate_detection",
            "A second transfer with the same _AMQ_DUPL_ID -> disposition(accepted), and both are delivered.",
            "The property is Artemis'",
        ),
        *_EVERYWHERE,
    ),
)

_KNOWN = (
    AMQPBroker("apache-activemq-artemis", "capability", _ARTEMIS, ids_first=True, filter_of=as_filter),
    AMQPBroker("ActiveMQ", "scheme", _ACTIVEMQ),
    AMQPBroker("Apache Qpid Broker-J Core", "exchange", _QPID),
    AMQPBroker("RabbitMQ", "path", _RABBITMQ, drains=False, counts=False),
)
_UNKNOWN = AMQPBroker(
    "", "capability", Broker("any other", "AMQP", "", Capabilities(give_back="local", shared_between_processes=True))
)

BROKERS = tuple(broker.data for broker in _KNOWN)


def broker_of(product: str) -> AMQPBroker:
    """Find a broker by the product name of its open frame; one that nobody tested is trusted with nothing."""
    return next((broker for broker in _KNOWN if broker.product == product), _UNKNOWN)
