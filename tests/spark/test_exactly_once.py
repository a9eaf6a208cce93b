"""The protocol of exactly-once writing, with an embedded broker."""

import json

import pytest

from jmsjca import ConnectionFactory, Limits, Queue, TextMessage
from jmsjca.destinations import DestinationSettings
from jmsjca.errors import IllegalStateError, MessageFormatError, StoreError
from jmsjca.messages import DUPLICATE_ID
from jmsjca.spark.exactly_once import StateQueue, Token

STATE = Queue("jmsjca.sink.results")
RESULTS = Queue("results")


class Sink:
    """The sink "results", over one connection for each write."""

    def __init__(self, broker):
        self.broker = broker

    def write(self, number, *texts, query="q", patience=60.0, **identity):
        def send(session):
            producer = session.create_producer(RESULTS)
            for text in texts:
                producer.send(TextMessage(text))

        with self.broker.factory.create_connection() as connection:
            token = Token(query, number, len(texts), **identity)
            return StateQueue(connection, "results", patience).write(token, send)

    def bodies(self, queue):
        with self.broker.factory.create_connection() as connection:
            return [message.body for message in connection.create_session().create_browser(queue)]

    @property
    def results(self):
        return self.bodies(RESULTS)

    @property
    def tokens(self):
        return [(token["query"], token["batch"]) for token in map(json.loads, self.bodies(STATE))]

    def put(self, body):
        with self.broker.factory.create_connection() as connection:
            connection.create_session().create_producer(STATE).send(TextMessage(body))


@pytest.fixture
def sink(broker):
    return Sink(broker)


def test_batches_are_written_and_repeated_ones_are_not(sink):
    assert sink.write(0, "a", "b")
    assert not sink.write(0, "b", "a")
    assert sink.write(1, "c")
    assert not sink.write(1, "c")
    assert sink.write(7)  # numbers may be missing, and a batch may be empty
    assert sink.results == ["a", "b", "c"]
    assert sink.tokens == [("q", 7)]


def test_a_batch_that_fails_leaves_nothing_and_keeps_the_token(sink):
    sink.write(0, "a")
    with pytest.raises(MessageFormatError):
        sink.write(1, "b", object())
    assert (sink.results, sink.tokens) == (["a"], [("q", 0)])
    assert sink.write(1, "b")
    assert sink.results == ["a", "b"]


def test_another_process_that_holds_the_token_is_waited_for(sink):
    sink.write(0, "a")
    with sink.broker.factory.create_connection() as connection, connection.create_session(transacted=True) as session:
        assert session.create_consumer(STATE).receive(60)
        with pytest.raises(IllegalStateError, match=r"another process holds it for more than 0\.5 seconds"):
            sink.write(1, "b", patience=0.5)
    assert sink.write(1, "b")
    assert sink.results == ["a", "b"]


def test_a_process_that_holds_the_first_token_prevents_a_second_one(sink):
    sink.write(-1)
    with sink.broker.factory.create_connection() as connection, connection.create_session(transacted=True) as session:
        assert session.create_consumer(STATE).receive(60)
        with pytest.raises(IllegalStateError, match="another process"):
            sink.write(0, "a", patience=0.5)
    assert sink.tokens == [("q", -1)]


def test_a_token_that_is_redelivered_again_and_again_is_never_moved_away(sink):
    sink.write(0, "a")
    with sink.broker.factory.create_connection() as connection:
        connection.admin.configure(STATE, DestinationSettings(max_deliveries=3, dead_letter=Queue("dead")))
    for _ in range(10):
        with pytest.raises(MessageFormatError):
            sink.write(1, object())
    assert sink.tokens == [("q", 0)]


def test_two_tokens_become_one_with_the_later_batch(sink):
    sink.write(3, "a")
    sink.put(Token("q").message().body)
    assert not sink.write(3, "a")
    assert sink.tokens == [("q", 3)]


def test_a_token_of_another_query_is_refused(sink):
    sink.write(5, "a")
    with pytest.raises(IllegalStateError, match=r"belongs to the query q, and this one is other.*another queryName"):
        sink.write(0, "b", query="other")
    sink.put(Token("other").message().body)
    with pytest.raises(IllegalStateError, match="tokens of 2 queries"):
        sink.write(6, "b")
    assert sink.results == ["a"]


def test_an_earlier_batch_is_refused(sink):
    sink.write(5, "a")
    with pytest.raises(IllegalStateError, match=r"Batch 4 comes after batch 5.*checkpoint is older"):
        sink.write(4, "b")
    assert sink.results == ["a"]


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("no JSON", "JSONDecodeError"),
        ("[]", "TypeError"),
        ('{"version": 2}', "version 2"),
        ('{"version": 1}', "'query'"),
    ],
)
def test_a_message_that_is_no_token_is_refused_and_stays(sink, body, problem):
    sink.put(body)
    with pytest.raises(StoreError, match=problem):
        sink.write(0, "a")
    assert sink.bodies(STATE) == [body]
    assert sink.results == []


def test_a_token_that_was_removed_is_not_made_up(sink):
    sink.write(0, "a")
    with sink.broker.factory.create_connection() as connection:
        assert connection.create_session().create_consumer(STATE).receive(60)
    with pytest.raises(IllegalStateError, match=r"has no token.*was removed.*another queryName"):
        sink.write(1, "b", patience=0.5)
    assert sink.write(0, "new checkpoint", query="other")


def test_a_repetition_with_another_number_of_rows_is_dropped_and_logged(sink, caplog):
    sink.write(0, "a", "b")
    assert not sink.write(0, "c")
    assert "written with 2 rows and is repeated with 1" in caplog.text
    assert sink.results == ["a", "b"]


def test_the_rows_carry_no_id_that_a_broker_would_drop_them_by(sink):
    """Artemis rolls a transaction back for a known id; only the first token has one, outside of a transaction."""
    sink.write(0, "a")
    with sink.broker.factory.create_connection() as connection:
        messages = list(connection.create_session().create_browser(STATE))
    assert [DUPLICATE_ID in message.properties for message in messages] == [False]


def test_a_second_table_of_a_batch_is_refused_and_nothing_is_lost(sink):
    for run in ("r1", "r2"):  # the query is started again
        assert sink.write(0, "a", table="queue:one (text)", run=run, write=f"{run}/a") is (run == "r1")
        with pytest.raises(IllegalStateError, match=r"queue:one \(text\).*queue:two \(text\).*a queryName each"):
            sink.write(0, "b", table="queue:two (text)", run=run, write=f"{run}/b")
    assert sink.results == ["a"]
    assert sink.write(1, "c", run="r3", write="r3/c")


def test_an_equal_table_is_another_one_too_if_the_run_has_written_one(sink):
    sink.write(0, "a", run="r1", write="w1")
    with pytest.raises(IllegalStateError, match="in this run of the query"):
        sink.write(0, "a", run="r1", write="w2")


def test_a_repetition_is_no_second_table(sink):
    same = {"table": "queue:results (text)"}
    assert sink.write(0, "a", run="r1", write="w1", **same)
    assert not sink.write(0, "a", run="r1", write="w1", **same)  # the outcome was in doubt
    assert not sink.write(0, "b", run="r2", write="w2", table="queue:results (text, type)")  # the job was changed
    assert sink.write(1, "c", run="r2", write="w3", **same)
    assert sink.results == ["a", "c"]


def test_without_a_run_tables_differ_by_their_destination_and_columns(sink):
    assert sink.write(0, "a", table="queue:one (text)", write="w1")
    assert not sink.write(0, "a", table="queue:one (text)", write="w2")
    with pytest.raises(IllegalStateError, match=r"queue:one \(text\), and this is.*queue:one \(body\).*as it was"):
        sink.write(0, "b", table="queue:one (body)", write="w3")


def test_a_token_of_an_earlier_version_is_read(sink):
    sink.put('{"version": 1, "query": "q", "batch": 4, "rows": 1}')
    assert not sink.write(4, "a", table="queue:one (text)", run="r1", write="w1")
    assert sink.write(5, "b", table="queue:one (text)", run="r1", write="w2")
    assert sink.results == ["b"]


def test_a_batch_larger_than_the_history_of_the_broker_is_written_once(sink, broker):
    """The ids of rows, by which the sink with guarantee=at-least-once is recognised, are forgotten."""
    broker.factory = ConnectionFactory(broker.url, limits=Limits(duplicate_history=4))
    texts = [str(number) for number in range(20)]
    for is_new in (True, False):
        assert sink.write(0, *texts) is is_new
    assert sink.write(1, "last")
    assert sink.results == [*texts, "last"]
    with broker.factory.create_connection() as connection, connection.create_session() as session:
        producer = session.create_producer(Queue("control"))
        for text in texts * 2:
            producer.send(TextMessage(text, properties={DUPLICATE_ID: text}))
    assert len(sink.bodies(Queue("control"))) == 40
