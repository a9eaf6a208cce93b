"""Messages of any legal and half-legal AMQP form: each is an event or a copy, and none stops the connector."""

import pytest
from amqp_peer import Broker, Peer

from jmsjca.connector import Connector, ConnectorConfig, ConnectorTerminatedError, ReturnCode
from tests.unit.inbound.poison_forms import amqp_messages, drawn
from tests.unit.inbound.test_poison import DEFECTS

SAMPLE, SEED = 150, 32
TARGETS = {
    "archive_destination": "archive",
    "error_destination": "errors",
    "unsubscribed_destination": "unsubscribed",
}


def polled(payloads):
    """Poll messages; return what is in each queue afterwards."""
    broker = Broker()
    for payload in payloads:
        broker.store.put("in", payload)
    peer = Peer(broker)
    config = ConnectorConfig(
        connection_url=f"amqp://{peer.address}",
        input_destination="in",
        poll_quantity=min(len(payloads), 500),
        receive_timeout=60,
        **TARGETS,
    )
    try:
        with Connector(config, lambda _: None) as connector:
            assert connector.poll_for_events() is ReturnCode.SUCCEED
    finally:
        peer.close()
    return {name: len(kept) for name, kept in broker.store.queues.items() if kept}


@pytest.mark.parametrize("defect", DEFECTS)
def test_a_defect_in_the_in_progress_destination_is_an_event_too(defect):
    broker = Broker()
    for _ in range(2):
        broker.store.put("held", DEFECTS[defect])
    peer = Peer(broker)
    config = ConnectorConfig(
        connection_url=f"amqp://{peer.address}",
        input_destination="in",
        in_progress_destination="held",
        receive_timeout=0.1,
        **TARGETS,
    )
    try:
        with Connector(config, lambda _: None) as connector:
            while broker.store.queues["held"]:
                assert connector.poll_for_events() is ReturnCode.SUCCEED
    finally:
        peer.close()
    left = {name: len(kept) for name, kept in broker.store.queues.items() if kept}
    assert sum(left.values()) == 2
    assert left.keys() <= set(TARGETS.values())


@pytest.mark.parametrize("defect", DEFECTS)
def test_a_defect_is_copied_to_one_destination(defect):
    left = polled([DEFECTS[defect]] * 2)
    assert sum(left.values()) == 2
    assert left.keys() <= set(TARGETS.values())


def test_a_message_that_cannot_be_decoded_is_in_doubt():
    broker = Broker()
    broker.store.put("held", DEFECTS["no message at all"])
    peer = Peer(broker)
    config = ConnectorConfig(
        connection_url=f"amqp://{peer.address}",
        input_destination="in",
        in_progress_destination="held",
        in_doubt_events="FailOnStartup",
    )
    try:
        with Connector(config, print) as connector, pytest.raises(ConnectorTerminatedError):
            connector.poll_for_events()
    finally:
        peer.close()


def test_any_form_is_copied_to_one_destination():
    left = polled(drawn(amqp_messages(), SAMPLE, SEED))
    assert sum(left.values()) == SAMPLE
    assert left.keys() <= set(TARGETS.values())
