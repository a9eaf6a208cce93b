"""What a connection can do follows from what the broker calls itself, and from what it offers."""

import pytest

from jmsjca.providers.amqp.brokers.registry import profile_for

ARTEMIS, BROKER_J = "apache-activemq-artemis", "Apache Qpid Broker-J Core"
ALONE, DELAYS, SHARES = "sole-connection-for-container", "DELAYED_DELIVERY", "SHARED-SUBS"


def can(product, *offered):
    return profile_for(product, set(offered)).data.capabilities


@pytest.mark.parametrize(
    ("product", "capability", "offer"),
    [
        (ARTEMIS, "client_ids", ALONE),
        (ARTEMIS, "delivery_delay", DELAYS),
        (ARTEMIS, "shared", SHARES),
        (BROKER_J, "client_ids", ALONE),
        (BROKER_J, "shared", SHARES),
        ("unheard of", "client_ids", ALONE),
    ],
)
def test_what_is_not_offered_is_not_there(product, capability, offer):
    others = {ALONE, DELAYS, SHARES} - {offer}
    assert getattr(can(product, offer, *others), capability)
    assert not getattr(can(product, *others), capability)


def test_what_is_offered_in_vain_is_not_trusted():
    assert not can("ActiveMQ", DELAYS).delivery_delay
    assert can("unheard of", DELAYS, SHARES, "ANONYMOUS-RELAY") == can("unheard of")


def test_a_broker_that_nobody_tested_is_not_trusted_with_a_unit():
    unknown = can("unheard of", ALONE)
    trusted = (unknown.atomic, unknown.transacted_receive, unknown.transacted_send, unknown.selectors)
    assert not any(trusted)
