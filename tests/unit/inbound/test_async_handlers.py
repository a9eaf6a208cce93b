"""Async handlers: their event loop, their concurrency, and how they end."""

import asyncio
import contextvars
import queue
import threading
from collections.abc import Callable
from concurrent.futures import CancelledError

import pytest

from jmsjca import Hooks, Message, Outcome, Queue, ResourceAdapter, Session, TextMessage
from jmsjca.inbound.handler import Handler, HandlerLoop
from jmsjca.inbound.handler_arguments import Invocation
from tests.unit.inbound.listeners import PATIENCE, in_thread, send, waiting

MODES = ["serial", "sync", "cc"]
ERRORS = [KeyError("x"), SystemExit(1), KeyboardInterrupt(), asyncio.CancelledError(), TimeoutError("own")]


def loop_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "jmsjca handlers' event loop"]


class Meeting:
    """A handler whose coroutines wait for each other, until so many are there."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.present = 0
        self.loops: set[asyncio.AbstractEventLoop] = set()
        self.complete = asyncio.Event()

    async def __call__(self, message: Message) -> None:
        self.loops.add(asyncio.get_running_loop())
        self.present += 1
        if self.present == self.count:
            self.complete.set()
        await self.complete.wait()


@pytest.mark.parametrize("mode", ["sync", "cc"])
def test_as_many_run_at_once_as_there_are_endpoints(adapter, recorder, mode):
    meeting = Meeting(4)
    adapter.listener("q", concurrency_mode=mode, endpoint_pool_max_size=4)(meeting)
    send(adapter, *"abcd")
    with adapter:
        for _ in range(4):
            recorder.await_outcome(Outcome.COMMITTED)
        assert len(loop_threads()) == len(meeting.loops) == 1
    assert not loop_threads()


def test_handlers_of_one_adapter_share_a_loop(adapter, recorder):
    meeting = Meeting(2)
    adapter.listener("q")(meeting)
    adapter.listener("r")(meeting)
    send(adapter, "a")
    send(adapter, "b", to="r")
    with adapter:
        for _ in range(2):
            recorder.await_outcome(Outcome.COMMITTED)
    assert len(meeting.loops) == 1


@pytest.mark.parametrize("mode", MODES)
def test_they_run_on_the_loop_that_the_adapter_was_entered_on(adapter, recorder, mode):
    meeting = Meeting(1)
    adapter.listener("q", concurrency_mode=mode)(meeting)
    send(adapter, "a")

    async def serve() -> None:
        async with adapter:
            await asyncio.to_thread(recorder.await_outcome, Outcome.COMMITTED)
        assert meeting.loops == {asyncio.get_running_loop()}

    asyncio.run(serve())
    send(adapter, "b")
    with adapter:  # and that loop is closed now
        recorder.await_outcome(Outcome.COMMITTED)
    assert len(meeting.loops) == 2


@pytest.mark.parametrize("mode", MODES)
def test_a_coroutine_sends_in_its_unit(adapter, recorder, mode):
    @adapter.listener("q", concurrency_mode=mode)
    async def handler(message: Message, session: Session) -> None:
        session.create_producer(Queue("out")).send(TextMessage(f"{message.body}{message.delivery_count}"))
        await asyncio.sleep(0)
        if not message.redelivered:
            raise KeyError("first")

    send(adapter, "a")
    with adapter:
        recorder.await_outcome(Outcome.ROLLED_BACK)
        recorder.await_outcome(Outcome.COMMITTED)
        assert waiting(adapter, "out") == [("a2", 0)]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_what_a_coroutine_raises_rolls_back(adapter, recorder, error):
    errors = [error]

    @adapter.listener("q", concurrency_mode="cc")
    async def handler(message: Message) -> None:
        if errors:
            raise errors.pop()

    send(adapter, "a")
    with adapter:
        recorder.await_outcome(Outcome.ROLLED_BACK)
        recorder.await_outcome(Outcome.COMMITTED)


def test_a_coroutine_that_exits_does_not_end_the_application(adapter, recorder):
    errors = [SystemExit(1)]

    @adapter.listener("q")
    async def handler(message: Message) -> None:
        if errors:
            raise errors.pop()

    async def serve() -> str:
        async with adapter:
            for outcome in (Outcome.ROLLED_BACK, Outcome.COMMITTED):
                await asyncio.to_thread(recorder.await_outcome, outcome)
        return "served"

    send(adapter, "a")
    assert asyncio.run(serve()) == "served"


def test_context_of_the_delivery_reaches_the_coroutine(jms_broker_url):
    trace, seen = contextvars.ContextVar("trace", default="none"), queue.Queue[str]()

    class Tracing(Hooks):
        def around_delivery(self, endpoint: str, message: Message, call_next: Callable[[], object]) -> object:
            trace.set(f"trace of {message.body}")
            return call_next()

    adapter = ResourceAdapter(jms_broker_url, hooks=[Tracing()])

    @adapter.listener("q")
    async def handler(message: Message) -> None:
        seen.put(trace.get())

    send(adapter, "a")
    with adapter:
        assert seen.get(timeout=PATIENCE) == "trace of a"


@pytest.mark.parametrize("mode", MODES)
def test_stopping_waits_for_coroutines(adapter, recorder, mode):
    began: queue.Queue[Callable[[], None]] = queue.Queue()

    @adapter.listener("q", concurrency_mode=mode)
    async def handler(message: Message) -> None:
        go_on, loop = asyncio.Event(), asyncio.get_running_loop()
        began.put(lambda: loop.call_soon_threadsafe(go_on.set))
        await go_on.wait()

    send(adapter, "a")
    adapter.start()
    go_on = began.get(timeout=PATIENCE)
    recorder.await_status("Connecting", "Up")
    stopping = in_thread(adapter.stop)
    recorder.await_status("Disconnecting")
    assert recorder.outcomes.empty()
    go_on()
    stopping.join(PATIENCE)
    recorder.await_outcome(Outcome.COMMITTED)


class Endless:
    """A handler that tells when it began, and how it ended."""

    def __init__(self) -> None:
        self.began: queue.Queue[asyncio.AbstractEventLoop] = queue.Queue()
        self.ended: queue.Queue[str] = queue.Queue()

    async def __call__(self, message: Message) -> None:
        loop = asyncio.get_running_loop()
        self.began.put(loop)
        try:
            await loop.create_future()
        finally:
            self.ended.put("cleaned up")


def test_closing_cancels_what_still_runs(session):
    """On a loop that goes on, because another listener uses it, too."""
    endless, results, loop = Endless(), queue.Queue[BaseException](), HandlerLoop()
    handler = Handler(endless, loop)
    loop.acquire()
    handler.open()

    def call() -> None:
        try:
            handler(Invocation(session.create_text_message("a"), lambda: session))
        except CancelledError as error:
            results.put(error)

    in_thread(call)
    assert endless.began.get(timeout=PATIENCE) is loop.get()
    handler.close()
    assert "cancelled before it had finished" in str(results.get(timeout=PATIENCE))
    assert endless.ended.get_nowait() == "cleaned up"
    assert loop.get().is_running()
    loop.release()
    assert not loop_threads()


def test_an_application_that_is_cancelled_stops_the_adapter(adapter, recorder):
    """As at Ctrl-C, which cancels the main task: the block is left, and what runs ends well."""

    async def serve() -> None:
        began, go_on = asyncio.Event(), asyncio.Event()

        @adapter.listener("q")
        async def handler(message: Message) -> None:
            began.set()
            await go_on.wait()

        async def wait_for_ever() -> None:
            async with adapter:
                await asyncio.get_running_loop().create_future()

        main = asyncio.create_task(wait_for_ever())
        await began.wait()
        main.cancel()
        await asyncio.to_thread(recorder.await_status, "Connecting", "Up", "Disconnecting")
        go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await main

    send(adapter, "a")
    asyncio.run(serve())
    recorder.await_outcome(Outcome.COMMITTED)
    recorder.await_status("Down")


@pytest.mark.parametrize("mode", MODES)
def test_at_the_deadline_of_a_stop_coroutines_are_cancelled(adapter, recorder, mode):
    endless = Endless()
    adapter.listener("q", concurrency_mode=mode)(endless)
    send(adapter, "a")
    adapter.start()
    endless.began.get(timeout=PATIENCE)
    assert not adapter.stop(timeout=0)
    assert endless.ended.get(timeout=PATIENCE) == "cleaned up"
    assert waiting(adapter) == [("a", 1)]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("inside", [True, False], ids=["by the handler", "beside it"])
def test_a_stop_on_the_loop_does_not_block_it(adapter, recorder, mode, inside):
    """Or no coroutine would ever end, and the stop would not either."""

    async def serve() -> None:
        began, go_on = asyncio.Event(), asyncio.Event()

        @adapter.listener("q", concurrency_mode=mode)
        async def handler(message: Message) -> None:
            began.set()
            if inside:
                adapter.stop()
            await go_on.wait()

        async with adapter:
            await asyncio.to_thread(send, adapter, "a")
            await began.wait()
            if not inside:
                adapter.stop()
            go_on.set()

    asyncio.run(serve())
    recorder.await_status("Connecting", "Up", "Disconnecting", "Down")
    recorder.await_outcome(Outcome.COMMITTED)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("close", [True, False])
def test_a_loop_that_ends_before_the_adapter_stops_it(adapter, recorder, mode, close):
    """The message comes again, and nobody waits for ever."""
    loop, endless = asyncio.new_event_loop(), Endless()
    adapter.listener("q", concurrency_mode=mode)(endless)
    send(adapter, "a")
    loop.run_until_complete(adapter.__aenter__())
    loop.run_until_complete(asyncio.to_thread(endless.began.get, True, PATIENCE))
    if close:
        loop.close()
    recorder.await_outcome(Outcome.ROLLED_BACK)
    recorder.await_status("Connecting", "Up", "Disconnecting", "Down")
    assert waiting(adapter) == [("a", 1)]
    loop.close()


def test_a_loop_that_is_closed_when_a_message_comes(adapter, recorder):
    loop = asyncio.new_event_loop()
    adapter.listener("q")(Endless())
    loop.run_until_complete(adapter.__aenter__())
    loop.close()
    send(adapter, "a")
    recorder.await_outcome(Outcome.ROLLED_BACK)
    recorder.await_status("Connecting", "Up", "Disconnecting", "Down")
    assert waiting(adapter) == [("a", 1)]
