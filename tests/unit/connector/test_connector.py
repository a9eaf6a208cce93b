"""The polling connector on real queues: outcomes, copies, in-doubt events, restarts."""

import itertools
import logging
import threading

import pytest
from poisoning import poison_embedded

from jmsjca import ConnectionFactory, MapMessage, Queue, TextMessage, Topic
from jmsjca.config.clock import SystemClock
from jmsjca.connector import (
    BusinessObject,
    Connector,
    ConnectorConfig,
    ConnectorTerminatedError,
    DeliveryOutcome,
    InDoubtEvents,
    ReturnCode,
)
from jmsjca.errors import ConfigurationError, IllegalStateError

PATIENCE = 60
ORDER = '{"_type": "Order", "_verb": "Update", "id": "%s"}'
_numbers = itertools.count()


@pytest.fixture
def url():
    return f"embedded://connector-{next(_numbers)}"


@pytest.fixture
def session(url):
    """A session of another program."""
    with ConnectionFactory(url).create_connection() as connection:
        yield connection.create_session()


@pytest.fixture
def put(session):
    def send(queue, *ids):
        producer = session.create_producer(Queue(queue))
        for each in ids:
            producer.send(ORDER % each)

    return send


@pytest.fixture
def bodies(session):
    """Return the ids of the orders that are in a queue, without removing them."""

    def browse(queue):
        with session.create_browser(Queue(queue)) as browser:
            return [message.body.split('"id": "')[-1].rstrip('"}') for message in browser]

    return browse


@pytest.fixture
def only(session):
    """Return the only message of a queue."""

    def browse(queue):
        with session.create_browser(Queue(queue)) as browser:
            (message,) = browser
            return message

    return browse


@pytest.fixture
def connector(url):
    """Create connectors on the broker, which are closed afterwards."""
    created = []

    def create(collaboration, **fields):
        fields = {"connection_url": url, "input_destination": "in", "restart_retry_interval": 0, **fields}
        created.append(Connector(ConnectorConfig(**fields), collaboration))
        return created[-1]

    yield create
    for each in created:
        each.close()


class Orders(list):
    """A collaboration: it keeps the ids and returns or raises what it is told to."""

    def __init__(self, *answers):
        super().__init__()
        self.answers = list(answers)

    def __call__(self, business_object):
        self.append(business_object.get("id"))
        answer = self.answers.pop(0) if self.answers else None
        if isinstance(answer, type):  # a new exception each time: one that is kept would keep the units of its frames
            raise answer("the database is down")
        if isinstance(answer, BaseException):
            raise answer
        return answer


class TestPolling:
    def test_one_message_per_destination_and_turn(self, connector, put, bodies):
        for queue, ids in {"A": ["a1", "a2"], "B": ["b1"], "C": ["c1", "c2", "c3", "c4", "c5"]}.items():
            put(queue, *ids)
        orders = Orders()
        polling = connector(orders, input_destination=["A", "B", "C"], poll_quantity=2)
        assert polling.poll_for_events() is ReturnCode.SUCCEED
        assert orders == ["a1", "b1", "c1", "a2", "c2"]
        assert (bodies("A"), bodies("B"), bodies("C")) == ([], [], ["c3", "c4", "c5"])

    def test_messages_that_are_not_polled_yet_stay_available_to_others(self, connector, put, session):
        put("in", "a", "b")
        assert connector(Orders()).poll_for_events() is ReturnCode.SUCCEED
        assert session.create_consumer(Queue("in")).receive(0).body == ORDER % "b"

    def test_a_poll_prefetches_no_more_than_it_takes(self, connector, put, session):
        put("in", *map(str, range(15)))
        orders = Orders()
        polling = connector(orders, poll_quantity=12)
        assert polling.poll_for_events() is ReturnCode.SUCCEED
        assert orders == [str(number) for number in range(12)]
        assert session.create_consumer(Queue("in")).receive(0).body == ORDER % "12"

    def test_a_poll_that_ends_early_leaves_the_others_in_their_order_and_uncounted(self, connector, put, session):
        put("in", *map(str, range(5)))
        with pytest.raises(KeyboardInterrupt):
            connector(Orders(None, KeyboardInterrupt()), poll_quantity=5).poll_for_events()
        consumer = session.create_consumer(Queue("in"))
        left = [consumer.receive(PATIENCE) for _ in range(4)]
        assert [message.body for message in left] == [ORDER % number for number in range(1, 5)]
        assert [message.delivery_count for message in left] == [2, 1, 1, 1]

    @pytest.mark.parametrize("collaboration", [None, lambda _: None], ids=["none", "one"])
    def test_a_connector_without_sources_polls_nothing_and_says_so(self, connector, collaboration):
        nothing = connector(collaboration, input_destination=(), poll_start_time="00:00", poll_end_time="00:01")
        for poll in (nothing.poll_for_events, nothing.run):
            with pytest.raises(ConfigurationError, match="nothing to poll: set input_destination"):
                poll()

    def test_the_read_of_a_destination_does_not_wait(self, connector, monkeypatch):
        polling, codes = connector(Orders(), input_destination=["A", "B"], poll_quantity=2), []
        monkeypatch.setattr(SystemClock, "monotonic", staticmethod(lambda: 0.0))  # so the shortest wait never ends
        thread = threading.Thread(target=lambda: codes.append(polling.poll_for_events()), daemon=True)
        thread.start()
        thread.join(PATIENCE)
        assert codes == [ReturnCode.SUCCEED]

    def test_an_empty_poll_succeeds(self, connector):
        assert connector(Orders()).poll_for_events() is ReturnCode.SUCCEED

    def test_the_collaboration_gets_the_business_object_of_the_message(self, connector, session):
        seen = []
        producer = session.create_producer(Queue("in"))
        producer.send('{"_type": "Order", "_verb": "Delete", "id": 7}')
        producer.send(b'{"_type": "Customer"}')
        assert connector(seen.append, poll_quantity=2, default_verb="Retrieve").poll_for_events() is ReturnCode.SUCCEED
        assert seen == [BusinessObject("Order", "Delete", {"id": 7}), BusinessObject("Customer", "Retrieve")]

    def test_a_topic_is_read_by_a_durable_subscription(self, connector, session):
        orders = Orders()
        config = {"input_destination": "topic:news", "client_id": "hub", "poll_quantity": 5}
        first = connector(orders, **config)
        first.poll_for_events()
        first.close()
        session.create_producer(Topic("news")).send(ORDER % "while closed")
        connector(orders, **config).poll_for_events()
        assert orders == ["while closed"]

    def test_a_connector_has_one_thread(self, connector, put):
        put("in", "a")
        refused = []

        def poll_again(_):
            with pytest.raises(IllegalStateError, match="polls already"):
                polling.poll_for_events()
            refused.append(True)

        polling = connector(poll_again)
        polling.poll_for_events()
        assert refused == [True]

    def test_an_interrupt_keeps_the_message(self, connector, put, bodies):
        put("in", "a")
        with pytest.raises(KeyboardInterrupt):
            connector(Orders(KeyboardInterrupt())).poll_for_events()
        assert bodies("in") == ["a"]


TARGETS = {
    "archive_destination": "archive",
    "error_destination": "errors",
    "unsubscribed_destination": "unsubscribed",
}


@pytest.mark.parametrize("in_progress", [None, "held"])
@pytest.mark.parametrize(
    ("target", "answer"),
    [
        ("error_destination", DeliveryOutcome.FAIL),
        ("unsubscribed_destination", DeliveryOutcome.NO_SUBSCRIPTION_FOUND),
        ("archive_destination", DeliveryOutcome.SUCCEED),
    ],
)
def test_a_message_is_kept_while_its_destination_is_not_valid(  # fixtures
    connector, session, put, bodies, in_progress, target, answer
):
    """IBM's adapter discards it unless the destination is "defined and valid"."""
    gone = session.create_temporary_queue()
    put("in", "a", "b")
    polling = connector(Orders(answer), in_progress_destination=in_progress, **{target: gone})
    gone.delete()
    assert polling.poll_for_events() is ReturnCode.APPRESPONSETIMEOUT
    assert sorted(bodies("in") + (bodies("held") if in_progress else [])) == ["a", "b"]


@pytest.mark.parametrize("in_progress", [None, "held"])
class TestOutcomes:
    """Each outcome has its effect with and without an in-progress destination."""

    @pytest.mark.parametrize(
        "case",
        [
            (None, "archive"),
            (DeliveryOutcome.SUCCEED, "archive"),
            (DeliveryOutcome.FAIL, "errors"),
            (DeliveryOutcome.NO_SUBSCRIPTION_FOUND, "unsubscribed"),
            (OSError, "errors"),
            ("SUCCEED, as a text", "errors"),
        ],
    )
    def test_the_message_is_copied_to_one_destination(self, connector, put, bodies, in_progress, case):
        answer, target = case
        put("in", "a", "b")
        polling = connector(Orders(answer), **TARGETS, in_progress_destination=in_progress)
        assert polling.poll_for_events() is ReturnCode.SUCCEED
        assert {each: bodies(each) for each in TARGETS.values() if bodies(each)} == {target: ["a"]}
        assert (bodies("in"), bodies("held")) == (["b"], [])

    @pytest.mark.parametrize(
        "case", [(None, "archive"), (OSError, "errors"), (DeliveryOutcome.NO_SUBSCRIPTION_FOUND, "unsubscribed")]
    )
    def test_a_copy_never_expires_and_records_when_the_message_would_have(
        self, connector, session, only, in_progress, case
    ):
        answer, target = case
        session.create_producer(Queue("in")).send(message := TextMessage(ORDER % "a"), time_to_live=3600)
        connector(Orders(answer), **TARGETS, in_progress_destination=in_progress).poll_for_events()
        copy, expiration = only(target), round(message.expiration.timestamp() * 1000)
        assert (copy.expiration, copy.properties.get("_JMSJCA_OriginalExpiration")) == (None, expiration)

    def test_an_inactive_collaboration_keeps_the_message(self, connector, put, bodies, in_progress):
        put("in", "a", "b")
        orders = Orders(DeliveryOutcome.CONNECTOR_NOT_ACTIVE)
        polling = connector(orders, **TARGETS, in_progress_destination=in_progress, poll_quantity=5)
        assert polling.poll_for_events() is ReturnCode.APPRESPONSETIMEOUT
        assert (bodies("in"), bodies("held")) == (([], ["a", "b"]) if in_progress else (["a", "b"], []))
        assert [bodies(queue) for queue in TARGETS.values()] == [[], [], []]
        assert polling.poll_for_events() is ReturnCode.SUCCEED
        assert orders == ["a", "a", "b"]

    @pytest.mark.parametrize(
        "case",
        [("no JSON", "errors"), ('{"id": 1}', "unsubscribed"), (MapMessage({"id": 1}), "errors"), ("", "errors")],
    )
    def test_a_body_that_is_no_business_object(self, connector, session, only, in_progress, case):
        body, target = case
        session.create_producer(Queue("in")).send(body)
        orders = Orders()
        connector(orders, **TARGETS, in_progress_destination=in_progress).poll_for_events()
        assert only(target).get_string_property("JMS_Sun_JMSJCA_ExceptionClass").startswith("jmsjca.errors.")
        assert orders == []

    def test_a_message_that_cannot_be_decoded_hides_no_other(self, connector, put, bodies, url, in_progress):
        put("in", "a")
        poison_embedded(url, Queue("in"))
        put("in", "b")
        orders = Orders()
        fields = {"in_progress_destination": in_progress, "poll_quantity": 3}
        assert connector(orders, **fields).poll_for_events() is ReturnCode.SUCCEED
        assert (orders, bodies("in"), bodies("held")) == (["a", "b"], [], [])

    def test_the_copy_of_a_message_that_cannot_be_decoded_has_its_bytes(self, connector, url, only, in_progress):
        poison_embedded(url, Queue("in"))
        connector(print, **TARGETS, in_progress_destination=in_progress).poll_for_events()
        copy = only("errors")
        assert (copy.body, copy.properties["_JMSJCA_OriginalDestinationName"]) == (b"poison", "in")
        assert "cannot be decoded" in copy.properties["_JMSJCA_ExceptionMessage"]

    def test_a_copy_has_the_failure_and_the_origin(self, connector, session, only, in_progress):
        sent = TextMessage(ORDER % "a", correlation_id="c-1", type="order", properties={"region": "south"})
        session.create_producer(Queue("in")).send(sent, priority=7)
        connector(Orders(OSError("no disk")), **TARGETS, in_progress_destination=in_progress).poll_for_events()
        copy = only("errors")
        assert (copy.correlation_id, copy.type, copy.priority, copy.body) == ("c-1", "order", 7, ORDER % "a")
        expected = {
            "region": "south",
            "_JMSJCA_ExceptionClass": "OSError",
            "_JMSJCA_ExceptionMessage": "no disk",
            "_JMSJCA_OriginalDestinationName": "in",
            "_JMSJCA_OriginalDestinationType": "javax.jms.Queue",
            "_JMSJCA_OriginalJMSMessageID": sent.message_id,
            "_JMSJCA_RedeliveryCount": 0,
        }
        assert {name: copy.properties.get(name) for name in expected} == expected
        assert "_JMSJCA_ConnectorRun" not in copy.properties

    def test_without_a_destination_it_is_discarded_with_a_warning(self, connector, put, bodies, caplog, in_progress):
        put("in", "a", "b")
        answers = [DeliveryOutcome.FAIL, DeliveryOutcome.NO_SUBSCRIPTION_FOUND]
        connector(Orders(*answers), in_progress_destination=in_progress, poll_quantity=2).poll_for_events()
        warnings = [each.getMessage() for each in caplog.records if each.levelno == logging.WARNING]
        reasons = [f"{answer}: The collaboration returned {answer}" for answer in answers]
        assert all("discarded" in text and reason in text for text, reason in zip(warnings, reasons, strict=True))
        assert (bodies("in"), bodies("held")) == ([], [])

    def test_success_without_an_archive_is_silent(self, connector, put, bodies, caplog, in_progress):
        put("in", "a")
        connector(Orders(), in_progress_destination=in_progress).poll_for_events()
        assert (bodies("in"), caplog.records) == ([], [])


class TestInProgress:
    def test_the_message_is_there_before_its_delivery(self, connector, put, bodies):
        put("in", "a", "b")
        with pytest.raises(KeyboardInterrupt):
            connector(Orders(KeyboardInterrupt()), in_progress_destination="held").poll_for_events()
        assert (bodies("in"), bodies("held")) == (["b"], ["a"])

    @pytest.fixture
    def in_doubt(self, connector, put, bodies):
        """Two events in doubt, each of a connector that ended during its delivery, and one that waits."""
        for each in ("x", "y"):
            put("in", each)
            with pytest.raises(KeyboardInterrupt):
                connector(
                    Orders(KeyboardInterrupt()), in_progress_destination="held", in_doubt_events="Ignore"
                ).poll_for_events()
        put("in", "a")
        assert bodies("held") == ["x", "y"]

    @pytest.mark.usefixtures("in_doubt")
    def test_reprocess_delivers_them_first(self, connector, bodies):
        orders = Orders()
        connector(orders, in_progress_destination="held", poll_quantity=3).poll_for_events()
        assert orders == ["x", "y", "a"]
        assert (bodies("in"), bodies("held")) == ([], [])

    @pytest.mark.usefixtures("in_doubt")
    @pytest.mark.parametrize(
        ("quantity", "polls"), [(1, ["x", "xy", "xya", "xyab"]), (2, ["xy", "xyab"]), (3, ["xya", "xyab"])]
    )
    def test_the_poll_quantity_bounds_events_in_doubt(self, connector, put, quantity, polls):
        put("in", "b")
        orders = Orders()
        polling = connector(orders, in_progress_destination="held", poll_quantity=quantity)
        for delivered in polls:
            assert polling.poll_for_events() is ReturnCode.SUCCEED
            assert "".join(orders) == delivered

    @pytest.mark.usefixtures("in_doubt")
    def test_a_reprocessed_event_keeps_its_origin(self, connector, session):
        archived = {"in_progress_destination": "held", "archive_destination": "archive", "poll_quantity": 3}
        connector(Orders(), **archived).poll_for_events()
        with session.create_browser(Queue("archive")) as browser:
            origins = [message.properties["_JMSJCA_OriginalDestinationName"] for message in browser]
        assert origins == ["in", "in", "in"]

    @pytest.mark.usefixtures("in_doubt")
    def test_reprocess_ends_when_the_collaboration_is_not_active(self, connector, bodies):
        orders = Orders(None, DeliveryOutcome.CONNECTOR_NOT_ACTIVE)
        polling = connector(orders, in_progress_destination="held", poll_quantity=3)
        assert polling.poll_for_events() is ReturnCode.APPRESPONSETIMEOUT
        assert (orders, bodies("held"), bodies("in")) == (["x", "y"], ["y"], ["a"])

    @pytest.mark.usefixtures("in_doubt")
    def test_ignore_leaves_them_there_silently(self, connector, bodies, caplog):
        orders = Orders()
        caplog.clear()
        polling = connector(orders, in_progress_destination="held", in_doubt_events=InDoubtEvents.IGNORE)
        assert polling.poll_for_events() is ReturnCode.SUCCEED
        assert (orders, bodies("held"), caplog.records) == (["a"], ["x", "y"], [])

    @pytest.mark.usefixtures("in_doubt")
    def test_log_error_leaves_them_there_and_starts(self, connector, bodies, caplog):
        orders = Orders()
        polling = connector(orders, in_progress_destination="held", in_doubt_events="LogError")
        assert polling.poll_for_events() is polling.poll_for_events() is ReturnCode.SUCCEED
        assert (orders, bodies("held")) == (["a"], ["x", "y"])
        assert [each.levelname for each in caplog.records] == ["CRITICAL"]

    @pytest.mark.usefixtures("in_doubt")
    def test_fail_on_startup_terminates_without_a_restart(self, connector, bodies, caplog):
        orders = Flaky(1)  # ends a connector that starts in spite of them
        orders.connector = connector(
            orders, in_progress_destination="held", in_doubt_events="FailOnStartup", poll_frequency=0
        )
        with pytest.raises(ConnectorTerminatedError, match="queue:held has messages"):
            orders.connector.run()
        assert (orders, bodies("held"), bodies("in")) == ([], ["x", "y"], ["a"])
        assert [each.levelname for each in caplog.records] == ["CRITICAL"]

    @pytest.mark.parametrize("mode", list(InDoubtEvents))
    def test_every_mode_starts_with_an_empty_destination(self, connector, put, caplog, mode):
        put("in", "a")
        orders = Orders()
        polling = connector(orders, in_progress_destination="held", in_doubt_events=mode)
        assert polling.poll_for_events() is ReturnCode.SUCCEED
        assert (orders, caplog.records) == (["a"], [])

    def test_a_message_that_an_operator_puts_there_is_processed(self, connector, put, only):
        put("held", "by hand")
        connector(Orders(), in_progress_destination="held", archive_destination="archive").poll_for_events()
        assert only("archive").properties["_JMSJCA_OriginalDestinationName"] == "held"


class Flaky(Orders):
    """A collaboration that stops its connector after some calls."""

    def __init__(self, calls, *answers):
        super().__init__(*answers)
        self.calls = calls
        self.connector = None

    def __call__(self, business_object):
        try:
            return super().__call__(business_object)
        finally:
            if len(self) == self.calls:
                self.connector.stop()


NOT_ACTIVE = DeliveryOutcome.CONNECTOR_NOT_ACTIVE


class TestRun:
    def test_it_restarts_and_a_success_resets_the_count(self, connector, put, bodies):
        put("in", "a", "b", "c")
        orders = Flaky(5, NOT_ACTIVE, None, NOT_ACTIVE, None, None)
        orders.connector = connector(orders, restart_retry_count=1, poll_frequency=0)
        orders.connector.run()
        assert orders == ["a", "a", "b", "b", "c"]
        assert bodies("in") == []

    @pytest.mark.parametrize("count", [0, 2])
    def test_it_terminates_after_the_restarts(self, connector, put, bodies, count):
        put("in", "a")
        orders = Orders(*[NOT_ACTIVE] * 9)
        with pytest.raises(ConnectorTerminatedError, match=f"{count + 1} times in a row"):
            connector(orders, restart_retry_count=count, poll_frequency=0).run()
        assert orders == ["a"] * (count + 1)
        assert bodies("in") == ["a"]

    def test_the_pauses_between_restarts_double(self, connector, put, caplog):
        put("in", "a")
        with pytest.raises(ConnectorTerminatedError):
            connector(
                Orders(*[NOT_ACTIVE] * 9), restart_retry_count=3, restart_retry_interval=0.001, poll_frequency=0
            ).run()
        pauses = [each.args[0] for each in caplog.records if "restarts in" in each.msg]
        assert pauses == [0.001, 0.002, 0.004]

    def test_a_stop_ends_the_poll_after_the_current_message(self, connector, put, bodies):
        put("in", "a", "b", "c")
        orders = Flaky(2)
        orders.connector = connector(orders, poll_quantity=3, poll_frequency=1e6)
        orders.connector.run()
        assert (orders, bodies("in")) == (["a", "b"], ["c"])

    def test_a_stop_interrupts_the_pause(self, connector, put):
        put("in", "a")
        called = threading.Event()
        polling = connector(lambda _: called.set(), poll_frequency=1e6)
        thread = threading.Thread(target=polling.run, daemon=True)
        thread.start()
        assert called.wait(PATIENCE)
        polling.stop()
        thread.join(PATIENCE)
        assert not thread.is_alive()

    def test_a_stop_interrupts_the_pause_before_a_restart(self, connector, put, caplog):
        put("in", "a")
        pausing = threading.Event()
        caplog.handler.addFilter(lambda record: "restarts in" not in record.msg or pausing.set() or True)
        polling = connector(Orders(NOT_ACTIVE), restart_retry_interval=1e6)
        ended = []
        thread = threading.Thread(target=lambda: ended.append(polling.run()), daemon=True)
        thread.start()
        assert pausing.wait(PATIENCE)
        polling.stop()
        thread.join(PATIENCE)
        assert ended == [None]

    def test_a_stopped_connector_does_not_poll(self, connector):
        polling = connector(Orders())
        with polling:
            polling.poll_for_events()
        polling.run()  # returns at once
        with pytest.raises(IllegalStateError, match="stopped"):
            polling.poll_for_events()

    def test_a_close_disconnects(self, connector, session):
        orders = Orders()
        polling = connector(orders, input_destination="topic:news", client_id="hub")
        polling.poll_for_events()
        polling.close()
        session.create_producer(Topic("news")).send(ORDER % "a")
        follower = connector(orders, input_destination="topic:news", client_id="hub")  # the client id is free again
        assert follower.poll_for_events() is ReturnCode.SUCCEED
        assert orders == ["a"]

    def test_a_stop_during_a_poll_disconnects_after_it(self, connector, put):
        put("in", "a")
        orders = Flaky(1)
        orders.connector = connector(orders, client_id="hub")
        orders.connector.poll_for_events()
        follower = connector(Orders(), client_id="hub")  # the client id is free again
        assert follower.poll_for_events() is ReturnCode.SUCCEED

    def test_an_unreachable_broker_is_a_time_out(self, connector, caplog):
        pytest.importorskip("proton")
        polling = connector(Orders(), connection_url="amqp://127.0.0.1:1", restart_retry_count=1, poll_frequency=0)
        assert polling.poll_for_events() is ReturnCode.APPRESPONSETIMEOUT
        (record,) = [each for each in caplog.records if each.levelno == logging.ERROR]
        assert str(record.exc_info[1]) in record.getMessage()  # the text of the error is that of the broker
        with pytest.raises(ConnectorTerminatedError, match="2 times in a row"):
            polling.run()
