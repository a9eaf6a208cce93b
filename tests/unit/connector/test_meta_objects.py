"""Static meta-objects: which rule matches a message, and what is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jmsjca import DeliveryMode, Queue, Topic
from jmsjca.connector import ReturnCode
from jmsjca.connector.meta_objects import MetaData, StaticMetaObject, parse_information
from jmsjca.connector.queue_uris import Target, parse_target
from jmsjca.errors import ConfigurationError

FORMAT_AND_DESTINATION = "InputFormat=Cust_In;InputDestination=in"


class TestInformation:
    def test_pairs(self):
        text = " InputFormat = Cust_In ;; response_selector=a = 'x;y' AND b = 'it''s';"
        assert parse_information(text) == {"inputformat": "Cust_In", "response_selector": "a = 'x;y' AND b = 'it''s'"}
        assert parse_information("") == {}

    @pytest.mark.parametrize("text", ["InputFormat", "=x", "a=1;A=2", "a='x"])
    def test_what_is_no_pair(self, text):
        with pytest.raises(ConfigurationError):
            parse_information(text)

    @given(st.dictionaries(st.from_regex(r"[a-z_]{1,9}", fullmatch=True), st.from_regex(r"[^;']*", fullmatch=True)))
    def test_round_trip(self, pairs):
        text = ";".join(f"{name}={value}" for name, value in pairs.items())
        assert parse_information(text) == {name: value.strip() for name, value in pairs.items()}


class TestTargets:
    @pytest.mark.parametrize(
        ("text", "target"),
        [
            ("orders", Target(Queue("orders"))),
            (" queue:a:b ", Target(Queue("a:b"))),
            ("topic:news", Target(Topic("news"))),
            ("queue://hub/orders", Target(Queue("orders"), "hub")),
            ("queue:///orders?priority=-1&expiry=-2&persistence=-2", Target(Queue("orders"))),
            (
                "queue://hub/a%2Fb?expiry=1500&priority=7&persistence=1&CCSID=1208&encoding=273&targetClient=1",
                Target(Queue("a/b"), "hub", 1.5, 7, DeliveryMode.NON_PERSISTENT, 1208, 273, plain=True),
            ),
            ("queue:///a?expiry=0&targetClient=0", Target(Queue("a"), "", 0.0)),
        ],
    )
    def test_texts(self, text, target):
        assert parse_target(text) == target
        assert target.on("amqp://hub") == target.destination

    @pytest.mark.parametrize(
        ("text", "name"),
        [
            ("orders", "orders"),
            ("queue:///orders?priority=7&targetClient=0", "orders"),
            ("queue://hub/orders?expiry=1500", "queue://hub/orders"),
            ("queue:///orders?priority=7&targetClient=1", "queue:///orders?targetClient=1"),
        ],
    )
    def test_ibm_mq_finds_the_queue_manager_and_sends_without_a_header(self, text, name):
        assert parse_target(text).on("wmq://hub?QueueManager=QM1") == Queue(name)

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "queue:",
            "queue://hub",
            "queue:///",
            "queue:///a?priority=10",
            "queue:///a?expiry=-3",
            "queue:///a?persistence=3",
            "queue:///a?priority=x",
            "queue:///a?priority=1&Priority=2",
            "queue:///a?colour=red",
            "queue:///a?targetClient=2",
        ],
    )
    def test_what_is_refused(self, text):
        with pytest.raises(ConfigurationError):
            parse_target(text)


class TestRules:
    @pytest.mark.parametrize("rule", [FORMAT_AND_DESTINATION, "InputFormat=Cust_In", "InputDestination=in"])
    def test_one_rule_that_matches(self, rule):
        found = StaticMetaObject.of({"Customer_Create": rule}).matching("Cust_In", Queue("in"))
        assert (found.type, found.verb) == ("Customer", "Create")

    @pytest.mark.parametrize(
        "rule",
        [
            "InputFormat=Cust_Out;InputDestination=in",
            "InputFormat=Cust_In;InputDestination=out",
            "OutputFormat=Cust_In",
        ],
    )
    def test_a_rule_that_does_not_match(self, rule):
        assert StaticMetaObject.of({"Customer_Create": rule}).matching("Cust_In", Queue("in")) is None

    def test_several_rules_that_match_are_none(self):
        static = StaticMetaObject.of({"Customer_Create": "InputFormat=Cust_In", "Order_Create": "InputDestination=in"})
        assert static.matching("Cust_In", Queue("in")) is None
        assert static.matching("other", Queue("in")).type == "Order"

    def test_the_default_serves_every_rule_that_has_no_value(self):
        static = StaticMetaObject.of(
            {"A_Create": "Priority=3", "A_B_Update": {"outputformat": "F"}, "Default": "Priority=1;OutputFormat=D"}
        )
        values = [(each.priority, each.output_format) for each in (rule.data for rule in static.rules)]
        assert values == [(3, "D"), (1, "F")]
        assert static.rules[1].type == "A_B"
        assert static.data_for("A", "Create") == static.rules[0].data
        assert static.data_for("A", "Delete") == static.default

    @pytest.mark.parametrize(
        ("attributes", "reason"),
        [
            ({"Default": "InputFormat=x"}, "distinguishes the rules"),
            ({"Customer": "Priority=1"}, "<BusinessObject>_<Verb>"),
            ({"A_Create": "Colour=red;Priority=10"}, "Priority = '10'.*colour is unknown"),
            ({"A_Create": "DeliveryMode=3"}, "DeliveryMode"),
            ({"A_Create": "TimeoutFatal=perhaps"}, "TimeoutFatal"),
            ({"A_Create": "OutputDestination=queue://x"}, "names no queue"),
            ({"A_Create": 7}, "a text or a table"),
        ],
    )
    def test_what_is_refused(self, attributes, reason):
        with pytest.raises(ConfigurationError, match=reason):
            StaticMetaObject.of(attributes)

    def test_files(self, tmp_path):
        (tmp_path / "a.json").write_text('{"A_Create": {"Priority": 3}}')
        assert StaticMetaObject.from_file(tmp_path / "a.json") == StaticMetaObject.of({"A_Create": "Priority=3"})
        for name, text in {"b.json": "[1]", "c.toml": "=", "d.json": "{"}.items():
            (tmp_path / name).write_text(text)
            with pytest.raises(ConfigurationError, match=name):
                StaticMetaObject.from_file(tmp_path / name)

    def test_precedence(self):
        dynamic, static = MetaData.of({"Priority": 1}, "d"), MetaData.of({"Priority": 2, "OutputFormat": "x"}, "s")
        assert dynamic.over(static) == MetaData.of({"Priority": 1, "OutputFormat": "x"}, "both")


RULES = {
    "Customer_Create": "InputFormat=Cust_In;DataHandlerMimeType=text/namevalue",
    "Order_Update": "InputFormat=Order_In;InputDestination=orders",
    "Clash_Create": "InputFormat=Clash",
    "Clash_Update": "InputFormat=Clash",
    "Latin_Create": "InputFormat=Latin;DataEncoding=latin-1",
    "Wrong_Create": "InputFormat=Wrong;DataEncoding=no-such-code",
}


class TestEvents:
    """The rule of a message decides about its business object."""

    @pytest.fixture
    def deliver(self, connector, session):
        """Deliver one message and return the business objects that the collaboration got."""

        def once(body, message_format, queue="in", **fields):
            message = session.create_text_message(body) if isinstance(body, str) else session.create_bytes_message(body)
            message.type = message_format
            session.create_producer(Queue(queue)).send(message)
            seen = []
            fields = {"configuration_meta_object": RULES, "default_verb": "Retrieve", **fields}
            polling = connector(seen.append, input_destination=["in", "orders"], error_destination="errors", **fields)
            assert polling.poll_for_events() is ReturnCode.SUCCEED
            polling.close()
            return [(each.type, each.verb, each.attributes) for each in seen]

        return once

    def test_the_rule_names_type_verb_and_data_handler(self, deliver):
        assert deliver("Name=Ada", "Cust_In") == [("Customer", "Create", {"Name": "Ada"})]

    def test_the_body_may_name_the_verb(self, deliver):
        assert deliver("_verb=Delete\nName=Ada", "Cust_In") == [("Customer", "Delete", {"Name": "Ada"})]

    def test_the_default_data_handler_if_the_rule_names_none(self, deliver):
        assert deliver('{"id": 1}', "Order_In", "orders") == [("Order", "Update", {"id": 1})]

    @pytest.mark.parametrize("message_format", ["Order_In", "Clash", "unheard of", None])
    def test_without_exactly_one_rule_the_body_decides(self, deliver, message_format):
        assert deliver('{"_type": "Other"}', message_format) == [("Other", "Retrieve", {})]

    @pytest.mark.parametrize("message_format", ["Clash", None])
    def test_without_a_rule_and_a_type_it_is_unsubscribed(self, deliver, messages, message_format):
        assert deliver('{"id": 1}', message_format, unsubscribed_destination="unsubscribed") == []
        assert [each.body for each in messages("unsubscribed")] == ['{"id": 1}']

    def test_a_body_of_another_type_fails(self, deliver, messages):
        assert deliver('{"_type": "Other"}', "Order_In", "orders") == []
        assert len(messages("errors")) == 1

    def test_a_body_is_decoded_with_the_encoding_of_its_rule(self, deliver, messages):
        assert deliver('{"name": "Zoë"}'.encode("latin-1"), "Latin") == [("Latin", "Create", {"name": "Zoë"})]
        assert deliver(b"{}", "Wrong") == []
        assert "no-such-code" in messages("errors")[0].properties["_JMSJCA_ExceptionMessage"]

    def test_the_format_may_be_a_property(self, connector, session):
        session.create_producer(Queue("in")).send(
            session.create_text_message("{}", properties={"JMS_IBM_Format": "Latin"})
        )
        seen = []
        connector(
            seen.append, configuration_meta_object=RULES, message_format_property="JMS_IBM_Format"
        ).poll_for_events()
        assert [each.type for each in seen] == ["Latin"]

    def test_an_unknown_data_handler_is_refused_at_once(self, connector):
        with pytest.raises(ConfigurationError, match="text/unheard-of"):
            connector(print, configuration_meta_object={"A_Create": "DataHandlerMimeType=text/unheard-of"})


def test_definitions_of_the_configuration_check_events_and_remove_inactive_children(connector, session, messages):
    definitions = {
        "Order": {"attributes": {"id": {"type": "integer"}, "Line": {"type": "Line", "cardinality": "multiple"}}},
        "Line": {"attributes": {"state": {}}, "inactive": {"state": "deleted"}},
    }
    producer = session.create_producer(Queue("in"))
    producer.send('{"_type": "Order", "id": 1, "Line": [{"state": "deleted"}, {"state": "new"}]}')
    producer.send('{"_type": "Order", "id": "x"}')
    seen = []
    connector(seen.append, definitions=definitions, poll_quantity=2, error_destination="errors").poll_for_events()
    assert [[line.get("state") for line in each.get("Line")] for each in seen] == [["new"]]
    assert len(messages("errors")) == 1
