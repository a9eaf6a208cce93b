"""The lifespan of an adapter surrounds its listeners."""

import asyncio
import signal
import threading
from contextlib import asynccontextmanager, contextmanager

import pytest

from jmsjca import ResourceAdapter
from jmsjca.errors import ActivationFailedError, ConfigurationError

URL = "embedded://lifespan"


def adapter_with(lifespan):
    adapter = ResourceAdapter(URL, lifespan=lifespan)
    adapter.listener("orders", redelivery_handling="")(lambda body: f"{body} is done")
    return adapter


def statuses(adapter):
    return [activation.status for activation in adapter.activations]


@pytest.fixture
def events():
    return []


@pytest.fixture
def plain(events):
    @contextmanager
    def lifespan(adapter):
        events.append(("enter", statuses(adapter)))
        try:
            yield
        finally:
            events.append(("leave", statuses(adapter)))

    return lifespan


@pytest.fixture
def asynchronous(events):
    @asynccontextmanager
    async def lifespan(adapter):
        await asyncio.sleep(0)
        events.append(("enter", statuses(adapter)))
        yield
        await asyncio.sleep(0)
        events.append(("leave", statuses(adapter)))

    return lifespan


AROUND = [("enter", ["Down"]), ("leave", ["Down"])]


def test_it_is_entered_before_the_listeners_start_and_left_after_they_have_stopped(plain, events):
    adapter = adapter_with(plain)
    for _ in range(2):
        with adapter:
            assert adapter.request("orders", "a pear", timeout=60).body == "a pear is done"
            assert events[-1][0] == "enter"
    assert events == AROUND * 2


@pytest.mark.parametrize("kind", ["plain", "asynchronous"])
def test_it_may_be_asynchronous_on_an_event_loop(kind, request, events):
    adapter = adapter_with(request.getfixturevalue(kind))

    async def main():
        async with adapter:
            assert events == AROUND[:1]

    asyncio.run(main())
    assert events == AROUND


def test_an_asynchronous_one_is_refused_without_an_event_loop(asynchronous, events):
    adapter = adapter_with(asynchronous)
    with pytest.raises(ConfigurationError, match="async with"):
        adapter.__enter__()
    with pytest.raises(ConfigurationError, match="async with"):
        adapter.run()
    assert (events, statuses(adapter)) == ([], ["Down"])


def test_it_is_left_when_the_block_fails(plain, events):
    with pytest.raises(OSError, match="broken"), adapter_with(plain):
        raise OSError("broken")
    assert events == AROUND


def test_listeners_do_not_start_when_it_fails(events):
    @contextmanager
    def lifespan(adapter):
        events.append("tried")
        raise OSError("no database")
        yield

    adapter = adapter_with(lifespan)
    with pytest.raises(OSError, match="no database"):
        adapter.__enter__()
    assert (events, statuses(adapter)) == (["tried"], ["Down"])


def test_run_is_surrounded(plain, events):
    adapter = ResourceAdapter(URL, lifespan=plain)
    adapter.listener("orders", connection_url="embedded:///absent/b.db?x=1", redelivery_handling="")(
        print
    )  # it stops permanently: so does `run`
    with pytest.raises(ActivationFailedError, match="options"):
        adapter.run()
    assert events == AROUND


def until_it_stops(adapter):
    while statuses(adapter) != ["Disconnecting"]:
        threading.Event().wait(0.01)


class TestLeavingIsInterrupted:
    """That is the deadline of the stop: the handlers are abandoned, and the lifespan is left when none can start."""

    def listen(self, adapter, events):
        """Add a listener whose handler never returns by itself; return an event that is set once it is active."""
        active = threading.Event()

        async def handler():
            active.set()
            try:
                await asyncio.Event().wait()
            finally:
                events.append("handler ended")

        adapter.listener("endless", redelivery_handling="", concurrency_mode="cc")(handler)
        adapter.send("endless", "a pear")
        return active

    @pytest.mark.parametrize("kind", ["plain", "asynchronous"])
    def test_by_cancellations(self, kind, request, events, jms_broker_url):
        adapter = ResourceAdapter(jms_broker_url, lifespan=request.getfixturevalue(kind))
        active = self.listen(adapter, events)

        async def serve():
            async with adapter:
                await asyncio.to_thread(active.wait, 60)
                left.set()

        async def main():
            serving = asyncio.create_task(serve())
            await left.wait()
            await asyncio.to_thread(until_it_stops, adapter)
            for _ in range(3):
                serving.cancel()
                await asyncio.sleep(0)
            with pytest.raises(asyncio.CancelledError):
                await serving
            assert statuses(adapter) == ["Down"]

        left = asyncio.Event()
        asyncio.run(main())
        assert [each for each in events if each != "handler ended"] == AROUND

    @pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, TimeoutError])
    def test_by_a_signal(self, plain, events, jms_broker_url, error, request):
        def interrupted(*_):
            raise error

        before = signal.signal(signal.SIGINT, interrupted)
        request.addfinalizer(lambda: signal.signal(signal.SIGINT, before))
        adapter = ResourceAdapter(jms_broker_url, lifespan=plain)
        active = self.listen(adapter, events)

        def interrupt():
            until_it_stops(adapter)
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

        def serve():
            with adapter:
                assert active.wait(60)
                threading.Thread(target=interrupt, daemon=True).start()

        with pytest.raises(error):
            serve()
        assert statuses(adapter) == ["Down"]
        assert [each for each in events if each != "handler ended"] == AROUND


def test_handlers_do_not_run_on_the_loop_of_a_failed_start(events):
    @asynccontextmanager
    async def lifespan(adapter):
        if not events:
            events.append("tried")
            raise OSError("no database")
        yield

    adapter = adapter_with(lifespan)

    async def main():
        async with adapter:
            """Never here."""

    with pytest.raises(OSError, match="no database"):
        asyncio.run(main())

    @adapter.listener("figs", redelivery_handling="")
    async def on_fig(body):
        return f"{body} is done"

    adapter.start()
    try:
        assert adapter.request("figs", "a fig", timeout=10).body == "a fig is done"
    finally:
        adapter.stop()
