"""The inbox of a listener: a message whose database work is committed has no second effect."""

import logging
import queue
import threading

import pytest
import sqlalchemy as sa
from sqlalchemy.orm import sessionmaker

from jmsjca import ActivationSpec, Outcome, Queue, ResourceAdapter, TextMessage, Topic
from jmsjca.errors import (
    ConfigurationError,
    InvalidArgumentError,
    JMSError,
    TransactionInDoubtError,
    TransactionRolledBackError,
)
from jmsjca.outbound.unit_of_work import UnitOfWork
from jmsjca.transactions import InboxOutcome, SqlInbox, joined_session
from jmsjca.transactions.inbox import message_key
from tests.unit.inbound.listeners import PATIENCE, send, waiting
from tests.unit.inbound.test_container_transactions import METADATA, insert, left, outcome, rows
from tests.unit.transactions.failures import leaves

DAY = 86_400.0
MODES = [
    {"concurrency_mode": "serial"},
    {"concurrency_mode": "sync"},
    {"concurrency_mode": "cc"},
    {"concurrency_mode": "cc", "hold_until_ack": True},
    {"concurrency_mode": "cc", "batch_size": 2},
]


@pytest.fixture
def engine(tmp_path):
    waits = {"timeout": PATIENCE}
    engine = sa.create_engine(f"sqlite:///{tmp_path / 'rows.db'}", connect_args=waits, poolclass=sa.NullPool)
    METADATA.create_all(engine)
    yield engine
    engine.dispose()


@pytest.fixture(params=["before", "after"])
def inbox(request, engine):
    """An inbox that inserts its rows before the handler, or after it."""
    return SqlInbox(engine, insert=request.param)


class Broken:
    """Makes commits of the broker fail: its databases have committed then.

    Attributes:
        left: How many commits are to fail.
    """

    def __init__(self, monkeypatch, failures):
        self.left = failures
        commit = UnitOfWork.commit

        def failing(unit, **options):
            if self.left and unit.unit._taken:
                self.left -= 1
                unit.rollback()
                raise TransactionRolledBackError("The broker rolls back.")
            commit(unit, **options)

        monkeypatch.setattr(UnitOfWork, "commit", failing)


def listen(adapter, handler, inbox, **spec):
    adapter.listener("q", inbox=inbox, **{"transaction": "required", **spec})(handler)
    adapter.start()


def outcomes(recorder, messages):
    """The outcomes until so many messages are committed."""
    found = []
    while messages > 0:
        ended, count = recorder.outcomes.get(timeout=PATIENCE)
        found.append(ended)
        messages -= count if ended is Outcome.COMMITTED else 0
        assert len(found) < 20
    return found


def forwarding(engine, calls):
    def handler(message, session, transaction):
        if not message.end_of_batch:
            calls.append(message.body)
            insert(joined_session(engine, transaction), message.body)
            session.create_producer(Queue("out")).send(session.create_text_message(message.body), priority=7)
        message.acknowledge()

    return handler


class TestAfterAFailedCommitOfTheBroker:
    @pytest.mark.parametrize("spec", MODES)
    def test_the_handler_is_not_called_again_and_its_messages_are_sent(
        self, adapter, recorder, engine, inbox, monkeypatch, spec
    ):
        Broken(monkeypatch, 2)
        calls = []
        send(adapter, *"abcd")
        listen(adapter, forwarding(engine, calls), inbox, **spec)
        found = outcomes(recorder, 4)
        adapter.stop()
        # A unit that was rolled back may report it after another thread has committed its messages.
        found += [recorder.outcomes.get()[0] for _ in range(recorder.outcomes.qsize())]
        assert found.count(Outcome.ROLLED_BACK) == 2
        assert sorted(calls) == list("abcd")
        assert rows(engine) == list("abcd")
        source, destination = left(adapter)
        assert (source, sorted(destination)) == ([], list("abcd"))

    def test_what_it_sends_through_the_adapter_is_sent_again_too(self, adapter, recorder, inbox, monkeypatch):
        Broken(monkeypatch, 1)
        calls = []

        def handler(message):
            calls.append(message.body)
            adapter.send("out", message.body)

        send(adapter, "a")
        listen(adapter, handler, inbox)
        assert outcomes(recorder, 1) == [Outcome.ROLLED_BACK, Outcome.COMMITTED]
        adapter.stop()
        assert (calls, left(adapter)) == (["a"], [[], ["a"]])

    @leaves("the broker alone rolls back", "committed", "redelivered, nothing sent")
    def test_without_the_inbox_the_handler_fails_on_its_own_row(self, adapter, recorder, engine, monkeypatch):
        Broken(monkeypatch, 1)
        calls = []
        send(adapter, "a")
        listen(adapter, forwarding(engine, calls), None, redelivery_handling="2:delete")
        assert outcome(recorder) is Outcome.ROLLED_BACK
        assert outcome(recorder) is Outcome.ROLLED_BACK
        adapter.stop()
        assert (calls, rows(engine), waiting(adapter, "out")) == (["a", "a"], ["a"], [])

    def test_headers_properties_and_ids_are_the_same(self, adapter, recorder, engine, inbox, monkeypatch):
        Broken(monkeypatch, 1)
        sent = queue.Queue()

        def handler(message, session, transaction):
            out = TextMessage("out", properties={"n": 1}, correlation_id="c", type="t", reply_to=Topic("answers"))
            session.create_producer(Queue("out")).send(out, priority=7, time_to_live=600)
            sent.put(out)

        send(adapter, "a")
        listen(adapter, handler, inbox)
        outcomes(recorder, 1)
        adapter.stop()
        with adapter.connection_factory().create_connection() as connection:
            found = connection.create_session().create_consumer(Queue("out")).receive(timeout=PATIENCE)
        given = sent.get(timeout=0)
        assert (found.message_id, found.body, found.priority) == (given.message_id, "out", 7)
        assert (found.correlation_id, found.type, found.reply_to) == ("c", "t", Topic("answers"))
        assert found.timestamp == given.timestamp
        assert found.expiration == given.expiration
        assert found.properties["n"] == 1
        assert found.properties["_AMQ_DUPL_ID"]
        assert "_AMQ_DUPL_ID" not in given.properties

    def test_it_is_settled_rather_than_moved(self, adapter, recorder, engine, inbox, monkeypatch):
        Broken(monkeypatch, 1)
        calls = []
        send(adapter, "a")
        listen(adapter, forwarding(engine, calls), inbox, redelivery_handling="1:move(queue:dlq)")
        outcomes(recorder, 1)
        adapter.stop()
        assert (calls, left(adapter), waiting(adapter, "dlq")) == (["a"], [[], ["a"]], [])

    def test_replies_are_sent_again(self, adapter, recorder, inbox, monkeypatch):
        Broken(monkeypatch, 1)
        with adapter.connection_factory().create_connection() as connection, connection.create_session() as session:
            request = TextMessage("a", reply_to=Queue("out"))
            session.create_producer(Queue("q")).send(request)
        listen(adapter, lambda message: f"reply to {message.body}", inbox)
        outcomes(recorder, 1)
        adapter.stop()
        assert left(adapter) == [[], ["reply to a"]]


class TestInDoubtCommit:
    """The reply to the commit is lost: the broker may or may not have committed."""

    @pytest.fixture(params=[True, False], ids=["committed", "not committed"])
    def doubtful(self, request, monkeypatch):
        """Make one commit of the broker doubtful."""
        commit, doubts = UnitOfWork.commit, [1]

        def failing(unit, **options):
            if not (doubts and unit.unit._taken):
                commit(unit, **options)
                return
            doubts.pop()
            if request.param:
                commit(unit, **options)
            raise TransactionInDoubtError("The reply is lost.")

        monkeypatch.setattr(UnitOfWork, "commit", failing)
        return request.param

    def handle(self, adapter, engine, inbox):
        """Handle two messages; return the calls once both are forwarded."""
        calls = []
        send(adapter, "a", "b")
        listen(adapter, forwarding(engine, calls), inbox, redelivery_handling="3:delete")
        with adapter.connection_factory().create_connection() as connection:
            consumer = connection.create_session().create_consumer(Queue("out"))
            found = [consumer.receive(timeout=PATIENCE).body for _ in "ab"]
            adapter.stop()
            assert consumer.receive(timeout=0) is None
        assert (found, left(adapter)) == (["a", "b"], [[], []])
        return calls

    def test_the_error_says_what_is_known_and_what_to_do(self, adapter, engine, doubtful, caplog):
        self.handle(adapter, engine, None if doubtful else SqlInbox(engine))
        assert "The reply is lost. The database sessions of the transaction are committed." in caplog.text
        assert "an inbox recognises them" in caplog.text

    def test_with_an_inbox_all_agree(self, adapter, engine, inbox, doubtful):
        assert self.handle(adapter, engine, inbox) == ["a", "b"]
        assert rows(engine) == ["a", "b"]

    @leaves(
        "the broker's reply is lost (`TransactionInDoubtError`)",
        "committed",
        "in doubt: sent and settled, or redelivered",
    )
    def test_without_one_the_handler_is_called_again_if_it_was_not_committed(self, adapter, engine, doubtful):
        with engine.begin() as connection:  # without its unique key
            connection.execute(sa.text("DROP TABLE rows"))
            connection.execute(sa.text("CREATE TABLE rows (text VARCHAR)"))
        calls = self.handle(adapter, engine, None)
        assert calls == (["a", "b"] if doubtful else ["a", "a", "b"])
        assert rows(engine) == calls


class TestNoDuplicate:
    def test_a_requeued_failure_is_none_of_itself(self, adapter, recorder, engine, inbox):
        calls, failures = [], [KeyError("once")]
        forward = forwarding(engine, calls)

        def handler(message, session, transaction):
            forward(message, session, transaction)
            if failures:
                raise failures.pop()

        send(adapter, "a")
        listen(adapter, handler, inbox)
        assert outcomes(recorder, 1) == [Outcome.ROLLED_BACK, Outcome.COMMITTED]
        adapter.stop()
        assert (calls, rows(engine), left(adapter)) == (["a", "a"], ["a"], [[], ["a"]])

    def test_an_id_that_a_database_cannot_store(self, adapter, recorder, engine, inbox):
        calls = []
        with adapter.connection_factory().create_connection() as connection, connection.create_session() as session:
            message = TextMessage("a", properties={"_AMQ_DUPL_ID": "a\0b"})
            session.create_producer(Queue("q")).send(message)
        listen(adapter, lambda message: calls.append(message.body), inbox)
        assert outcomes(recorder, 1) == [Outcome.COMMITTED]
        adapter.stop()
        assert calls == ["a"]

    def test_the_database_rolls_back_with_the_row_of_the_inbox(self, adapter, recorder, engine, inbox):
        attempts = []

        def handler(message, transaction):
            attempts.append(1)
            insert(joined_session(engine, transaction), message.body)
            if len(attempts) == 1:
                transaction.get().addBeforeCommitHook(lambda: 1 / 0)

        send(adapter, "a")
        listen(adapter, handler, inbox)
        assert outcomes(recorder, 1) == [Outcome.ROLLED_BACK, Outcome.COMMITTED]
        assert len(attempts) == 2

    def test_two_listeners_on_one_database_do_not_see_each_other(self, adapter, recorder, engine):
        calls = queue.Queue()
        for name in "st":
            adapter.listener(
                Topic("news"),
                inbox=SqlInbox(engine),
                transaction="required",
                subscription_durability="Durable",
                subscription_name=name,
            )(lambda message, name=name: calls.put((name, message.body)))
        adapter.start(wait=PATIENCE)
        with adapter.connection_factory().create_connection() as connection, connection.create_session() as session:
            session.create_producer(Topic("news")).send(TextMessage("a"))
        assert sorted(calls.get(timeout=PATIENCE) for _ in "st") == [("s", "a"), ("t", "a")]

    @pytest.mark.parametrize(("names", "count"), [(("x", "y"), 2), (("x", "x"), 1)])
    def test_the_name_of_the_endpoint_tells_them_apart(self, adapter, recorder, engine, names, count):
        """With one name the second listener takes the message of the first for its own: the fault to prevent."""
        calls = queue.Queue()
        for name, place in zip(names, ["q", "out"], strict=True):
            adapter.listener(place, inbox=SqlInbox(engine, endpoint=name), transaction="required")(
                lambda message: calls.put(message.body)
            )
        adapter.start(wait=PATIENCE)
        with adapter.connection_factory().create_connection() as connection, connection.create_session() as session:
            for place in ("q", "out"):
                message = TextMessage("a", properties={"_AMQ_DUPL_ID": "same"})
                session.create_producer(Queue(place)).send(message)
        outcomes(recorder, 2)
        assert calls.qsize() == count

    def test_a_second_message_with_the_duplicate_id_is_one_and_sends_nothing(self, adapter, recorder, engine, inbox):
        """As a relay sends it again that died before it had deleted the row of its outbox."""
        calls = []
        listen(adapter, forwarding(engine, calls), inbox)
        adapter.stop()
        for number in range(2):  # over two brokers, as one would drop the second
            other = ResourceAdapter(f"embedded://inbox-{number}-{id(calls)}", hooks=[recorder])
            other.listener("q", inbox=inbox, transaction="required")(forwarding(engine, calls))
            with other, other.connection_factory().create_connection() as connection:
                with connection.create_session() as session:
                    message = TextMessage("a", properties={"_AMQ_DUPL_ID": "same"})
                    session.create_producer(Queue("q")).send(message)
                outcomes(recorder, 1)
                with connection.create_session() as session:
                    sent = list(session.create_browser(Queue("out")))
                assert len(sent) == (number == 0)
        assert calls == ["a"]


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


class TestInDoubt:
    """A redelivered message that the inbox cannot know any more."""

    def redeliver_late(self, adapter, recorder, engine, resolver):
        clock, calls, go_on = Clock(), [], threading.Event()
        inbox = SqlInbox(engine, keep=DAY, resolver=resolver, clock=clock)

        def handler(message):
            calls.append(message.body)
            if len(calls) == 1:
                clock.now = message.timestamp.timestamp() + 2 * DAY
                go_on.set()
                raise KeyError("once")

        send(adapter, "a")
        listen(adapter, handler, inbox)
        assert outcomes(recorder, 1) == [Outcome.ROLLED_BACK, Outcome.COMMITTED]
        return calls

    def test_the_resolver_decides(self, adapter, recorder, engine):
        asked = []

        def resolver(message):
            asked.append(message.body)
            return InboxOutcome.DUPLICATE

        assert self.redeliver_late(adapter, recorder, engine, resolver) == ["a"]
        assert asked == ["a"]

    def test_without_a_resolver_it_is_delivered_with_a_warning(self, adapter, recorder, engine, caplog):
        caplog.set_level(logging.WARNING, "jmsjca.transactions")
        assert self.redeliver_late(adapter, recorder, engine, None) == ["a", "a"]
        assert any("is in doubt" in record.getMessage() for record in caplog.records)

    def test_a_resolver_that_knows_it_as_new_has_it_delivered(self, adapter, recorder, engine):
        assert self.redeliver_late(adapter, recorder, engine, lambda message: InboxOutcome.NEW) == ["a", "a"]


class TestHistory:
    def test_expired_rows_are_deleted(self, adapter, recorder, engine):
        clock = Clock()
        inbox = SqlInbox(engine, keep=DAY, clock=clock)
        listen(adapter, lambda message: None, inbox)
        for day, kept in ((1, 1), (1.5, 2), (2.4, 2)):
            clock.now = day * DAY
            send(adapter, "a")
            outcomes(recorder, 1)
            adapter.stop()
            adapter.start()
            inbox.prune()
            with engine.connect() as connection:
                assert connection.scalar(sa.select(sa.func.count()).select_from(inbox.table)) == kept

    def test_they_are_deleted_by_the_way(self, adapter, recorder, engine):
        clock = Clock()
        inbox = SqlInbox(engine, keep=DAY, clock=clock)
        listen(adapter, lambda message: None, inbox)
        for day in range(4):
            clock.now = 2.0 * day * DAY
            send(adapter, "a")
            outcomes(recorder, 1)
        adapter.stop()
        with engine.connect() as connection:
            assert connection.scalar(sa.select(sa.func.count()).select_from(inbox.table)) == 1


class TestTable:
    def test_it_is_the_applications_with_its_metadata(self, engine):
        metadata = sa.MetaData()
        inbox = SqlInbox(sessionmaker(engine), metadata=metadata, name="seen")
        inbox.prepare()
        assert not sa.inspect(engine).has_table("seen")
        metadata.create_all(engine)
        assert sa.inspect(engine).has_table("seen")
        assert metadata.tables["seen"] is inbox.table

    def test_any_length_of_an_id_fits(self):
        message = TextMessage("a")
        assert message_key(message, None) is None
        assert message_key(message, "ID:1") == "ID:1"
        keys = {message_key(message, "x" * length) for length in (255, 256, 257)}
        assert len(keys) == 3
        assert max(map(len, keys)) <= 255

    @pytest.mark.parametrize(
        ("fields", "words"),
        [
            ({"destination": "q"}, "transaction='required'"),
            ({"destination": "q", "transaction": "bean"}, "transaction='required'"),
            ({"destination": Topic("t"), "transaction": "required"}, "durable"),
        ],
    )
    def test_what_it_cannot_serve_is_refused(self, jms_adapter, inbox, fields, words):
        with pytest.raises(ConfigurationError, match=words):
            jms_adapter.activate(ActivationSpec(**fields), print, inbox=inbox)

    def test_mistakes(self, engine):
        with pytest.raises(JMSError, match="Engine"):
            SqlInbox("sqlite://")
        with pytest.raises(InvalidArgumentError, match="keep"):
            SqlInbox(engine, keep=0)
