"""The activities of Jitterbit's connector: listen, acknowledge, poll, browse and send."""

import asyncio
import itertools
import queue
import threading

import pytest

from jmsjca import DeliveryMode, DestinationSettings, Hooks, Outcome, Queue, ResourceAdapter, Topic
from jmsjca.connector import Activities
from jmsjca.connector.activities import response_of
from jmsjca.errors import (
    ArgumentTypeError,
    ConfigurationError,
    IllegalStateError,
    InvalidArgumentError,
    JMSError,
    MessageFormatError,
)
from jmsjca.testing.time_travel import TimeTravel

PATIENCE = 60
_numbers = itertools.count()


@pytest.fixture
def adapter():
    with ResourceAdapter(f"embedded://activities-{next(_numbers)}") as adapter:
        yield adapter


@pytest.fixture
def activities(adapter):
    with Activities(adapter) as activities:
        yield activities


@pytest.fixture
def seen():
    return queue.Queue()


def start(activation):
    activation.start()
    return activation


def bodies(activities, name="orders"):
    return [response.payload for response in activities.browse(name, messages_to_browse=0)]


def take(seen):
    return seen.get(timeout=PATIENCE)


def roll_back(response):
    """Roll a message back as its acknowledgement timeout does: the activities do not hear of it."""
    response.message.set_rollback_only()
    response.message.acknowledge()


class TestListen:
    def test_a_held_message_is_locked_until_it_is_committed(self, activities, seen):
        start(activities.listen("orders", seen.put))
        sent = activities.send("orders", "a pear")
        response = take(seen)
        assert (response.payload, response.message_id) == ("a pear", sent.message_id)
        assert activities.poll("orders", receive_timeout=0).responses == []
        assert activities.acknowledge(response.message_id, "JBXCommit").wait(PATIENCE) is Outcome.COMMITTED
        assert bodies(activities) == []

    def test_a_rollback_releases_the_message_for_another_delivery(self, activities, seen):
        start(activities.listen("orders", seen.put))
        activities.send("orders", "a pear")
        assert activities.acknowledge(take(seen).message_id, "jbxROLLBACK").wait(PATIENCE) is Outcome.ROLLED_BACK
        again = take(seen)
        assert (again.payload, again.message.redelivered) == ("a pear", True)
        activities.acknowledge(again.delivery_id)

    def test_the_next_message_waits_for_the_end_of_the_previous_one(self, activities, seen):
        activation = activities.listen("orders", seen.put)
        for text in ("a", "b"):
            activities.send("orders", text)
        activation.start()
        first = take(seen)
        assert bodies(activities) == ["b"]
        assert seen.empty()
        activities.acknowledge(first.message_id)
        second = take(seen)
        assert (first.payload, second.payload) == ("a", "b")
        activities.acknowledge(second.message_id)

    def test_a_message_that_nobody_acknowledges_is_delivered_again(self, activities, seen):
        start(activities.listen("orders", seen.put, acknowledgement_timeout=0.05))
        activities.send("orders", "a pear")
        late, again = take(seen), take(seen)
        assert (late.message_id, again.message.redelivered) == (again.message_id, True)

    def test_a_stop_without_an_acknowledgement_rolls_back(self, activities, seen):
        activation = start(activities.listen("orders", seen.put))
        activities.send("orders", "a pear")
        take(seen)
        activation.stop()
        assert bodies(activities) == ["a pear"]

    def test_a_selector_on_properties_chooses_the_messages(self, activities, seen):
        start(activities.listen("orders", seen.put, selector="region = 'EU'"))
        activities.send("orders", "far", properties={"region": "US"})
        activities.send("orders", "near", properties={"region": "EU"})
        response = take(seen)
        activities.acknowledge(response.message_id).wait(PATIENCE)
        assert (response.payload, bodies(activities)) == ("near", ["far"])

    def test_bytes_for_the_message_type_byte(self, activities, seen):
        start(activities.listen("orders", seen.put, message_type="BYTE"))
        activities.send("orders", b"\x00\xff")
        response = take(seen)
        assert response.payload == b"\x00\xff"
        activities.acknowledge(response.message_id)

    def test_without_a_transacted_session_the_return_acknowledges(self, activities, seen):
        activation = start(activities.listen("orders", seen.put, transacted=False, acknowledge_mode="DUPS_OK"))
        activities.send("orders", "a pear")
        response = take(seen)
        activation.stop()
        assert (response.payload, response.acknowledge_id, bodies(activities)) == ("a pear", None, [])
        with pytest.raises(IllegalStateError):
            activities.acknowledge(response.message_id)

    def test_an_acknowledge_mode_is_for_sessions_that_are_not_transacted(self, activities):
        with pytest.raises(ConfigurationError, match="transacted=False"):
            activities.listen("orders", print, acknowledge_mode="AUTO")


class TestAcknowledge:
    def test_any_listener_of_the_adapter_may_hold_the_message(self, activities, seen):
        for name in ("orders", "invoices"):
            start(activities.listen(name, seen.put))
            activities.send(name, name)
        for _ in range(2):
            assert activities.acknowledge(take(seen).message_id).wait(PATIENCE) is Outcome.COMMITTED
        assert bodies(activities) + bodies(activities, "invoices") == []

    @pytest.mark.parametrize(("action", "left"), [("JBXCommit", []), ("JBXRollback", ["a", "b"])])
    def test_one_acknowledge_id_settles_a_batch(self, activities, seen, action, left):
        activation = activities.listen("orders", seen.put, batch_size=2)
        for text in ("a", "b"):
            activities.send("orders", text)
        activation.start()
        responses = [take(seen), take(seen)]
        (acknowledge_id,) = {response.acknowledge_id for response in responses}
        settlement = activities.acknowledge(acknowledge_id=acknowledge_id, action=action)
        assert settlement.wait(PATIENCE) is Outcome[{"JBXCommit": "COMMITTED", "JBXRollback": "ROLLED_BACK"}[action]]
        activation.stop()
        assert bodies(activities) == left
        with pytest.raises(IllegalStateError, match="settled already"):
            activities.acknowledge(acknowledge_id=acknowledge_id)

    def test_a_request_with_the_names_of_the_source(self, activities, seen):
        start(activities.listen("orders", seen.put))
        activities.send("orders", "a pear")
        request = {"AcknowledgmentAction": "jbxcommit", "AcknowledgmentMessageID": take(seen).message_id}
        assert activities.acknowledge_request(request).wait(PATIENCE) is Outcome.COMMITTED

    @pytest.mark.parametrize(
        ("request_", "error", "text"),
        [
            ({"AcknowledgmentAction": "commit", "AcknowledgmentMessageID": "ID:1"}, ConfigurationError, "JBXRollback"),
            ({"AcknowledgmentMessageID": "ID:1"}, ConfigurationError, "AcknowledgmentAction"),
            ({"AcknowledgementAction": "JBXCommit"}, ConfigurationError, "AcknowledgementAction"),
            ({"AcknowledgmentAction": "JBXCommit"}, InvalidArgumentError, "either a message id or"),
            ({"AcknowledgmentAction": None, "AcknowledgmentMessageID": "ID:1"}, ConfigurationError, "JBXRollback"),
            ({"AcknowledgmentAction": "JBXCommit", "AcknowledgmentMessageID": 5}, ArgumentTypeError, "message_id"),
            ("JBXCommit", ArgumentTypeError, "AcknowledgmentMessageID"),
            ({"AcknowledgmentAction": "JBXCommit", "AcknowledgmentMessageID": "ID:1"}, IllegalStateError, "ID:1"),
            ({"AcknowledgmentAction": "JBXCommit", "AcknowledgeID": "ID:1"}, IllegalStateError, "ID:1"),
        ],
    )
    def test_a_wrong_request_is_an_error(self, activities, request_, error, text):
        with pytest.raises(error, match=text):
            activities.acknowledge_request(request_)

    def test_a_late_acknowledgement_names_the_outcome(self, activities, seen):
        first = start(activities.listen("orders", seen.put))
        activities.listen("invoices", seen.put)
        activities.send("orders", "a pear")
        response = take(seen)
        activities.acknowledge(response.message_id).wait(PATIENCE)
        first.stop()
        with pytest.raises(IllegalStateError, match="committed"):
            activities.acknowledge(response.message_id)

    @pytest.mark.parametrize("action", ["JBXCommit", "JBXRollback"])
    def test_a_late_acknowledgement_settles_no_other_delivery(self, activities, seen, action):
        start(activities.listen("orders", seen.put))
        activities.send("orders", "a pear")
        late = take(seen)
        roll_back(late)
        self._refuse_all_but_the_second_delivery(activities, late, take(seen), action)

    @pytest.mark.parametrize("action", ["JBXCommit", "JBXRollback"])
    def test_nor_one_of_another_listener(self, activities, seen, action):
        first, second = (activities.listen("orders", seen.put) for _ in range(2))
        first.start()
        activities.send("orders", "a pear")
        late = take(seen)
        first.stop()
        second.start()
        self._refuse_all_but_the_second_delivery(activities, late, take(seen), action)

    def _refuse_all_but_the_second_delivery(self, activities, late, again, action):
        assert (again.message_id, again.message.redelivered) == (late.message_id, True)
        with pytest.raises(IllegalStateError, match="delivery_id"):
            activities.acknowledge(late.message_id, action)
        for ended in ({"acknowledge_id": late.acknowledge_id}, {"message_id": late.delivery_id}):
            with pytest.raises(IllegalStateError, match="settled already"):
                activities.acknowledge(action=action, **ended)
        assert activities.acknowledge(acknowledge_id=again.acknowledge_id).wait(PATIENCE) is Outcome.COMMITTED

    def test_an_old_acknowledge_id_is_refused_for_a_message_without_an_id(self, adapter, activities, seen):
        start(activities.listen("orders", seen.put))
        with adapter.connection_factory().create_connection() as connection, connection.create_session() as session:
            producer = session.create_producer(Queue("orders"))
            producer.disable_message_id = True
            producer.send("a pear")
        late = take(seen)
        roll_back(late)
        again = take(seen)
        assert (late.message_id, again.message_id) == (None, None)
        with pytest.raises(IllegalStateError, match="settled already"):
            activities.acknowledge(acknowledge_id=late.acknowledge_id)
        assert activities.acknowledge(acknowledge_id=again.acknowledge_id).wait(PATIENCE) is Outcome.COMMITTED

    def test_the_ids_of_settled_units_are_forgotten(self, activities, seen):
        start(activities.listen("orders", seen.put))
        for number in range(300):
            activities.send("orders", f"{number}")
            activities.acknowledge(take(seen).message_id).wait(PATIENCE)
        assert len(activities._units) <= 101


class TestTimeoutOfASender:
    def test_the_sender_sets_the_property(self, activities):
        activities.send("orders", "a pear", acknowledgement_timeout=1.5)
        [response] = activities.browse("orders")
        assert response.message.get_int_property("JBXAcknowledgmentTimeout") == 2

    def test_a_message_may_wait_longer_than_its_listener_says(self, adapter, activities, seen):
        start(activities.listen("orders", seen.put, acknowledgement_timeout=0.05, max_outstanding=2))
        activities.send("orders", "patient", acknowledgement_timeout=3600)
        patient = take(seen)
        activities.send("orders", "impatient")
        assert [take(seen).payload for _ in range(3)] == ["impatient"] * 3
        assert activities.acknowledge(patient.message_id).wait(PATIENCE) is Outcome.COMMITTED

    @pytest.mark.parametrize("timeout", ["1", -1])
    def test_a_wrong_timeout_is_refused(self, adapter, timeout):
        with pytest.raises(InvalidArgumentError, match="acknowledgement_timeout"):
            adapter.send("orders", "a pear", acknowledgement_timeout=timeout)


class TestPollBrowseAndSend:
    def test_a_poll_removes_one_message_by_default(self, activities):
        for text in ("a", "b", "c"):
            activities.send("orders", text)
        polled = activities.poll("orders")
        assert ([response.payload for response in polled.responses], polled.acknowledge_id) == (["a"], None)
        assert [r.payload for r in activities.poll("orders", messages_to_receive=0).responses] == ["b", "c"]
        assert activities.poll("orders", receive_timeout=0).responses == []

    @pytest.mark.parametrize(("action", "left"), [("JBXCommit", []), ("JBXRollback", ["a", "b"])])
    def test_a_transacted_poll_is_settled_in_bulk(self, activities, action, left):
        for text in ("a", "b"):
            activities.send("orders", text)
        polled = activities.poll("orders", messages_to_receive=5, transacted=True)
        assert activities.poll("orders", receive_timeout=0).responses == []
        settlement = activities.acknowledge(acknowledge_id=polled.acknowledge_id, action=action)
        assert settlement.outcome is Outcome[{"JBXCommit": "COMMITTED", "JBXRollback": "ROLLED_BACK"}[action]]
        assert bodies(activities) == left
        with pytest.raises(IllegalStateError):
            activities.acknowledge(acknowledge_id=polled.acknowledge_id)

    def test_a_transacted_poll_that_is_not_acknowledged_in_time_is_rolled_back(self, activities):
        activities.send("orders", "a pear")
        activities.poll("orders", transacted=True, acknowledgement_timeout=0.01)
        [again] = activities.poll("orders", receive_timeout=PATIENCE).responses
        assert again.message.redelivered

    def test_an_unacknowledged_poll_rolls_back_at_its_timeout(self, activities, monkeypatch):
        clock = TimeTravel(monkeypatch)
        activities.send("orders", "a pear")
        activities.poll("orders", transacted=True, acknowledgement_timeout=600)
        clock.advance(601)
        [again] = activities.poll("orders", receive_timeout=PATIENCE).responses
        assert again.payload == "a pear"

    def test_close_rolls_open_polls_back(self, adapter):
        with Activities(adapter) as first:
            first.send("orders", "a pear")
            first.poll("orders", transacted=True)
        with Activities(adapter) as second:
            assert bodies(second) == ["a pear"]

    def test_a_poll_that_cannot_be_read_leaves_all_messages(self, activities):
        activities.send("orders", "text")
        activities.send("orders", b"bytes")
        with pytest.raises(MessageFormatError):
            activities.poll("orders", messages_to_receive=2)
        [first] = activities.poll("orders").responses
        assert first.payload == "text"

    @pytest.mark.parametrize(("is_dated", "priority", "sent"), [(True, 4, 9999), (False, 4, 15_000), (True, 9, 200)])
    def test_a_poll_of_all_ends_although_messages_are_sent_meanwhile(self, is_dated, priority, sent):
        class Filling(Hooks):
            """Sends messages faster than they are received."""

            def received(self, *_):
                for _ in range(min(10, self.left)):
                    self.left -= 1
                    self.producer.send("later", priority=priority)

        filling = Filling()
        filling.left = sent
        url = f"embedded://activities-{next(_numbers)}"
        with ResourceAdapter(url, hooks=[filling]) as adapter, adapter.connection_factory().create_connection() as it:
            filling.producer = it.create_session().create_producer(Queue("orders"))
            filling.producer.disable_timestamp = not is_dated
            for _ in range(300):
                filling.producer.send("waiting")
            polled = Activities(adapter).poll("orders", messages_to_receive=0)
        received = [response.payload for response in polled.responses]
        assert received.count("waiting") == 300
        assert (len(received) < 300 + sent) is (priority == 4)

    def test_browsing_shows_one_message_by_default_and_removes_none(self, activities):
        for text in ("a", "b"):
            activities.send("orders", text)
        assert [response.payload for response in activities.browse("orders")] == ["a"]
        assert bodies(activities) == ["a", "b"]

    @pytest.mark.parametrize(("is_dated", "sent"), [(True, 9999), (False, 15_000)])
    def test_browsing_all_ends_although_messages_are_sent_meanwhile(self, adapter, monkeypatch, is_dated, sent):
        left = iter(range(sent))

        def filling(*arguments):
            """Sends messages faster than they are browsed."""
            for _ in itertools.islice(left, 10):
                producer.send("later")
            return response_of(*arguments)

        monkeypatch.setattr("jmsjca.connector.activities.response_of", filling)
        with adapter.connection_factory().create_connection() as connection:
            producer = connection.create_session().create_producer(Queue("orders"))
            producer.disable_timestamp = not is_dated
            for _ in range(300):
                producer.send("waiting")
            browsed = [each.payload for each in Activities(adapter).browse("orders", messages_to_browse=0)]
        assert browsed.count("waiting") == 300
        assert len(browsed) < 300 + sent

    def test_sends_are_persistent_with_priority_four(self, activities):
        sent = activities.send("orders", "a pear")
        assert (sent.delivery_mode, sent.priority, sent.expiration) == (DeliveryMode.PERSISTENT, 4, None)
        other = activities.send("orders", "a pear", delivery_mode=DeliveryMode.NON_PERSISTENT, priority=9)
        assert (other.delivery_mode, other.priority) == (DeliveryMode.NON_PERSISTENT, 9)

    def test_a_topic_by_name(self, adapter, activities):
        with adapter.connection_factory().create_connection() as connection:
            session = connection.create_session()
            consumer = session.create_consumer(session.create_topic("news"))
            activities.send("news", "rain", destination_type="topic")
            assert consumer.receive(timeout=PATIENCE).body == "rain"

    @pytest.mark.parametrize(
        "call",
        [
            lambda it: it.send("orders", 5),
            lambda it: it.poll("orders", messages_to_receive=-1),
            lambda it: it.browse("orders", messages_to_browse="2"),
            lambda it: it.poll("orders", message_type="text"),
            lambda it: it.listen("orders", print, message_type="MAP"),
            lambda it: it.acknowledging("commit"),
            lambda it: it.acknowledging(None),
            lambda it: it.send("news", "rain", destination_type="Topic"),
            lambda it: it.poll(Topic("news"), receive_timeout=0),
            lambda it: it.poll("orders", receive_timeout=0, acknowledgement_timeout=-1),
            lambda it: it.listen(Topic("news"), print),
            lambda it: it.listen("orders", None),
            lambda it: it.listen("orders", asyncio.sleep),
            lambda it: it.listen("orders", print, on_failure="JBXRollback"),
            lambda it: it.listen("orders", print, batch_size=-1),
        ],
    )
    def test_a_wrong_argument_is_refused(self, activities, call):
        with pytest.raises(JMSError):
            call(activities)


@pytest.mark.parametrize("mode", list(DeliveryMode))
def test_a_message_that_keeps_failing_ends_in_the_dead_letter_queue(adapter, activities, seen, mode):
    with adapter.connection_factory().create_connection() as connection:
        connection.admin.configure(Queue("orders"), DestinationSettings(max_deliveries=3, dead_letter=Queue("dead")))

    def operation(response):
        seen.put(response)
        raise ValueError("the same each time")

    start(activities.listen("orders", operation, on_failure=activities.acknowledging("JBXRollback")))
    sent = activities.send("orders", "a pear", delivery_mode=mode)
    [dead] = activities.poll("dead", receive_timeout=PATIENCE).responses
    assert (dead.payload, dead.message_id) == ("a pear", sent.message_id)
    assert [take(seen).message.delivery_count for _ in range(3)] == [1, 2, 3]


class TestVariations:
    """The three examples of the source."""

    def test_commit_on_success_and_rollback_on_failure(self, activities, seen):
        """Variation 1: the acknowledge activities follow the listener."""
        failures = [ValueError("the first time")]

        def operation(response):
            seen.put(response)
            if failures:
                raise failures.pop()

        activation = activities.listen(
            "orders",
            operation,
            on_success=activities.acknowledging("JBXCommit"),
            on_failure=activities.acknowledging("JBXRollback"),
        )
        activities.send("orders", "a pear")
        activation.start()
        assert [take(seen).message.redelivered for _ in range(2)] == [False, True]
        activation.stop()
        assert bodies(activities) == []

    def test_business_logic_between_listener_and_acknowledgement(self, activities, seen):
        """Variation 2: if the business logic fails, the message is rolled back; it is committed at its end."""
        done, failures = threading.Event(), [ValueError("no such customer")]
        commit = activities.acknowledging("JBXCommit")

        def business_logic(response):
            seen.put(response)
            if failures:
                raise failures.pop()
            commit(response)
            done.set()

        activation = activities.listen(
            "orders",
            lambda response: None,
            on_success=business_logic,
            on_failure=activities.acknowledging("JBXRollback"),
        )
        activities.send("orders", "a pear")
        activation.start()
        assert done.wait(PATIENCE)
        assert [take(seen).message.redelivered for _ in range(2)] == [False, True]
        activation.stop()
        assert bodies(activities) == []

    def test_a_script_decides_when_to_acknowledge(self, activities, seen):
        """Variation 3: the script runs elsewhere, and has only an id."""
        start(activities.listen("orders", lambda response: seen.put(response.delivery_id)))
        activities.send("orders", "a pear")

        def script(action):
            return activities.acknowledge(take(seen), action).wait(PATIENCE)

        assert script("JBXRollback") is Outcome.ROLLED_BACK
        assert script("JBXCommit") is Outcome.COMMITTED
        assert bodies(activities) == []

    def test_a_failure_without_an_operation_for_it_rolls_back(self, activities, seen):
        failures = [ValueError("the first time")]

        def operation(response):
            seen.put(response)
            if failures:
                raise failures.pop()

        start(activities.listen("orders", operation))
        activities.send("orders", "a pear")
        first, second = take(seen), take(seen)
        assert (first.message_id, second.message.redelivered) == (second.message_id, True)
        activities.acknowledge(second.delivery_id)


def test_a_queue_object_is_taken_as_well(activities, seen):
    start(activities.listen(Queue("orders"), seen.put))
    activities.send(Queue("orders"), "a pear")
    activities.acknowledge(take(seen).message_id)
