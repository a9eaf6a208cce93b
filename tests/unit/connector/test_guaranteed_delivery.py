"""Container managed events and duplicate event elimination, and configurations that are refused."""

import io
import json

import pytest

from jmsjca import Queue, Topic
from jmsjca.connector import BusinessObject, Connector, ConnectorConfig, DeliveryOutcome, EventStatus, ReturnCode
from jmsjca.connector.data_handlers import data_handler
from jmsjca.connector.duplicate_elimination import DuplicateElimination, MonitorFailedError
from jmsjca.errors import ConfigurationError, IllegalStateError
from jmsjca.providers.embedded.unit import EmbeddedUnit

ORDER = '{"_type": "Order", "id": "%s"}'


def put(session, queue, *ids):
    """Send orders and return their messages."""
    sent = [session.create_text_message(ORDER % each) for each in ids]
    for message in sent:
        session.create_producer(Queue(queue)).send(message)
    return sent


def ids(messages):
    return [data_handler("application/json").to_business_object(each.body).get("id") for each in messages]


class TestContainerManagedEvents:
    @pytest.fixture
    def container(self, connector):
        def create(collaboration=None, **fields):
            fields = {"connector_name": "HUB", "input_destination": (), "poll_quantity": 5, **fields}
            return connector(collaboration, container_managed_events=True, **fields)

        return create

    def test_events_move_from_the_source_queue_to_the_delivery_queue(self, container, session, messages):
        first, _ = put(session, "HUB/SOURCEQUEUE", "a", "b")
        assert container().transfer_events() is ReturnCode.SUCCEED
        delivered = messages("HUB/DELIVERYQUEUE")
        assert (ids(delivered), messages("HUB/SOURCEQUEUE"), messages("HUB/FAULTQUEUE")) == (["a", "b"], [], [])
        assert delivered[0].properties["ObjectEventId"] == first.message_id

    def test_the_quantity_of_a_poll(self, container, session, messages):
        put(session, "source", "a", "b", "c")
        container(source_queue="source", poll_quantity=2).transfer_events()
        assert (ids(messages("HUB/DELIVERYQUEUE")), ids(messages("source"))) == (["a", "b"], ["c"])

    def test_other_brokers_get_xml(self, url, session, messages):
        put(session, "source", "a")
        properties = {
            "ConnectionFactoryName": url,
            "DeliveryTransport": "JMS",
            "ContainerManagedEvents": "JMS",
            "SourceQueue": "source",
            "DeliveryQueue": "out",
            "FaultQueue": "faults",
            "MimeType": "application/json",
            "BrokerType": "WMQI",
            "PollQuantity": "1",
        }
        with Connector(ConnectorConfig.from_properties(properties)) as moving:
            moving.transfer_events()
        (sent,) = messages("out")
        order = data_handler("text/xml").to_business_object(sent.body)
        assert order == BusinessObject("Order", "Create", {"id": "a"})

    @pytest.mark.parametrize(
        ("body", "status"),
        [("no JSON", "FAIL"), ('{"id": 1}', "NO_SUBSCRIPTION_FOUND"), ('{"_type": "A", "é": 1}', "FAIL")],
    )
    def test_a_fault_has_its_status_and_description(self, container, session, messages, body, status):
        session.create_producer(Queue("HUB/SOURCEQUEUE")).send(body)
        definitions = {"A": {"attributes": {}}}
        assert container(definitions=definitions).transfer_events() is ReturnCode.SUCCEED
        (fault,) = messages("HUB/FAULTQUEUE")
        assert (fault.body, fault.properties["FaultStatus"]) == (body, status)
        assert fault.properties["FaultDescription"]
        assert (messages("HUB/DELIVERYQUEUE"), messages("HUB/SOURCEQUEUE")) == ([], [])

    def test_poll_for_events_is_not_called(self, container, connector):
        with pytest.raises(IllegalStateError, match="managed by the container"):
            container().poll_for_events()
        with pytest.raises(IllegalStateError, match="container_managed_events is False"):
            connector(print).transfer_events()

    def test_run_moves_events(self, container, session, messages):
        put(session, "HUB/SOURCEQUEUE", "a", "b")
        moving = container(poll_frequency="key")
        moving.run(keyboard=io.StringIO("p\n"))
        assert len(messages("HUB/DELIVERYQUEUE")) == 2

    def test_a_function_cannot_be_part_of_the_transaction(self, container):
        with pytest.raises(ConfigurationError, match="set delivery_queue"):
            container(print)
        with pytest.raises(ConfigurationError, match="set delivery_queue"):
            container(connector_name=None, source_queue="s", fault_queue="f")

    def test_a_topic_as_target(self, container, session):
        consumer = session.create_consumer(Topic("news"))
        put(session, "HUB/SOURCEQUEUE", "a")
        container(Topic("news")).transfer_events()
        assert ids([consumer.receive(60)]) == ["a"]


class Interrupted(list):
    """A collaboration that the end of its program interrupts, before or after it has kept the order."""

    def __init__(self, *answers):
        super().__init__()
        self.answers = list(answers)

    def __call__(self, order):
        answer = self.answers.pop(0) if self.answers else None
        self.append(order.get("id"))
        if isinstance(answer, type):
            raise answer
        return answer


class TestDuplicateElimination:
    @pytest.fixture
    def eliminating(self, connector):
        def create(collaboration, **fields):
            fields = {"monitor_queue": "monitor", "poll_quantity": 5, **fields}
            return connector(collaboration, duplicate_event_elimination=True, **fields)

        return create

    def redeliver(self, session, message, queue="in"):
        """Put a message with the id of another one into a queue, as a broker does after a lost transaction."""
        producer = session.create_producer(Queue(queue))
        copy = session.create_text_message(
            message.body, properties={"_JMSJCA_OriginalJMSMessageID": message.message_id}
        )
        producer.send(copy)

    def test_the_monitor_queue_has_one_message_with_the_last_id(self, eliminating, session, messages):
        sent = put(session, "in", "a", "b", "c")
        orders = Interrupted()
        assert eliminating(orders).poll_for_events() is ReturnCode.SUCCEED
        (state,) = messages("monitor")
        assert (orders, state.properties["ObjectEventId"]) == (["a", "b", "c"], sent[-1].message_id)

    @pytest.mark.parametrize("target", [Queue("out"), Topic("out"), "function"])
    @pytest.mark.parametrize("case", [(1, ["a"]), (2, []), (9, [])])
    def test_only_events_of_the_history_are_recognised(self, eliminating, session, case, target):
        """Events that come back from the in-progress destination keep their id."""
        history, again = case
        orders = Interrupted()
        consumer = session.create_consumer(target) if target != "function" else None
        fields = {"duplicate_history": history, "in_progress_destination": "held"}
        collaboration = orders if consumer is None else target

        def delivered():
            if consumer is None:
                found, orders[:] = list(orders), []
                return found
            return ids(iter(lambda: consumer.receive(0), None))

        first, second = put(session, "in", "a", "b")
        polling = eliminating(collaboration, **fields)
        polling.poll_for_events()
        assert delivered() == ["a", "b"]
        polling.close()
        for message in (second, first):
            self.redeliver(session, message, "held")
        eliminating(collaboration, **fields).poll_for_events()
        assert delivered() == again

    @pytest.mark.parametrize(
        "case",
        [
            (None, ["a", "a", "b"], []),
            (EventStatus.NEW, ["a", "a", "b"], []),
            (EventStatus.DUPLICATE, ["a", "b"], []),
            (EventStatus.IN_DOUBT, ["a"], ["a", "b"]),
            (OSError, ["a"], ["a", "b"]),
            ("Duplicate", ["a"], ["a", "b"]),
        ],
    )
    def test_an_interrupted_function_is_in_doubt(self, url, session, messages, case):
        decision, delivered, kept = case
        put(session, "in", "a", "b")
        orders, asked = Interrupted(KeyboardInterrupt), []
        config = ConnectorConfig(
            connection_url=url,
            input_destination="in",
            poll_quantity=2,
            monitor_queue="monitor",
            duplicate_event_elimination=True,
        )
        with Connector(config, orders) as polling, pytest.raises(KeyboardInterrupt):
            polling.poll_for_events()

        def resolver(order):
            asked.append(order.get("id"))
            if decision is OSError:
                raise OSError("no database")
            return decision if order.get("id") in orders else EventStatus.NEW

        with Connector(config, orders, resolver=resolver if decision else None) as polling:
            code = polling.poll_for_events()
        assert (orders, ids(messages("in"))) == (delivered, kept)
        assert asked == ([] if decision is None else ["a"] if kept else ["a", "b"])  # all of the poll are in doubt
        assert code is (ReturnCode.APPRESPONSETIMEOUT if kept else ReturnCode.SUCCEED)

    def test_the_events_of_a_release_that_recorded_each_call_are_in_doubt(self, url, session, messages):
        (sent,) = put(session, "in", "a")
        state = session.create_text_message(f'[3, [], "{sent.message_id}"]')
        session.create_producer(Queue("monitor")).send(state)
        orders = Interrupted()
        fields = {"duplicate_event_elimination": True, "monitor_queue": "monitor"}
        config = ConnectorConfig(connection_url=url, input_destination="in", **fields)
        with Connector(config, orders, resolver=lambda _: EventStatus.DUPLICATE) as polling:
            assert polling.poll_for_events() is ReturnCode.SUCCEED
        (state,) = messages("monitor")
        assert (orders, messages("in"), state.body) == ([], [], "[4, [], []]")

    @pytest.mark.parametrize("target", [Queue("out"), "function"])
    @pytest.mark.parametrize("held", [None, "held"])
    def test_a_poll_has_a_few_transactions(self, eliminating, session, messages, monkeypatch, target, held):
        commits = []
        commit = EmbeddedUnit.commit
        monkeypatch.setattr(
            EmbeddedUnit, "commit", lambda unit, **options: commits.append(unit) or commit(unit, **options)
        )
        put(session, "in", *map(str, range(50)))
        before, orders = len(commits), Interrupted()
        collaboration = orders if target == "function" else target
        eliminating(collaboration, poll_quantity=50, in_progress_destination=held).poll_for_events()
        assert len(commits) - before <= 5
        assert (orders or ids(messages("out"))) == [str(each) for each in range(50)]

    @pytest.mark.parametrize("target", [Queue("out"), "function"])
    def test_an_event_that_fails_ends_the_transaction_of_those_before_it(self, eliminating, session, messages, target):
        put(session, "in", "a", "b")
        session.create_producer(Queue("in")).send("no JSON")
        put(session, "in", "c")
        orders = Interrupted()
        collaboration = orders if target == "function" else target
        fields = {"error_destination": "errors", "duplicate_history": 9}
        assert eliminating(collaboration, **fields).poll_for_events() is ReturnCode.SUCCEED
        assert (orders or ids(messages("out"))) == ["a", "b", "c"]
        assert [each.body for each in messages("errors")] == ["no JSON"]
        assert len(json.loads(messages("monitor")[0].body)[1]) == 3

    def test_a_monitor_queue_that_fails_repeats_the_poll_one_by_one(self, eliminating, session, messages, monkeypatch):
        put(session, "in", "a", "b", "c")
        sizes, orders = [], Interrupted()
        polling = eliminating(orders, duplicate_history=9)
        record = DuplicateElimination.record

        def failing(elimination, sending=None):
            monkeypatch.setattr(DuplicateElimination, "record", record)
            raise MonitorFailedError("no monitor")

        monkeypatch.setattr(DuplicateElimination, "record", failing)
        assert polling.poll_for_events() is ReturnCode.APPRESPONSETIMEOUT
        assert len(messages("in")) == 3
        monkeypatch.setattr(
            DuplicateElimination,
            "begin",
            lambda elimination, found: sizes.append(len(found)),  # not for one event
        )
        assert polling.poll_for_events() is ReturnCode.SUCCEED
        assert (orders, messages("in"), sum(sizes)) == (["a", "b", "c"] * 2, [], 0)

    @pytest.mark.parametrize("held", [None, "held"])
    def test_an_inactive_connector_keeps_this_event_and_those_after_it(self, eliminating, session, messages, held):
        put(session, "in", *"abcd")
        orders = Interrupted(None, None, DeliveryOutcome.CONNECTOR_NOT_ACTIVE)
        fields = {"in_progress_destination": held, "duplicate_history": 9}
        polling = eliminating(orders, **fields)
        assert polling.poll_for_events() is ReturnCode.APPRESPONSETIMEOUT
        polling.close()
        assert ids(messages(held or "in")) == ["c", "d"]
        assert json.loads(messages("monitor")[0].body)[2] == []  # none is in doubt
        assert eliminating(orders, **fields).poll_for_events() is ReturnCode.SUCCEED
        assert (orders, messages(held or "in")) == (["a", "b", "c", "c", "d"], [])

    @pytest.mark.parametrize("answer", [DeliveryOutcome.FAIL, DeliveryOutcome.NO_SUBSCRIPTION_FOUND, OSError])
    def test_an_event_that_failed_is_not_remembered(self, eliminating, session, messages, answer):
        put(session, "in", "a")
        orders = Interrupted(answer)
        fields = {"error_destination": "errors", "unsubscribed_destination": "errors"}
        eliminating(orders, **fields).poll_for_events()
        (failed,) = messages("errors")
        (state,) = messages("monitor")
        assert (failed.body, state.properties["ObjectEventId"]) == (ORDER % "a", None)

    def test_an_object_that_cannot_be_converted_leaves_no_trace(self, eliminating, session, messages):
        session.create_producer(Queue("in")).send("_type=Order")
        rule = {"Order_Create": "InputDestination=in;DataHandlerMimeType=text/namevalue"}
        eliminating(
            Queue("out"),
            configuration_meta_object=rule,
            definitions={"Other": {"attributes": {}}},
            error_destination="errors",
        ).poll_for_events()
        assert (messages("out"), messages("monitor"), len(messages("errors"))) == ([], [], 1)

    @pytest.mark.parametrize("target", [Queue("out"), "function"])
    def test_a_copy_that_is_refused_does_not_repeat_the_delivery(self, eliminating, session, messages, target):
        put(session, "in", "a", "b")
        archive = session.create_temporary_queue()
        archive.delete()
        orders = Interrupted()
        collaboration = orders if target == "function" else target
        polling = eliminating(collaboration, archive_destination=archive)
        assert polling.poll_for_events() is ReturnCode.APPRESPONSETIMEOUT
        eliminating(collaboration).poll_for_events()
        assert (orders or ids(messages("out")), messages("in")) == (["a", "b"], [])

    @pytest.mark.parametrize("target", [Queue("out"), "function"])
    @pytest.mark.parametrize("count", [1, 4, 9, 25])
    def test_the_monitor_queue_is_small_during_a_poll_and_has_one_message_after_it(
        self, eliminating, session, messages, target, count
    ):
        put(session, "in", *map(str, range(count)))
        sizes = []
        collaboration = (lambda _: sizes.append(len(messages("monitor")))) if target == "function" else target
        eliminating(collaboration, poll_quantity=count).poll_for_events()
        assert len(messages("monitor")) == 1
        assert all(size <= 13 for size in sizes)

    def test_a_queue_of_somebody_else_is_a_timeout(self, eliminating, session, caplog):
        session.create_producer(Queue("monitor")).send("hello")
        assert eliminating(print).poll_for_events() is ReturnCode.APPRESPONSETIMEOUT
        assert "belongs to one connector alone" in caplog.text


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"container_managed_events": True, "connector_name": "A"}, "leave input_destination out"),
        ({"container_managed_events": True, "input_destination": ()}, "set source_queue"),
        ({"container_managed_events": True, "input_destination": (), "source_queue": "s"}, "set fault_queue"),
        (
            {"container_managed_events": True, "input_destination": (), "source_queue": "topic:s", "fault_queue": "f"},
            "queues only, and topic:s is a topic",
        ),
        (
            {
                "container_managed_events": True,
                "input_destination": (),
                "connector_name": "A",
                "in_progress_destination": "p",
            },
            "no in-progress destination",
        ),
        (
            {
                "container_managed_events": "JMS",
                "input_destination": (),
                "connector_name": "A",
                "duplicate_event_elimination": True,
            },
            "exclude each other",
        ),
        ({"duplicate_event_elimination": True}, "set monitor_queue"),
        ({"duplicate_event_elimination": True, "monitor_queue": "topic:m"}, "topic:m is a topic"),
        ({"duplicate_event_elimination": True, "monitor_queue": "in"}, "queue:in is an input destination"),
        ({"DeliveryTransport": "IDL"}, "DeliveryTransport is unknown"),
        ({"delivery_transport": "IDL"}, "needs JMS"),
        ({"duplicate_history": 0}, "duplicate_history"),
    ],
)
def test_what_is_refused(fields, reason):
    with pytest.raises(ConfigurationError, match=reason):
        ConnectorConfig(**{"connection_url": "embedded://x", "input_destination": "in", **fields})


def test_documented_names():
    read = ConnectorConfig.from_properties(
        {
            "ConnectionFactoryName": "embedded://x",
            "ApplicationName": "HUB",
            "InputDestination": "in",
            "DuplicateEventElimination": "true",
            "ContainerManagedEvents": "",
            "BrokerType": "ICS",
        }
    )
    assert (read.duplicate_event_elimination, read.container_managed_events) == (True, False)
    assert (read.monitor_queue, read.delivery_mime_type) == (Queue("HUB/MONITORQUEUE"), "application/json")
    with pytest.raises(ConfigurationError, match="needs JMS"):
        ConnectorConfig.from_properties({"ConnectionFactoryName": "embedded://x", "DeliveryTransport": "IDL"})
