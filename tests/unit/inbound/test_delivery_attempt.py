"""One delivery: commit, rollback, order, confirmation, and the handler's session."""

import asyncio
import queue
import threading

import pytest

from jmsjca import AcknowledgeMode, ActivationSpec, Message, Outcome, Queue, Session, TextMessage
from jmsjca.errors import IllegalStateError, JMSError, MessageFormatError, TransactionInDoubtError
from jmsjca.inbound.endpoint import EndpointSettings
from jmsjca.providers.embedded.unit import EmbeddedUnit
from tests.unit.inbound.deliveries import Performance, endpoint_of, put
from tests.unit.inbound.listeners import PATIENCE, Inbox, Recorder, send, waiting

FAILURES = [KeyError("x"), SystemExit(1), KeyboardInterrupt(), JMSError("x"), asyncio.CancelledError(), GeneratorExit()]


@pytest.mark.parametrize("failure", FAILURES, ids=lambda failure: type(failure).__name__)
def test_exception_rolls_back_and_the_order_is_kept(adapter, recorder, failure):
    send(adapter, *"abc")
    inbox = Inbox(failure)
    adapter.listener("q")(inbox)
    with adapter:
        assert inbox.take(4) == [("a", 1), ("a", 2), ("b", 1), ("c", 1)]
        recorder.await_outcome(Outcome.ROLLED_BACK)
        recorder.await_outcome(Outcome.COMMITTED)


@pytest.mark.parametrize("failure", FAILURES[:4], ids=lambda failure: type(failure).__name__)
def test_exception_of_an_async_handler_does_the_same(adapter, failure):
    send(adapter, "a", "b")
    inbox = Inbox(failure)

    @adapter.listener("q")
    async def handler(message: Message) -> None:
        await asyncio.sleep(0)
        inbox(message)

    with adapter:
        assert inbox.take(3) == [("a", 1), ("a", 2), ("b", 1)]


@pytest.mark.parametrize("failure", [SystemExit(1), KeyboardInterrupt()], ids=lambda failure: type(failure).__name__)
def test_what_would_end_a_loop_ends_only_the_delivery(adapter, failure):
    send(adapter, "a")
    inbox = Inbox(failure)
    loops: list[asyncio.AbstractEventLoop] = []

    @adapter.listener("q")
    async def handler(message: Message) -> None:
        loops.append(asyncio.get_running_loop())
        inbox(message)

    with adapter:
        assert inbox.take(2) == [("a", 1), ("a", 2)]
    assert loops[0] is loops[1]


def test_async_handlers_of_an_endpoint_share_one_loop(adapter):
    send(adapter, "a", "b")
    loops: list[asyncio.AbstractEventLoop] = []
    done = threading.Event()

    @adapter.listener("q")
    async def handler(message: Message) -> None:
        loops.append(asyncio.get_running_loop())
        if message.body == "b":
            done.set()

    with adapter:
        assert done.wait(PATIENCE)
    assert loops[0] is loops[1]
    assert loops[0].is_closed()


def test_rollback_only_rolls_back_without_an_exception(adapter, recorder):
    send(adapter, "a")
    counts: list[int] = []

    @adapter.listener("q")
    def handler(message: Message) -> None:
        counts.append(message.delivery_count)
        if message.redelivery_count < 2:
            message.set_rollback_only()

    with adapter:
        for outcome in (Outcome.ROLLED_BACK, Outcome.ROLLED_BACK, Outcome.COMMITTED):
            recorder.await_outcome(outcome)
    assert counts == [1, 2, 3]


def test_what_the_handler_sends_belongs_to_its_unit(adapter, recorder):
    send(adapter, "a")

    @adapter.listener("q")
    def handler(message: Message, session: Session) -> None:
        session.create_producer(Queue("out")).send(TextMessage(f"{message.body}{message.delivery_count}"))
        if not message.redelivered:
            raise KeyError

    with adapter:
        recorder.await_outcome(Outcome.ROLLED_BACK)
        recorder.await_outcome(Outcome.COMMITTED)
    assert waiting(adapter, "out") == [("a2", 0)]


def test_settlement_tells_how_the_unit_ended(adapter, recorder):
    send(adapter, "a")
    settlements = []

    @adapter.listener("q")
    def handler(message: Message) -> None:
        settlements.append(message.acknowledge())
        assert settlements[-1].outcome is None
        if not message.redelivered:
            raise KeyError

    with adapter:
        recorder.await_outcome(Outcome.ROLLED_BACK)
        recorder.await_outcome(Outcome.COMMITTED)
    assert [s.wait(PATIENCE) for s in settlements] == [Outcome.ROLLED_BACK, Outcome.COMMITTED]


def test_session_of_a_delivery_ends_with_it(adapter, recorder):
    send(adapter, "a")
    sessions: list[Session] = []

    @adapter.listener("q")
    def handler(message: Message, session: Session) -> None:
        sessions.append(session)

    with adapter:
        recorder.await_outcome(Outcome.COMMITTED)
    with pytest.raises(IllegalStateError):
        sessions[0].create_producer(Queue("out"))


def test_hooks_learn_of_a_commit_in_doubt(adapter, recorder, monkeypatch):
    commit = EmbeddedUnit.commit
    failures = [TransactionInDoubtError("?")]

    def in_doubt_once(self: EmbeddedUnit, **kwargs: object) -> None:
        takes = bool(self._taken)
        commit(self, **kwargs)
        if failures and takes:
            raise failures.pop()

    send(adapter, "a")
    inbox = Inbox()
    adapter.listener("q")(inbox)
    monkeypatch.setattr(EmbeddedUnit, "commit", in_doubt_once)
    with adapter:
        recorder.await_outcome(Outcome.IN_DOUBT)
        recorder.await_status("Connecting", "Up", "Connecting")


def test_message_that_cannot_be_decoded_does_not_reach_the_handler(adapter, recorder, monkeypatch):
    from jmsjca.providers.embedded import delivery

    decode = delivery.decode
    failures = [MessageFormatError("poison")]

    def poisoned(headers: str, *args: object) -> Message:
        if failures:
            raise failures.pop()
        return decode(headers, *args)

    send(adapter, "a", "b")
    monkeypatch.setattr(delivery, "decode", poisoned)
    inbox = Inbox()
    adapter.listener("q")(inbox)
    with adapter:
        recorder.await_outcome(Outcome.ROLLED_BACK)
        assert inbox.take(2) == [("a", 2), ("b", 1)]


def test_body_and_password_are_not_logged(adapter, recorder, caplog):
    send(adapter, "s3cr3t")
    inbox = Inbox(KeyError("x"))
    adapter.listener("q")(inbox)
    with caplog.at_level("DEBUG"), adapter:
        recorder.await_outcome(Outcome.ROLLED_BACK)
        recorder.await_outcome(Outcome.COMMITTED)
    assert "rolled back" in caplog.text
    assert "s3cr3t" not in caplog.text


AUTO, DUPS_OK = AcknowledgeMode.AUTO, AcknowledgeMode.DUPS_OK


class Noting:
    """A unit that notes how it is committed."""

    def __init__(self, real, confirmed):
        self._real, self._confirmed = real, confirmed

    def __getattr__(self, name):
        return getattr(self._real, name)

    def commit(self, *, confirmed=True, timeout=None):
        self._confirmed.append(confirmed)
        self._real.commit(confirmed=confirmed, timeout=timeout)


@pytest.mark.parametrize("mode", ["serial", "sync", "cc"])
@pytest.mark.parametrize(
    ("transaction", "acknowledge_mode", "waits"),
    [("none", DUPS_OK, False), ("none", AUTO, True), ("local", DUPS_OK, True), ("local", AUTO, True)],
)
def test_only_without_transactions_and_where_messages_may_be_doubled_nobody_waits(
    connected, recorder, mode, transaction, acknowledge_mode, waits
):
    link, confirmed = connected(), []
    open_unit = link.unit
    put(link, "a")
    link.unit = lambda **kwargs: Noting(open_unit(**kwargs), confirmed)
    spec = ActivationSpec(
        destination="q", concurrency_mode=mode, transaction=transaction, acknowledge_mode=acknowledge_mode
    )
    performance = Performance(endpoint_of(lambda message: None, EndpointSettings.of(spec), recorder), link)
    recorder.await_outcome(Outcome.COMMITTED)
    performance.stop()
    assert confirmed == [waits]


OUT, REPLIES = Queue("out"), Queue("replies")


def bodies(adapter, queue):
    with adapter.connection_factory().create_connection() as connection, connection.create_session() as session:
        return [message.body for message in session.create_browser(queue)]


def forward(message: Message, session: Session):
    with session:
        session.create_producer(OUT).send(session.create_text_message(message.body or "end"))
    return "reply"


def test_its_reply_is_sent(adapter, recorder: Recorder):
    adapter.listener("q")(forward)
    with adapter.connection_factory().create_connection() as connection, connection.create_session() as session:
        session.create_producer(Queue("q")).send(TextMessage("a", reply_to=REPLIES))
    with adapter:
        recorder.await_outcome(Outcome.COMMITTED)
    assert (bodies(adapter, OUT), bodies(adapter, REPLIES)) == (["a"], ["reply"])


@pytest.mark.parametrize("mode", ["sync", "cc"])
def test_the_other_messages_of_its_batch_have_one(adapter, recorder: Recorder, mode):
    adapter.listener("q", concurrency_mode=mode, endpoint_pool_max_size=1, batch_size=3)(forward)
    send(adapter, *"abc")
    with adapter:
        assert recorder.outcomes.get(timeout=PATIENCE) == (Outcome.COMMITTED, 3)
    assert bodies(adapter, OUT) == ["a", "b", "c", "end"]


FORWARDED = Queue("out")


def send_on(message: Message, session: Session):
    session.create_producer(FORWARDED).send(message)


@pytest.fixture
def listen(adapter):
    def listen(handler, **spec):
        activation = adapter.activate(
            ActivationSpec(**{"destination": "q", "endpoint_pool_max_size": 1} | spec), handler
        )
        activation.start()
        return activation

    return listen


@pytest.fixture
def moved(listen):
    """What comes to the queue that messages are moved to."""
    moved = queue.Queue()
    listen(moved.put, destination="dlq")
    return lambda: moved.get(timeout=PATIENCE)


def test_what_is_remembered_of_it_is_found_again(adapter, listen, moved):
    seen = []

    def handler(message: Message, session: Session):
        send_on(message, session)
        seen.append((message.redelivery_count, message.user_rollback_data.get("tries")))
        message.user_rollback_data["tries"] = f"{len(seen)}"
        raise KeyError("no such order")

    listen(handler, redelivery_handling="2:move(queue:dlq)")
    send(adapter, "a")
    told = moved().properties
    assert seen == [(0, None), (1, "1")]
    assert told["JMS_Sun_JMSJCA_UserRollbackData.tries"] == "2"
    assert told["JMS_Sun_JMSJCA_ExceptionMessage"] == "'no such order'"


def test_it_does_not_wait_for_ever_for_a_handler_that_was_left_behind(adapter, listen):
    got, go_on = queue.Queue(), threading.Event()

    def handler(message: Message, session: Session):
        got.put(message.redelivered)
        if not message.redelivered:
            assert go_on.wait(PATIENCE)
            send_on(message, session)

    activation = listen(handler, concurrency_mode="cc")
    send(adapter, "a")
    assert got.get(timeout=PATIENCE) is False
    assert not activation.stop(timeout=0)
    activation.start()
    go_on.set()
    assert got.get(timeout=PATIENCE) is True


def test_the_good_messages_of_a_failed_batch_are_not_moved_with_the_bad_one(adapter, recorder: Recorder, listen, moved):
    def handler(message: Message, session: Session):
        body = message.body
        if not message.end_of_batch:
            send_on(message, session)
        if body == "bad":
            raise KeyError

    spec = {"concurrency_mode": "sync", "batch_size": 3, "split_failed_batches": True}
    send(adapter, "a", "b", "bad")
    listen(handler, redelivery_handling="2:move(queue:dlq)", **spec)
    assert moved().body == "bad"
    outcomes = [recorder.outcomes.get(timeout=PATIENCE) for _ in range(5)]
    assert outcomes.count((Outcome.COMMITTED, 1)) == 3  # a, b, and what was moved


def test_a_reply_names_the_request_that_came(adapter, listen):
    replies = queue.Queue()

    def handler(message: Message, session: Session):
        send_on(message, session)
        return "reply"

    listen(replies.put, destination="replies")
    listen(handler)
    request = TextMessage("a", reply_to=Queue("replies"))
    with adapter.connection_factory().create_connection() as connection, connection.create_session() as session:
        session.create_producer(Queue("q")).send(request)
    assert replies.get(timeout=PATIENCE).correlation_id == request.message_id
