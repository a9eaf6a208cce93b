"""Dead letters that real listeners moved: listed, replayed, moved and deleted, each exactly once."""

import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest

from jmsjca import ConnectionFactory, Hooks, Queue, ResourceAdapter, TextMessage, Topic
from jmsjca.config import DestinationSettings
from jmsjca.destinations import TemporaryQueue
from jmsjca.errors import InvalidArgumentError, InvalidDestinationError, JMSError
from jmsjca.management.dead_letter import DeadLetterRecord
from jmsjca.management.insight import Edit, Insight
from jmsjca.providers.embedded.admin import EmbeddedAdmin
from jmsjca.reconnection import ConnectionSettings, connect
from jmsjca.redelivery import MoveFacts, moved_copy
from tests.unit.clocks import HandClock


@pytest.fixture
def url(tmp_path):
    return f"embedded://{tmp_path}/broker.db"


def send(url, *messages, to="orders"):
    with ConnectionFactory(url).create_connection() as connection, connection.create_session(True) as session:
        producer = session.create_producer(Queue(to))
        for message in messages:
            producer.send(message)
        session.commit()


def drain(url, queue):
    """Receive everything that a queue has."""
    with ConnectionFactory(url).create_connection() as connection, connection.create_session() as session:
        consumer = session.create_consumer(Queue(queue))
        return list(iter(consumer.receive_no_wait, None))


class Told(Hooks):
    """Counts the messages that a listener processed or moved."""

    def __init__(self):
        self.done = threading.Semaphore(0)

    def dead_lettered(self, endpoint, letter):
        self.done.release()


def listen(url, handler, messages):
    """Run a listener of orders until each of as many messages is processed or moved."""
    told = Told()
    adapter = ResourceAdapter(url, hooks=[told])

    @adapter.listener("orders", redelivery_handling="1:move(queue:dlq.$)")
    def handle(message):
        handler(message)
        told.done.release()

    with adapter:
        for _ in range(messages):
            assert told.done.acquire(timeout=60)


def fail(message):
    message.user_rollback_data["shop"] = "Bern"
    raise ValueError(f"no price for {message.body}")


def letter(body, **facts):
    facts.setdefault("destination", Queue("orders"))
    return moved_copy(TextMessage(body, properties={"shop": body}), MoveFacts(count=1, **facts))


def test_a_letter_tells_its_origin_and_its_failure(url):
    send(url, TextMessage("a pear"))
    listen(url, fail, 1)
    [found] = Insight(url).dead_letters("dlq.orders")
    assert (found.origin, found.redeliveries, found.replays) == (Queue("orders"), 1, 0)
    assert (found.reason, found.error) == ("ValueError", "no price for a pear")
    assert "in fail" in found.stack_trace
    assert found.user_data == {"shop": "Bern"}
    assert found.original_id != found.message_id


def test_letters_are_sorted_by_origin_reason_and_age(url):
    send(url, letter("z", destination=Queue("b")), letter("y", destination=Queue("a")), letter("x"), to="dlq.orders")
    found = Insight(url).dead_letters("dlq.orders")
    assert [each.origin.name for each in found] == ["a", "b", "orders"]


def test_a_replayed_letter_is_processed_as_its_sender_sent_it(url):
    send(url, TextMessage("a pear", properties={"JMSXGroupID": "g", "_AMQ_DUPL_ID": "1", "n": 3}, correlation_id="c"))
    listen(url, fail, 1)
    [change] = Insight(url).replay("dlq.orders")
    assert (change.outcome, change.target) == ("done", Queue("orders"))
    got = []
    listen(url, lambda message: got.append((message.body, message.correlation_id, dict(message.properties))), 1)
    [(body, correlation_id, properties)] = got
    assert (body, correlation_id) == ("a pear", "c")
    assert properties.pop("_JMSJCA_ReplayCount") == 1
    assert properties.pop("_JMSJCA__AMQ_DUPL_ID") == "1"
    assert properties == {"JMSXGroupID": "g", "n": 3}
    assert drain(url, "dlq.orders") == []


@pytest.mark.parametrize("edit", [None, Edit(properties={"shop": "Bern"})], ids=["replayed", "edited"])
def test_a_replayed_letter_has_what_is_left_of_its_time(url, edit):
    with ConnectionFactory(url).create_connection() as connection, connection.create_session() as session:
        session.create_producer(Queue("orders")).send(message := TextMessage("a pear"), time_to_live=3600)
    listen(url, fail, 1)
    insight = Insight(url)
    [found] = insight.dead_letters("dlq.orders")
    assert found.expiration == message.expiration
    assert [each.expired for each in insight.replay("dlq.orders", edit=edit, dry_run=True)] == [False]
    assert [each.expired for each in insight.replay("dlq.orders", edit=edit)] == [False]
    [replayed] = drain(url, "orders")
    assert abs(replayed.expiration - message.expiration) < timedelta(minutes=1)
    assert not [name for name in replayed.properties if "OriginalExpiration" in name]


@pytest.mark.parametrize("edit", [None, Edit(properties={"shop": "Bern"})], ids=["replayed", "edited"])
def test_a_replay_tells_that_the_time_of_a_letter_is_over(url, edit):
    message = TextMessage("a pear")
    message.expiration = datetime(2020, 1, 1, tzinfo=UTC)
    send(url, moved_copy(message, MoveFacts(Queue("orders"), 1)), to="dlq.orders")
    insight = Insight(url)
    assert [each.expired for each in insight.replay("dlq.orders", edit=edit, dry_run=True)] == [True]
    assert [each.expired for each in insight.replay("dlq.orders", edit=edit)] == [True]
    assert [each.expiration for each in drain(url, "orders")] == [None]


@pytest.mark.parametrize("recorded", ["1577836800000", 1577836800000, "soon", str(2**63), None], ids=repr)
def test_a_recorded_expiration_may_be_text_or_nonsense(recorded):
    found = DeadLetterRecord.of(TextMessage("a pear", properties={"_JMSJCA_OriginalExpiration": recorded}))
    known = str(recorded) == "1577836800000"
    assert found.expiration == (datetime(2020, 1, 1, tzinfo=UTC) if known else None)


def test_a_second_failure_is_told(url):
    send(url, TextMessage("a pear"))
    insight = Insight(url)
    for earlier in range(3):
        listen(url, fail, 1)
        [found] = insight.dead_letters("dlq.orders")
        assert (found.replays, found.error) == (earlier, "no price for a pear")
        assert [each.replays for each in insight.replay("dlq.orders")] == [earlier]


def test_a_dry_run_changes_nothing(url):
    send(url, letter("x"), to="dlq.orders")
    insight = Insight(url)
    for change in (insight.replay, insight.delete):
        assert [each.outcome for each in change("dlq.orders", dry_run=True)] == ["planned"]
    assert [each.body for each in drain(url, "dlq.orders")] == ["x"]


def test_a_selector_and_a_target_restrict_a_replay(url):
    send(url, letter("x"), letter("y"), to="dlq.orders")
    assert len(list(Insight(url).replay("dlq.orders", "shop = 'y'", to=Queue("repair")))) == 1
    assert [each.body for each in drain(url, "repair")] == ["y"]
    assert [each.body for each in drain(url, "dlq.orders")] == ["x"]


def test_a_letter_without_an_origin_stops_the_replay_before_it_begins(url):
    send(url, letter("x"), TextMessage("y"), to="dlq.orders")
    with pytest.raises(InvalidDestinationError, match="no record of its origin: name the destination"):
        list(Insight(url).replay("dlq.orders"))
    assert len(drain(url, "dlq.orders")) == 2


def test_a_letter_that_is_consumed_meanwhile_is_gone(url, monkeypatch):
    monkeypatch.setattr("jmsjca.management.message_changes._PATIENCE", 0.01)
    send(url, *(letter(str(number)) for number in range(60)), to="dlq.orders")
    changes = Insight(url).delete("dlq.orders")
    assert next(changes).outcome == "done"
    taken = len(drain(url, "dlq.orders"))
    assert taken > 0
    assert Counter(each.outcome for each in changes) == {"done": 59 - taken, "gone": taken}


def test_messages_are_moved_and_deleted_by_selector(url):
    send(url, *(TextMessage(str(number), properties={"n": number}) for number in range(120)))
    insight = Insight(url)
    assert len(list(insight.delete("orders", "n < 10"))) == 10
    assert len(list(insight.move("orders", "n < 100", to=Queue("audit")))) == 90
    assert sorted(int(each.body) for each in drain(url, "audit")) == list(range(10, 100))
    assert sorted(int(each.body) for each in drain(url, "orders")) == list(range(100, 120))


def test_pages_cover_a_queue_once(url):
    send(url, *(TextMessage(str(number)) for number in range(7)))
    pages = [[each.body for each in Insight(url).messages("orders", page=n, page_size=3)] for n in (1, 2, 3, 4)]
    assert pages == [["0", "1", "2"], ["3", "4", "5"], ["6"], []]
    with pytest.raises(InvalidArgumentError, match="page=0"):
        Insight(url).messages("orders", page=0)


def test_all_messages_are_returned_without_a_page(url):
    send(url, *(TextMessage(str(number)) for number in range(120)))
    insight, every = Insight(url), [str(number) for number in range(120)]
    assert [each.body for each in insight.messages("orders")] == every
    assert [each.body for each in insight.messages("orders", page=2)] == every[50:100]
    assert [each.body for each in insight.messages("orders", page=1, page_size=70)] == every[:70]


def test_a_queue_that_does_not_exist_has_no_messages_unless_it_must_exist(url):
    send(url, TextMessage("a"))
    assert Insight(url).messages("order") == []
    insight = Insight(url, must_exist=True)
    for read in (insight.messages, insight.dead_letters, insight.replay, insight.delete):
        with pytest.raises(InvalidDestinationError, match="no queue 'order' "):
            read("order")
    assert list(insight.delete("orders"))
    assert insight.messages("orders") == []
    assert insight.messages("orders", "n = 1", page=2) == []


def test_destinations_of_an_adapter_have_depths(url):
    send(url, TextMessage("a pear"))
    [found] = Insight(ResourceAdapter(url)).destinations()
    assert (found.destination, found.depth.ready) == (Queue("orders"), 1)


def test_a_replay_that_is_killed_in_the_middle_and_repeated_processes_each_letter_once(url):
    send(url, *(letter(str(number)) for number in range(400)), to="dlq.orders")
    command = [sys.executable, "-m", "jmsjca", "dlq", "replay", "dlq.orders", "--url", url]
    processed = Counter()
    with ConnectionFactory(url).create_connection() as connection, connection.create_session() as session:
        consumer = session.create_consumer(Queue("orders"))
        replay = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        for _ in range(60):
            processed[consumer.receive(timeout=60).body] += 1
        replay.kill()
        assert replay.wait() == -9
    left = len(Insight(url).dead_letters("dlq.orders"))
    assert 0 < left < 400
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    processed.update(each.body for each in drain(url, "orders"))
    assert processed == Counter(map(str, range(400)))
    assert drain(url, "dlq.orders") == []


# Kills the process around its tenth commit: a kill from outside hardly ever hits the moment between send and commit.
DYING = """
import itertools, os, signal, sys
from jmsjca.__main__ import run
from jmsjca.outbound.session import BaseSession
commit, numbers = BaseSession.commit, itertools.count(1)
def dying_commit(session):
    tenth = next(numbers) == 10
    if tenth and sys.argv[1] == "before":
        os.kill(os.getpid(), signal.SIGKILL)
    commit(session)
    if tenth:
        os.kill(os.getpid(), signal.SIGKILL)
BaseSession.commit = dying_commit
run(sys.argv[2:])
"""


@pytest.mark.parametrize(("moment", "replayed"), [("before", 9), ("after", 10)])
def test_a_replay_that_dies_around_a_commit_neither_loses_nor_duplicates_a_letter(url, moment, replayed):
    send(url, *(letter(str(number)) for number in range(20)), to="dlq.orders")
    arguments = ["dlq", "replay", "dlq.orders", "--url", url]
    died = subprocess.run([sys.executable, "-c", DYING, moment, *arguments], check=False)
    assert died.returncode == -9
    assert len(Insight(url).messages("orders")) == replayed
    assert {each.outcome for each in Insight(url).replay("dlq.orders")} == {"done"}
    assert Counter(each.body for each in drain(url, "orders")) == Counter(map(str, range(20)))


def dead_letter_by_the_broker(url, source, *messages):
    """Let the embedded broker dead-letter messages: each may be delivered once."""
    with ConnectionFactory(url).create_connection() as connection, connection.create_session(True) as session:
        settings = DestinationSettings(max_deliveries=1, dead_letter=Queue("dead"), expiry=Queue("expired"))
        connection.admin.configure(None, settings)
        consumer = session.create_consumer(source)
        for message in messages:
            session.create_producer(source).send(message)
        session.commit()
        for _ in messages:
            assert consumer.receive(60) is not None
        session.rollback()


@pytest.mark.parametrize("source", [Queue("orders"), Topic("news")])
def test_letters_of_the_broker_itself_go_back_where_they_came_from(url, source):
    dead_letter_by_the_broker(url, source, TextMessage("x", properties={"n": 3}))
    insight = Insight(url)
    [found] = insight.dead_letters("dead")
    assert (found.origin, found.reason, found.replays) == (source, "delivered too often", 0)
    with ConnectionFactory(url).create_connection() as connection, connection.create_session() as session:
        consumer = session.create_consumer(source)
        assert [(each.outcome, each.target) for each in insight.replay("dead")] == [("done", source)]
        replayed = consumer.receive(60)
    assert (replayed.body, dict(replayed.properties)) == ("x", {"n": 3, "_JMSJCA_ReplayCount": 1})


def test_an_expired_letter_of_the_broker_tells_so(url):
    dead_letter_by_the_broker(url, Queue("other"), TextMessage("y"))
    with ConnectionFactory(url).create_connection() as connection, connection.create_session() as session:
        session.create_producer(Queue("orders")).send(TextMessage("x"), time_to_live=60)
    clock = HandClock()
    clock.time = time.time() + 120
    with closing(connect(ConnectionSettings(url, clock=clock))) as later:
        assert later.consumer(Queue("orders")).receive(1, 0) == []
    [found] = Insight(url).dead_letters("expired")
    assert (found.origin, found.reason) == (Queue("orders"), "expired")


def test_a_replay_tells_that_the_broker_found_a_letter_expired(url):
    origin = {"_AMQ_ORIG_ADDRESS": "orders", "_AMQ_ORIG_ROUTING_TYPE": 1, "_AMQ_ACTUAL_EXPIRY": 1_577_836_800_000}
    send(url, TextMessage("a pear", properties=origin), to="expired")
    assert [each.expired for each in Insight(url).replay("expired")] == [True]
    assert [each.expiration for each in drain(url, "orders")] == [None]


@pytest.mark.parametrize("source", [Queue("orders"), Topic("news")])
def test_a_message_that_names_another_destination_came_from_there(source):
    """As Broker-J dead-letters, and ActiveMQ if the sender used AMQP: they change nothing in a message."""
    message = TextMessage("a pear")
    message.destination = source
    found = DeadLetterRecord.of(message, "dlq.orders")
    assert (found.origin, found.reason) == (source, "moved by the broker")


@pytest.mark.parametrize(
    ("cause", "reason"),
    [
        ("java.lang.Throwable: Message Expired. Expiration:1795744673235", "expired"),
        ("java.lang.Throwable: Exceeded redelivery policy limit: RedeliveryPolicy {…}", "delivered too often"),
    ],
)
def test_the_cause_that_activemq_records_is_shown(cause, reason):
    message = TextMessage("a pear", properties={"dlqDeliveryFailureCause": cause})
    found = DeadLetterRecord.of(message, "ActiveMQ.DLQ")
    assert (found.reason, found.error) == (reason, cause)


def test_a_message_in_its_own_queue_was_not_moved():
    message = TextMessage("a pear")
    message.destination = Queue("orders")
    for queue in ("orders", None):
        found = DeadLetterRecord.of(message, queue)
        assert (found.origin, found.reason) == (None, None)


def test_a_recorded_origin_is_preferred():
    letter = moved_copy(TextMessage("a pear"), MoveFacts(Queue("orders"), 3))
    letter.destination = Queue("elsewhere")
    found = DeadLetterRecord.of(letter, "dlq.orders")
    assert (found.origin, found.reason, found.redeliveries) == (Queue("orders"), None, 3)


def test_a_temporary_queue_is_no_origin():
    message = TextMessage("a reply")
    message.destination = TemporaryQueue("gone")
    assert DeadLetterRecord.of(message, "dlq").origin is None


@pytest.fixture
def recorded(monkeypatch):
    """The origins that the management of the broker knows, and of which messages it was asked."""
    known, asked = {}, []

    def origins(self, queue, message_ids):
        asked.append((queue, list(message_ids)))
        if "error" in known:
            raise JMSError("no answer")
        return known

    monkeypatch.setattr(EmbeddedAdmin, "origins", origins, raising=False)
    return known, asked


def test_an_origin_that_only_the_management_knows_is_used(url, recorded):
    known, asked = recorded
    first, second, moved = TextMessage("a"), TextMessage("b"), letter("x")
    send(url, first, second, moved, to="dead")
    known[first.message_id] = Queue("orders")
    found = Insight(url).dead_letters("dead")
    assert {each.message_id: each.origin for each in found} == {
        first.message_id: Queue("orders"),
        second.message_id: None,
        moved.message_id: Queue("orders"),
    }
    assert asked == [(Queue("dead"), [first.message_id, second.message_id])]
    [shown] = Insight(url).records("dead", Insight(url).messages("dead", f"JMSMessageID = '{first.message_id}'"))
    assert shown.origin == Queue("orders")
    [change] = Insight(url).replay("dead", f"JMSMessageID = '{first.message_id}'")
    assert (change.outcome, change.target) == ("done", Queue("orders"))


def test_a_management_that_does_not_answer_leaves_the_origin_open(url, recorded, caplog):
    recorded[0]["error"] = True
    send(url, TextMessage("a"), to="dead")
    [found] = Insight(url).dead_letters("dead")
    assert found.origin is None
    assert "does not show where messages in dead came from: no answer" in caplog.text


def test_letters_with_their_origins_ask_no_management(url, recorded):
    send(url, letter("x"), to="dead")
    assert Insight(url).dead_letters("dead")[0].origin == Queue("orders")
    assert recorded[1] == []


class Racing(Insight):
    """Another consumer receives each message that this service has looked at."""

    def __init__(self, url):
        super().__init__(url)
        self._url = url

    def message(self, queue, message_id):
        found = super().message(queue, message_id)
        drain(self._url, queue)
        return found


def test_a_message_that_is_consumed_before_its_edit_is_gone(url, monkeypatch):
    monkeypatch.setattr("jmsjca.management.message_changes._PATIENCE", 0.01)
    send(url, TextMessage("x"))
    [message] = Insight(url).messages("orders")
    change = Racing(url).edit("orders", message.message_id, Edit("y"))
    assert (change.message_id, change.outcome) == (message.message_id, "gone")
    assert drain(url, "orders") == []
