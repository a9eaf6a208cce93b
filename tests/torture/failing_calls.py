"""Lets each call of jmsjca between the failure of a handler and its settlement raise a `MemoryError`, once.

A profile function raises it, so that nothing of the interpreter fails. ``JMSJCA_ALL_STEPS=1 pytest
tests/torture/test_failing_calls.py`` visits every call of every mode.
"""

import shutil
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple

import sqlalchemy as sa

import jmsjca
from jmsjca import ConnectionFactory, Message, Queue, Reject, ResourceAdapter, Retry, Session, TextMessage
from jmsjca.connector import BusinessObject, Connector, ConnectorConfig, EventRecord, ReturnCode
from jmsjca.connector.event_flow import EventFlow
from jmsjca.connector.sql_event_store import SqlEventStore
from jmsjca.connector.store_polling import StoredEvents
from jmsjca.inbound.delivery_attempt import DeliveryAttempt
from jmsjca.inbound.hold_until_ack import HeldDeliveryAttempt
from jmsjca.transactions import SqlInbox, joined_session
from tests.model.machine import FAST

__all__ = ["CONNECTORS", "LISTENERS", "Visit", "visit"]

OURS = str(Path(jmsjca.__file__).parent)
# Ends of locks, which Python does not let fail, callbacks of its own, and the root of a thread, which it starts.
LEFT_OUT = {"__exit__", "release", "_remove", "_marked"}
PATIENCE = 60  # seconds
ROWS = sa.Table("rows", sa.MetaData(), sa.Column("text", sa.String))


class FailingCall:
    """Raises a `MemoryError` at the n-th call by or of jmsjca, once it is armed.

    Args:
        n: The number of the call, from 1.
        last: The function whose return ends the calls.
        everywhere: True for calls on all threads; else those of the thread that arms it, and of the settler.
    """

    def __init__(self, n: int, last: CodeType, *, everywhere: bool = False) -> None:
        self.left, self._last, self._everywhere = n, last, everywhere
        self._armed, self._thread = False, 0
        self._lock = threading.Lock()

    @contextmanager
    def planted(self, *, here: bool = False) -> Iterator[None]:
        """Watch the threads that start in the block, or this one."""
        (sys if here else threading).setprofile(self._profile)
        try:
            yield
        finally:
            self._armed = False
            sys.setprofile(None)
            threading.setprofile(None)  # type: ignore[arg-type]  # as documented

    def arm(self) -> None:
        """Count from now on. A second call has no effect once the calls have ended."""
        if self.left > 0:
            self._armed, self._thread = True, threading.get_ident()

    def _is_watched(self) -> bool:
        thread = threading.current_thread()
        return self._everywhere or thread.ident == self._thread or thread.name.endswith("settler")

    @property
    def fired(self) -> bool:
        """True if it has raised."""
        return self.left == 0

    def _profile(self, frame: FrameType, event: str, function: Any) -> None:
        ours = False
        if not (self._armed and self._is_watched()):
            return
        if event == "return" and frame.f_code is self._last:
            self._armed = False
        elif event == "return" and frame.f_code is DeliveryAttempt.deliver.__code__:
            self._thread = 0  # the settler settles
        elif event == "c_call":
            names = {function.__name__, frame.f_code.co_name}
            ours = not names & LEFT_OUT and frame.f_code.co_filename.startswith(OURS)
        elif event == "call":
            frames = [each for each in (frame, frame.f_back) if each is not None]
            ours = not {each.f_code.co_name for each in frames} & LEFT_OUT and any(
                each.f_code.co_filename.startswith(OURS) for each in frames
            )
        if ours:
            with self._lock:
                self.left -= self._armed
                if self.left or not self._armed:
                    return
                self._armed = False
            raise MemoryError("planted")


class Mode(NamedTuple):
    """How a listener is called.

    Attributes:
        spec: Fields of the listener.
        form: Which function of `_functions` is the handler.
        error: What the handler raises at its first delivery; None if it is not acknowledged in time instead.
        last: The function with whose return a unit is settled.
    """

    spec: dict[str, Any]
    form: str = "plain"
    error: BaseException | None = ValueError("planted")
    last: CodeType = DeliveryAttempt.deliver.__code__


CC, HELD = {"concurrency_mode": "cc"}, {"concurrency_mode": "cc", "hold_until_ack": True}
_EXPIRED = HELD | {"acknowledgement_timeout": 0.001}
LISTENERS = {
    "serial": Mode({}),
    "sync": Mode({"concurrency_mode": "sync"}),
    "cc": Mode(CC),
    "async": Mode({}, "async"),
    "async, cc": Mode(CC, "async"),
    "batch": Mode(CC | {"batch_size": 2}),
    "whole batch": Mode({"concurrency_mode": "sync", "batch_size": 2}, "whole"),
    "held": Mode(HELD, "held"),
    "held, expired": Mode(_EXPIRED, "held", None, HeldDeliveryAttempt.settle.__code__),
    "held, batch": Mode(HELD | {"batch_size": 2}, "held"),
    "required": Mode({"transaction": "required"}, "required"),
    "required, cc, held": Mode(HELD | {"transaction": "required"}, "required"),
    "required, inbox": Mode({"transaction": "required"}, "inbox"),
    "none": Mode({"transaction": "none"}, "outside"),
    "exit": Mode({}, error=SystemExit(3)),
    "retry": Mode({}, error=Retry(delay=0.001)),
    "reject": Mode({"redelivery_handling": "9:move(queue:dlq)"}, error=Reject("planted")),
    "reject after a send": Mode({"redelivery_handling": "9:move(queue:dlq)"}, "sending", error=Reject("planted")),
}
TO = {"input_destination": "in", "error_destination": "errors", "archive_destination": "archive"}
ELIMINATING = {"monitor_queue": "monitor", "duplicate_event_elimination": True}
CONNECTORS: dict[str, dict[str, Any]] = {
    "connector": TO,
    "connector, in progress": TO | {"in_progress_destination": "held"},
    "connector, elimination": TO | ELIMINATING,
    "connector, table": {"in_doubt_events": "Reprocess"},
    "connector, table, elimination": ELIMINATING | {"in_doubt_events": "Reprocess"},
}


class Visit(NamedTuple):
    """One call that failed.

    Attributes:
        mode: The mode.
        n: The number of the call.
        fired: False if there are fewer calls.
        wrong: What was wrong; None for nothing.
    """

    mode: str
    n: int
    fired: bool
    wrong: str | None


def visit(mode: str, n: int) -> Visit:
    """Let the n-th call fail, and judge what becomes of the message."""
    folder = Path(tempfile.mkdtemp(prefix="jmsjca-calls-", dir=FAST))
    try:
        fired, wrong = (_listen if mode in LISTENERS else _poll)(mode, n, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return Visit(mode, n, fired, wrong)


def _listen(name: str, n: int, folder: Path) -> tuple[bool, str | None]:
    mode, url = LISTENERS[name], f"embedded://calls-{uuid.uuid4().hex}"
    call = FailingCall(n, mode.last, everywhere=mode.form == "async")
    adapter, done = ResourceAdapter(url), list[str]()
    engine = sa.create_engine(f"sqlite:///{folder / 'rows.db'}", poolclass=sa.NullPool)
    if mode.form in {"required", "inbox"}:
        ROWS.metadata.create_all(engine)

    def work(message: Message, session: Session | None) -> None:
        if message.end_of_batch and not message.body:
            return
        if session is not None:
            session.create_producer(Queue("out")).send(TextMessage(message.body))
        first = message.delivery_count == 1 and message.body == "a"
        if not first and not isinstance(mode.error, Reject):
            done.append(message.body)
            return
        if message.body == "b":
            done.append("b")
            return
        call.arm()
        if mode.error is not None:
            raise mode.error.with_traceback(None)  # which would grow with each visit

    inbox = SqlInbox(engine) if mode.form == "inbox" else None
    handler = _functions(work, engine, mode)[mode.form]
    adapter.listener("q", **mode.spec, **({} if inbox is None else {"inbox": inbox}))(handler)
    try:
        with call.planted(), adapter:
            adapter.start(wait=PATIENCE)
            adapter.send("q", "a")
            wrong = _until(lambda: _depth(url, "q") == 0, "a stays in its queue")
            adapter.send("q", "b")
            wrong = wrong or _until(lambda: "b" in done and _depth(url, "q") == 0, "b stays in its queue")
            wrong = wrong or _judge(adapter, url, mode, engine)
    finally:
        engine.dispose()
    return call.fired, wrong


def _functions(work: Callable[[Message, Session | None], None], engine: sa.Engine, mode: Mode) -> dict[str, Any]:
    def plain(message: Message, session: Session) -> None:
        work(message, None if isinstance(mode.error, Reject) else session)

    def outside(message: Message) -> None:
        work(message, None)

    def sending(message: Message, session: Session) -> None:
        work(message, session)

    async def asynchronous(message: Message, session: Session) -> None:
        work(message, session)

    def whole(messages: list[Message], session: Session) -> None:
        for message in messages:
            work(message, session)

    def held(message: Message, session: Session) -> None:
        work(message, session)
        if message.delivery_count > 1 or message.body != "a":
            message.acknowledge()

    def required(message: Message, session: Session, transaction: Any) -> None:
        text = f"{message.body}{message.delivery_count}"
        joined_session(engine, transaction).execute(ROWS.insert().values(text=text))
        held(message, session)

    return {
        "plain": plain,
        "outside": outside,
        "sending": sending,
        "async": asynchronous,
        "whole": whole,
        "held": held,
        "required": required,
        "inbox": required,
    }


def _judge(adapter: ResourceAdapter, url: str, mode: Mode, engine: sa.Engine) -> str | None:
    [activation] = adapter.activations
    sent, dead = _bodies(url, "out"), _bodies(url, "dlq")
    rejected = isinstance(mode.error, Reject)
    expected = {"plain": [] if rejected else ["a", "b"], "outside": [], "sending": ["b"]}.get(mode.form, ["a", "b"])
    if (sent, dead) != (expected, ["a"] if rejected else []):
        return f"sent {sent}, dead letters {dead}"
    if mode.form in {"required", "inbox"}:
        with engine.connect() as connection:
            rows = sorted(connection.scalars(sa.select(ROWS.c.text)))
        bodies = [row[0] for row in rows]
        if mode.form == "required":  # without an inbox, work is repeated if the connection ends at the commit
            bodies = sorted({*bodies})
        if "a1" in rows or bodies != ["a", "b"]:
            return f"rows {rows}"
    endpoint = activation._endpoint  # what management shows of it
    left = _until(
        lambda: (
            (endpoint.activity.units, endpoint.abandoned_handlers, endpoint.abandoned_messages) == (0, 0, 0)
            and endpoint.statistics.n_active_endpoints == 0
        ),
        "something is active",
    )
    return left or (None if activation.status == "Up" else f"the status is {activation.status}")


def _poll(name: str, n: int, folder: Path) -> tuple[bool, str | None]:
    fields, stored = CONNECTORS[name], "table" in name
    url = f"embedded://calls-{uuid.uuid4().hex}"
    last = StoredEvents._process.__code__ if stored else EventFlow.process.__code__  # of one event
    call, calls = FailingCall(n, last), []
    engine = sa.create_engine(f"sqlite:///{folder / 'events.db'}", poolclass=sa.NullPool)
    store = SqlEventStore(engine, lambda record: BusinessObject("Order", "", {"id": record.object_key}))

    def collaboration(order: BusinessObject) -> None:
        calls.append(order.get("id"))
        if order.get("id") == "a":
            call.arm()
            raise ValueError("planted")

    with ConnectionFactory(url).create_connection() as keeping:  # the broker lives as long as a connection
        if stored:
            store.metadata.create_all(engine)
            with engine.begin() as connection:
                for each in "ab":
                    store.add(connection, EventRecord(each, "Order", "Create", each))
        else:
            with keeping.create_session() as session:
                for each in "ab":
                    session.create_producer(Queue("in")).send(f'{{"_type": "Order", "id": "{each}"}}')
        config = ConnectorConfig(connection_url=url, poll_quantity=2, receive_timeout=0.0, **fields)
        with Connector(config, collaboration, event_store=store if stored else None) as connector:
            with call.planted(here=True), suppress(MemoryError):
                connector.poll_for_events()
            for _ in range(3):
                code = connector.poll_for_events()
        wrong = None if code is ReturnCode.SUCCEED else f"the last poll returned {code}"
        wrong = wrong or _judge_events(url, engine if stored else None, calls)
    engine.dispose()
    return call.fired, wrong


def _judge_events(url: str, engine: sa.Engine | None, calls: list[str]) -> str | None:
    if calls.count("b") != 1 or calls.count("a") not in {1, 2}:
        return f"the collaboration got {calls}"
    if engine is not None:
        with engine.connect() as connection:
            rows = connection.execute(sa.text("SELECT event_id, event_status FROM jmsjca_events_archive"))
            archived = sorted((event_id, status) for event_id, status in rows)
        return None if [each for each, _ in archived] == ["a", "b"] and archived[0][1] != 0 else f"archived {archived}"
    found = {name: [body[-3:-2] for body in _bodies(url, name)] for name in ("in", "held", "errors", "archive")}
    return None if found == {"in": [], "held": [], "errors": ["a"], "archive": ["b"]} else f"{found}"


def _until(holds: Callable[[], bool], otherwise: str) -> str | None:
    end = time.monotonic() + PATIENCE
    while not holds():
        if time.monotonic() > end:
            return otherwise
        time.sleep(0.002)
    return None


def _depth(url: str, queue: str) -> int:
    with ConnectionFactory(url).create_connection() as connection:
        assert connection.admin is not None
        return connection.admin.depth(Queue(queue)).total


def _bodies(url: str, queue: str) -> list[str]:
    with ConnectionFactory(url).create_connection() as connection, connection.create_session() as session:
        return sorted(message.get_body(str) for message in session.create_browser(Queue(queue)))
