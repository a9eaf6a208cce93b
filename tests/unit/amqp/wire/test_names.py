"""Names that would be cut are refused; what can be said is said whole."""

import pytest
from amqp_peer import Broker
from amqp_peer.performatives import Attach

from jmsjca.destinations import Queue, Subscription, Topic
from jmsjca.errors import InvalidDestinationError, TransactionRolledBackError
from jmsjca.providers.amqp.senders import MOST_SENDERS
from tests.unit.amqp.wire.test_many_destinations import RELAY, names_of, send_to

ARTEMIS = "apache-activemq-artemis"


@pytest.mark.parametrize("client_id", ["c", None])
@pytest.mark.parametrize("volatile", [True, False])
def test_a_shared_subscription_has_no_name_that_would_be_cut(stage, client_id, volatile):
    broker = Broker(ARTEMIS, offers=("sole-connection-for-container", "SHARED-SUBS"))
    connection = stage(broker).connect(client_id="c")
    with pytest.raises(InvalidDestinationError, match=r"s\\x00other.* holds NUL"):
        connection.consumer(Subscription(Topic("t"), "s\0other", client_id, shared=True, volatile=volatile))
    assert not broker.seen[Attach]


def test_a_relay_is_given_no_name_that_no_consumer_can_have(stage):
    broker = Broker(offers=(RELAY,))
    connection = stage(broker).connect()
    send_to(connection, names_of(MOST_SENDERS + 1))
    with pytest.raises(TransactionRolledBackError, match="holds "):
        send_to(connection, ["q\0other"])
    assert not any("other" in kept for kept in broker.store.queues)


def test_a_selector_with_nul_is_said_whole(stage):
    """Proton counts the bytes of what stands in a filter."""
    asked, broker = [], Broker()

    def note(service, frame):
        asked.extend(each.value for each in frame.body.source.filter.values())
        service.carry_out(frame)

    broker.instead[Attach] = note
    stage(broker).connect().consumer(Queue("q"), selector="a = 'b\0c'")
    assert asked == ["a = 'b\0c'"]
