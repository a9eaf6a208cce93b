"""Dynamic meta-objects: headers and properties of events in them, and their values for requests."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jmsjca import Long, Queue, Short, Topic
from jmsjca.connector import BusinessObject, Connector, ConnectorConfig
from jmsjca.connector.definitions import BusinessObjectDefinitions
from jmsjca.connector.header_mapping import HeaderMapping
from jmsjca.errors import ConfigurationError, DataHandlerError
from jmsjca.messages.message import TextMessage

DEFINITIONS = {
    "Customer": {"attributes": {"Name": {}, "MO": {"type": "Transport"}}, "meta_object": "MO"},
    "Plain": {"attributes": {"Name": {}}},
    "Transport": {
        "attributes": {
            "MessageID": {},
            "CorrelationID": {},
            "Priority": {"type": "integer"},
            "DeliveryMode": {},
            "Destination": {},
            "ReplyToDestination": {},
            "Expiration": {"type": "integer"},
            "TimeStamp": {"type": "integer"},
            "Redelivered": {"type": "boolean"},
            "Type": {},
            "InputFormat": {},
            "GroupID": {},
            "GroupSeq": {"type": "integer"},
            "UserID": {},
            "OutputDestination": {},
            "JMSProperties": {"type": "Props"},
        }
    },
    "Props": {
        "attributes": {
            "region": {},
            "level": {"type": "integer", "information": "name=hub_level;type=Short"},
            "ratio": {"type": "float"},
            "urgent": {"type": "boolean"},
            "code": {"information": "type=Int"},
        }
    },
}
BODY = '{"_type": "Customer", "Name": "Ada"}'


def poll(connector, **fields):
    seen = []
    connector(seen.append, definitions=DEFINITIONS, error_destination="errors", **fields).poll_for_events()
    return seen


def test_only_the_headers_that_the_definition_names_are_filled(connector, session):
    message = session.create_text_message(
        BODY,
        properties={"region": "south", "hub_level": Short(3), "ratio": 0.5, "urgent": True, "code": 9, "other": "x"},
    )
    message.correlation_id, message.reply_to, message.type = "c-1", Topic("replies"), "Cust_In"
    message.set_string_property("JMSXGroupID", "g")
    message.set_int_property("JMSXGroupSeq", 2)
    session.create_producer(Queue("in")).send(message, priority=7, time_to_live=1000)
    (found,) = poll(connector)
    properties = {"region": "south", "level": 3, "ratio": 0.5, "urgent": True, "code": "9"}
    expected = {
        "MessageID": message.message_id,
        "CorrelationID": "c-1",
        "Priority": 7,
        "DeliveryMode": "2",
        "Destination": "queue:in",
        "ReplyToDestination": "topic:replies",
        "Expiration": round(message.expiration.timestamp() * 1000),
        "TimeStamp": round(message.timestamp.timestamp() * 1000),
        "Redelivered": False,
        "Type": "Cust_In",
        "InputFormat": "Cust_In",
        "GroupID": "g",
        "GroupSeq": 2,
        "JMSProperties": BusinessObject("Props", "", properties),
    }
    assert found.get("MO").attributes == expected
    assert found.get("MO.JMSProperties.region") == "south"


def test_headers_that_are_not_set_are_left_out(connector, session):
    session.create_producer(Queue("in")).send(BODY)
    (found,) = poll(connector)
    assert {"CorrelationID", "ReplyToDestination", "Type", "GroupID", "UserID"} & found.get(
        "MO"
    ).attributes.keys() == set()
    assert (found.get("MO.Expiration"), found.get("MO.JMSProperties").attributes) == (0, {})


def test_an_object_without_a_dynamic_meta_object_is_not_changed(connector, session):
    session.create_producer(Queue("in")).send('{"_type": "Plain", "Name": "Ada"}')
    assert poll(connector) == [BusinessObject("Plain", "Create", {"Name": "Ada"})]


def test_the_id_of_the_event_is_the_message_id_with_and_without_an_in_progress_destination(connector, session):
    for in_progress in (None, "held"):
        message = session.create_text_message('{"_type": "Plain"}')
        session.create_producer(Queue("in")).send(message)
        (found,) = poll(connector, in_progress_destination=in_progress)
        assert found.object_event_id == found.get("ObjectEventId") == message.message_id


@pytest.mark.parametrize(
    "properties", [{"hub_level": "high"}, {"hub_level": Long(2**40)}, {"region": "x", "urgent": 7}, {"code": "x"}]
)
def test_an_error_in_the_mapping_fails_the_event(connector, session, messages, properties):
    session.create_producer(Queue("in")).send(session.create_text_message(BODY, properties=properties))
    assert poll(connector) == []
    (failed,) = messages("errors")
    assert "MO.JMSProperties." in failed.properties["_JMSJCA_ExceptionMessage"].replace("Transport", "MO")


def test_a_header_of_another_type_fails_the_event(connector, session, messages):
    definitions = {**DEFINITIONS, "Transport": {"attributes": {"CorrelationID": {"type": "integer"}}}}
    message = session.create_text_message(BODY)
    message.correlation_id = "c-1"
    session.create_producer(Queue("in")).send(message)
    seen = []
    connector(seen.append, definitions=definitions, error_destination="errors").poll_for_events()
    assert (seen, len(messages("errors"))) == ([], 1)


@pytest.mark.parametrize(
    ("attribute", "reason"),
    [
        ({"Colour": {}}, "is no header"),
        ({"JMSProperties": {}}, "is a single child"),
        ({"Priority": {"cardinality": "multiple"}}, "not a single scalar"),
        ({"JMSProperties": {"type": "Wrong"}}, "type=Money"),
        ({"JMSProperties": {"type": "Reserved"}}, "JMSXUserID"),
    ],
)
def test_a_wrong_dynamic_meta_object_is_refused_at_once(attribute, reason):
    definitions = {
        "A": {"attributes": {"MO": {"type": "T"}}, "meta_object": "MO"},
        "T": {"attributes": attribute},
        "Wrong": {"attributes": {"x": {"information": "type=Money"}}},
        "Reserved": {"attributes": {"JMSXUserID": {}}},
    }
    config = ConnectorConfig(connection_url="embedded://meta", input_destination="in", definitions=definitions)
    with pytest.raises(ConfigurationError, match=reason):
        Connector(config, print)


@pytest.mark.parametrize(
    "attribute", [None, {}, {"type": "B", "cardinality": "multiple"}, {"type": "B", "required": True}]
)
def test_a_meta_object_is_a_single_child_that_may_be_missing(attribute):
    attributes = {} if attribute is None else {"MO": attribute}
    with pytest.raises(ConfigurationError, match=r"A\.meta_object"):
        BusinessObjectDefinitions(
            {"A": {"attributes": attributes, "meta_object": "MO"}, "B": {"attributes": {"Priority": {}}}}
        )


class TestRequests:
    MAPPING = HeaderMapping(BusinessObjectDefinitions(DEFINITIONS), "JMSType")

    def test_the_values_that_override(self):
        child = BusinessObject(
            "Transport", "", {"OutputDestination": "topic:x", "Priority": 3, "CorrelationID": None, "MessageID": "m"}
        )
        found = self.MAPPING.overrides(BusinessObject("Customer", "", {"MO": child}))
        assert (found.output_destination, found.priority, found.correlation_id) == ("topic:x", 3, None)

    def test_a_wrong_value_is_refused(self):
        with pytest.raises(ConfigurationError, match=r"Transport of Customer.*Priority"):
            self.MAPPING.overrides(
                BusinessObject("Customer", "", {"MO": BusinessObject("Transport", "", {"Priority": 11})})
            )

    def test_properties_have_the_types_of_their_definition(self):
        props = BusinessObject("Props", "", {"level": 3, "code": "9", "ratio": 1, "urgent": True, "region": None})
        found = self.MAPPING.properties(
            BusinessObject("Customer", "", {"MO": BusinessObject("Transport", "", {"JMSProperties": props})})
        )
        assert found == {"hub_level": 3, "code": 9, "ratio": 1.0, "urgent": True}
        assert type(found["hub_level"]) is Short

    @pytest.mark.parametrize("values", [{"level": 2**20}, {"code": "x"}, {"urgent": "perhaps"}])
    def test_a_property_of_another_type_is_refused(self, values):
        props = BusinessObject("Transport", "", {"JMSProperties": BusinessObject("Props", "", values)})
        with pytest.raises(DataHandlerError, match=r"Props\."):
            self.MAPPING.properties(BusinessObject("Customer", "", {"MO": props}))

    def test_the_data_handler_does_not_see_it(self):
        source = BusinessObject("Customer", "Create", {"Name": "Ada", "MO": BusinessObject("Transport")})
        assert self.MAPPING.without_meta_object(source) == BusinessObject("Customer", "Create", {"Name": "Ada"})
        assert "MO" in source.attributes


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "region": st.text(max_size=9),
            "level": st.integers(-(2**15), 2**15 - 1),
            "ratio": st.floats(allow_nan=False),
            "urgent": st.booleans(),
            "code": st.integers(-(2**31), 2**31 - 1).map(str),
        },
    )
)
def test_properties_survive_a_request_and_an_event(values):
    mapping = TestRequests.MAPPING
    request = BusinessObject(
        "Customer",
        "",
        {"MO": BusinessObject("Transport", "", {"JMSProperties": BusinessObject("Props", "", dict(values))})},
    )
    message = TextMessage("x", properties=mapping.properties(request))
    event = BusinessObject("Customer")
    mapping.fill(event, message, Queue("in"))
    assert event.get("MO.JMSProperties").attributes == values
