"""Report messages: who asks for them, what they hold, and that they belong to the transaction of the event."""

import pytest

from jmsjca import ConnectionFactory, Queue, TextMessage
from jmsjca.connector import BusinessObject, Connector, ConnectorConfig, DeliveryOutcome, ReturnCode
from jmsjca.connector.event_conversion import Event
from jmsjca.connector.outcomes import report_request

BODY = '{"_type": "Order", "_verb": "Create", "id": 1}'
RULES = {"Order_Create": "InputFormat=Ord;CollaborationName=orders"}
PAN, NAN, PASS_ID, TYPE = (
    "JMS_IBM_Report_PAN",
    "JMS_IBM_Report_NAN",
    "JMS_IBM_Report_Pass_Correl_ID",
    "JMS_IBM_MsgType",
)


def accept(order):
    order.attributes["id"] = 2


def reject(_):
    return DeliveryOutcome.FAIL


def fail(_):
    raise OSError("the disk is full")


@pytest.fixture
def ask(url, session, messages):
    """Poll one message that may ask for reports, and return the message and the reports."""

    def send(collaboration, properties, body=BODY, reply_to="replies", **fields):
        message = TextMessage(body, properties=properties)
        message.correlation_id = "c-1"
        message.reply_to = None if reply_to is None else Queue(reply_to)
        session.create_producer(Queue("in")).send(message)
        named = {"orders": collaboration, "other": print}
        fields = {"configuration_meta_object": RULES, "error_destination": "errors", **fields}
        config = ConnectorConfig(connection_url=url, input_destination="in", restart_retry_interval=0, **fields)
        with Connector(config, lambda _: None, collaborations=named) as polling:
            code = polling.poll_for_events()
        assert code is ReturnCode.SUCCEED
        return message, messages("replies")

    return send


@pytest.mark.parametrize(
    ("asked", "collaboration", "feedback"),
    [
        ({PAN: 1}, accept, 275),
        ({PAN: 1}, reject, None),
        ({PAN: 1}, fail, None),
        ({NAN: 1}, accept, None),
        ({NAN: 2}, reject, 276),
        ({NAN: "2"}, fail, 276),
        ({PAN: 1, NAN: 2}, accept, 275),
        ({PAN: 1, NAN: 2, TYPE: 8}, fail, 276),
        ({}, accept, None),
        ({PAN: 0, NAN: 0}, accept, None),
        ({PAN: 1, NAN: 2, TYPE: 1}, accept, None),
    ],
)
def test_the_reports_that_are_sent(ask, messages, asked, collaboration, feedback):
    _, reports = ask(collaboration, asked)
    assert [each.properties["JMS_IBM_Feedback"] for each in reports] == ([] if feedback is None else [feedback])
    assert [each.properties[TYPE] for each in reports] == [4] * len(reports)
    is_report = asked.get(TYPE, 8) == 8 and any(asked.get(each) for each in (PAN, NAN))
    assert len(messages("errors")) == (is_report and collaboration is not accept)


def test_a_success_has_the_changed_business_object_and_the_message_id(ask):
    message, (report,) = ask(accept, {PAN: 1}, message_response_result_property="result")
    assert ('"id": 2' in report.body, report.correlation_id) == (True, message.message_id)
    assert report.properties["result"] == "SUCCEED"


def test_a_failure_has_the_error(ask):
    _, (report,) = ask(fail, {NAN: 2}, message_response_result_property="result")
    assert (report.body, report.properties["result"]) == ("the disk is full", "FAIL")


def test_the_correlation_id_can_be_passed(ask):
    _, (report,) = ask(accept, {PAN: 1, PASS_ID: 64})
    assert report.correlation_id == "c-1"


def test_an_event_in_progress_keeps_its_message_id(ask):
    message, (report,) = ask(accept, {PAN: 1}, in_progress_destination="held")
    assert report.correlation_id == message.message_id


@pytest.mark.parametrize(("value", "body"), [("true", ""), ("false", None)])
def test_the_business_object_can_be_left_out(ask, value, body):
    rules = {"Order_Create": f"CollaborationName=orders;DoNotReportBusObj={value}"}
    _, (report,) = ask(accept, {PAN: 1}, configuration_meta_object=rules)
    assert (report.body == "") is (body == "")


def test_the_format_is_that_of_the_rule_else_of_the_message(ask, session):
    rules = {"Order_Create": "CollaborationName=orders;OutputFormat=Ord_Out;DataHandlerMimeType=text/namevalue"}
    _, (report,) = ask(accept, {PAN: 1}, configuration_meta_object=rules)
    assert (report.type, "id=2" in report.body) == ("Ord_Out", True)
    session.create_consumer(Queue("replies")).receive(0)
    _, (report,) = ask(accept, {PAN: 1, "JMS_IBM_Format": "Ord"}, message_format_property="JMS_IBM_Format")
    assert report.properties["JMS_IBM_Format"] == "Ord"


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"configuration_meta_object": None}, "CollaborationName"),
        (
            {"configuration_meta_object": {"Order_Create": "CollaborationName=unheard"}},
            "'unheard'; there are: orders, other",
        ),
        ({"body": "no JSON"}, "not valid JSON"),
        ({"body": '{"id": 1}'}, "type"),
    ],
)
def test_what_fails_before_the_collaboration_is_reported(ask, messages, fields, reason):
    _, (report,) = ask(accept, {NAN: 2}, unsubscribed_destination="errors", **fields)
    assert reason in report.body
    assert len(messages("errors")) == 1


def test_an_object_that_cannot_be_reported_fails(ask, messages):
    def spoil(order):
        order.attributes["_type"] = "reserved"

    _, (report,) = ask(spoil, {PAN: 1, NAN: 2})
    assert (report.properties["JMS_IBM_Feedback"], len(messages("errors"))) == (276, 1)


@pytest.mark.parametrize("reply_to", [None, "queue://hub"])
def test_without_a_reply_destination_the_event_fails(ask, messages, reply_to):
    called = []
    _, reports = ask(called.append, {PAN: 1, NAN: 2}, reply_to=reply_to)
    assert (called, reports, len(messages("errors"))) == ([], [], 1)


def test_a_queue_uri_names_the_queue(ask):
    _, reports = ask(accept, {PAN: 1}, reply_to="queue://hub/replies")
    assert len(reports) == 1


def test_ibm_mq_gets_the_uri_of_the_reply_destination_whole():
    uri = "queue://hub/replies?targetClient=1&wildcardFormat=0"
    event = Event(TextMessage("", properties={PAN: 1}, reply_to=Queue(uri)), Queue("in"), {})
    assert report_request(event, "wmq://hub").reply_to == Queue(uri)
    assert report_request(event, "amqp://hub").reply_to is None  # an option that only IBM MQ knows


def test_the_dynamic_meta_object_cannot_name_the_collaboration(ask):
    definitions = {
        "Order": {"attributes": {"id": {"type": "integer"}, "MO": {"type": "T"}}, "meta_object": "MO"},
        "T": {"attributes": {"CorrelationID": {}}},
    }
    _, (report,) = ask(accept, {PAN: 1}, definitions=definitions)
    assert '"MO"' not in report.body


def test_an_inactive_collaboration_keeps_the_message_without_a_report(connector, session, messages, url):
    message = TextMessage(BODY, properties={PAN: 1, NAN: 2})
    message.reply_to = Queue("replies")
    session.create_producer(Queue("in")).send(message)
    config = ConnectorConfig(connection_url=url, input_destination="in", configuration_meta_object=RULES)
    inactive = {"orders": lambda _: DeliveryOutcome.CONNECTOR_NOT_ACTIVE}
    with Connector(config, lambda _: None, collaborations=inactive) as polling:
        assert polling.poll_for_events() is ReturnCode.APPRESPONSETIMEOUT
    assert (messages("replies"), len(messages("in"))) == ([], 1)


def test_a_report_is_part_of_the_transaction(ask, url, session, messages):
    """A poll that is interrupted has sent no report; the next one sends it."""
    message = TextMessage(BODY, properties={PAN: 1})
    message.reply_to = Queue("replies")
    session.create_producer(Queue("in")).send(message)
    config = ConnectorConfig(connection_url=url, input_destination="in", configuration_meta_object=RULES)

    def interrupt(_: BusinessObject):
        raise KeyboardInterrupt

    polling = Connector(config, lambda _: None, collaborations={"orders": interrupt})
    with polling, pytest.raises(KeyboardInterrupt):
        polling.poll_for_events()
    assert messages("replies") == []
    with Connector(config, lambda _: None, collaborations={"orders": accept}) as polling:
        polling.poll_for_events()
    assert len(messages("replies")) == 1


def test_a_reply_destination_that_is_gone_fails_the_event_once(url, session, messages):
    """Otherwise the event would be repeated for ever, and would stop those behind it."""
    message = TextMessage(BODY, properties={PAN: 1, NAN: 2})
    with ConnectionFactory(url).create_connection() as requester:
        message.reply_to = requester.create_session().create_temporary_queue()
        session.create_producer(Queue("in")).send(message)
    session.create_producer(Queue("in")).send(BODY)
    config = ConnectorConfig(
        connection_url=url,
        input_destination="in",
        poll_quantity=2,
        configuration_meta_object=RULES,
        error_destination="errors",
    )
    reported, others = [], []
    with Connector(config, others.append, collaborations={"orders": reported.append}) as polling:
        assert polling.poll_for_events() is ReturnCode.SUCCEED
    (failed,) = messages("errors")
    assert "The report cannot be sent" in failed.properties["JMS_Sun_JMSJCA_ExceptionMessage"]
    assert (len(reported), len(others), messages("in")) == (1, 1, [])
