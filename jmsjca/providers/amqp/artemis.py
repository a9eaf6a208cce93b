"""What Apache Artemis can do over AMQP 1.0, and what it did where it cannot."""

from jmsjca.providers.amqp.broker import AMQPBroker
from jmsjca.providers.amqp.gaps import EVERYWHERE
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
        *EVERYWHERE,
    ),
)

ARTEMIS = AMQPBroker("apache-activemq-artemis", "capability", _DATA, ids_first=True, filter_of=as_filter)
