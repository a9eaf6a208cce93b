"""The configuration of the connector: the documents' names, and refusals that name all wrong fields."""

from datetime import UTC, time

import pytest

from jmsjca import Queue, Topic
from jmsjca.connector import Connector, ConnectorConfig, InDoubtEvents
from jmsjca.connector.config import DOCUMENTED_NAMES, ConnectorFields
from jmsjca.errors import ArgumentTypeError, ConfigurationError

URL = "embedded://config"


def config(**fields):
    return ConnectorConfig(**{"connection_url": URL, "input_destination": "A", **fields})


def test_the_documented_names():
    read = ConnectorConfig.from_properties(
        {
            "ConnectionFactoryName": URL,
            "InputDestination": "A;B; topic:C",
            "Client_ID": "hub",
            "PollQuantity": "2",
            "pollfrequency": "2500",
            "InDoubtEvents": "logerror",
            "ArchiveDestination": "archive",
            "ErrorDestination": "errors",
            "UnsubscribedDestination": "unsubscribed",
            "DataHandlerMimeType": "text/xml",
            "DataHandlerClassName": "app:Handler",
            "MessageFormatProperty": "JMS_IBM_Format",
            "PollStartTime": "08:30",
            "PollEndTime": "17:00",
            "DefaultVerb": "Update",
            "RestartRetryCount": "5",
            "RestartRetryInterval": "2",
        }
    )
    assert read == config(
        input_destination=[Queue("A"), Queue("B"), Topic("C")],
        client_id="hub",
        poll_quantity=2,
        poll_frequency=2.5,
        in_doubt_events=InDoubtEvents.LOG_ERROR,
        archive_destination="archive",
        error_destination=Queue("errors"),
        unsubscribed_destination="queue:unsubscribed",
        data_handler_mime_type="text/xml",
        data_handler_class_name="app:Handler",
        message_format_property="JMS_IBM_Format",
        poll_start_time=time(8, 30),
        poll_end_time=time(17),
        default_verb="Update",
        restart_retry_count=5,
        restart_retry_interval=120.0,
    )


def test_defaults_are_those_of_the_documents():
    read = config()
    assert (read.poll_quantity, read.poll_frequency, read.in_doubt_events) == (1, 10.0, InDoubtEvents.REPROCESS)
    assert (read.restart_retry_count, read.restart_retry_interval, read.default_verb) == (3, 60.0, "Create")


def test_the_names_of_the_adapter_for_websphere_mq():
    read = ConnectorConfig.from_properties(
        {
            "ConnectionFactoryName": URL,
            "InputQueue": "A",
            "ArchiveQueue": "b",
            "ErrorQueue": "c",
            "PollFrequency": "key",
        }
    )
    assert read == config(archive_destination="b", error_destination="c", poll_frequency="key")


def test_files_are_read(tmp_path):
    (tmp_path / "meta.toml").write_text('Order_Create = "InputFormat=Ord"')
    (tmp_path / "objects.json").write_text('{"Order": {"attributes": {"id": {}}}}')
    read = config(configuration_meta_object=tmp_path / "meta.toml", definitions=str(tmp_path / "objects.json"))
    assert read == config(
        configuration_meta_object={"Order_Create": {"InputFormat": "Ord"}},
        definitions={"Order": {"attributes": {"id": {"type": "string"}}}},
    )


def test_polling_can_be_disabled():
    read = ConnectorConfig.from_properties(
        {"ConnectionFactoryName": URL, "InputDestination": "A", "PollFrequency": "no"}
    )
    assert read.poll_frequency is None
    connector = Connector(read, print)
    connector.stop()  # so that `run` ends if it does not refuse
    with pytest.raises(ConfigurationError, match="disables polling"):
        connector.run()


@pytest.mark.parametrize("url", ["embedded:./events.db", "embedded://./events.db"])
def test_a_relative_url_is_no_name_of_a_factory(url):
    assert (
        ConnectorConfig.from_properties({"ConnectionFactoryName": url, "InputDestination": "A"}).connection_url == url
    )


def test_a_name_of_a_factory_is_looked_up():
    read = ConnectorConfig.from_properties({"ConnectionFactoryName": "jms/hub", "InputDestination": "A"})
    assert read.connection_url == "lookup://jms/hub"


@pytest.mark.parametrize("name", ["connection_url", "ConnectionURL", "connectionUrl"])
def test_fields_may_be_spelled_as_properties_are(name):
    read = ConnectorConfig.from_properties({name: URL, "InputDestination": "A"})
    assert read.connection_url == URL


def test_a_configuration_is_frozen_and_hides_its_url():
    read = config(connection_url="amqp://user:secret@host")
    assert "secret" not in repr(read)
    with pytest.raises(ValueError, match="frozen"):
        read.poll_quantity = 7


def test_the_keyword_arguments_are_the_fields():
    assert set(ConnectorFields.__annotations__) == set(ConnectorConfig.model_fields)
    assert set(DOCUMENTED_NAMES.values()) <= set(ConnectorConfig.model_fields)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"poll_quantity": 0}, "poll_quantity: .*greater than or equal to 1"),
        ({"poll_quantity": 501}, "poll_quantity: .*less than or equal to 500"),
        ({"poll_frequency": -1}, "poll_frequency"),
        ({"poll_frequency": "often"}, "poll_frequency"),
        ({"poll_start_time": "25:00"}, "poll_start_time"),
        ({"poll_start_time": "noon"}, "poll_start_time: write HH:MM"),
        ({"poll_start_time": "08:00Z"}, "poll_start_time: write HH:MM"),
        ({"poll_start_time": 7}, "poll_start_time: write HH:MM"),
        ({"poll_end_time": time(8, tzinfo=UTC)}, "poll_end_time: write HH:MM"),
        ({"configuration_meta_object": {"Order": ""}}, "configuration_meta_object.*<BusinessObject>_<Verb>"),
        ({"definitions": {"Order": {}}}, "definitions.*Order.attributes"),
        ({"definitions": "missing.toml"}, "missing.toml cannot be read"),
        ({"restart_retry_count": -1}, "restart_retry_count"),
        ({"input_destination": ""}, "input_destination"),
        ({"input_destination": ["A", "queue:A"]}, "listed twice"),
        ({"input_destination": "topic:T"}, "set client_id"),
        ({"in_progress_destination": "topic:P"}, "topic:P is a topic"),
        ({"input_destination": "topic:T", "client_id": "c", "in_progress_destination": "P"}, "topic:T is a topic"),
        ({"in_progress_destination": "A"}, "queue:A is an input destination"),
        ({"error_destination": "A"}, "queue:A is an input destination"),
        ({"archive_destination": "P", "in_progress_destination": "P"}, "queue:P is the in-progress destination"),
        ({"in_doubt_events": "Retry"}, "in_doubt_events"),
        ({"connection_url": "localhost"}, "connection_url"),
        ({"strict": True}, "error_destination, unsubscribed_destination, archive_destination"),
        ({"strict": True, "error_destination": "e", "archive_destination": "a"}, "set unsubscribed_destination"),
        ({"MonitorQueue": "m"}, "MonitorQueue is unknown"),
        *(
            ({name: True}, f"{name}.*it must be a number, not True")
            for name in (
                *("poll_frequency", "receive_timeout", "restart_retry_interval", "restart_retry_count"),
                *("poll_quantity", "duplicate_history", "session_pool_size_for_requests"),
            )
        ),
    ],
)
def test_a_wrong_field_is_refused(fields, reason):
    with pytest.raises(ConfigurationError, match=reason):
        config(**fields)


def test_all_wrong_fields_are_reported_at_once():
    with pytest.raises(ConfigurationError) as caught:
        config(poll_quantity=501, in_progress_destination="topic:P", strict=True, restart_retry_count=-1, colour="red")
    for name in ("poll_quantity", "in_progress_destination", "strict", "restart_retry_count", "colour"):
        assert name in str(caught.value).split("there are")[0]


def test_a_strict_configuration_with_all_destinations():
    assert config(strict=True, error_destination="e", unsubscribed_destination="u", archive_destination="a").strict


def test_a_data_handler_class_is_loaded_at_once():
    assert Connector(config(data_handler_class_name="jmsjca.connector.data_handlers:XMLDataHandler"), print)
    with pytest.raises(ConfigurationError, match="nowhere:Handler"):
        Connector(config(data_handler_class_name="nowhere:Handler"), print)
    with pytest.raises(ConfigurationError, match="is no data handler"):
        Connector(config(data_handler_class_name="builtins:repr"), print)


def test_a_mime_type_without_a_handler_is_refused():
    with pytest.raises(ConfigurationError, match="text/unheard-of"):
        Connector(config(data_handler_mime_type="text/unheard-of"), print)


@pytest.mark.parametrize("names", [("InputDestination", "InputQueue"), ("PollQuantity", "poll_quantity")])
def test_two_names_of_one_field_are_refused(names):
    with pytest.raises(ConfigurationError, match=f"{names[0]} and {names[1]} both set"):
        ConnectorConfig.from_properties({"ConnectionFactoryName": URL, **dict.fromkeys(names, "1")})


@pytest.mark.parametrize(("value", "expected"), [("no", None), (" Key ", "key"), ("2.5", 2.5)])
def test_a_frequency_without_its_documented_name(value, expected):
    assert ConnectorConfig.from_properties({"connection_url": URL, "poll_frequency": value}).poll_frequency == expected


def test_an_archive_on_another_broker_may_have_the_name_of_an_input():
    assert config(archive_destination="A", archival_connection_url="embedded://archive").archive_destination
    with pytest.raises(ConfigurationError, match="queue:A is an input destination"):
        config(archive_destination="A", archival_connection_url=URL)


@pytest.mark.parametrize("value", ["soon", "-1"])
def test_a_wrong_frequency_is_one_problem(value):
    with pytest.raises(ConfigurationError) as caught:
        config(poll_frequency=value)
    assert str(caught.value).count("poll_frequency") == 1
    assert "poll_frequency: Input should be" in str(caught.value)


def test_only_the_wrong_field_is_reported_and_not_those_that_depend_on_it():
    with pytest.raises(ConfigurationError) as caught:
        ConnectorConfig.from_properties({"InputDestination": "A;B;C"})
    assert str(caught.value) == "The connector's configuration is wrong: connection_url is missing."


async def asynchronous(_):
    """A collaboration that nothing would await."""


class Asynchronous:
    """An object whose call nothing would await."""

    async def __call__(self, _):
        """Take a business object."""


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"collaboration": "hub"}, "collaboration must be a function, a Queue.*, not 'hub'"),
        ({"collaboration": 5}, "collaboration must be"),
        ({"collaboration": asynchronous}, "collaboration must be a function without async"),
        ({"collaboration": Asynchronous()}, "collaboration must be a function without async"),
        ({"collaboration": lambda: None}, "collaboration must be a function of one argument, the business object"),
        ({"collaborations": {"orders": "hub"}}, "collaboration orders must be"),
        ({"resolver": "look"}, "resolver must be a function"),
        ({"resolver": asynchronous}, "resolver must be a function without async"),
        ({"data_handler": "text/xml"}, "data_handler must be an object with the methods to_business_object, to_conten"),
        ({"event_store": "events"}, "event_store must be an object with the methods in_progress"),
        ({"config": {"connection_url": URL}}, "config must be a ConnectorConfig"),
    ],
)
def test_arguments_that_would_fail_each_event_are_refused(arguments, reason):
    with pytest.raises(ArgumentTypeError, match=reason):
        Connector(**{"config": config(), "collaboration": print, **arguments})


MANAGED = {"input_destination": (), "container_managed_events": True, "source_queue": "s", "fault_queue": "f"}
MONITORED = {"monitor_queue": "m", "duplicate_event_elimination": True}


@pytest.mark.parametrize(
    ("fields", "collaboration"),
    [
        ({}, "A"),
        ({"in_progress_destination": "held"}, "held"),
        (MANAGED, "s"),
        (MONITORED, "m"),
    ],
)
def test_a_collaboration_that_the_connector_reads_is_refused(fields, collaboration):
    with pytest.raises(ConfigurationError, match=f"queue:{collaboration}, which the connector reads"):
        Connector(config(**fields), Queue(collaboration))
    assert Connector(config(**fields), Queue("elsewhere"))


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({**MANAGED, "fault_queue": "s"}, "fault_queue is source_queue"),
        ({**MANAGED, "delivery_queue": "s"}, "delivery_queue is source_queue"),
        ({**MONITORED, "error_destination": "m"}, "queue:m is error_destination"),
        ({**MONITORED, "delivery_queue": "m"}, "queue:m is delivery_queue"),
        ({**MANAGED, "delivery_queue": "f"}, "delivery_queue is fault_queue"),
        ({**MANAGED, "archive_destination": "s"}, "archive_destination is source_queue"),
        ({**MANAGED, "archive_destination": "f"}, "archive_destination is fault_queue"),
        ({**MANAGED, "delivery_queue": "topic:d", "archive_destination": "topic:d"}, "archive_destination is delivery"),
        ({**MANAGED, "reply_to_destination": "s"}, "queue:s is source_queue"),
        ({**MANAGED, "reply_to_destination": "f"}, "queue:f is fault_queue"),
        ({"reply_to_destination": "A"}, "queue:A is an input destination"),
        ({"in_progress_destination": "P", "reply_to_destination": "P"}, "queue:P is in_progress_destination"),
        ({**MONITORED, "reply_to_destination": "m"}, "queue:m is monitor_queue"),
        ({**MONITORED, "in_progress_destination": "m"}, "queue:m is the in-progress destination"),
        (
            {"connector_name": "H", "input_destination": "H/MONITORQUEUE", "duplicate_event_elimination": True},
            "queue:H/MONITORQUEUE is an input destination",
        ),
    ],
)
def test_a_queue_for_two_purposes_is_refused(fields, reason):
    with pytest.raises(ConfigurationError, match=reason):
        config(**fields)


def test_the_default_queues_of_a_name_are_refused_for_another_purpose():
    fields = {"input_destination": (), "connector_name": "HUB", "container_managed_events": True}
    with pytest.raises(ConfigurationError, match="archive_destination is source_queue"):
        config(**fields, archive_destination="HUB/SOURCEQUEUE")
    assert config(**fields, archive_destination="HUB/ARCHIVE", reply_to_destination="HUB/REPLIES")


def test_an_archive_on_another_broker_may_have_the_name_of_the_source_queue():
    assert config(**MANAGED, archive_destination="s", archival_connection_url="embedded://archive")


@pytest.mark.parametrize("collaboration", ["f", "a"])
def test_a_collaboration_that_has_another_purpose_is_refused(collaboration):
    managed = config(**MANAGED, archive_destination="a")
    with pytest.raises(ConfigurationError, match=f"queue:{collaboration}, which is .* as well"):
        Connector(managed, Queue(collaboration))


def test_misspelt_field_has_a_suggestion():
    with pytest.raises(ConfigurationError, match=r"input_destinaton is unknown \(did you mean input_destination\?\)"):
        ConnectorConfig(connection_url="embedded://", input_destinaton="orders")
