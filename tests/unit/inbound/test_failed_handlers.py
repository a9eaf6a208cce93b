"""A failed handler ends in a rollback, whatever its exception does when it is recorded; and hooks fail their unit."""

import asyncio
import threading
from typing import Any

import pytest

from jmsjca import Hooks, Message, Outcome, Queue, ResourceAdapter, Session, TextMessage, reconnection
from jmsjca.errors import ActivationFailedError
from jmsjca.inbound import lifecycle
from jmsjca.inbound.endpoint import AcknowledgementRegistry
from jmsjca.inbound.hold_until_ack import HeldUnitSettler
from jmsjca.inbound.redelivery_processor import RedeliveryProcessor
from jmsjca.inbound.statistics import StatisticsRecorder
from jmsjca.providers.embedded.store.store import Store
from tests.unit.inbound.deliveries import until
from tests.unit.inbound.listeners import PATIENCE, Recorder, send, waiting

SPECS: dict[str, dict[str, Any]] = {
    "serial": {},
    "sync": {"concurrency_mode": "sync"},
    "cc": {"concurrency_mode": "cc"},
    "batch": {"concurrency_mode": "cc", "batch_size": 2},
    "held": {"concurrency_mode": "cc", "hold_until_ack": True},
    "required": {"transaction": "required"},
    "async": {},
}
HANDLERS = pytest.mark.parametrize("name", SPECS)


def _raise(error: BaseException) -> Any:
    raise error


class TextExitsError(Exception):
    def __str__(self) -> str:
        raise SystemExit(3)


class TextInterruptsError(Exception):
    def __str__(self) -> str:
        raise KeyboardInterrupt


class TextIsCancelledError(Exception):
    def __str__(self) -> str:
        raise asyncio.CancelledError


class NoTracebackError(Exception):
    def with_traceback(self, tb: object) -> Any:
        raise ValueError(tb)


class TracebackRaisesError(Exception):
    __traceback__ = property(lambda self: _raise(ValueError()))  # type: ignore[assignment]


class ClassRaisesError(Exception):
    __class__ = property(lambda self: _raise(ValueError()))  # type: ignore[assignment]


class _ModuleRaises(type):
    @property
    def __module__(cls) -> str:  # type: ignore[override]
        raise SystemExit(4)


class ModuleRaisesError(Exception, metaclass=_ModuleRaises):
    pass


class EmptyError(Exception):
    def __len__(self) -> int:
        return 0


class FalseError(Exception):
    def __bool__(self) -> bool:
        return False


class TruthRaisesError(Exception):
    def __bool__(self) -> bool:
        raise SystemExit(5)


KINDS = [
    *(TextExitsError, TextInterruptsError, TextIsCancelledError, NoTracebackError, TracebackRaisesError),
    *(ClassRaisesError, ModuleRaisesError, EmptyError, FalseError, TruthRaisesError),
]


def listen(adapter: ResourceAdapter, name: str, handler: Any, **changes: Any) -> None:
    """Add a listener with a handler that is called in one of the ways."""

    async def asynchronous(message: Message, session: Session) -> None:
        handler(message, session)

    def acknowledging(message: Message, session: Session) -> None:
        handler(message, session)
        message.acknowledge()

    def whole(messages: list[Message], session: Session) -> None:
        for message in messages:
            handler(message, session)

    functions = {"async": asynchronous, "held": acknowledging, "batch": whole}
    adapter.listener("q", **SPECS[name], **changes)(functions.get(name, handler))


def outcomes(recorder: Recorder, count: int) -> set[Outcome]:
    return {recorder.outcomes.get(timeout=PATIENCE)[0] for _ in range(count)}


@HANDLERS
@pytest.mark.parametrize("kind", KINDS)
def test_no_exception_of_a_handler_ends_in_a_commit(
    adapter: ResourceAdapter, recorder: Recorder, caplog: pytest.LogCaptureFixture, name: str, kind: type[Exception]
) -> None:
    def handler(message: Message, session: Session) -> None:
        session.create_producer(Queue("out")).send(TextMessage(f"{message.delivery_count}"))
        if message.delivery_count == 1:
            raise kind

    send(adapter, "a")
    listen(adapter, name, handler)
    with adapter:
        assert outcomes(recorder, 2) == {Outcome.ROLLED_BACK, Outcome.COMMITTED}
        assert adapter.health().status in {"consuming", "idle"}
    assert (waiting(adapter), waiting(adapter, "out")) == ([], [("2", 0)])
    assert "redelivered" in caplog.text


class _Failing(Hooks):
    """Raises once in one of its methods, before or after what it surrounds."""

    def __init__(self, method: str, error: BaseException, *, after: bool = False) -> None:
        self._errors = [error]
        self._after = after
        setattr(self, method, self._around if method.startswith("around") else self._notified)

    def _around(self, *arguments: Any) -> object:
        if not self._after:
            self._fail()
        result = arguments[-1]()
        self._fail()
        return result

    def _notified(self, *_: object, **named: object) -> None:
        del named
        if threading.current_thread() is not threading.main_thread():  # where it may be of a signal handler
            self._fail()

    def _fail(self) -> None:
        if self._errors:
            raise self._errors.pop()


EXITS = [KeyboardInterrupt(), asyncio.CancelledError(), GeneratorExit()]
PAIRS = [*((name, SystemExit(1)) for name in SPECS), *(("serial", error) for error in EXITS)]
CASES = pytest.mark.parametrize(
    ("name", "error"), PAIRS, ids=[f"{name}-{type(error).__name__}" for name, error in PAIRS]
)


def play(hook: Hooks, jms_broker_url: str, name: str, **changes: Any) -> tuple[list[int], set[Outcome], list[Any]]:
    """Deliver two messages, one after the other; return the deliveries of the first, outcomes, and what was sent."""
    recorder = Recorder()
    adapter = ResourceAdapter(jms_broker_url, hooks=[hook, recorder])
    counts: list[int] = []

    def handler(message: Message, session: Session) -> None:
        session.create_producer(Queue("out")).send(TextMessage(f"{message.body}"))
        if message.body == "a":
            counts.append(message.delivery_count)

    listen(adapter, name, handler, **changes)
    with adapter:
        send(adapter, "a")
        until(lambda: ("a", 0) in waiting(adapter, "out"))
        send(adapter, "b")
        until(lambda: ("b", 0) in waiting(adapter, "out"))
        until(lambda: waiting(adapter) == [])
        assert [each.status for each in adapter.activations] == ["Up"]
        assert adapter.health().status in {"consuming", "idle"}
    ends = set()
    while not recorder.outcomes.empty():
        ends.add(recorder.outcomes.get()[0])
    return counts, ends, sorted(body for body, _ in waiting(adapter, "out"))


@CASES
@pytest.mark.parametrize(
    "method", ["handled", "around_delivery", "around_settlement", "around_commit", "around_create"]
)
def test_an_exit_of_a_hook_before_the_commit_rolls_its_unit_back(
    jms_broker_url: str, caplog: pytest.LogCaptureFixture, name: str, method: str, error: BaseException
) -> None:
    counts, ends, sent = play(_Failing(method, error), jms_broker_url, name)
    assert (counts[-1], ends, sent) == (2, {Outcome.ROLLED_BACK, Outcome.COMMITTED}, ["a", "b"])
    assert type(error).__name__ in caplog.text


@pytest.mark.parametrize("mode", ["sync", "cc"])
def test_the_end_of_a_batch_learns_of_an_exit_of_a_hook(jms_broker_url: str, mode: str) -> None:
    recorder, ends = Recorder(), []
    adapter = ResourceAdapter(jms_broker_url, hooks=[_Failing("handled", SystemExit(1)), recorder])

    def handler(message: Message) -> None:
        if message.end_of_batch:
            ends.append(message.rollback_only)

    send(adapter, "a")
    adapter.listener("q", concurrency_mode=mode, batch_size=2)(handler)
    with adapter:
        assert outcomes(recorder, 2) == {Outcome.ROLLED_BACK, Outcome.COMMITTED}
    assert ends == [True, False]


@CASES
@pytest.mark.parametrize("method", ["around_settlement", "around_commit", "settled", "status_changed"])
def test_an_exit_of_a_hook_after_the_commit_is_logged_and_the_listener_goes_on(
    jms_broker_url: str, caplog: pytest.LogCaptureFixture, name: str, method: str, error: BaseException
) -> None:
    counts, ends, sent = play(_Failing(method, error, after=True), jms_broker_url, name)
    assert (counts, ends, sent) == ([1], {Outcome.COMMITTED}, ["a", "b"])
    assert type(error).__name__ in caplog.text


def test_a_listener_that_an_exit_ends_has_a_failure_and_a_record(
    jms_broker_url: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def exits(*_: object, **named: object) -> None:
        del named
        raise SystemExit(3)

    monkeypatch.setattr(lifecycle, "create_dispatcher", exits)
    adapter = ResourceAdapter(jms_broker_url)
    adapter.listener("q")(lambda message: None)
    with adapter, pytest.raises(ActivationFailedError, match="SystemExit"):
        adapter.start(wait=PATIENCE)
    assert "stopped permanently: SystemExit was raised outside the handler" in caplog.text


@pytest.mark.parametrize("mode", ["serial", "sync", "cc"])
def test_a_lack_of_memory_outside_the_handler_is_retried(
    adapter: ResourceAdapter,
    recorder: Recorder,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    mode: str,
) -> None:
    monkeypatch.setattr(reconnection, "_BACKOFF", (0,))
    process, failures = RedeliveryProcessor.process, [MemoryError(), MemoryError()]

    def processed(self: RedeliveryProcessor, delivery: Any) -> Any:
        if failures:
            raise failures.pop()
        return process(self, delivery)

    monkeypatch.setattr(RedeliveryProcessor, "process", processed)
    adapter.listener("q", concurrency_mode=mode)(lambda message: None)
    with adapter:
        send(adapter, "a")
        recorder.await_outcome(Outcome.COMMITTED)
        assert [each.failure for each in adapter.activations] == [None]
    assert "gets no more memory" in caplog.text


@HANDLERS
def test_a_unit_that_lacks_memory_for_its_rollback_is_redelivered(
    adapter: ResourceAdapter, recorder: Recorder, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """The connection is closed, which releases its messages; a transaction would only log the failure."""
    monkeypatch.setattr(reconnection, "_BACKOFF", (0,))
    release, failures = Store.release_or_postpone, [MemoryError()]

    def released(self: Store, *args: Any) -> bool:
        if failures:
            raise failures.pop()
        return release(self, *args)

    monkeypatch.setattr(Store, "release_or_postpone", released)

    def handler(message: Message) -> None:
        if message.delivery_count == 1:
            raise ValueError
        message.acknowledge()

    adapter.listener("q", **SPECS[name])(handler)
    with adapter:
        send(adapter, "a")
        while recorder.outcomes.get(timeout=PATIENCE)[0] is not Outcome.COMMITTED:
            pass
    assert waiting(adapter, "q") == []


def test_a_settler_that_ends_ends_its_connection(
    adapter: ResourceAdapter, recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The units that it held are redelivered, and the next ones are settled."""
    monkeypatch.setattr(reconnection, "_BACKOFF", (0,))
    wait, failures = HeldUnitSettler._next_task, [MemoryError()]

    def next_task(self: HeldUnitSettler) -> Any:
        if failures:
            raise failures.pop()
        return wait(self)

    monkeypatch.setattr(HeldUnitSettler, "_next_task", next_task)

    def handler(message: Message) -> None:
        if message.delivery_count > 1:
            message.acknowledge()

    adapter.listener("q", concurrency_mode="cc", hold_until_ack=True, acknowledgement_timeout=3600)(handler)
    with adapter:
        send(adapter, "a")
        assert outcomes(recorder, 2) == {Outcome.ROLLED_BACK, Outcome.COMMITTED}


def test_a_held_message_that_could_not_be_registered_is_redelivered(
    adapter: ResourceAdapter, recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reconnection, "_BACKOFF", (0,))
    register, failures = AcknowledgementRegistry.register, [MemoryError()]

    def registered(self: AcknowledgementRegistry, context: Any) -> None:
        if failures:
            raise failures.pop()
        register(self, context)

    monkeypatch.setattr(AcknowledgementRegistry, "register", registered)
    adapter.listener("q", concurrency_mode="cc", hold_until_ack=True)(lambda message: message.acknowledge())
    with adapter:
        send(adapter, "a")
        assert outcomes(recorder, 2) == {Outcome.ROLLED_BACK, Outcome.COMMITTED}


@pytest.mark.parametrize("mode", ["serial", "sync", "cc"])
def test_no_handler_stays_active_if_its_end_fails(
    adapter: ResourceAdapter, recorder: Recorder, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    monkeypatch.setattr(reconnection, "_BACKOFF", (0,))
    record_end, failures = StatisticsRecorder.record_end, [MemoryError()]

    def recorded(self: StatisticsRecorder, seconds: float) -> None:
        if failures:
            raise failures.pop()
        record_end(self, seconds)

    monkeypatch.setattr(StatisticsRecorder, "record_end", recorded)
    adapter.listener("q", concurrency_mode=mode)(lambda message: None)
    with adapter:
        send(adapter, "a")
        assert outcomes(recorder, 2) == {Outcome.ROLLED_BACK, Outcome.COMMITTED}
        until(lambda: adapter.activations[0].stats.n_active_endpoints == 0)
