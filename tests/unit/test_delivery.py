"""What a handler's end does to its message: commit, rollback, order, and what it sent meanwhile."""

import asyncio
import threading

import pytest

from jmsjca import Message, Outcome, Queue, Session, TextMessage
from jmsjca.errors import IllegalStateError, JMSError, MessageFormatError, TransactionInDoubtError
from jmsjca.providers.embedded.unit import EmbeddedUnit
from tests.unit.inbound import PATIENCE, Inbox, send, waiting

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
