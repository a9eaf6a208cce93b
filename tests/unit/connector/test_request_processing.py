"""Requests on real queues: headers, responses, result codes, and what fails."""

import logging
import threading

import pytest

from jmsjca import BytesMessage, ConnectionFactory, DeliveryMode, Int, Queue, Topic
from jmsjca.connector import BusinessObject, ReturnCode, ReturnStatus
from jmsjca.errors import ArgumentTypeError, IllegalStateError
from jmsjca.testing.time_travel import TimeTravel

PATIENCE = 60
DEFINITIONS = {
    "Customer": {
        "attributes": {
            "Name": {},
            "Address": {"type": "Address", "cardinality": "multiple"},
            "MO": {"type": "Transport"},
        },
        "meta_object": "MO",
        "verbs": {
            "Retrieve": "response_selector=Name LIKE '{1}' AND Zip = '{2}':Name,Address[1].Zip",
            "Exists": "Response_Selector=JMSCorrelationID LIKE '{1}':MO.CorrelationID",
            "Check": "response_selector=JMSType = 'xmlResponse'",
            "Broken": "response_selector=Name LIKE",
        },
    },
    "Address": {"attributes": {"Zip": {}}},
    "Transport": {
        "attributes": {
            "OutputDestination": {},
            "OutputFormat": {},
            "CorrelationID": {},
            "ReplyToDestination": {},
            "Priority": {"type": "integer"},
            "DeliveryMode": {},
            "ResponseTimeout": {"type": "integer"},
            "TimeoutFatal": {"type": "boolean"},
            "DataHandlerMimeType": {},
            "MessageID": {},
            "JMSProperties": {"type": "Props"},
        }
    },
    "Props": {"attributes": {"level": {"type": "integer", "information": "name=hub_level;type=Short"}}},
}
STATIC = {
    "Customer_Create": "OutputDestination=customers;OutputFormat=Cust_Out;CorrelationID=static;Priority=3;"
    "DeliveryMode=1;ReplyToDestination=topic:heard",
    "Customer_Update": "ResponseTimeout=60000",
    "Customer_Retrieve": "ResponseTimeout=60000",
    "Customer_Exists": "ResponseTimeout=60000",
    "Customer_Check": "ResponseTimeout=60000",
    "Customer_Broken": "ResponseTimeout=60000",
    "Default": "OutputDestination=requests",
}


@pytest.fixture
def requesting(connector):
    """Create connectors for requests."""

    def create(**fields):
        fields = {
            "input_destination": (),
            "configuration_meta_object": STATIC,
            "definitions": DEFINITIONS,
            "reply_to_destination": "replies",
            "message_response_result_property": "result",
            **fields,
        }
        return connector(**fields)

    return create


def customer(verb="Update", **transport):
    child = {"MO": BusinessObject("Transport", "", transport)} if transport else {}
    addresses = [BusinessObject("Address", "", {"Zip": each}) for each in ("89", "53")]
    return BusinessObject("Customer", verb, {"Name": "Ada", "Address": addresses, **child})


@pytest.fixture
def application(url):
    """Answer requests from a queue, each with the messages that a function returns, in a thread."""
    threads = []

    def start(answer, queue="requests"):
        def serve():
            with ConnectionFactory(url).create_connection() as connection, connection.create_session() as session:
                connection.start()
                request = session.create_consumer(Queue(queue)).receive(PATIENCE)
                for message in answer(session, request):
                    session.create_producer(request.reply_to).send(message)

        threads.append(threading.Thread(target=serve, daemon=True))
        threads[-1].start()

    yield start
    for each in threads:
        each.join(PATIENCE)
        assert not each.is_alive()


def answer(body="", result="SUCCESS", **headers):
    """Return a function that answers by the message id of the request."""

    def respond(session, request):
        message = session.create_text_message(body, properties={} if result is None else {"result": result})
        message.correlation_id = request.message_id
        for name, value in headers.items():
            setattr(message, name, value)
        return [message]

    return respond


def logged(caplog):
    """Return the errors of the connector's log."""
    return [each.getMessage() for each in caplog.records if each.levelno == logging.ERROR]


class TestAsynchronous:
    def test_the_values_of_the_static_meta_object(self, requesting, messages):
        assert requesting().do_verb_for(customer("Create")) is ReturnCode.SUCCEED
        (sent,) = messages("customers")
        assert (sent.type, sent.correlation_id, sent.priority, sent.delivery_mode, sent.reply_to) == (
            "Cust_Out",
            "static",
            3,
            DeliveryMode.NON_PERSISTENT,
            Topic("heard"),
        )
        assert '"Name": "Ada"' in sent.body

    def test_undefined_values_are_left_to_the_provider(self, requesting, messages):
        request = customer("Delete")
        assert requesting().do_verb_for(request) is ReturnCode.SUCCEED
        (sent,) = messages("requests")
        assert (sent.type, sent.correlation_id, sent.priority, sent.delivery_mode, sent.reply_to) == (
            None,
            None,
            4,
            DeliveryMode.PERSISTENT,
            None,
        )

    def test_the_dynamic_meta_object_takes_precedence_and_is_not_sent(self, requesting, messages):
        request = customer(
            "Create",
            OutputDestination="elsewhere",
            OutputFormat="Dyn",
            CorrelationID="dynamic",
            Priority=8,
            DeliveryMode="PERSISTENT",
            DataHandlerMimeType="text/namevalue",
            JMSProperties=BusinessObject("Props", "", {"level": 3}),
        )
        assert requesting().do_verb_for(request) is ReturnCode.SUCCEED
        (sent,) = messages("elsewhere")
        assert (sent.type, sent.correlation_id, sent.priority, sent.delivery_mode, sent.reply_to) == (
            "Dyn",
            "dynamic",
            8,
            DeliveryMode.PERSISTENT,
            Topic("heard"),
        )
        assert sent.properties == {"hub_level": 3}
        assert "Name=Ada" in sent.body
        assert "MO" not in sent.body

    def test_the_default_data_handler_is_that_of_the_connector(self, requesting, messages):
        requesting(data_handler_mime_type="text/namevalue").do_verb_for(customer("Create"))
        assert "Name=Ada" in messages("customers")[0].body

    def test_properties_of_the_static_meta_object_and_an_encoding(self, requesting, messages):
        rule = {"OutputDestination": "q", "JMSProperties": {"region": "south"}, "DataEncoding": "utf-16"}
        requesting(configuration_meta_object={"Customer_Create": rule}).do_verb_for(customer("Create"))
        (sent,) = messages("q")
        assert isinstance(sent, BytesMessage)
        assert (sent.properties, '"Ada"' in sent.body.decode("utf-16")) == ({"region": "south"}, True)

    @pytest.mark.parametrize("timeout", ["-1", "-5"])
    def test_a_negative_response_timeout_waits_for_no_response(self, requesting, messages, timeout):
        rule = f"OutputDestination=requests;ResponseTimeout={timeout}"
        code = requesting(configuration_meta_object={"Default": rule}).do_verb_for(customer())
        assert (code, len(messages("requests"))) == (ReturnCode.SUCCEED, 1)

    @pytest.mark.parametrize("output", ["others", "queue:///others?expiry=60000", Queue("others")])
    def test_the_connectors_own_destination_is_that_of_requests_without_one(self, requesting, messages, output):
        static = {"Customer_Create": "Priority=3", "Customer_Update": "OutputDestination=named"}
        polling = requesting(configuration_meta_object=static, output_destination=output)
        for request in (customer("Create"), customer("Update"), customer("Create", OutputDestination="dynamic")):
            assert polling.do_verb_for(request) is ReturnCode.SUCCEED
        assert [len(messages(place)) for place in ("others", "named", "dynamic")] == [1, 1, 1]

    def test_a_topic_as_target(self, requesting, session):
        consumer = session.create_consumer(Topic("news"))
        assert requesting().do_verb_for(customer("Create", OutputDestination="topic:news")) is ReturnCode.SUCCEED
        assert '"Name": "Ada"' in consumer.receive(PATIENCE).body

    def test_the_options_of_a_queue_uri(self, requesting, messages):
        uri = "queue://hub/q?expiry=60000&priority=7&persistence=1&CCSID=1208&encoding=273"
        requesting(configuration_meta_object={"Default": {"OutputDestination": uri}}).do_verb_for(customer())
        (sent,) = messages("q")
        life = (sent.expiration - sent.timestamp).total_seconds()
        assert (life, sent.priority, sent.delivery_mode) == (60, 7, DeliveryMode.NON_PERSISTENT)
        assert sent.properties == {"JMS_IBM_Character_Set": "1208", "JMS_IBM_Encoding": Int(273)}

    def test_a_meta_object_takes_precedence_over_a_queue_uri(self, requesting, messages):
        rule = {"OutputDestination": "queue:///q?priority=7&persistence=1", "Priority": 2, "DeliveryMode": 2}
        requesting(configuration_meta_object={"Default": rule}).do_verb_for(customer())
        (sent,) = messages("q")
        assert (sent.priority, sent.delivery_mode) == (2, DeliveryMode.PERSISTENT)

    def test_a_plain_target_gets_no_properties(self, requesting, messages):
        rule = {"OutputDestination": "queue:///q?targetClient=1&CCSID=1208", "JMSProperties": {"region": "south"}}
        requesting(configuration_meta_object={"Default": rule}).do_verb_for(customer())
        assert dict(messages("q")[0].properties) == {}


class TestFailures:
    @pytest.mark.parametrize(
        ("request_", "reason"),
        [
            (BusinessObject("Unknown", "Create"), "OutputDestination"),
            (customer("Create", Priority=99), "Priority"),
            (customer("Create", OutputDestination="queue:///"), "names no queue"),
            (customer("Create", DataHandlerMimeType="text/unheard-of"), "text/unheard-of"),
            (customer("Create", JMSProperties=BusinessObject("Props", "", {"level": 2**20})), "Props.level"),
            (BusinessObject("Customer", "Create", {"Colour": "red"}), "Colour"),
            (customer("Update", ReplyToDestination="topic:news"), "topic:news"),
        ],
    )
    def test_wrong_metadata_and_data_fail_the_request(self, requesting, messages, caplog, request_, reason):
        status = ReturnStatus()
        fields = {} if request_.type == "Customer" else {"configuration_meta_object": None}
        assert requesting(**fields).do_verb_for(request_, status) is ReturnCode.FAIL
        assert reason in status.text
        (text,) = logged(caplog)
        assert text.startswith(f"Request {request_.type}.{request_.verb}: FAIL: ")
        assert [messages(queue) for queue in ("customers", "requests")] == [[], []]

    def test_a_broker_that_cannot_be_reached(self, requesting, caplog):
        pytest.importorskip("proton")
        polling = requesting(connection_url="amqp://127.0.0.1:1")
        status = ReturnStatus()
        assert polling.do_verb_for(customer("Create"), status) is ReturnCode.APPRESPONSETIMEOUT
        assert "127.0.0.1" in status.text
        assert logged(caplog) == [f"Request Customer.Create: APPRESPONSETIMEOUT: {status.text}"]

    def test_a_stopped_connector(self, requesting):
        polling = requesting()
        polling.close()
        with pytest.raises(IllegalStateError, match="stopped"):
            polling.do_verb_for(customer())

    @pytest.mark.parametrize("request_", [None, "Customer", {"_type": "Customer"}])
    def test_a_request_that_is_no_business_object(self, requesting, request_):
        with pytest.raises(ArgumentTypeError, match=r"must be a BusinessObject\(…\)"):
            requesting().do_verb_for(request_)

    @pytest.mark.parametrize(
        ("fatal", "code"),
        [(None, ReturnCode.APPRESPONSETIMEOUT), (True, ReturnCode.APPRESPONSETIMEOUT), (False, ReturnCode.FAIL)],
    )
    @pytest.mark.parametrize("timeout", [0, 1])
    def test_a_response_that_does_not_arrive(self, requesting, messages, timeout, fatal, code):
        status = ReturnStatus()
        request = customer("Update", ResponseTimeout=timeout, TimeoutFatal=fatal)
        assert requesting().do_verb_for(request, status) is code
        assert f"within {timeout} milliseconds" in status.text
        (sent,) = messages("requests")
        assert sent.reply_to == Queue("replies")

    def test_a_response_is_awaited_for_the_whole_timeout(self, requesting, application, monkeypatch):
        clock, codes, sent = TimeTravel(monkeypatch), [], threading.Event()

        def late(session, request):
            """Answer so that the response is delivered after 500 s of the request's 600 s."""
            session.create_producer(Queue("replies")).send(*answer()(session, request), delivery_delay=500)
            sent.set()
            return []

        application(late)
        polling, request = requesting(), customer("Update", ResponseTimeout=600_000)
        thread = threading.Thread(target=lambda: codes.append(polling.do_verb_for(request)), daemon=True)
        thread.start()
        assert sent.wait(PATIENCE)
        clock.advance_until(lambda: codes, 5, PATIENCE)
        assert codes == [ReturnCode.SUCCEED]

    def test_a_reply_destination_is_needed(self, requesting):
        status = ReturnStatus()
        assert requesting(reply_to_destination=None).do_verb_for(customer(), status) is ReturnCode.FAIL
        assert "reply_to_destination" in status.text

    def test_a_wrong_selector_is_refused_before_the_request_is_sent(self, requesting, messages):
        assert requesting().do_verb_for(customer("Broken")) is ReturnCode.FAIL
        assert messages("requests") == []


class TestResponses:
    def test_success_changes_nothing(self, requesting, application):
        application(answer('{"Name": "changed"}'))
        request = customer()
        assert requesting().do_verb_for(request) is ReturnCode.SUCCEED
        assert request == customer()

    @pytest.mark.parametrize("result", ["VALCHANGE", "MULTIPLE_HITS"])
    def test_the_business_object_and_its_meta_object_get_the_response(self, requesting, application, result):
        application(answer('{"Name": "Lovelace"}', result, type="ignored"))
        request = customer("Update", CorrelationID="mine", ResponseTimeout=60000, OutputDestination="requests")
        assert requesting().do_verb_for(request) is ReturnCode(result)
        assert (request.get("Name"), "Address" in request.attributes, request.verb) == ("Lovelace", False, "Update")
        transport = request.get("MO").attributes
        assert transport["CorrelationID"] != "mine"
        assert (transport["Priority"], transport["OutputDestination"]) == (4, "requests")
        assert transport["MessageID"] != transport["CorrelationID"]

    def test_an_empty_response_changes_the_meta_object_only(self, requesting, application):
        application(answer("", "VALCHANGE"))
        request = customer("Update", CorrelationID="mine")
        assert requesting().do_verb_for(request) is ReturnCode.VALCHANGE
        assert (request.get("Name"), len(request.get("Address"))) == ("Ada", 2)
        assert request.get("MO.CorrelationID") != "mine"

    def test_a_response_that_cannot_be_converted_fails_and_changes_nothing(self, requesting, application, caplog):
        application(answer('{"Name": 7}', "VALCHANGE"))
        request, status = customer(), ReturnStatus()
        assert requesting().do_verb_for(request, status) is ReturnCode.FAIL
        assert request == customer()
        (text,) = logged(caplog)
        assert text.startswith("Request Customer.Update: FAIL: DataHandlerError")

    @pytest.mark.parametrize(
        "result",
        ["FAIL", "FAIL_RETRIEVE_BY_CONTENT", "BO_DOES_NOT_EXIST", "UNABLE_TO_LOGIN", "VALDUPES", "APPRESPONSETIMEOUT"],
    )
    @pytest.mark.parametrize("body", ["no such customer", ""])
    def test_errors_have_the_body_as_text(self, requesting, application, result, body, caplog):
        application(answer(body, result))
        request, status = customer(), ReturnStatus("of the request before")
        assert requesting().do_verb_for(request, status) is ReturnCode(result)
        assert status.text == (body or f"The target application returned {result} without a description.")
        assert "no such customer" not in caplog.text
        assert request == customer()

    def test_a_response_without_a_result_says_so(self, requesting, application):
        application(answer("", None))
        status = ReturnStatus()
        assert requesting().do_verb_for(customer(), status) is ReturnCode.FAIL
        assert status.text == "The response has no property result, so its result is unknown"

    @pytest.mark.parametrize("result", [None, "PERHAPS", 3.5, True])
    def test_an_unknown_result_fails(self, requesting, application, result):
        application(answer("", result))
        assert requesting().do_verb_for(customer()) is ReturnCode.FAIL

    def test_without_a_result_property_it_fails(self, requesting, application):
        application(answer())
        status = ReturnStatus()
        polling = requesting(message_response_result_property=None)
        assert polling.do_verb_for(customer(), status) is ReturnCode.FAIL
        assert "message_response_result_property" in status.text

    @pytest.mark.parametrize(
        ("code", "result"),
        [(65536, "SUCCEED"), (65538, "VALCHANGE"), (276, "FAIL"), (65540, "VALDUPES"), ("275", "SUCCEED")],
    )
    def test_feedback_codes(self, requesting, application, code, result):
        application(answer("", code))
        polling = requesting(feedback_codes={"MQFB_APPL_FIRST + 4": "valdupes"})
        assert polling.do_verb_for(customer()) is ReturnCode(result)

    def test_other_messages_stay_in_the_reply_destination(self, requesting, application, session, messages):
        for correlation_id in ("of another", None):
            message = session.create_text_message("other")
            message.correlation_id = correlation_id
            session.create_producer(Queue("replies")).send(message)
        application(lambda _, request: [*answer("first", "FAIL")(_, request), *answer("second", "FAIL")(_, request)])
        status = ReturnStatus()
        requesting().do_verb_for(customer(), status)
        assert status.text == "first"
        application_sent = [each.body for each in messages("replies")]
        assert sorted(application_sent)[:2] == ["other", "other"]


class TestResponseSelectors:
    @pytest.mark.parametrize(
        ("verb", "fields"),
        [
            ("Retrieve", {"properties": {"result": "VALDUPES", "Name": "Ada", "Zip": "53"}}),
            ("Exists", {"correlation_id": "123ABC", "properties": {"result": "VALDUPES"}}),
            ("Check", {"type": "xmlResponse", "properties": {"result": "VALDUPES"}}),
        ],
    )
    def test_the_selector_finds_the_response(self, requesting, application, verb, fields):
        def respond(session, _):
            wrong, right = session.create_text_message("no"), session.create_text_message("yes")
            wrong.correlation_id, wrong.type = "124", "other"
            for name, value in fields.items():
                setattr(right, name, value)
            return [wrong, right]

        application(respond)
        status = ReturnStatus()
        assert requesting().do_verb_for(customer(verb, CorrelationID="123ABC"), status) is ReturnCode.VALDUPES
        assert status.text == "yes"

    def test_a_quote_in_a_value_does_not_change_the_selector(self, requesting, application):
        def respond(session, _):
            """Answer with a message that a changed selector would match as well, then with the right one."""
            fields = [("FAIL", "other"), ("SUCCESS", "x' OR '' = '")]
            return [
                session.create_text_message(properties={"result": result, "Name": name, "Zip": "53"})
                for result, name in fields
            ]

        application(respond)
        request = customer("Retrieve")
        request.attributes["Name"] = "x' OR '' = '"
        assert requesting().do_verb_for(request) is ReturnCode.SUCCEED

    def test_raw_response_selectors_insert_values_unquoted(self, requesting, application):
        application(answer("", "SUCCESS", properties={"result": "SUCCESS", "Zip": "1"}))
        request = customer("Retrieve")
        request.attributes["Name"] = "x' OR Zip = '1' OR '' = '"
        assert requesting(raw_response_selectors=True).do_verb_for(request) is ReturnCode.SUCCEED

    @pytest.mark.parametrize(
        "addresses", [[], [BusinessObject("Address"), BusinessObject("Address", "", {"Zip": None})]]
    )
    def test_a_missing_value_fails_before_the_request_is_sent(self, requesting, messages, addresses):
        request = customer("Retrieve")
        request.attributes["Address"] = addresses
        assert requesting().do_verb_for(request) is ReturnCode.FAIL
        assert messages("requests") == []


def test_a_collaboration_may_send_requests(connector, session, messages):
    session.create_producer(Queue("in")).send('{"_type": "Customer", "Name": "Ada"}')
    codes = []
    polling = connector(
        lambda found: codes.append(polling.do_verb_for(found)),
        configuration_meta_object=STATIC,
        definitions=DEFINITIONS,
    )
    polling.poll_for_events()
    assert (codes, len(messages("customers"))) == ([ReturnCode.SUCCEED], 1)
