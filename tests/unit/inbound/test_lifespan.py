"""The lifespan of an adapter surrounds its listeners."""

import asyncio
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
    adapter.listener("orders", selector="region =", redelivery_handling="")(
        print
    )  # it stops permanently: so does `run`
    with pytest.raises(ActivationFailedError, match="region"):
        adapter.run()
    assert events == AROUND
