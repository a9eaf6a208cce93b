"""The event connector over brokers on a network: each event is delivered once, and its copy goes where it belongs."""

import uuid

import pytest

from jmsjca import ConnectionFactory, Outcome, Queue, ResourceAdapter, TextMessage
from jmsjca.connector import Activities, BusinessObject, Connector, ConnectorConfig, DeliveryOutcome, ReturnCode
from jmsjca.errors import MessageFormatError

PATIENCE = 60
EVENTS = 5


@pytest.mark.parametrize("in_progress", [False, True], ids=["direct", "in progress"])
@pytest.mark.parametrize("pair", ["artemis-amqp", "activemq-stomp"])
def test_each_event_is_delivered_once(pair, in_progress, broker_url):
    prefix, url, delivered = f"connector.{uuid.uuid4().hex}", broker_url(pair), []

    def collaboration(order: BusinessObject) -> DeliveryOutcome | None:
        delivered.append(order.get("id"))
        return DeliveryOutcome.NO_SUBSCRIPTION_FOUND if order.get("id") == 2 else None

    config = ConnectorConfig(
        connection_url=url,
        input_destination=f"{prefix}.in",
        poll_quantity=10,
        in_progress_destination=f"{prefix}.in-progress" if in_progress else None,
        archive_destination=f"{prefix}.archive",
        error_destination=f"{prefix}.errors",
        unsubscribed_destination=f"{prefix}.unsubscribed",
    )
    with ConnectionFactory(url).create_connection() as connection, connection.create_session() as session:
        producer = session.create_producer(Queue(f"{prefix}.in"))
        for number in range(EVENTS):
            producer.send(f'{{"_type": "Order", "id": {number}}}')
        producer.send("no JSON")
        consumers = {name: session.create_consumer(Queue(f"{prefix}.{name}")) for name in ("errors", "unsubscribed")}
        with Connector(config, collaboration) as connector:
            # A read that does not wait may find nothing although a message is there, where credit is not exact.
            while len(delivered) < EVENTS:
                assert connector.poll_for_events() is ReturnCode.SUCCEED
            while (failed := consumers["errors"].receive(timeout=0.1)) is None:
                assert connector.poll_for_events() is ReturnCode.SUCCEED
        archive = session.create_consumer(Queue(f"{prefix}.archive"))
        archived = [archive.receive(timeout=PATIENCE).body for _ in range(EVENTS - 1)]
        unsubscribed = consumers["unsubscribed"].receive(timeout=PATIENCE)
        assert sorted(delivered) == list(range(EVENTS))
        assert [body for body in archived if '"id": 2' in body] == []
        assert (failed.body, '"id": 2' in unsubscribed.body) == ("no JSON", True)
        for queue in ("in", "in-progress", "archive", "errors", "unsubscribed"):
            assert session.create_consumer(Queue(f"{prefix}.{queue}")).receive(timeout=0) is None


@pytest.mark.parametrize("eliminating", [False, True], ids=["direct", "without duplicates"])
@pytest.mark.parametrize("pair", ["activemq-amqp", "qpid-amqp"])
def test_a_reply_destination_that_is_gone_fails_the_event_once(pair, eliminating, broker_url):
    prefix, url = f"connector.{uuid.uuid4().hex}", broker_url(pair)
    with ConnectionFactory(url).create_connection() as requester, requester.create_session() as session:
        request = TextMessage('{"_type": "Order"}', properties={"JMS_IBM_Report_PAN": 1, "JMS_IBM_Report_NAN": 2})
        request.reply_to = session.create_temporary_queue()
        session.create_producer(Queue(f"{prefix}.in")).send(request)
        session.create_producer(Queue(f"{prefix}.in")).send('{"_type": "Other"}')
    config = ConnectorConfig(
        connection_url=url,
        input_destination=f"{prefix}.in",
        receive_timeout=PATIENCE / 10,
        error_destination=f"{prefix}.errors",
        configuration_meta_object={"Order_Create": "CollaborationName=orders"},
        duplicate_event_elimination=eliminating,
        monitor_queue=f"{prefix}.monitor",
    )
    reported, others = [], []
    with Connector(config, others.append, collaborations={"orders": reported.append}) as connector:
        for _ in range(2):
            assert connector.poll_for_events() is ReturnCode.SUCCEED
    assert (len(reported), len(others)) == (1, 1)
    with ConnectionFactory(url).create_connection() as connection, connection.create_session() as session:
        failed = session.create_consumer(Queue(f"{prefix}.errors")).receive(PATIENCE)
    assert "The report cannot be sent" in failed.properties["JMS_Sun_JMSJCA_ExceptionMessage"]


@pytest.mark.parametrize("pair", ["artemis-amqp", "artemis-stomp", "rabbitmq-amqp", "rabbitmq-stomp"])
def test_a_poll_removes_holds_and_releases_messages(pair, broker_url):
    queue = f"polled.{uuid.uuid4().hex}"
    with ResourceAdapter(broker_url(pair)) as adapter, Activities(adapter) as activities:
        for text in ("a", "b"):
            activities.send(queue, text)
        with pytest.raises(MessageFormatError):
            activities.poll(queue, message_type="BYTE", receive_timeout=PATIENCE)
        for transacted, text in ((False, "a"), (True, "b")):
            polled = activities.poll(queue, transacted=transacted, receive_timeout=PATIENCE)
            assert [response.payload for response in polled.responses] == [text]
        for action, outcome in (("JBXRollback", Outcome.ROLLED_BACK), ("JBXCommit", Outcome.COMMITTED)):
            assert activities.poll(queue, receive_timeout=0.1).responses == []
            assert activities.acknowledge(acknowledge_id=polled.acknowledge_id, action=action).outcome is outcome
            if outcome is Outcome.ROLLED_BACK:
                polled = activities.poll(queue, transacted=True, receive_timeout=PATIENCE)
                assert [response.payload for response in polled.responses] == ["b"]
        assert activities.poll(queue, receive_timeout=0.1).responses == []
